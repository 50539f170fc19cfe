"""Coverage of 90 % intervals of effects, and errors of factor correlations, on anchored data.

    python -m benchmarks.uncertainty [--kinds linear,curved] [--samples 500,5000] [--sets 10] [--out FILE]
    python -m benchmarks.uncertainty --given ...

A row per data set; what is done already is not done again. True effects are coefficients of a regression of
the features on the true factors over many rows: of Gaussian factors, these are average slopes (Stein). With
``--given`` nothing is fitted: links and factors are the true ones, and intervals and correlations are those
of a fit that has found them.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment
from scipy.stats import t
from tqdm import tqdm

from sparsevae import SparseVAE
from sparsevae.datasets import Dataset, make_anchored_factors
from sparsevae.identifiability.confirmatory import confirm_factors
from sparsevae.identifiability.resamples import resample_factors
from sparsevae.metrics import spearman_matrix

KINDS = {
    "linear": {"nonlinear_share": 0.0, "interaction_share": 0.0},
    "curved": {"nonlinear_share": 0.25, "interaction_share": 0.1},
}
KEYS = ["kind", "rho", "n_samples", "seed", "given"]
N_FEATURES, N_FACTORS, LEVEL = 24, 4, 0.9
_TRUTH_ROWS, _ROWS_SHOWN = 50_000, 1000


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
    parser.add_argument("--given", action="store_true", help="true links and factors in place of a fit")
    arguments = parser.parse_args()
    rows = pd.read_csv(arguments.out) if arguments.out.exists() else pd.DataFrame(columns=KEYS)
    done = set(rows[KEYS].itertuples(index=False, name=None))
    jobs = [
        (kind, float(rho), int(n), seed, arguments.given)
        for seed in range(arguments.sets)
        for n in arguments.samples.split(",")
        for kind in arguments.kinds.split(",")
        for rho in arguments.rho.split(",")
    ]
    for job in tqdm([job for job in jobs if job not in done], unit="fit"):
        row = {**dict(zip(KEYS, job, strict=True)), **measure(*job)}
        rows = pd.DataFrame([*rows.to_dict("records"), row])
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        rows.to_csv(arguments.out, index=False)
    found = rows[rows["factors"] == N_FACTORS]
    print(f"{len(found)} of {len(rows)} fits have {N_FACTORS} factors; the means are theirs.")
    columns = ["covered", "covered_all", "correlation", "correlation_error", "sample_error", "cpu_seconds"]
    print(found.groupby(["given", "kind", "n_samples", "rho"])[columns].mean().round(3).to_string())
    print(
        found.groupby(["given", "n_samples"])[columns[:2]].agg(["mean", "sem", "size"]).round(3).to_string()
    )


def measure(kind: str, rho: float, n_samples: int, seed: int, given: bool) -> dict[str, float]:
    """Compare intervals and correlations of one data set with what it was made from."""
    options = {"correlation": rho, "random_state": _random_state(kind, rho, n_samples, seed), **KINDS[kind]}
    data = make_anchored_factors(n_samples, N_FEATURES, N_FACTORS, **options)
    many = make_anchored_factors(_TRUTH_ROWS, N_FEATURES, N_FACTORS, **options)
    design = np.column_stack([many.factors, np.ones(len(many.factors))])
    truth = np.linalg.lstsq(design, many.X, rcond=None)[0][:N_FACTORS].T
    began = time.process_time()
    found = _from_links(data, truth) if given else _from_fit(data, truth, seed)
    row = {"factors": found.n_factors, "cpu_seconds": time.process_time() - began}
    if found.n_factors != N_FACTORS:
        return row
    inside, upper = (found.low <= truth) & (truth <= found.high), np.triu_indices(N_FACTORS, 1)
    return {
        **row,
        "covered": inside[data.mask != 0].mean(),
        "covered_all": inside.mean(),
        "correlation": found.correlation[upper].mean(),
        "correlation_error": np.abs(found.correlation[upper] - rho).mean(),
        "sample_error": np.abs(np.corrcoef(data.factors.T)[upper] - rho).mean(),
    }


class Found(NamedTuple):
    """Intervals of effects and correlations, in the order and sign of the true factors."""

    n_factors: int
    low: np.ndarray
    high: np.ndarray
    correlation: np.ndarray


def _from_fit(data: Dataset, truth: np.ndarray, seed: int) -> Found:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SparseVAE(2 * N_FACTORS, random_state=seed).fit(data.X)
    active = model.active_factors_
    if len(active) != N_FACTORS:
        return Found(len(active), truth, truth, np.eye(N_FACTORS))
    match = spearman_matrix(data.factors, model.transform(data.X)[:, active])
    _, order = linear_sum_assignment(-np.abs(match))
    sign = np.sign(match[np.arange(N_FACTORS), order])
    effects = model.effects(ci=LEVEL)
    ends = np.stack([effects[name].to_numpy().reshape(N_FACTORS, -1).T[:, order] for name in ("low", "high")])
    learned = model.factor_correlation().to_numpy()[np.ix_(order, order)] * np.outer(sign, sign)
    return Found(N_FACTORS, *np.sort(ends * sign, axis=0), learned)


def _from_links(data: Dataset, truth: np.ndarray) -> Found:
    links = data.mask != 0
    shown = slice(_ROWS_SHOWN)
    halves = resample_factors(data.X, data.X[shown], data.factors[shown], links, n_samples=len(data.X))
    margin = t.ppf(0.5 + LEVEL / 2.0, len(halves.agreement)) * halves.deviation
    learned = confirm_factors(np.corrcoef(data.X.T), np.where(links, np.sign(truth), 0.0)).correlation
    return Found(N_FACTORS, halves.loadings - margin, halves.loadings + margin, learned)


def _random_state(kind: str, rho: float, n_samples: int, seed: int) -> int:
    """Every data set is drawn anew: intervals of one factor err together, so that few draws say little."""
    words = [list(KINDS).index(kind), round(100 * rho), n_samples, seed]
    return int(np.random.SeedSequence(words).generate_state(1)[0])


if __name__ == "__main__":
    main()
