"""Tables that stay on disk, from the command line."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from sparsevae.datasets import make_anchored_factors

from .helpers import invoke, refusal


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a table in parts, and a run of it."""
    pytest.importorskip("pyarrow")
    place = tmp_path_factory.mktemp("streamed")
    X = make_anchored_factors(300, 9, 3, random_state=0).X.astype(np.float32)
    frame = pd.DataFrame(X, columns=[f"q{j}" for j in range(9)])
    (place / "parts").mkdir()
    frame[:120].to_parquet(place / "parts" / "0.parquet", row_group_size=50)
    frame[120:].to_parquet(place / "parts" / "1.parquet", row_group_size=50)
    frame.to_csv(place / "whole.csv", index=False)
    result = invoke("fit", place / "parts", "--out", place / "run", "--max-epochs", 12, "-k", 3)
    assert result.exit_code == 0, result.stderr
    assert "stays on disk" in result.stderr
    return place


def test_a_run_has_the_factors_of_every_row(place):
    factors = pd.read_csv(place / "run" / "factors.csv", index_col=0)
    assert factors.index.tolist() == list(range(300))
    assert pd.read_csv(place / "run" / "loadings.csv", index_col=0).index.tolist() == [
        f"q{j}" for j in range(9)
    ]


@pytest.mark.parametrize("ending", ["csv", "tsv", "npy"])
def test_transform_writes_block_by_block_what_it_writes_at_once(place, tmp_path, ending):
    for table, name in (("parts", "a"), ("whole.csv", "b")):
        result = invoke("transform", place / "run", place / table, "-o", tmp_path / f"{name}.{ending}")
        assert result.exit_code == 0, result.stderr
    if ending == "npy":
        a, b = (np.load(tmp_path / f"{name}.npy") for name in "ab")
        np.testing.assert_allclose(a, b, atol=1e-5)
    else:
        separator = "," if ending == "csv" else "\t"
        a, b = (pd.read_csv(tmp_path / f"{name}.{ending}", sep=separator, index_col=0) for name in "ab")
        pd.testing.assert_frame_equal(a, b, atol=1e-5)


def test_transform_prints_and_refuses(place, tmp_path):
    printed = invoke("transform", place / "run", place / "parts").stdout.splitlines()
    assert len(printed) == 301
    sentence = refusal("transform", place / "run", place / "parts", "-o", tmp_path / "z.parquet")
    assert "Expected CSV, TSV or NPY for the factors of parts" in sentence
    result = invoke("transform", place / "run", place / "parts", "-o", tmp_path / "z.npy", "--json")
    assert '"n_samples":300' in result.stdout.replace(" ", "")


def test_a_report_is_made_of_it(place, tmp_path):
    result = invoke("report", place / "run", "-o", tmp_path / "r.html")
    assert result.exit_code == 0, result.stderr
    again = invoke("report", place / "run", place / "parts", "-o", tmp_path / "r2.html")
    assert again.exit_code in (0, 2)


def test_a_damaged_part_is_one_sentence(place, tmp_path):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "0.parquet").write_bytes((place / "parts" / "0.parquet").read_bytes()[:500])
    assert "to be a Parquet file; it is damaged" in refusal(
        "fit", tmp_path / "parts", "--out", tmp_path / "r"
    )
