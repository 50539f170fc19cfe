from __future__ import annotations

import json

import pandas as pd
import pytest

from sparsevae.cli.replicate import FILES

from .helpers import files_under, invoke, refusal


@pytest.fixture
def command(shared, quick):
    return ("replicate", shared / "table.csv", "--config", quick, "--splits", 2, "--jobs", 1)


def test_the_result_is_told_and_written_as_one_set(command, tmp_path):
    out = tmp_path / "new" / "out"
    result = invoke(*command, "-o", out)
    assert result.exit_code == 0, result.stderr
    assert "40 rows, 2 splits into random halves" in result.stdout
    assert "factors of SparseVAE come back" in result.stdout
    assert "of a varimax rotation of" in result.stdout
    assert files_under(tmp_path) == {f"new/out/{name}" for name in FILES}
    record = json.loads((out / "replication.json").read_text("utf-8"))
    factors = pd.read_csv(out / "factors.csv")
    assert [row["factor"] for row in record["factors"]] == factors["factor"].tolist()
    assert factors["features"][0].startswith("item ")
    assert pd.read_csv(out / "splits.csv")["method"].unique().tolist() == ["SparseVAE", "varimax"]
    assert (out / "replication.png").read_bytes().startswith(b"\x89PNG")
    assert "Add --force" in refusal(*command, "-o", out)
    assert invoke(*command, "-o", out, "--force", "--splits", 1).exit_code == 0
    assert len(pd.read_csv(out / "splits.csv")) == 2


def test_a_column_of_text_tells_the_studies_apart(frame, quick, tmp_path):
    frame.assign(site=["Ulm", "Köln"] * 20).to_csv(tmp_path / "t.csv")
    arguments = ("replicate", tmp_path / "t.csv", "--config", quick, "--by", "site", "--jobs", 1)
    result = invoke(*arguments, "--json")
    assert result.exit_code == 0, result.stderr
    record = json.loads(result.stdout)
    assert record["studies"] == ["Ulm", "Köln"]
    assert record["by"] == "site"
    assert [row["split"] for row in record["splits"]] == ["Ulm, Köln"] * 2
    assert all("site" not in row["features"] for row in record["factors"])
    assert files_under(tmp_path) == {"t.csv"}


@pytest.mark.parametrize(
    "site, message",
    [
        (["Ulm"] * 40, "at least two studies"),
        ([f"s{i}" for i in range(40)], "at most 20 studies in by; got 40"),
        (["Ulm"] * 35 + ["Köln"] * 5, "at least 10 rows of each study; got 5 of 'Köln'"),
        (["Ulm"] * 39 + [None], "in every row"),
    ],
)
def test_studies_that_cannot_be_compared_are_refused(site, message, frame, quick, tmp_path):
    frame.assign(site=site).to_csv(tmp_path / "t.csv")
    assert message in refusal("replicate", tmp_path / "t.csv", "--config", quick, "--by", "site")


def test_a_column_that_is_not_there_and_too_few_rows_are_refused(frame, shared, tmp_path):
    assert "Expected a column 'wave'" in refusal("replicate", shared / "table.csv", "--by", "wave")
    frame.head(12).to_csv(tmp_path / "few.csv")
    assert "at least 20 rows" in refusal("replicate", tmp_path / "few.csv")


def test_a_refusal_leaves_no_place_behind(frame, quick, tmp_path):
    frame.assign(site=["Ulm"] * 40).to_csv(tmp_path / "t.csv")
    refusal("replicate", tmp_path / "t.csv", "--config", quick, "--by", "site", "-o", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_seed_is_that_of_the_settings_unless_it_is_typed(shared, tmp_path):
    settings = tmp_path / "seed.toml"
    settings.write_text("n_init = 1\nmax_epochs = 4\nn_factors = 1\nrandom_state = 5\n")
    command = ("replicate", shared / "table.csv", "--config", settings, "-n", 1, "--jobs", 1, "--json")
    written, typed, same = (
        json.loads(invoke(*command, *more).stdout)["matches"] for more in ((), ("--seed", 6), ("--seed", 5))
    )
    assert written == same
    assert written != typed


def test_a_place_that_cannot_be_written_is_refused_before_the_fit(command, tmp_path):
    (tmp_path / "file").write_text("")
    said = refusal(*command, "-o", tmp_path / "file")
    assert "file" in said
