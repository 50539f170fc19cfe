"""Fit the paper's real data in float32 and in bfloat16 from several seeds, and compare held-out scores.

``python -m benchmarks.precision`` appends each fit to a CSV file as soon as it is done; a run that is stopped
goes on where it was. A seed decides the split into rows to fit and rows to score, the start and the batches,
and is the same for both precisions.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
import pandas as pd
import torch

import sparsevae
from benchmarks.real import PROBLEMS, Folders, Problem, add_folder_arguments
from sparsevae import SparseVAE
from sparsevae.decoder import bfloat16_supported
from sparsevae.exceptions import DataError
from sparsevae.fitting import RECIPES

EPOCHS = {"peerread": 12, "zeisel": 30, "movielens": 10}  # fewer than a fit by default has
HELD_OUT = 0.2
PRECISIONS = ("float32", "bfloat16")
RECIPE = replace(RECIPES["default"], looser=None)  # one ladder is enough to compare precisions
KEY = ["problem", "seed", "precision"]
PAGE = Template(Path(__file__).with_name("page.md").read_text())


def main() -> int:
    arguments = _arguments()
    if not bfloat16_supported("cpu"):
        print("This processor does not multiply bfloat16 matrices: fits in bfloat16 would be float32 ones.")
        return 0
    arguments.out.mkdir(parents=True, exist_ok=True)
    rows_file = arguments.out / "rows.csv"
    for name in arguments.problems:
        try:
            X = PROBLEMS[name].load(Folders.of(arguments)).X
        except (FileNotFoundError, DataError) as reason:
            print(f"{name}: skipped: {reason}")
            continue
        for seed in range(arguments.seeds):
            for precision in PRECISIONS:
                if (name, seed, precision) in set(_read(rows_file)[KEY].itertuples(index=False, name=None)):
                    continue
                row = {"problem": name, "seed": seed, "precision": precision}
                row |= run(PROBLEMS[name], X, seed, precision, EPOCHS[name])
                pd.DataFrame([row]).to_csv(rows_file, mode="a", header=not rows_file.exists(), index=False)
                print(row, flush=True)
    rows = _read(rows_file)
    if not rows.empty:
        table = summary(rows)
        print(table.to_string(index=False))
        if arguments.publish:
            publish(rows, table, arguments.publish)
    return 0


def run(problem: Problem, X: Any, seed: int, precision: str, epochs: int) -> dict[str, Any]:
    """One fit and its score on rows that it has not seen."""
    order = np.random.default_rng(seed).permutation(X.shape[0])
    n_held_out = round(HELD_OUT * len(order))
    model = SparseVAE(
        **{**problem.options, "hidden_sizes": problem.options["hidden_sizes"][:2]},
        likelihood=problem.likelihood,
        recipe=RECIPE,
        init="rotation",
        max_epochs=epochs,
        precision=precision,
        random_state=seed,
    )
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the epochs are few; both precisions have the same
        model.fit(X[order[n_held_out:]])
    return {
        "score": model.score(X[order[:n_held_out]]),
        "n_active": len(model.active_factors_),
        "n_nonzero": int((model.mask_ != 0).sum()),
        "epochs": model.n_iter_,
        "seconds": time.perf_counter() - begin,
        "n_rows": len(order) - n_held_out,
        "n_held_out": n_held_out,
        "torch": torch.__version__,
        "sparsevae": sparsevae.__version__,
    }


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Means, their difference by seed, and how much a seed alone changes the score."""
    table = []
    for name, group in rows.groupby("problem", sort=False):
        score = group.pivot(index="seed", columns="precision", values="score").dropna()
        nonzero = group.pivot(index="seed", columns="precision", values="n_nonzero").loc[score.index]
        difference = score["bfloat16"] - score["float32"]
        error = difference.std() / math.sqrt(len(difference)) if len(difference) > 1 else math.nan
        table.append(
            {
                "data": name,
                "seeds": len(score),
                "float32": f"{score['float32'].mean():.2f}",
                "bfloat16": f"{score['bfloat16'].mean():.2f}",
                "difference ± standard error": f"{difference.mean():+.3f} ± {error:.3f}",
                "SD between seeds, float32": f"{score['float32'].std():.3f}",
                "non-zeros, float32": f"{nonzero['float32'].mean():.0f}",
                "non-zeros, bfloat16": f"{nonzero['bfloat16'].mean():.0f}",
            }
        )
    return pd.DataFrame(table)


def publish(rows: pd.DataFrame, table: pd.DataFrame, folder: Path) -> None:
    """Write a page of the documentation, and the rows beside it."""
    (folder / "precision").mkdir(parents=True, exist_ok=True)
    rows.to_csv(folder / "precision" / "rows.csv", index=False)
    epochs = ", ".join(f"{name} {number}" for name, number in EPOCHS.items())
    (folder / "precision.md").write_text(PAGE.substitute(epochs=epochs, table=_markdown(table)))


def _read(path: Path) -> pd.DataFrame:
    return pd.read_csv(path) if path.exists() else pd.DataFrame(columns=KEY)


def _markdown(table: pd.DataFrame) -> str:
    lines = [list(table.columns), ["---"] * table.shape[1], *table.astype(str).to_numpy().tolist()]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.precision",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--problems", nargs="+", choices=EPOCHS, default=list(EPOCHS))
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--out", type=Path, default=Path("bench-results/precision"))
    parser.add_argument("--publish", type=Path, help="folder for a page of the results")
    add_folder_arguments(parser)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
