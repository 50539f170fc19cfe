"""What fits make of holes, groups, ordered answers and drift. One line per result, as JSON.

Run ``python -m benchmarks.holes imputation``, ``recovery``, ``groups``, ``batches``, ``ordinal`` or ``drift``
from the root of the repository; ``--data`` names the folder of the real tables, and ``--output`` a file that
gets the rows too.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment

from benchmarks.holes.imputation import FRACTIONS, cells, compare, tables
from sparsevae import SparseVAE
from sparsevae.datasets import make_anchored_factors, make_grouped_factors
from sparsevae.inspection.drift import Drift
from sparsevae.metrics import support_f1


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.holes", description=__doc__)
    parser.add_argument("what", choices=sorted(STUDIES))
    parser.add_argument("--data", type=Path, help="folder with bfi.csv and zeisel/")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--tables", nargs="+", help="of the imputation")
    parser.add_argument("--output", type=Path, metavar="FILE.csv")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for row in STUDIES[arguments.what](arguments):
        print(json.dumps(row), flush=True)
        rows.append(row)
    if arguments.output is not None:
        arguments.output.parent.mkdir(parents=True, exist_ok=True)
        pd.DataFrame(rows).to_csv(arguments.output, index=False)


def imputation(arguments: argparse.Namespace) -> Iterator[dict[str, object]]:
    """Error on hidden cells beside other methods."""
    for name, X in tables(arguments.data).items():
        if arguments.tables is None or name in arguments.tables:
            for fraction in FRACTIONS:
                yield from compare(name, X, fraction)


def recovery(arguments: argparse.Namespace) -> Iterator[dict[str, object]]:
    """Known factors with 15 % of the cells missing."""
    for seed in range(arguments.seeds):
        data = make_anchored_factors(1000, 60, 6, random_state=seed)
        X = np.where(np.random.default_rng(seed).uniform(size=data.X.shape) < 0.15, np.nan, data.X)
        started = time.perf_counter()
        model = SparseVAE(10, random_state=0).fit(X)
        yield {
            "seed": seed,
            "n_active": len(model.active_factors_),
            "support_f1": round(support_f1(model.mask_, data.mask), 4),
            "seconds": round(time.perf_counter() - started),
        }


def groups(arguments: argparse.Namespace) -> Iterator[dict[str, object]]:
    """Known shared and specific factors, and shifts between two groups."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_score

    for seed in range(arguments.seeds):
        data = make_grouped_factors(1000, 40, n_shared=3, n_specific=1, random_state=seed)
        model = SparseVAE(8, random_state=0).fit(data.X, groups=data.target)
        Z = model.transform(data.X, groups=data.target)[:, model.active_factors_]
        pure = make_grouped_factors(1000, 40, n_shared=4, n_specific=0, random_state=seed)
        of_pure = SparseVAE(8, random_state=0).fit(pure.X, groups=pure.target)
        codes = of_pure.transform(pure.X, groups=pure.target)[:, of_pure.active_factors_]
        told = {
            type(judge).__name__: round(
                float(cross_val_score(judge, codes, pure.target, scoring="balanced_accuracy").mean()), 3
            )
            for judge in (LogisticRegression(), HistGradientBoostingClassifier(random_state=0))
        }
        roles = _right_roles(data, Z, model.group_factors()["role"].tolist())
        f1 = round(support_f1(model.mask_, data.mask), 4)
        yield {"seed": seed, "n_active": Z.shape[1], "support_f1": f1, "roles_right": roles, **told}


