"""Coverage of 90 % intervals of effects, and errors of factor correlations, on anchored data.

    python -m benchmarks.uncertainty [--kinds linear,curved] [--samples 500,5000] [--sets 10] [--out FILE]

A row per data set; what is done already is not done again. True effects are coefficients of a regression of
the features on the true factors over many rows: of Gaussian factors, these are average slopes (Stein).
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment
from tqdm import tqdm

from sparsevae import SparseVAE
from sparsevae.datasets import make_anchored_factors
from sparsevae.metrics import spearman_matrix

KINDS = {
    "linear": {"nonlinear_share": 0.0, "interaction_share": 0.0},
    "curved": {"nonlinear_share": 0.25, "interaction_share": 0.1},
}
KEYS = ["kind", "rho", "n_samples", "seed"]
N_FEATURES, N_FACTORS, LEVEL = 24, 4, 0.9
_TRUTH_ROWS = 50_000


def main() -> None:
    """Parse the arguments, fit what is missing, print means."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("bench-results") / "uncertainty.csv")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--samples", default="500,5000")
    parser.add_argument("--rho", default="0,0.3,0.6")
    parser.add_argument("--sets", type=int, default=10, help="data sets of each setting")
    arguments = parser.parse_args()
    rows = pd.read_csv(arguments.out) if arguments.out.exists() else pd.DataFrame(columns=KEYS)
    done = set(rows[KEYS].itertuples(index=False, name=None))
    jobs = [
        (kind, float(rho), int(n), seed)
        for seed in range(arguments.sets)
        for n in arguments.samples.split(",")
        for kind in arguments.kinds.split(",")
        for rho in arguments.rho.split(",")
    ]
    for job in tqdm([job for job in jobs if job not in done], unit="fit"):
        row = {**dict(zip(KEYS, job, strict=True)), **measure(*job)}
        rows = pd.concat([rows, pd.DataFrame([row])], ignore_index=True)
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        rows.to_csv(arguments.out, index=False)
    found = rows[rows["factors"] == N_FACTORS]
    print(f"{len(found)} of {len(rows)} fits have {N_FACTORS} factors; the means are theirs.")
    columns = ["covered", "covered_all", "correlation", "correlation_error", "sample_error", "cpu_seconds"]
    print(found.groupby(["kind", "n_samples", "rho"])[columns].mean().round(3).to_string())
    print(found.groupby(["kind", "n_samples"])[columns[:2]].mean().round(3).to_string())


def measure(kind: str, rho: float, n_samples: int, seed: int) -> dict[str, float]:
    """Fit one data set and compare with what it was made from."""
    options = {"correlation": rho, "random_state": seed, **KINDS[kind]}
    data = make_anchored_factors(n_samples, N_FEATURES, N_FACTORS, **options)
    many = make_anchored_factors(_TRUTH_ROWS, N_FEATURES, N_FACTORS, **options)
    design = np.column_stack([many.factors, np.ones(len(many.factors))])
    truth = np.linalg.lstsq(design, many.X, rcond=None)[0][:N_FACTORS].T
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SparseVAE(2 * N_FACTORS, random_state=seed).fit(data.X)
    seconds = time.process_time() - began
    active = model.active_factors_
    row = {"factors": len(active), "cpu_seconds": seconds}
    if len(active) != N_FACTORS:
        return row
    match = spearman_matrix(data.factors, model.transform(data.X)[:, active])
    _, order = linear_sum_assignment(-np.abs(match))
    sign = np.sign(match[np.arange(N_FACTORS), order])
    effects = model.effects(ci=LEVEL)
    low, high = (effects[name].to_numpy().reshape(N_FACTORS, -1).T[:, order] for name in ("low", "high"))
    inside = (low <= truth * sign) & (truth * sign <= high)
    linked = data.mask != 0
    upper = np.triu_indices(N_FACTORS, 1)
    learned = model.factor_correlation().to_numpy()[np.ix_(order, order)] * np.outer(sign, sign)
    return {
        **row,
        "covered": inside[linked].mean(),
        "covered_all": inside.mean(),
        "correlation": learned[upper].mean(),
        "correlation_error": np.abs(learned[upper] - rho).mean(),
        "sample_error": np.abs(np.corrcoef(data.factors.T)[upper] - rho).mean(),
    }


if __name__ == "__main__":
    main()
