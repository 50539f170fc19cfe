"""Tables larger than memory, fits that are cut off, and fits in several processes.

``python -m benchmarks.scale WHAT [--rows N ...] [--folder DIR] [--out DIR]``

memory       peak resident memory of an epoch on float32 NPY files of 100 features
answers      the same of fit, transform, score, impute and report, for two numbers of rows
growth       resident memory over 1,000 epochs
rate         gradient steps from a backed H5AD file, and in memory
quality      held-out scores of whole fits from disk and in memory
checkpoints  what part of a fit goes into its checkpoints
kills        fits that are killed in every stage and resumed
processes    gradient steps in one process and in several, one thread each, and what they send
whole        whole fits of the same
sums         a sum over processes of as many numbers as some networks have
agreement    whole fits in 1, 2 and 4 processes
exits        exit codes of many short fits in two processes

Rows go to OUT/WHAT.csv.
"""

from __future__ import annotations

import argparse
import csv
import multiprocessing
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.scale import measures
from benchmarks.scale.agreement import compare_numbers
from benchmarks.scale.answers import measure_answers
from benchmarks.scale.exits import count_exits
from benchmarks.scale.kills import CHAINS, measure_kills
from benchmarks.scale.processes import measure_processes, measure_sum, measure_whole
from benchmarks.scale.tables import write_anchored, write_counts, write_normal

_ROWS = {
    "memory": [2_000_000, 10_000_000],
    "answers": [800_000, 2_400_000],
    "growth": [2_000],
    "rate": [200_000],
    "quality": [12_000],
    "checkpoints": [4_000],
    "kills": [1_000],
    "processes": [10_000],
    "whole": [100_000],
    "sums": [40_000, 400_000, 6_400_000],
    "agreement": [],
    "exits": [50],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=sorted(_ROWS))
    parser.add_argument("--rows", type=int, nargs="+", help="of the tables; of exits, fits; of sums, numbers")
    parser.add_argument("--batch", type=int, default=1024, help="of memory, processes and whole")
    parser.add_argument("--hidden", type=int, nargs="+", default=[16], help="of memory")
    parser.add_argument("--only", nargs="+", help="of answers: these alone")
    parser.add_argument("--steps", type=int, default=40, help="of rate")
    parser.add_argument("--epochs", type=int, default=1000, help="of growth")
    parser.add_argument("--seeds", type=int, default=4, help="of quality and agreement")
    parser.add_argument("--chains", type=int, default=2, help="of kills")
    parser.add_argument("--kinds", nargs="+", choices=sorted(CHAINS), default=list(CHAINS), help="of kills")
    parser.add_argument("--features", type=int, default=200, help="of processes and whole")
    parser.add_argument("--table", default="anchored", help="of agreement: a CSV file, or counts as NPZ")
    parser.add_argument("--epochs-at-most", type=int, help="of agreement (30 by default) and whole")
    parser.add_argument("--factors", type=int, default=5, help="of agreement")
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2], help="numbers of them, from 1 on")
    parser.add_argument("--folder", type=Path, help="where the tables are; a temporary one by default")
    parser.add_argument("--out", type=Path, default=Path("results/scale"))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        rows = []
        for row in _measure(arguments, arguments.folder or Path(scratch)):
            rows.append(row)
            print(", ".join(f"{name} {value}" for name, value in row.items()), flush=True)
    arguments.out.mkdir(parents=True, exist_ok=True)
    with (arguments.out / f"{arguments.what}.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def _measure(arguments: argparse.Namespace, folder: Path) -> Iterator[dict[str, Any]]:
    sizes = arguments.rows or _ROWS[arguments.what]
    if arguments.what == "answers":
        yield from measure_answers(folder, sizes, arguments.only)
    elif arguments.what == "agreement":
        seeds = list(range(arguments.seeds))
        yield from compare_numbers(
            arguments.table,
            seeds,
            arguments.processes,
            folder,
            epochs=arguments.epochs_at_most or 30,
            n_factors=arguments.factors,
        )
    elif arguments.what == "exits":
        yield count_exits(sizes[0], max(arguments.processes))
    elif arguments.what == "sums":
        for n_numbers in sizes:
            yield measure_sum(folder, max(arguments.processes), n_numbers)
    elif arguments.what == "kills":
        for kind in arguments.kinds:
            yield from measure_kills(kind, arguments.chains, 0, folder, sizes[0])
    elif arguments.what in ("processes", "whole"):
        for n_rows in sizes:
            path = write_normal(
                folder / f"normal-{n_rows}-{arguments.features}.npy", n_rows, arguments.features
            )
            for number in arguments.processes:
                if arguments.what == "whole":
                    yield measure_whole(path, number, arguments.batch, arguments.epochs_at_most)
                else:
                    yield measure_processes(path, number, arguments.batch)
    else:
        for n_rows in sizes:
            for job in _jobs(arguments, folder, n_rows):
                with multiprocessing.get_context("spawn").Pool(1) as pool:
                    yield pool.apply(*job)


def _jobs(arguments: argparse.Namespace, folder: Path, n_rows: int) -> list[tuple[Any, tuple[Any, ...]]]:
    """What is measured in a process of its own."""
    if arguments.what == "memory":
        path = write_normal(folder / f"normal-{n_rows}.npy", n_rows, 100)
        return [(measures.measure_memory, (path, arguments.batch, tuple(arguments.hidden)))]
    if arguments.what == "rate":
        path = write_counts(folder / f"counts-{n_rows}.h5ad", n_rows, 2000)
        return [(measures.measure_rate, (path, arguments.steps))]
    if arguments.what == "growth":
        path = write_normal(folder / f"normal-{n_rows}-10.npy", n_rows, 10, n_factors=3)
        return [(measures.measure_growth, (path, arguments.epochs))]
    path = write_anchored(folder / f"anchored-{n_rows}.npy", n_rows)
    if arguments.what == "checkpoints":
        return [(measures.measure_checkpoints, (path, folder))]
    return [(measures.measure_quality, (path, seed)) for seed in range(arguments.seeds)]


if __name__ == "__main__":
    main()
