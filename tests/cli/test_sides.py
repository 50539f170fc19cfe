"""Groups, weights and sizes of rows as columns of the table, from fit to drift."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pandas as pd
import pytest

from sparsevae import Run, SparseVAE

from .helpers import invoke, refusal

SHORT = ("--factors", "2", "--max-epochs", "2")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sides")
    rng = np.random.default_rng(0)
    study = rng.integers(0, 2, 80)
    z = rng.standard_normal((80, 2))
    X = z @ rng.standard_normal((2, 6)) + 0.3 * rng.standard_normal((80, 6)) + 2.0 * study[:, None]
    frame = pd.DataFrame(X, columns=[f"v{j}" for j in range(6)])
    frame.insert(0, "study", np.array(["north", "south"])[study])
    frame["w"] = rng.integers(0, 3, 80)
    frame.to_csv(folder / "t.csv", index=False)
    frame.drop(columns="w").to_csv(folder / "new.csv", index=False)
    result = invoke(
        "fit", folder / "t.csv", "--out", folder / "run", "--groups", "study", "--weights", "w", *SHORT
    )
    assert result.exit_code == 0, result.stderr
    return folder


def test_the_run_is_the_fit_with_groups_and_weights(place):
    frame = pd.read_csv(place / "t.csv")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # two epochs do not settle the mask
        model = SparseVAE(2, max_epochs=2, random_state=0).fit(
            frame[[f"v{j}" for j in range(6)]], groups=frame["study"], sample_weight=frame["w"]
        )
    run = Run.open(place / "run")
    np.testing.assert_array_equal(run.model().mask_, model.mask_)
    assert run.model().groups_.tolist() == ["north", "south"]


def test_run_json_names_the_columns(place):
    reading = json.loads((place / "run" / "run.json").read_text())["reading"]
    assert (reading["groups"], reading["weights"], reading["exposure"]) == ("study", "w", None)


def test_later_commands_read_the_groups(place):
    again = invoke("transform", place / "run", place / "new.csv")
    assert again.exit_code == 0, again.stderr
    assert "one new group" not in again.stderr
    written = (place / "run" / "factors.csv").read_text().splitlines()
    assert again.stdout.splitlines() == written
    for command in (("drift",), ("stability", "-n", "1", "--jobs", "1")):
        result = invoke(command[0], place / "run", place / "t.csv", *command[1:])
        assert result.exit_code == 0, result.stderr
    page = invoke("report", place / "run", "-o", place / "page.html", "--table", place / "new.csv")
    assert page.exit_code == 0, page.stderr


def test_replicate_cuts_them_as_the_rows(place):
    options = ("--groups", "study", "--weights", "w", "-n", "1", "--jobs", "1", *SHORT)
    result = invoke("replicate", place / "t.csv", *options)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("80 rows, 1 split")


def test_sizes_are_read_and_needed_later(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.poisson(3, (60, 4)), columns=list("abcd")).assign(hours=rng.uniform(1, 2, 60))
    frame.to_csv(tmp_path / "c.csv", index=False)
    frame.drop(columns="hours").to_csv(tmp_path / "bare.csv", index=False)
    fit = (
        "fit",
        tmp_path / "c.csv",
        "--out",
        tmp_path / "run",
        "--exposure",
        "hours",
        "--likelihood",
        "poisson",
    )
    assert invoke(*fit, *SHORT).exit_code == 0
    assert invoke("transform", tmp_path / "run", tmp_path / "c.csv").exit_code == 0
    assert "Expected exposure" in refusal("transform", tmp_path / "run", tmp_path / "bare.csv")


def test_a_settings_file_names_them_too(place, tmp_path):
    (tmp_path / "fit.toml").write_text('[table]\ngroups = "study"\nweights = "w"\n')
    options = ("--out", tmp_path / "run", "--config", tmp_path / "fit.toml", *SHORT)
    assert invoke("fit", place / "t.csv", *options).exit_code == 0
    assert Run.open(tmp_path / "run").model().groups_.tolist() == ["north", "south"]
