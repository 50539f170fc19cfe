from __future__ import annotations

import json
import shutil

import numpy as np
import pandas as pd
import pytest

from sparsevae import SparseVAE

from .helpers import invoke, refusal


@pytest.fixture
def expected(shared, frame):
    model = SparseVAE.load(shared / "run" / "model")
    return model.transform(frame)[:, model.active_factors_]


def test_the_factors_of_the_fitted_table_are_those_of_the_fit(shared, tmp_path):
    result = invoke("transform", shared / "run", shared / "table.csv", "-o", tmp_path / "z.csv")
    assert result.exit_code == 0
    assert result.stdout == ""
    assert (tmp_path / "z.csv").read_bytes() == (shared / "run" / "factors.csv").read_bytes()


def test_without_a_file_they_go_to_stdout(shared):
    result = invoke("transform", shared / "run", shared / "table.csv")
    assert result.stdout == (shared / "run" / "factors.csv").read_text()


def test_json_has_names_and_values(shared, frame, expected):
    result = json.loads(invoke("transform", shared / "run", shared / "table.csv", "--json").stdout)
    assert result["samples"] == list(frame.index)
    assert len(result["factors"]) == expected.shape[1]
    np.testing.assert_allclose(np.array(result["values"]).reshape(expected.shape), expected, rtol=1e-6)


@pytest.mark.parametrize("ending", ["csv", "tsv", "npy", "parquet"])
def test_the_ending_of_the_file_chooses_its_format(ending, shared, expected, tmp_path):
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    path = tmp_path / "new folder" / f"z.{ending}"
    assert invoke("transform", shared / "run", shared / "table.csv", "-o", path).exit_code == 0
    readers = {
        "csv": lambda: pd.read_csv(path, index_col=0).to_numpy(),
        "tsv": lambda: pd.read_csv(path, index_col=0, sep="\t").to_numpy(),
        "npy": lambda: np.load(path),
        "parquet": lambda: pd.read_parquet(path).to_numpy(),
    }
    np.testing.assert_allclose(readers[ending](), expected, rtol=1e-5, atol=1e-6)
    assert [found.name for found in path.parent.iterdir()] == [path.name]


def test_an_existing_file_is_kept_without_force(shared, tmp_path):
    path = tmp_path / "z.csv"
    path.write_text("precious")
    assert "Add --force" in refusal("transform", shared / "run", shared / "table.csv", "-o", path)
    assert path.read_text() == "precious"
    assert invoke("transform", shared / "run", shared / "table.csv", "-o", path, "--force").exit_code == 0
    assert path.read_text() != "precious"


def test_a_file_without_names_is_taken_in_the_order_of_the_fit(shared, frame, expected, tmp_path):
    np.save(tmp_path / "new.npy", frame.to_numpy())
    result = invoke("transform", shared / "run", tmp_path / "new.npy")
    assert "has no names" in result.stderr
    assert result.stdout.startswith("sample,")
    assert len(result.stdout.splitlines()) == 41


def test_columns_that_the_fit_left_out_are_left_out_again(shared, frame, quick, tmp_path):
    frame.assign(group="a", age=30.0).to_csv(tmp_path / "more.csv")
    command = (
        "fit",
        tmp_path / "more.csv",
        "--out",
        tmp_path / "run",
        "--config",
        quick,
        "--drop",
        "group,age",
    )
    assert invoke(*command).exit_code == 0
    with_them = invoke("transform", tmp_path / "run", tmp_path / "more.csv")
    without = invoke("transform", tmp_path / "run", shared / "table.csv")
    assert with_them.exit_code == without.exit_code == 0, with_them.stderr + without.stderr
    assert with_them.stdout == without.stdout


def test_other_features_are_refused_by_name(shared, frame, tmp_path):
    run = shared / "run"
    frame.drop(columns="item 3").to_csv(tmp_path / "fewer.csv")
    assert "'item 3' is missing." in refusal("transform", run, tmp_path / "fewer.csv")
    frame.rename(columns={"item 3": "item 33"}).to_csv(tmp_path / "renamed.csv")
    assert "'item 3' is missing, and 'item 33' is new" in refusal("transform", run, tmp_path / "renamed.csv")
    frame.assign(age=30).to_csv(tmp_path / "more.csv")
    assert "got 'age' too. Leave it out (drop='age', on the command line --drop 'age')." in refusal(
        "transform", run, tmp_path / "more.csv"
    )
    assert invoke("transform", run, tmp_path / "more.csv", "--drop", "age").exit_code == 0
    np.save(tmp_path / "narrow.npy", frame.to_numpy()[:, :4])
    assert "Expected 5 features" in refusal("transform", run, tmp_path / "narrow.npy")


def test_another_order_of_features_is_refused(shared, frame, tmp_path):
    frame[frame.columns[[0, 2, 1, 3, 4]]].to_csv(tmp_path / "moved.csv")
    message = refusal("transform", shared / "run", tmp_path / "moved.csv", "-o", tmp_path / "z.csv")
    assert "column 2 is 'item 2' where the fit had 'item 1'" in message
    assert not (tmp_path / "z.csv").exists()


def test_an_unknown_output_format_is_refused_before_any_work(shared, tmp_path):
    assert "ends in .csv" in refusal(
        "transform", shared / "run", shared / "table.csv", "-o", tmp_path / "z.xlsx"
    )


def test_what_is_not_a_run_is_refused(shared, tmp_path):
    table = shared / "table.csv"
    assert "there is none" in refusal("transform", tmp_path / "nowhere", table)
    assert "has no run.json" in refusal("transform", tmp_path, table)
    (tmp_path / "run.json").write_text("{")
    assert "damaged" in refusal("transform", tmp_path, table)
    (tmp_path / "run.json").write_text('{"format": 99}')
    assert "has format 99" in refusal("transform", tmp_path, table)


def test_a_damaged_model_is_refused(shared, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(shared / "run", run)
    weights = max((run / "model").iterdir(), key=lambda path: path.stat().st_size)
    weights.write_bytes(weights.read_bytes()[:100])
    assert str(run) in refusal("transform", run, shared / "table.csv")