def batches(arguments: argparse.Namespace) -> Iterator[dict[str, object]]:
    """Cells in two artificial batches with known shifts: what the factors tell of batch and type."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_score

    X, types = cells(arguments.data)
    judges = {"logistic": LogisticRegression(max_iter=1000), "boosting": HistGradientBoostingClassifier()}

    def tell(Z: np.ndarray, labels: np.ndarray) -> dict[str, float]:
        return {
            name: round(float(cross_val_score(judge, Z, labels, scoring="balanced_accuracy").mean()), 4)
            for name, judge in judges.items()
        }

    for seed in range(arguments.seeds):
        rng = np.random.default_rng(seed)
        batch = rng.integers(0, 2, len(X))
        shifted = X + batch[:, None] * rng.normal(0.0, X.std(0), X.shape[1])
        for name, table, groups in (
            ("unshifted", X, None),
            ("shifted, groups unknown", shifted, None),
            ("shifted, groups given", shifted, batch),
        ):
            model = SparseVAE(10, random_state=seed)
            Z = model.fit_transform(table, groups=groups)[:, model.active_factors_]
            yield {
                "seed": seed,
                "table": name,
                "n_active": Z.shape[1],
                **{f"batch_{judge}": value for judge, value in tell(Z, batch).items()},
                **{f"type_{judge}": value for judge, value in tell(Z, types).items()},
            }


def _right_roles(data: object, Z: np.ndarray, roles: list[str]) -> float:
    """Fraction of true factors whose nearest found one has the right role."""
    factors, target = data.factors, data.target  # type: ignore[attr-defined]
    n_factors = factors.shape[1]
    correlation = np.abs(np.corrcoef(factors.T, Z.T)[:n_factors, n_factors:])
    right = 0
    for k in range(n_factors):
        owners = sorted(set(target[factors[:, k] != 0]))
        expected = "shared" if len(owners) == len(set(target)) else ", ".join(owners)
        right += roles[int(correlation[k].argmax())] == expected
    return right / n_factors


def ordinal(arguments: argparse.Namespace) -> Iterator[dict[str, object]]:
    """The 25 personality items: factors, items on their own trait, and held-out category probabilities."""
    frame = pd.read_csv(arguments.data / "bfi.csv")
    items = [name for name in frame.columns if name[:-1] in "ACENO" and name[-1].isdigit()]
    X = frame[items].to_numpy(dtype=float)
    trait = np.array([name[0] for name in items])
    for seed in range(arguments.seeds):
        whole = SparseVAE(10, likelihood="ordinal", random_state=seed).fit(X)
        hidden = (np.random.default_rng(seed).uniform(size=X.shape) < 0.1) & ~np.isnan(X)
        seen = np.where(hidden, np.nan, X)
        scores = {
            likelihood: _category_score(
                SparseVAE(10, likelihood=likelihood, random_state=seed).fit(seen), seen, X, hidden
            )
            for likelihood in ("ordinal", "gaussian")
        }
        yield {
            "seed": seed,
            "n_active": len(whole.active_factors_),
            "items_on_own_trait": _on_own_trait(whole, trait),
            **{f"log_probability_{name}": round(score, 4) for name, score in scores.items()},
        }


def _on_own_trait(model: SparseVAE, trait: np.ndarray) -> int:
    """Items whose strongest factor is that of their trait, each factor being that of one trait at most."""
    strongest = model.variance_shares_.argmax(1)
    traits = np.unique(trait)
    counts = np.array([np.bincount(strongest[trait == t], minlength=model.mask_.shape[1]) for t in traits])
    own, factors = linear_sum_assignment(-counts)
    return int(counts[own, factors].sum())


def _category_score(model: SparseVAE, seen: np.ndarray, X: np.ndarray, hidden: np.ndarray) -> float:
    """Mean log probability of hidden answers by draws, with half a draw for each category."""
    draws = model.impute(seen, n_draws=100, random_state=0)[:, hidden]
    nearest = np.clip(np.rint(draws), 1, 6)
    chance = ((nearest == X[hidden]).sum(0) + 0.5) / (len(draws) + 3.0)
    return float(np.log(chance).mean())


def drift(arguments: argparse.Namespace) -> Iterator[dict[str, object]]:
    """False alarms, broken curves and moved mixes on new rows of a known generator."""
    n_fit, n_new, n_tables = 1500, 500, 40
    data = make_anchored_factors(n_fit + n_tables * n_new, 30, 4, random_state=0)
    model = SparseVAE(6, random_state=0).fit(data.X[:n_fit])
    rest, means, Z = data.X[n_fit:], data.mean[n_fit:], data.factors[n_fit:]
    rng = np.random.default_rng(0)
    counts = dict.fromkeys(
        (
            "false_alarm",
            "factor_false_alarm",
            "column_test_false_alarm",
            "shift",
            "slope",
            "mix",
            "mix_blamed",
            "mix_blamed_by_column_test",
        ),
        0,
    )
    for t in range(n_tables):
        rows = slice(t * n_new, (t + 1) * n_new)
        plain = model.drift(rest[rows])
        counts["false_alarm"] += bool(plain.broken)
        counts["factor_false_alarm"] += bool(plain.moved)
        counts["column_test_false_alarm"] += _column_alarm(plain)
        j = int(rng.integers(30))
        X = rest[rows].copy()
        X[:, j] += X[:, j].std()
        counts["shift"] += f"x{j}" in model.drift(X).broken
        X = rest[rows].copy()
        X[:, j] -= 0.5 * (means[rows, j] - means[:, j].mean())
        counts["slope"] += f"x{j}" in model.drift(X).broken
        chance = np.exp(Z[:, t % 4])
        moved = model.drift(rest[rng.choice(len(rest), n_new, replace=False, p=chance / chance.sum())])
        counts["mix_blamed"] += bool(moved.broken)
        counts["mix"] += bool(moved.moved)
        counts["mix_blamed_by_column_test"] += _column_alarm(moved)
    yield {name: value / n_tables for name, value in counts.items()}


def _column_alarm(found: Drift) -> bool:
    """Whether a Kolmogorov-Smirnov test of each column alone would raise an alarm, at the same level."""
    p = found.features["column_p_value"].to_numpy()
    return bool(p.min() * len(p) <= 0.05)


STUDIES = {
    "batches": batches,
    "drift": drift,
    "groups": groups,
    "imputation": imputation,
    "ordinal": ordinal,
    "recovery": recovery,
}

if __name__ == "__main__":
    main()
