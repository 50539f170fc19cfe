"""From rows to a page: what came back of each class, by table, and a reliability curve."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.verdicts.calibration import CLASSES, by_class, classify, intervals
from benchmarks.verdicts.problems import PROBLEMS
from sparsevae.identifiability.verdict import THRESHOLDS

__all__ = ["write_pages"]

_HEAD = """# Are the verdicts right?

Two disjoint halves of the rows, a default fit on each. Each fit says of each of its factors how well halves
of *its own* rows agree on it (`match`). Whether the factor then comes back is seen in the other fit: rank
correlation of at least 0.9 over all rows, matched one to one. Linear factors that the fit was allowed and did
not keep (*dropped*) count as *not identified*. Intervals (90 %) draw splits anew, not factors.
`python -m benchmarks.verdicts` makes the rows (`rows.csv`).

![reliability curve](reliability.png)

"""


def write_pages(judged: pd.DataFrame, limits: pd.DataFrame, folder: Path) -> None:
    """``summary.md`` and ``reliability.png`` from what the rows say."""
    used = THRESHOLDS["match_weak"], THRESHOLDS["match_identified"]
    own = judged.assign(verdict=classify(judged, *used))
    missing = [name for name in PROBLEMS if name not in set(judged["table"])]
    page = _HEAD + (f"No rows yet of: {', '.join(missing)}.\n\n" if missing else "")
    page += (
        f"## By class, thresholds of the package\n\n{used[0]:g} and {used[1]:g}, the same for all tables.\n\n"
    )
    page += _markdown(by_class(own).rename_axis("verdict").reset_index())
    page += "\n## What came back of each table\n\n" + _markdown(_by_table(own))
    page += "\n## By class, thresholds of each table chosen on the other tables\n\n"
    page += _markdown(by_class(judged).rename_axis("verdict").reset_index()) + "\n"
    page += _markdown(limits.rename_axis("table left out").reset_index(), digits=3)
    (folder / "summary.md").write_text(page)
    _plot(judged, folder / "reliability.png")


def _by_table(judged: pd.DataFrame) -> pd.DataFrame:
    """How many came back of how many, for each table and verdict."""
    counts = judged.groupby(["table", "verdict"], sort=False)["back"].agg(["sum", "size"]).reset_index()
    wide = pd.DataFrame({"table": list(dict.fromkeys(judged["table"]))})
    for verdict in CLASSES:
        own = counts[counts["verdict"] == verdict].set_index("table")
        wide[verdict] = [
            f"{int(own.loc[t, 'sum'])} of {int(own.loc[t, 'size'])}" if t in own.index else "–"
            for t in wide["table"]
        ]
    return wide


def _markdown(frame: pd.DataFrame, digits: int = 2) -> str:
    lines = ["| " + " | ".join(map(str, frame.columns)) + " |", "|---" * len(frame.columns) + "|"]
    for row in frame.itertuples(index=False):
        lines.append(
            "| " + " | ".join(f"{v:.{digits}f}" if isinstance(v, float) else str(v) for v in row) + " |"
        )
    return "\n".join(lines) + "\n"


def _plot(judged: pd.DataFrame, path: Path) -> None:
    """Fraction that came back against the agreement of halves, in tenths of the factors."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    known = judged[judged["kept"] & judged["match"].notna()].sort_values("match")
    figure, axis = plt.subplots(figsize=(5.2, 3.6))
    for part in np.array_split(np.arange(len(known)), 10):
        own = known.iloc[part]
        low, high = intervals(own)
        centre = own["match"].mean()
        axis.plot([centre, centre], [low, high], color="C0", lw=1)
        axis.plot(centre, own["back"].mean(), "o", color="C0")
    for name in ("match_weak", "match_identified"):
        axis.axvline(THRESHOLDS[name], color="0.6", lw=0.8, ls="--")
    axis.set_xlabel("agreement of halves of the fit's own rows")
    axis.set_ylabel("came back in other rows")
    axis.set_ylim(-0.02, 1.02)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)
