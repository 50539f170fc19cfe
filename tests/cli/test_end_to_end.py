"""From a CSV file to the factors of new rows and a page, each in a process of its own, as users run it."""

from __future__ import annotations

import os
import subprocess
import sys

import pandas as pd

import sparsevae


def run(*arguments: object, cwd: object) -> subprocess.CompletedProcess[str]:
    source = os.path.dirname(os.path.dirname(sparsevae.__file__))
    path = os.pathsep.join(filter(None, [source, os.environ.get("PYTHONPATH")]))
    return subprocess.run(
        [sys.executable, "-m", "sparsevae", *map(str, arguments)],
        cwd=str(cwd),
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


def test_from_a_csv_file_to_the_factors_of_new_rows(tmp_path, frame, quick):
    frame.iloc[:30].to_csv(tmp_path / "old.csv")
    frame.iloc[30:].to_csv(tmp_path / "new.csv")
    fitted = run("fit", "old.csv", "--out", "run", "-k", 2, "--config", quick, cwd=tmp_path)
    assert fitted.returncode == 0, fitted.stderr
    assert "\r" not in fitted.stderr  # no progress bar where nobody watches
    applied = run("transform", "run", "new.csv", "-o", "factors.csv", cwd=tmp_path)
    assert applied.returncode == 0, applied.stderr
    factors = pd.read_csv(tmp_path / "factors.csv", index_col="person")
    assert list(factors.index) == list(frame.index[30:])
    assert list(factors.columns) == list(pd.read_csv(tmp_path / "run" / "loadings.csv", index_col=0).columns)
    reported = run("report", "run", "-o", "report.html", cwd=tmp_path)
    assert reported.returncode == 0, reported.stderr
    assert (tmp_path / "report.html").read_text("utf-8").startswith("<!doctype html>")
    refused = run("transform", "run", "nowhere.csv", cwd=tmp_path)
    assert refused.returncode == 1
    assert refused.stderr == "Error: Expected a table at nowhere.csv; there is no such file.\n"
