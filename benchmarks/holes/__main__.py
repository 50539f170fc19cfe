"""What fits make of holes, weights, groups, ordered answers and drift. One line per result, as JSON.

Run ``python -m benchmarks.holes`` with a study from the root of the repository; ``--data`` names the
folder of the real tables, and ``--output`` a file that gets the rows too (and keeps other seeds).
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path

import pandas as pd

from benchmarks.holes.cost import cost
from benchmarks.holes.drift import drift
from benchmarks.holes.grouped import batches, groups
from benchmarks.holes.imputation import FRACTIONS, imputation
from benchmarks.holes.known import recovery, weights
from benchmarks.holes.ordinal import ordinal

STUDIES = {
    "batches": batches,
    "cost": cost,
    "drift": drift,
    "groups": groups,
    "imputation": imputation,
    "ordinal": ordinal,
    "recovery": recovery,
    "weights": weights,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.holes", description=__doc__)
    parser.add_argument("what", choices=sorted(STUDIES))
    parser.add_argument("--data", type=Path, help="folder with bfi.csv, zeisel/ and pbmc3k/")
    parser.add_argument("--seeds", type=int, nargs="+", default=range(10))
    parser.add_argument("--tables", nargs="+", help="of batches, imputation and cost")
    parser.add_argument("--fractions", nargs="+", type=float, default=FRACTIONS, help="of imputation")
    parser.add_argument("--output", type=Path, metavar="FILE.csv")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = _other_rows(arguments)
    for row in STUDIES[arguments.what](arguments):
        print(json.dumps(row), flush=True)
        rows.append(row)
        if arguments.output is not None:  # after each, as some take minutes
            arguments.output.parent.mkdir(parents=True, exist_ok=True)
            pd.DataFrame(rows).to_csv(arguments.output, index=False)


def _other_rows(arguments: argparse.Namespace) -> list[dict[str, object]]:
    """Rows that the file has of seeds and tables that do not run again."""
    if arguments.output is None or not arguments.output.exists():
        return []
    rows = pd.read_csv(arguments.output)
    again = rows["seed"].isin(arguments.seeds) if "seed" in rows else pd.Series(data=True, index=rows.index)
    if arguments.tables is not None:
        again &= rows["table"].isin(arguments.tables)
    if "fraction" in rows:
        again &= rows["fraction"].isin(arguments.fractions)
    return [{str(name): value for name, value in row.items()} for row in rows[~again].to_dict("records")]


if __name__ == "__main__":
    main()
