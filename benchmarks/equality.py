"""Whether this checkout gives the fits of another revision, to the last bit, and what they cost.

    python -m benchmarks.equality --against REV
    python -m benchmarks.equality --against REV --pairs 9     # CPU time as well, in interleaved pairs

Every case is fitted in a fresh process by each of the two source trees: small instances of all estimators on
all likelihoods, and the models of the tutorials. Compared are mask, history, transform and scores.
"""

from __future__ import annotations

import argparse
import re
import statistics
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

from benchmarks.trees import ROOT, cpu_seconds, other_tree, run_in_tree

TINY = {"n_factors": 3, "max_epochs": 12, "hidden_sizes": (6, 5), "random_state": 0}
COLUMNS = {
    "gaussian": [0, 1, 6, 7],
    "bernoulli": [2, 3, 8, 9],
    "poisson": [4, 5],
    "negative_binomial": [10, 11],
}
TIMED = ("sparse factors", "anchored", "wide")


def tables() -> dict[str, np.ndarray]:
    """A table of each kind, 90 × 12, with a factor behind either half of the columns."""
    rng = np.random.default_rng(0)
    signal = rng.standard_normal((90, 2))[:, np.arange(12) // 6] + 0.3 * rng.standard_normal((90, 12))
    counts = rng.poisson(np.exp(1.0 + 0.5 * signal)).astype(float)
    found = {"gaussian": np.exp(0.5 * signal), "bernoulli": (signal > 0).astype(float)}
    found |= dict.fromkeys(("multinomial", "poisson", "negative_binomial"), counts)
    mixed = np.empty_like(counts)
    for kind, columns in COLUMNS.items():
        mixed[:, columns] = found[kind][:, columns]
    return {**found, "mixed": mixed}


def estimators() -> dict[str, object]:
    """Small instances of every estimator and of every way to fit one."""
    from sparsevae import NMF, OIVAE, VAE, VSC, SparseVAE

    groups = [0] * 4 + [1] * 4 + [2] * 4
    return {
        "SparseVAE": SparseVAE(**TINY, n_init=2),
        "SparseVAE, linear": SparseVAE(**{**TINY, "hidden_sizes": (), "max_epochs": 40}),
        "SparseVAE, rotation": SparseVAE(**TINY, init="rotation", n_init=2),
        "SparseVAE, random": SparseVAE(**TINY, init="random", n_init=1),
        "SparseVAE, anchors": SparseVAE(**TINY, anchors={0: 1, 7: 0}, n_init=2),
        "SparseVAE, given covariance": SparseVAE(**TINY, factor_covariance=0.7 * np.eye(3) + 0.3, n_init=1),
        "SparseVAE, identity": SparseVAE(**TINY, factor_covariance="identity", n_init=1),
        "SparseVAE, size": SparseVAE(**TINY, expected_features_per_factor=4, n_init=1),
        "SparseVAE, rates": SparseVAE(**TINY, spike_rate=20.0, slab_rate=1.0, n_init=1),
        "SparseVAE, paper": SparseVAE(**TINY, recipe="paper"),
        "SparseVAE, authors": SparseVAE(**TINY, recipe="authors"),
        "VAE": VAE(**TINY),
        "VAE, linear": VAE(**{**TINY, "hidden_sizes": ()}),
        "VAE, two starts": VAE(**TINY, n_init=2),
        "VAE, paper": VAE(**TINY, recipe="paper"),
        "VAE, authors": VAE(**TINY, recipe="authors"),
        "VSC": VSC(**TINY, n_pseudo_inputs=3),
        "VSC, paper": VSC(**TINY, recipe="paper", sparsity=0.5),
        "VSC, authors": VSC(**TINY, recipe="authors"),
        "OIVAE": OIVAE(**TINY),
        "OIVAE, groups": OIVAE(**TINY, groups=groups, group_width=2),
        "OIVAE, paper": OIVAE(**{**TINY, "hidden_sizes": ()}, recipe="paper"),
        "OIVAE, authors": OIVAE(**TINY, recipe="authors", penalty=0.01),
        "NMF": NMF(n_factors=2, random_state=0),
    }


def large() -> dict[str, tuple[object, np.ndarray]]:
    """Larger tables, whose fits take the paths of large problems."""
    from sparsevae import SparseVAE
    from sparsevae.datasets import make_anchored_factors, make_sparse_factors

    rng = np.random.default_rng(1)
    loadings = np.kron(np.eye(4), np.ones(40))
    wide = rng.standard_normal((400, 4)) @ loadings + rng.standard_normal((400, 160))
    counts = rng.poisson(np.exp(0.4 * wide)).astype(float)
    fast = {"random_state": 0, "max_epochs": 60}
    return {
        "sparse factors": (SparseVAE(5, n_init=8, **fast), make_sparse_factors(500, random_state=0).X),
        "anchored": (SparseVAE(8, **fast), make_anchored_factors(600, 30, 4, random_state=0).X),
        "wide": (SparseVAE(6, **fast), wide),
        "wide, negative binomial": (SparseVAE(6, likelihood="negative_binomial", **fast), counts),
        "wide, multinomial": (SparseVAE(6, likelihood="multinomial", **fast), counts),
        "wide, some features": (SparseVAE(6, features_per_step=60, n_init=1, **fast), wide),
    }


def defaults() -> dict[str, tuple[object, np.ndarray]]:
    """Whole default fits, which are timed."""
    from sparsevae import SparseVAE

    return {name: (SparseVAE(8, random_state=0), large()[name][1]) for name in TIMED}


def tutorials() -> dict[str, tuple[object, object]]:
    """Models of the tutorials, fitted by their own code, with their tables."""
    found = {}
    for page in sorted((ROOT / "docs" / "tutorials").glob("*.md")):
        names: dict[str, object] = {}
        for block in re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.S):
            exec(block, names)
            if "model" in names:
                break
        if "model" not in names:  # no fit of one model: the list, the page on methods
            continue
        frames = [value for value in names.values() if hasattr(value, "columns")]
        table = next(t for t in frames if t.shape[1] == names["model"].n_features_in_)
        found[f"tutorial {page.stem}"] = (names["model"], table)
    return found


