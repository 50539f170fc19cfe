"""Measure the rivals: `VAE` against one written by hand, and what an epoch of `OIVAE` with 500 groups costs.

``python -m benchmarks.rivals [reconstruction] [epochs]`` measures these parts, both by default. A row goes to
a CSV file as soon as it is known; what is there is not measured again.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path
from typing import Any

from benchmarks.real import PROBLEMS, Folders, add_folder_arguments
from benchmarks.rivals.epochs import epochs
from benchmarks.rivals.reconstruction import DATA_SETS, METHODS, measure
from benchmarks.rivals.tables import markdown
from benchmarks.speed.results import Results
from benchmarks.speed.timing import BusyError
from sparsevae.exceptions import DataError

PARTS = ("reconstruction", "epochs")
BUSY = 3  # exit code


def main() -> int:
    arguments = _arguments()
    results = Results(arguments.out)
    code = 0
    for part in arguments.parts or PARTS:
        if arguments.fresh:
            (arguments.out / f"{part}.csv").unlink(missing_ok=True)
        try:
            _reconstruction(results, arguments) if part == "reconstruction" else _epochs(results, arguments)
        except BusyError as busy:
            print(busy, file=sys.stderr)
            code = BUSY
    text = markdown(results)
    (arguments.out / "rivals.md").write_text(text)
    print(text)
    if arguments.publish:
        shutil.copytree(arguments.out, arguments.publish, dirs_exist_ok=True)
    return code


def _reconstruction(results: Results, arguments: argparse.Namespace) -> None:
    loaded: dict[str, Any] = {}
    for seed in range(arguments.seeds):  # outside, so that a run that is stopped has something on all data
        for name in arguments.data_sets:
            for method in arguments.methods:
                key = {"data": name, "method": method, "seed": seed, "rows": arguments.rows}
                if results.has("reconstruction", **key):
                    continue
                if name not in loaded:
                    loaded[name] = _load(name, arguments)
                if loaded[name] is None:
                    break
                tuning = arguments.rows == "tuning"
                row = {**key, **measure(PROBLEMS[name], loaded[name], method, seed, tuning=tuning)}
                results.add("reconstruction", [row])
                print(f"{name} {method} {seed}: nll {row['nll']:.2f}", flush=True)


def _load(name: str, arguments: argparse.Namespace) -> Any:
    """The data set, or None with a word on why it is not there."""
    try:
        return PROBLEMS[name].load(Folders.of(arguments))
    except (FileNotFoundError, DataError) as reason:
        print(f"{name}: skipped: {reason}", flush=True)
        return None


def _epochs(results: Results, arguments: argparse.Namespace) -> None:
    if results.has("epochs", clock=arguments.clock):
        return
    data = _load("peerread", arguments)
    if data is not None:
        rows = epochs(
            PROBLEMS["peerread"],
            data.X,
            repeats=arguments.repeats,
            clock=arguments.clock,
            n_rows=arguments.epoch_rows,
        )
        results.add("epochs", rows)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.rivals",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="default: both")
    parser.add_argument("--data-sets", nargs="+", choices=DATA_SETS, default=list(DATA_SETS))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--seeds", type=int, default=5, help="splits, each with fits of its own")
    parser.add_argument(
        "--rows", choices=("test", "tuning"), default="test",
        help="tuning: measure on a fifth of the training rows, to choose a setting without the test rows",
    )  # fmt: skip
    parser.add_argument("--repeats", type=int, default=5, help="rounds behind each median time")
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall", help="cpu where others work too")
    parser.add_argument("--epoch-rows", type=int, help="rows of an epoch that is timed; default: all")
    parser.add_argument("--fresh", action="store_true", help="forget earlier results")
    parser.add_argument("--out", type=Path, default=Path("bench-results/rivals"))
    parser.add_argument("--publish", type=Path, help="folder for a copy of the results")
    add_folder_arguments(parser)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
