"""How well are known factors found? One row per fit; what is done is not done again.

Run ``python -m benchmarks.recovery`` from the root of the repository, and again with ``--ablations`` for the
default with one part left out; ``--quick`` takes a few data sets each.
"""

from __future__ import annotations

import argparse
import platform
import time
import warnings
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from joblib import Parallel, delayed
from tqdm import tqdm

import sparsevae
from benchmarks.recovery.methods import ABLATIONS, METHODS, RIVALS
from benchmarks.recovery.pages import KEY, MEASURES, summary, write_pages
from benchmarks.recovery.problems import PROBLEMS
from sparsevae.metrics import anchor_f1, dci, spearman_mcc, support_f1

QUICK_SEEDS = 2
ABLATION_SEEDS = 5
KNOWN_SEEDS = 10
ABLATION_PROBLEMS = ("synthetic-0", "synthetic-0.4", "synthetic-0.8")
COLUMNS = [*KEY, "n_active", "n_true", *MEASURES, "seconds", "cpu_seconds", "version", "torch", "machine"]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recovery", description=__doc__)
    parser.add_argument("--methods", nargs="+", choices=METHODS, help="these, on all problems, in full")
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=list(PROBLEMS))
    parser.add_argument(
        "--ablations", action="store_true", help="the default with one part left out, instead"
    )
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_SEEDS} data sets of each small problem")
    parser.add_argument("--jobs", type=int, default=2, help="fits at the same time, one thread each")
    parser.add_argument("--out", type=Path, default=Path("bench-results/recovery"))
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    rows_file = arguments.out / "rows.csv"
    done = set(_read(rows_file)[KEY].itertuples(index=False, name=None))
    runs = [
        key
        for key in (_asked_for(arguments.methods) if arguments.methods else _planned(arguments.ablations))
        if key not in done and key[1] in arguments.problems and (not arguments.quick or _is_quick(key))
    ]
    parallel = Parallel(n_jobs=arguments.jobs, return_as="generator_unordered")
    for row in tqdm(parallel(delayed(run)(*key) for key in runs), total=len(runs), unit="fit"):
        pd.DataFrame([row], columns=COLUMNS).to_csv(
            rows_file, mode="a", header=not rows_file.exists(), index=False
        )
    rows = _read(rows_file)
    write_pages(rows, arguments.out)
    print(summary(rows).to_string(index=False))


def _planned(ablations: bool) -> list[tuple[str, str, int]]:
    """The default on every problem, with known anchors, and its rivals; or the ablations."""

    def runs(
        methods: Iterable[str], problems: Iterable[str], limit: int = 1000
    ) -> list[tuple[str, str, int]]:
        return [
            (method, problem, seed)
            for method in methods
            for problem in problems
            for seed in range(min(limit, PROBLEMS[problem].n_seeds))
        ]

    if ablations:
        return runs(["default", *ABLATIONS], ABLATION_PROBLEMS, ABLATION_SEEDS)
    synthetic = [problem for problem in PROBLEMS if problem.startswith("synthetic")]
    return [
        *runs(["default"], PROBLEMS),
        *runs(["known-anchors"], ["synthetic-0", "synthetic-0.8"], KNOWN_SEEDS),
        *runs(RIVALS, synthetic),
    ]


def _is_quick(key: tuple[str, str, int]) -> bool:
    """A few data sets of each problem that has many."""
    _, problem, seed = key
    return seed < QUICK_SEEDS < PROBLEMS[problem].n_seeds


def _asked_for(methods: list[str]) -> list[tuple[str, str, int]]:
    return [
        (method, problem, seed)
        for method in methods
        for problem in PROBLEMS
        for seed in range(PROBLEMS[problem].n_seeds)
    ]


def run(method: str, problem: str, seed: int) -> dict[str, object]:
    """Fit one method to one data set and measure it on rows it has not seen."""
    torch.set_num_threads(1)
    setting = PROBLEMS[problem]
    data = setting.make(seed)
    train, test = data.X[: setting.n_train], data.X[setting.n_train :]
    factors = data.factors[setting.n_train :]
    model = METHODS[method](setting, data, seed)
    begin, begin_cpu = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(train)
    spent = {"seconds": time.perf_counter() - begin, "cpu_seconds": time.process_time() - begin_cpu}
    codes = model.transform(test)
    mask = getattr(model, "mask_", np.ones((train.shape[1], codes.shape[1])))
    active = model.active_factors_
    row: dict[str, object] = {"method": method, "problem": problem, "seed": seed, **spent}
    row |= {"n_active": len(active), "n_true": factors.shape[1], "score": model.score(test)}
    if factors.shape[1]:
        row["support_f1"] = support_f1(mask, data.mask)
        row["anchor_f1"] = anchor_f1(mask, data.mask)
        if len(active):
            found = dci(codes[:, active], factors)
            row["dci"] = found.disentanglement
            row["completeness"], row["informativeness"] = found.completeness, found.informativeness
            row["spearman"] = spearman_mcc(codes[:, active], factors)
    if setting.likelihood == "gaussian":
        row["mse"] = float(np.square(model.inverse_transform(codes) - test).mean())
    return row | {"version": sparsevae.__version__, "torch": torch.__version__, "machine": platform.machine()}


def _read(path: Path) -> pd.DataFrame:
    return pd.read_csv(path) if path.exists() else pd.DataFrame(columns=KEY)


if __name__ == "__main__":
    main()
