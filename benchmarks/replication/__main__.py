"""Run the replication benchmark, row by row; what is done already is not done again.

    python -m benchmarks.replication --data FOLDER [--only TABLE,...] [--methods NAME;...] [--quick] [--pages]

FOLDER holds the tables as ``SPARSEVAE_TEST_DATA`` does, and MovieLens 1M as ``ml-1m``.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import pandas as pd
from tqdm import tqdm

from benchmarks.replication.held_out import held_out_variance
from benchmarks.replication.methods import COUNTS_ONLY, OURS, PEERS
from benchmarks.replication.pages import write_pages
from benchmarks.replication.tables import TABLES
from benchmarks.trees import cpu_seconds
from sparsevae.metrics.replication import compare_factors, halves

FACTORS = (5, 7, 10, 15, 20)  # of the methods that do not choose their number
KEYS = ["table", "method", "n_factors", "split"]


def main() -> None:
    """Parse the arguments, fit what is missing, print the means."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=os.environ.get("SPARSEVAE_TEST_DATA"))
    parser.add_argument("--out", type=Path, default=Path("bench-results") / "replication.csv")
    parser.add_argument("--only", default=",".join(TABLES), help="tables, with commas between them")
    parser.add_argument("--methods", default=";".join([*PEERS, *OURS]), help="methods, with semicolons")
    parser.add_argument("--splits", type=int, help="fewer splits than the table asks for")
    parser.add_argument("--quick", action="store_true", help="one split, without our slower methods")
    parser.add_argument("--pages", action="store_true", help="write a page and a picture beside the rows")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.splits, arguments.methods = 1, ";".join([*PEERS, "sparse VAE"])
    if arguments.data is None:
        parser.error("no data: pass --data FOLDER, or set SPARSEVAE_TEST_DATA")
    rows = pd.read_csv(arguments.out) if arguments.out.exists() else pd.DataFrame(columns=KEYS)
    done = set(map(tuple, rows[KEYS].astype(str).to_numpy()))
    for name in arguments.only.split(","):
        table = TABLES[name]
        jobs = [
            (method, n_factors, split)
            for split in range(min(arguments.splits or table.n_splits, table.n_splits))
            for method in arguments.methods.split(";")
            if method not in COUNTS_ONLY or table.likelihood != "gaussian"
            for n_factors in (FACTORS if method in PEERS else (table.n_factors,))
        ]
        jobs = [job for job in jobs if (name, *map(str, job)) not in done]
        if not jobs:
            continue
        X = table.load(Path(arguments.data))
        for method, n_factors, split in tqdm(jobs, desc=name, unit="fit"):
            if n_factors >= X.shape[1] and method in PEERS:
                continue
            fit = {**PEERS, **OURS}[method]
            before, began = cpu_seconds(), time.perf_counter()
            both = halves(len(X), split)
            fits = [fit(X[half], X, table.likelihood, n_factors, seed) for seed, half in enumerate(both)]
            cpu, seconds = (cpu_seconds() - before) / 2, (time.perf_counter() - began) / 2
            row = {
                **dict(zip(KEYS, (name, method, n_factors, split), strict=True)),
                **compare_factors(*fits),
                "held_out": held_out_variance(fits, both, X, table.likelihood),
                "cpu_seconds": cpu,
                "seconds": seconds,
            }
            rows = pd.concat([rows, pd.DataFrame([row])], ignore_index=True)
            arguments.out.parent.mkdir(parents=True, exist_ok=True)
            rows.to_csv(arguments.out, index=False)
    if arguments.pages:
        write_pages(rows, arguments.out.parent)
    columns = ["factors_a", "back", "match", "overlap", "held_out", "cpu_seconds"]
    print(rows.groupby(KEYS[:3])[columns].mean().round(2).to_string())


if __name__ == "__main__":
    main()
