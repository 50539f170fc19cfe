"""Measure each figure in a process of its own, so that its peak memory is its own.

``python -m benchmarks.data [--quick] [--data FOLDER] [--movielens-1m FOLDER] [--json FILE]``

FOLDER of ``--data`` holds ``peerread_abstracts.jsonl.gz``; what is absent is skipped, with the reason.
Without ``--movielens-1m`` a generated file of the same size and layout takes its place.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.data import figures
from sparsevae.datasets import data_directory


def main() -> int:
    arguments = _arguments()
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        for name, limits, function, inputs in _figures(arguments, Path(scratch)):
            row = {"figure": name, **limits, **_measure(function, inputs)}
            rows.append(row)
            print(_line(row), flush=True)
    if arguments.json:
        versions = {"python": platform.python_version(), "numpy": np.__version__, "pandas": pd.__version__}
        arguments.json.write_text(json.dumps({"versions": versions, "rows": rows}, indent=2) + "\n")
    return int(any(row.get("within") is False for row in rows))


def _figures(arguments: argparse.Namespace, scratch: Path):
    abstracts = arguments.data / "peerread_abstracts.jsonl.gz"
    yield "PeerRead JSONL to matrix", {"max_seconds": 20}, figures.load_peerread, (abstracts,)
    one_million, kind = arguments.movielens_1m, "MovieLens 1M"
    if one_million is None:
        one_million, kind = scratch / "1m", "generated file like MovieLens 1M"
        figures.write_ratings(one_million, n_ratings=1_000_209, n_users=6_040, n_movies=3_706)
    yield f"{kind} to CSR", {"max_seconds": 5, "max_gigabytes": 1}, figures.load_movielens, (one_million,)
    share = 10 if arguments.quick else 1
    n_ratings = 25_000_095 // share
    figures.write_ratings(scratch / "25m", n_ratings=n_ratings, n_users=162_541 // share, n_movies=59_047)
    limits = {"max_seconds": 180, "max_gigabytes": 6}
    yield (
        f"generated 25M layout, {n_ratings} ratings, to CSR",
        limits,
        figures.load_movielens,
        (scratch / "25m",),
    )
    n_users = 100_000 // share
    yield f"Recall@5 and NDCG@10, {n_users} users x 300 items", {"max_seconds": 5}, figures.rank, (n_users,)
    yield f"the same with fold-in, {n_users} users", {"max_seconds": 5}, figures.rank_fold_in, (n_users,)
    yield "DCI, 500 rows x 5 codes x 2 factors", {"max_seconds": 2}, figures.score_dci, ()


def _measure(prepare: Callable[..., Callable[[], str]], inputs: tuple) -> dict:
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=figures.run, args=(sender, prepare, inputs))
    process.start()
    sender.close()  # so that a process that dies ends the wait
    result = receiver.recv()
    process.join()
    return result


def _line(row: dict) -> str:
    if "skipped" in row:
        return f"{row['figure']:62} skipped: {row['skipped']}"
    row["within"] = row["seconds"] < row["max_seconds"]
    text = f"{row['figure']:62} {row['seconds']:7.2f} s (< {row['max_seconds']} s)"
    if "max_gigabytes" in row:
        row["within"] &= row["peak_gigabytes"] < row["max_gigabytes"]
        text += f", peak {row['peak_gigabytes']:.2f} GB (< {row['max_gigabytes']} GB)"
    return f"{text}  {'ok' if row['within'] else 'TOO MUCH'}  {row['answer']}"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.data", description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the large sizes")
    default = Path(os.environ.get("SPARSEVAE_TEST_DATA") or data_directory())
    parser.add_argument("--data", type=Path, default=default, help="folder of the real data")
    parser.add_argument("--movielens-1m", type=Path, help="folder of the real release")
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
