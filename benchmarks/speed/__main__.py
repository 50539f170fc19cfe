"""Time training steps and whole fits, on a machine with nothing else to do.

``python -m benchmarks.speed [steps] [features] [rows] [fits] [starts]`` measures these parts, all by default,
and writes each result to CSV files as soon as it is known: a run that is stopped, or stops because others use
the machine, goes on where it was. Only ratios of one quiet run are results.

``python -m benchmarks.speed fits --against REV`` fits whole tables by this checkout and by another revision.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from benchmarks.real import PROBLEMS, Folders, add_folder_arguments
from benchmarks.speed import against, fits, growth
from benchmarks.speed.memory import peak_megabytes
from benchmarks.speed.picture import draw
from benchmarks.speed.results import Results, machine
from benchmarks.speed.shapes import SHAPES
from benchmarks.speed.steps import CANDIDATES, available, make_product, make_step
from benchmarks.speed.timing import BusyError, interleaved_medians, wait_until_quiet
from sparsevae.exceptions import DataError

CASES = [
    (name, n_hidden) for name in SHAPES for n_hidden in (2, 3) if (name, n_hidden) != ("transcriptome", 3)
]
BUSY = 3  # exit code


def main() -> int:
    arguments = _arguments()
    if arguments.against:
        against.compare(arguments)
        return 0
    results = Results(arguments.out, fresh=arguments.fresh)
    print(", ".join(f"{key} {value}" for key, value in machine().items()), flush=True)
    code = 0
    try:
        for part in arguments.parts or PARTS:
            PARTS[part](results, arguments)
    except BusyError as busy:
        print(busy, file=sys.stderr)
        code = BUSY
    text = results.text()
    (arguments.out / "tables.txt").write_text(text)
    print(text)
    draw(results, arguments.out / "speed.png")
    if arguments.publish and not code:
        results.publish(arguments.publish)
    return code


def steps(results: Results, arguments: argparse.Namespace) -> None:
    """Every way to take a step, at every shape."""
    for name, n_hidden in CASES:
        wanted = name in (arguments.shape or SHAPES) and n_hidden in (arguments.hidden or (2, 3))
        if not wanted or _known(results, "steps", shape=name, n_hidden=n_hidden):
            continue
        results.add("steps", _measure_steps(name, n_hidden, arguments))


def features(results: Results, arguments: argparse.Namespace) -> None:
    """Growth with the number of features."""
    if not _known(results, "features"):
        repeats = max(3, arguments.repeats // 3)
        results.add("features", growth.features(repeats, arguments.patience, not arguments.no_memory))


def rows(results: Results, arguments: argparse.Namespace) -> None:
    """Growth with the number of rows."""
    if not _known(results, "rows"):
        results.add("rows", growth.rows(arguments.repeats, arguments.patience))


def whole_fits(results: Results, arguments: argparse.Namespace) -> None:
    """Fits of the paper's data sets."""
    for recipe in fits.RECIPES:
        for name in ("synthetic", "zeisel", "peerread", "semisynthetic"):
            if _known(results, "fits", problem=name, recipe=recipe):
                continue
            try:
                X = PROBLEMS[name].load(Folders.of(arguments)).X
            except (FileNotFoundError, DataError) as reason:
                print(f"fits, {name}: skipped: {reason}")
                continue
            wait_until_quiet(arguments.patience)
            row = fits.whole_fit(PROBLEMS[name], X, recipe)
            results.add("fits", [{"problem": name, "recipe": recipe, **row}])


def starts(results: Results, arguments: argparse.Namespace) -> None:
    """What eight starts cost against one."""
    if not _known(results, "starts"):
        results.add("starts", fits.starts(max(3, arguments.repeats // 3), arguments.patience))


PARTS: dict[str, Callable[[Results, argparse.Namespace], None]] = {
    "steps": steps,
    "features": features,
    "rows": rows,
    "starts": starts,
    "fits": whole_fits,
}


def _measure_steps(name: str, n_hidden: int, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    shape = SHAPES[name]
    chosen = {key: candidate for key, candidate in CANDIDATES.items() if available(key, shape)}
    runs = {key: make_step(candidate, shape, n_hidden) for key, candidate in chosen.items()}
    products = {
        (precision, cached): make_product(shape, getattr(torch, precision), cached=cached)
        for precision in ("float32", "bfloat16")
        for cached in (False, True)
    }
    runs |= {f"product {key}": run for key, (run, _) in products.items()}
    repeats = arguments.repeats if shape.n_features < 10_000 else 3
    medians = interleaved_medians(runs, repeats, patience=arguments.patience)
    runs.clear()
    rate = {key: gflop / medians.seconds[f"product {key}"] for key, (_, gflop) in products.items()}
    seconds = {key: medians.seconds[key] / max(1, chosen[key].n_replicates) for key in chosen}
    loop = min(seconds[key] for key in chosen if chosen[key].is_loop)
    rows = []
    for key, candidate in chosen.items():
        gflops = shape.gflop(n_hidden) / seconds[key] if candidate.does_all_the_work else float("nan")
        rows.append(
            {
                "shape": name,
                "n_hidden": n_hidden,
                "candidate": key,
                "label": candidate.label,
                "milliseconds": 1e3 * seconds[key],
                "ratio_to_loop": loop / seconds[key],
                "ratio_to_plain": seconds[key] / seconds["plain"],
                "gflops": gflops,
                "of_matmul": gflops / rate[candidate.precision, False],
                "of_cached_matmul": gflops / rate[candidate.precision, True],
                "peak_megabytes": float("nan")
                if arguments.no_memory
                else peak_megabytes(make_step, candidate, shape, n_hidden),
                "quiet_rounds": medians.n_quiet,
                "rounds": medians.n_rounds,
            }
        )
    return rows


def _known(results: Results, table: str, **key: Any) -> bool:
    known = results.has(table, **key) if key else not results.frame(table).empty
    if known:
        words = " ".join(str(value) for value in key.values())
        print(f"{table} {words}".strip() + ": measured before (--fresh measures anew)", flush=True)
    else:
        print(f"{table} {' '.join(str(value) for value in key.values())}".strip(), flush=True)
    return known


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.speed",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="default: all")
    parser.add_argument("--shape", choices=SHAPES, action="append", help="default: all")
    parser.add_argument("--hidden", type=int, choices=(2, 3), action="append", help="default: both")
    parser.add_argument("--repeats", type=int, default=11, help="quiet rounds behind each median")
    parser.add_argument("--patience", type=float, default=0.0, help="seconds to wait for a quiet machine")
    parser.add_argument("--no-memory", action="store_true", help="do not measure peak memory")
    parser.add_argument("--fresh", action="store_true", help="forget earlier results")
    parser.add_argument("--out", type=Path, default=Path("bench-results/speed"))
    parser.add_argument("--publish", type=Path, help="folder for a page of the finished results")
    parser.add_argument("--against", metavar="REV", help="whole fits, beside those of this revision")
    parser.add_argument("--tables", help="of --against, with semicolons between them; default: all")
    parser.add_argument(
        "--predictive", action="store_true", help="of --against: fits with gain_kept=1.0 beside them"
    )
    parser.add_argument(
        "--pairs", type=int, default=3, help="of --against: fits of each table by each revision"
    )
    add_folder_arguments(parser)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
