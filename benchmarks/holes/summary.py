"""What was asked of tables with holes, weights, groups and ordered answers, and what the rows show.

Run ``python -m benchmarks.holes.summary`` from the root of the repository: it reads results/holes and
writes summary.md there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from benchmarks.holes.cost import BEFORE, BUILT

FOLDER = Path(__file__).parents[2] / "results" / "holes"
Line = tuple[str, str, str, object]


HEAD = """# Tables with holes, weights, groups and ordered answers: what was asked, what was measured

`python -m benchmarks.holes STUDY --data FOLDER --output results/holes/STUDY.csv` makes the rows of a
study, `python -m benchmarks.holes.summary` this page from them. Means, with the smallest and largest value
in brackets; of imputation the paired difference to the better rival, with its standard error over seeds.
*Holds* is said of the mean over data sets or seeds, and of every one of them where numbers of
factors, items, batches or bits are asked for.
[What the figures mean](../../docs/how-to/holes-and-weights.md#figures).

| figure | asked | measured | holds |
|---|---|---|---|
"""


def main() -> None:
    lines = [HEAD.rstrip()]
    for study in (groups, batches, recovery, weights, ordinal, imputation, cost):
        path = FOLDER / f"{study.__name__}.csv"
        for figure, asked, measured, holds in study(pd.read_csv(path)) if path.exists() else ():
            lines.append(f"| {figure} | {asked} | {measured} | {'yes' if holds else '**no**'} |")
    (FOLDER / "summary.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


def groups(rows: pd.DataFrame) -> Iterator[Line]:
    """Support and roles on known shared and specific factors."""
    f1, roles = rows["support_f1"], rows["roles_right"]
    n = f"{len(rows)} data sets"
    yield f"groups: support F1, {n}", "≥ 0.95", _spread(f1), f1.mean() >= 0.95
    yield f"groups: roles right, {n}", "≥ 95 %", f"{roles.mean():.1%}", roles.mean() >= 0.95


def batches(rows: pd.DataFrame) -> Iterator[Line]:
    """What factors of cells tell of an artificial batch, and of the type."""
    by = rows.set_index(["seed", "table"])
    names = ("shifted, groups given", "unshifted", "unshifted, groups given")
    given, plain, same = (by.xs(name, level="table") for name in names)
    for judge in ("logistic", "boosting"):
        told = given[f"batch_{judge}"]
        yield f"batches, told by {judge}, {len(told)} splits", "≤ 0.6", _spread(told), told.max() <= 0.6
        lost = plain[f"type_{judge}"] - given[f"type_{judge}"]
        yield (
            f"cell types by {judge}, lost to the unshifted fit",
            "≤ 0.01",
            _spread(lost),
            lost.mean() <= 0.01,
        )
        lost = same[f"type_{judge}"] - given[f"type_{judge}"]
        figure = f"cell types by {judge}, lost to the unshifted fit with groups"
        yield figure, "≤ 0.01", _spread(lost), lost.mean() <= 0.01


def recovery(rows: pd.DataFrame) -> Iterator[Line]:
    """Known factors with holes."""
    f1, exact = rows["support_f1"], rows["n_active"] == 6
    yield "15 % holes: six factors", "all", f"{exact.sum()} of {len(rows)}", exact.all()
    yield "15 % holes: support F1", "≥ 0.97", _spread(f1), f1.mean() >= 0.97


def weights(rows: pd.DataFrame) -> Iterator[Line]:
    """Weighted rows beside repeated ones."""
    same = rows["n_active_weighted"] == rows["n_active_repeated"]
    alike = rows["support_f1_of_each_other"]
    yield "weights: same number of factors", "all", f"{same.sum()} of {len(rows)}", same.all()
    measured = f"{(alike == 1).sum()} of {len(rows)}; F1 of each other {_spread(alike)}"
    yield "weights: same support", "all", measured, (alike == 1).all()


def ordinal(rows: pd.DataFrame) -> Iterator[Line]:
    """Six-point items."""
    active, items = rows["n_active"], rows["items_on_own_trait"]
    ahead = rows["log_probability_ordinal"] - rows["log_probability_gaussian"]
    yield "bfi, ordinal: factors", "5", _list(active), (active == 5).all()
    yield "items on their trait's factor", "≥ 24", _list(items), (items >= 24).all()
    yield "held-out answers, ahead of Gaussian", "> 0", f"{_spread(ahead)} nats", (ahead > 0).all()


def imputation(rows: pd.DataFrame) -> Iterator[Line]:
    """Mean error on hidden cells, and the seeds in which ours is not above the better rival."""
    for (table, fraction), own in rows.groupby(["table", "fraction"], sort=False):
        errors = own.pivot(index="seed", columns="method", values="rmse")
        pca, regression, ours = (errors[m] for m in ("iterative PCA", "IterativeImputer", "SparseVAE"))
        wins = int((ours <= errors[["iterative PCA", "IterativeImputer"]].min(axis=1)).sum())
        ahead = ours - (pca if pca.mean() < regression.mean() else regression)
        error = ahead.std() / math.sqrt(len(ahead))
        measured = (
            f"{ours.mean():.4f}; best in {wins} of {len(ours)} seeds; {ahead.mean():+.4f} ± {error:.4f}"
        )
        holds = ours.mean() <= min(pca.mean(), regression.mean())
        asked = f"≤ {pca.mean():.4f}, {regression.mean():.4f}"
        yield f"imputation, {table}, {fraction:.0%}", asked, measured, holds


def cost(rows: pd.DataFrame) -> Iterator[Line]:
    """Median CPU seconds over those of the commit before, and whether the masks have the same bits."""
    for table, own in rows.groupby("table", sort=False):
        typical = own.groupby("source")[["cpu_seconds", "cpu_seconds_of_epochs"]].median()
        masks = own.groupby("source")["mask"].first()
        for source in typical.index.drop(BEFORE):
            name = "as built" if source == BUILT else source
            same = masks[source] == masks[BEFORE]
            yield f"bits, {table}, {name}", "the same", "the same" if same else "others", same
            for part, figure in (("cpu_seconds", "fit"), ("cpu_seconds_of_epochs", "80 of its epochs")):
                ratio = typical.loc[source, part] / typical.loc[BEFORE, part]
                yield f"cost, {table}, {name}: {figure}", "≤ 1.02", f"{ratio:.3f}", ratio <= 1.02


def _spread(values: pd.Series) -> str:
    return f"{values.mean():.3f} ({values.min():.3f} to {values.max():.3f})"


def _list(values: pd.Series) -> str:
    return ", ".join(str(value) for value in values)


if __name__ == "__main__":
    main()
