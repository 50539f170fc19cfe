"""Models and runs that earlier releases have saved: they load, and give the numbers that they gave then."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import sparsevae
from sparsevae import Run
from sparsevae.exceptions import DataWarning
from sparsevae.report import build_content

from .write_models import ESTIMATORS, LIKELIHOODS, numbers

pytestmark = pytest.mark.filterwarnings("ignore:The model in .* was saved by sparsevae 0.1")  # its note

HERE = Path(__file__).parent
SAVED = sorted(path.with_suffix("") for path in HERE.glob("*/*.npz"))
RUNS = sorted(path.parent for path in HERE.glob("*/run/run.json"))

every_model = pytest.mark.parametrize("path", SAVED, ids=lambda path: f"{path.parent.name}-{path.name}")
every_run = pytest.mark.parametrize("path", RUNS, ids=lambda path: path.parent.name)


def load(path):
    return getattr(sparsevae, path.name.split("-")[0]).load(path)


def known(path):
    """The table of a saved model, and the numbers that it gave when it was saved."""
    with np.load(f"{path}.npz") as file:
        values = dict(file)
    X = values.pop("X")
    return pd.DataFrame(X, columns=[f"f{j}" for j in range(X.shape[1])]), values


def assert_same_numbers(found, expected):
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        near = {"rtol": 1e-5, "atol": 1e-6 * np.abs(value).max(initial=0.0)}
        np.testing.assert_allclose(found[name], value, **near, err_msg=name)


def test_there_is_a_model_of_every_estimator_and_likelihood():
    pairs = {f"{name}-{likelihood}" for name in ESTIMATORS for likelihood in LIKELIHOODS}
    for release in {path.parent for path in SAVED}:
        assert {path.name for path in SAVED if path.parent == release} == pairs | {"SparseVAE-wide"}
        assert (release / "run").is_dir()
    assert SAVED


def test_a_model_of_version_0_1_loads_with_a_note():
    with pytest.warns(DataWarning, match=r"saved by sparsevae 0.1.0, whose checksum covers the arrays alone"):
        load(HERE / "0.1" / "VAE-gaussian")


@every_model
def test_a_model_gives_the_numbers_that_it_gave_when_it_was_saved(path):
    X, expected = known(path)
    assert_same_numbers(numbers(load(path), X), expected)


@every_model
def test_a_model_that_is_saved_anew_stays_the_same(path, tmp_path):
    model = load(path)
    X, _ = known(path)
    again = type(model).load(model.save(tmp_path / "model"))
    assert again.get_params() == model.get_params()
    found, expected = numbers(again, X), numbers(model, X)
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


@pytest.mark.parametrize("path", [path for path in SAVED if "SparseVAE" in path.name], ids=lambda p: p.name)
def test_a_sparse_vae_can_be_examined(path):
    model = load(path)
    X, _ = known(path)
    evidence = model.evidence(X)
    assert list(evidence["samples"]) == model.loadings().columns.tolist()
    assert [factor["name"] for factor in build_content(model, evidence=evidence)["factors"]] == list(
        evidence["samples"]
    )


@every_run
def test_a_run_opens_and_gives_the_factors_that_it_holds(path):
    run, table = Run.open(path), path.parent / "table.csv"
    active = run.model().loadings().columns.tolist()
    held = pd.read_csv(path / "factors.csv", index_col=0)
    found = run.factors(table)
    assert found.columns.tolist() == held.columns.tolist() == active
    np.testing.assert_allclose(found, held, rtol=1e-5, atol=1e-6)
    loadings = pd.read_csv(path / "loadings.csv", index_col=0)
    np.testing.assert_allclose(run.model().loadings(), loadings, rtol=1e-5)


@every_run
def test_the_evidence_of_a_run_still_makes_a_page(path):
    run = Run.open(path)
    content = build_content(run.model(), evidence=run.evidence())
    assert [factor["name"] for factor in content["factors"]] == run.model().loadings().columns.tolist()
    fresh = run.examine(path.parent / "table.csv")
    assert fresh.keys() >= run.evidence().keys()
    assert fresh["source"] == run.evidence()["source"]
