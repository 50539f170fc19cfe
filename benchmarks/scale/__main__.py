"""Tables larger than memory.

``python -m benchmarks.scale memory|rate|quality|processes [--rows N ...] [--folder DIR] [--out DIR]``

``memory`` trains an epoch on float32 NPY files of 100 features and prints the peak resident memory of each;
``rate`` compares gradient steps from a backed H5AD file with those in memory; ``quality`` compares held-out
scores of whole fits; ``processes`` compares gradient steps in one process and in several, with one thread
each, and says what they send. Each measurement has a process of its own, and a row in OUT/NAME.csv.
"""

from __future__ import annotations

import argparse
import csv
import multiprocessing
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.scale.measures import measure_memory, measure_quality, measure_rate
from benchmarks.scale.processes import measure_processes
from benchmarks.scale.tables import write_counts, write_normal

_ROWS = {"memory": [2_000_000, 10_000_000], "rate": [200_000], "quality": [40_000], "processes": [10_000]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=sorted(_ROWS))
    parser.add_argument("--rows", type=int, nargs="+")
    parser.add_argument("--batch", type=int, default=1024, help="of the memory and processes figures")
    parser.add_argument("--steps", type=int, default=40, help="of the rate figure")
    parser.add_argument("--seeds", type=int, default=4, help="of the quality figure")
    parser.add_argument("--features", type=int, default=200, help="of the processes figure")
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--folder", type=Path, help="where the tables are; a temporary one by default")
    parser.add_argument("--out", type=Path, default=Path("results/scale"))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.folder or Path(scratch)
        rows = []
        for n_rows in arguments.rows or _ROWS[arguments.what]:
            for job in _jobs(arguments, folder, n_rows):
                if arguments.what == "processes":  # which starts its own
                    rows.append(job[0](*job[1]))
                else:
                    with multiprocessing.get_context("spawn").Pool(1) as pool:
                        rows.append(pool.apply(*job))
                print(", ".join(f"{name} {value}" for name, value in rows[-1].items()), flush=True)
    arguments.out.mkdir(parents=True, exist_ok=True)
    with (arguments.out / f"{arguments.what}.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def _jobs(arguments: argparse.Namespace, folder: Path, n_rows: int) -> list[tuple[Any, tuple[Any, ...]]]:
    if arguments.what == "memory":
        path = write_normal(folder / f"normal-{n_rows}.npy", n_rows, 100)
        return [(measure_memory, (path, arguments.batch))]
    if arguments.what == "rate":
        path = write_counts(folder / f"counts-{n_rows}.h5ad", n_rows, 2000)
        return [(measure_rate, (path, arguments.steps))]
    if arguments.what == "processes":
        path = write_normal(folder / f"normal-{n_rows}-{arguments.features}.npy", n_rows, arguments.features)
        return [(measure_processes, (path, number, arguments.batch)) for number in arguments.processes]
    path = write_normal(folder / f"normal-{n_rows}-20.npy", n_rows, 20, n_factors=4)
    return [(measure_quality, (path, seed)) for seed in range(arguments.seeds)]


if __name__ == "__main__":
    main()
