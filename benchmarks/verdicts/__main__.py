"""Fit both halves of each table, and record the evidence on each factor and whether it came back.

    python -m benchmarks.verdicts --data FOLDER [--only TABLE,...] [--splits N] [--pages]

FOLDER as for ``python -m benchmarks.replication``. Splits that are done already are not done again.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from tqdm import tqdm

from benchmarks.verdicts.calibration import by_class, leave_one_out
from benchmarks.verdicts.pages import write_pages
from benchmarks.verdicts.problems import PROBLEMS, Problem
from sparsevae import SparseVAE
from sparsevae.factor_analysis import analyse_factors
from sparsevae.identifiability.resamples import Resamples
from sparsevae.metrics.replication import RETURNED, FactorSet, counted_factors, linear_shares, match_sets
from sparsevae.replication.factor_sets import factor_set


def main() -> None:
    """Parse the arguments, fit what is missing, print the classes."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=os.environ.get("SPARSEVAE_TEST_DATA"))
    parser.add_argument("--out", type=Path, default=Path("bench-results") / "verdicts.csv")
    parser.add_argument("--only", default=",".join(PROBLEMS), help="tables, with commas between them")
    parser.add_argument("--splits", type=int, help="fewer splits than the table asks for")
    parser.add_argument("--pages", action="store_true", help="write a page and a picture beside the rows")
    arguments = parser.parse_args()
    rows = pd.read_csv(arguments.out) if arguments.out.exists() else pd.DataFrame()
    done = set(zip(rows["table"], rows["split"], strict=True)) if len(rows) else set()
    names = [name for name in PROBLEMS if name in arguments.only.split(",")]
    jobs = [
        (name, split)
        for name in names
        for split in range(min(arguments.splits or PROBLEMS[name].n_splits, PROBLEMS[name].n_splits))
        if (name, split) not in done
    ]
    for name, split in tqdm(jobs, unit="split"):
        found = compare_halves(name, PROBLEMS[name], Path(arguments.data or "."), split)
        rows = pd.concat([rows, pd.DataFrame(found)], ignore_index=True)
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        rows.to_csv(arguments.out, index=False)
    judged, limits = leave_one_out(rows)
    if arguments.pages:
        write_pages(judged, limits, arguments.out.parent)
    print(by_class(judged).round(3).to_string())
    print(limits.round(3).to_string())


def compare_halves(name: str, problem: Problem, folder: Path, split: int) -> list[dict]:
    """A row per factor, kept or dropped, of the fits to two halves of the rows."""
    X = problem.load(folder, split)
    order = np.random.default_rng(1000 + split).permutation(len(X))
    parts = order[: len(X) // 2], order[len(X) // 2 :]
    looks = [_look(X, rows, problem, seed) for seed, rows in enumerate(parts)]
    return [
        {"table": name, "split": split, "half": half, **row}
        for half in (0, 1)
        for row in _rows(looks[half], looks[1 - half])
    ]


def _look(X: np.ndarray, rows: np.ndarray, problem: Problem, seed: int) -> tuple:
    """Kept and dropped factors of a fit to some rows, over all rows; evidence on the kept; CPU seconds."""
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SparseVAE(problem.n_factors, likelihood=problem.likelihood, random_state=seed).fit(X[rows])
    seconds = time.process_time() - began
    kept = factor_set(model, X, rows)
    resamples = Resamples.from_dict(model.resamples_) if model.resamples_ else None
    match = np.full(len(model.active_factors_), np.nan) if resamples is None else resamples.match
    return kept, _dropped(model, X, rows, kept, problem.n_factors), match, seconds


def _dropped(model: SparseVAE, X: np.ndarray, rows: np.ndarray, kept: FactorSet, n_factors: int) -> FactorSet:
    """Linear factors, as many as the fit was allowed, that are none of those it kept."""
    inputs = model.codes(X).inputs(np.arange(len(X))).astype(np.float64)
    mean, scale = inputs[rows].mean(0), np.maximum(inputs[rows].std(0), 1e-6)
    inputs = (inputs - mean) / scale
    found = analyse_factors(inputs[rows], min(n_factors, inputs.shape[1] - 1))
    codes = inputs @ found.maps()
    shares = linear_shares(found.loadings, codes[rows], np.ones(inputs.shape[1]))
    linear = FactorSet(codes, shares)
    taken = match_sets(linear, kept).first
    free = np.setdiff1d(np.arange(codes.shape[1]), taken)
    return linear.take(free)


def _rows(own: tuple, other: tuple) -> list[dict]:
    """What became of one fit's factors in the other one."""
    both = [
        FactorSet(*(np.concatenate(values, axis=1) for values in zip(look[0], look[1], strict=True)))
        for look in (own, other)
    ]
    correlation = np.zeros(both[0].codes.shape[1])
    pairs = match_sets(*both)
    correlation[pairs.first] = pairs.correlation
    n_kept = own[0].codes.shape[1]
    counted = np.isin(np.arange(len(correlation)), counted_factors(both[0]))
    return [
        {
            "factor": k,
            "kept": k < n_kept,
            "counted": bool(counted[k]),
            "match": own[2][k] if k < n_kept else np.nan,
            "correlation": correlation[k],
            "back": bool(correlation[k] >= RETURNED),
            "cpu_seconds": own[3],
        }
        for k in range(len(correlation))
    ]


if __name__ == "__main__":
    main()