def numbers(model, X) -> dict[str, np.ndarray]:
    """What is compared of a fitted model."""
    history = model.history_.select_dtypes("number")
    found = {"transform": model.transform(X), "score": model.score_samples(X), "history": history.to_numpy()}
    if hasattr(model, "mask_"):
        found["mask"] = model.mask_
    if hasattr(model, "effects_"):
        found["effects"] = model.effects_
    return found


def work(out: Path, only: str | None, *, timed: bool) -> None:
    """Fit all cases (or one, for its time) with the package that is importable, and write the numbers."""
    warnings.simplefilter("ignore")
    sys.stdout = sys.stderr
    if timed:
        model, X = defaults()[only]
        before = cpu_seconds()
        model.fit(X)
        out.write_text(str(cpu_seconds() - before))
        return
    kept = {}
    for kind, X in tables().items():
        for name, estimator in estimators().items():
            case = f"{name} on {kind}"
            likelihood = COLUMNS if kind == "mixed" else kind
            if only is None or only in case:
                model = estimator.set_params(likelihood=likelihood).fit(X)
                kept |= {f"{case}|{key}": value for key, value in numbers(model, X).items()}
    for name, (model, X) in large().items():
        if only is None or only in name:
            kept |= {f"{name}|{key}": value for key, value in numbers(model.fit(X), X).items()}
    if only is None or only in "tutorials":
        for name, (model, X) in tutorials().items():
            kept |= {f"{name}|{key}": value for key, value in numbers(model, X).items()}
    np.savez(out, **kept)


def compare(mine: Path, theirs: Path) -> int:
    """Print how the two differ; the number of cases that do."""
    a, b = np.load(mine), np.load(theirs)
    if set(a.files) != set(b.files):
        print("Other numbers:", sorted(set(a.files) ^ set(b.files))[:8])
    different: dict[str, list[str]] = {}
    for key in sorted(set(a.files) & set(b.files)):
        if a[key].shape == b[key].shape and np.array_equal(a[key], b[key], equal_nan=True):
            continue
        case, what = key.split("|")
        if a[key].shape != b[key].shape:
            said = f"{what} {b[key].shape} -> {a[key].shape}"
        else:
            gap = np.nanmax(np.abs(a[key] - b[key])) / max(np.nanmax(np.abs(b[key])), 1e-300)
            matched = " (equal but for order and sign)" if _same_columns(a[key], b[key]) else ""
            said = f"{what} by {gap:.1e} of its largest{matched}"
        different.setdefault(case, []).append(said)
    cases = {key.split("|")[0] for key in a.files}
    for case, what in different.items():
        print(f"  {case}: {'; '.join(what)}")
    main = {case for case, what in different.items() if any(not w.startswith("effects") for w in what)}
    equal = "mask, history, transform and scores equal to the last bit"
    print(f"{len(cases) - len(main)} of {len(cases)} fits: {equal}.")
    print(f"{len(cases) - len(different)} of {len(cases)} fits: effects as well.")
    return len(main)


def _same_columns(a: np.ndarray, b: np.ndarray) -> bool:
    if a.ndim != 2:
        return False
    columns = [{tuple(c), tuple(-c + 0.0)} for c in b.T]
    return all(any(tuple(c) in pair for pair in columns) for c in a.T)


def main() -> None:
    """Parse the arguments, run both trees, compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--against", metavar="REV")
    parser.add_argument("--pairs", type=int, default=0, help="interleaved pairs of timed fits")
    parser.add_argument("--only", help="cases whose name has this in it")
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--timed", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        work(arguments.worker, arguments.only, timed=arguments.timed)
        return
    with other_tree(arguments.against) as other, tempfile.TemporaryDirectory() as scratch:
        folder, trees = Path(scratch), {"here": ROOT, arguments.against: other}
        if not arguments.pairs:
            _run(ROOT, folder / "a.npz", arguments.only)
            _run(other, folder / "b.npz", arguments.only)
            sys.exit(bool(compare(folder / "a.npz", folder / "b.npz")))
        for name in TIMED:
            ratios = []
            for pair in range(arguments.pairs):
                seconds = {}
                for source in sorted(trees, reverse=bool(pair % 2)):
                    _run(trees[source], folder / "time", name, timed=True)
                    seconds[source] = float((folder / "time").read_text())
                ratios.append(seconds["here"] / seconds[arguments.against])
            spread = f"{min(ratios):.3f} to {max(ratios):.3f}"
            print(f"{name}: CPU time {statistics.median(ratios):.3f} of {arguments.against}'s ({spread})")


def _run(tree: Path, out: Path, only: str | None, *, timed: bool = False) -> None:
    given = ["--worker", str(out), *(["--only", only] if only else []), *(["--timed"] if timed else [])]
    run_in_tree(tree, "benchmarks.equality", given)


if __name__ == "__main__":
    main()
