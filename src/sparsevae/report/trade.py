"""What simplicity costs: the points of a fit's path, their links beside those of the fit, and a picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from markupsafe import Markup, escape

from sparsevae.report.figures import Frame, round_ticks
from sparsevae.report.numbers import count, percent, rounded
from sparsevae.report.schema import Links, Point

if TYPE_CHECKING:
    from sparsevae.estimators import SparseVAE

__all__ = ["build_trade", "describe_point", "draw_trade", "trade_steps"]

_LEAST_SHOWN = 0.05  # of the range of gains, below which the axis does not shrink


def build_trade(model: SparseVAE, links: Links) -> list[Point]:
    """The points of ``simplicity_path_``; empty for models without.

    Parameters
    ----------
    model : SparseVAE
    links : dict
        Of the report, to which points refer by position: ``gone`` are those that a point does without,
        ``more`` pairs of feature and factor that the fit does not have. Both are None where a point has other
        axes than the fit.
    """
    if not hasattr(model, "simplicity_path_"):
        return []
    supports = iter(getattr(model, "path_supports_", ()))
    own = np.zeros(model.mask_.shape, dtype=bool)
    features, factors = np.asarray(links["feature"], dtype=int), np.asarray(links["factor"], dtype=int)
    active = np.asarray(model.active_factors_, dtype=int)
    own[features, active[factors]] = True
    position = {int(k): a for a, k in enumerate(active)}
    points: list[Point] = []
    for row in model.simplicity_path_.to_dict("records"):
        support = next(supports, None) if np.isfinite(row["shrinkage"]) else own if row["chosen"] else None
        point: Point = {
            "model": str(row["model"]),
            "shrinkage": rounded(row["shrinkage"]),
            "n_active": int(row["n_active"]),
            "n_nonzero": int(row["n_nonzero"]),
            "gain": rounded(row["gain"]),
            "gain_kept": rounded(row["gain_kept"]),
            "chosen": bool(row["chosen"]),
            "gone": None,
            "more": None,
        }
        if support is not None and hasattr(model, "path_supports_"):
            point["gone"] = np.flatnonzero(~support[features, active[factors]]).tolist()
            others = np.argwhere(support & ~own).tolist()
            point["more"] = [[j, position[k]] for j, k in others if k in position]
        points.append(point)
    return points


def trade_steps(points: Sequence[Point]) -> list[int]:
    """Positions of the points that a reader can walk through, links falling; of equal ones the chosen."""
    usable = [i for i, point in enumerate(points) if point["gone"] is not None]
    usable.sort(key=lambda i: (-points[i]["n_nonzero"], not points[i]["chosen"], i))
    steps: list[int] = []
    for i in usable:
        before = points[steps[-1]] if steps else None
        same = before is not None and all(before[key] == points[i][key] for key in ("gone", "more"))  # type: ignore[literal-required]
        if not same:
            steps.append(i)
    return steps if len(steps) > 1 else []


def describe_point(point: Point) -> str:
    """A point in words."""
    what = f"{count(point['n_nonzero'], 'link')} on {count(point['n_active'], 'factor')}"
    kept = f" keep {percent(point['gain_kept'])} of the best gain" if point["gain_kept"] is not None else ""
    return f"{what}{kept}{': this fit' if point['chosen'] else ''}."


def draw_trade(points: Sequence[Point]) -> Markup:
    """Links to the right, gain kept upwards, a dot for each point and a ring around the chosen one."""
    shown = [(i, p) for i, p in enumerate(points) if p["gain_kept"] is not None and p["n_nonzero"]]
    if len(shown) < 2:
        return Markup("")
    frame = Frame(380, 190, left=44, right=14, top=12, bottom=34)
    kept = np.array([p["gain_kept"] for _, p in shown], dtype=float)
    most = max(p["n_nonzero"] for _, p in shown)
    low = min(float(kept.min()), 1.0 - _LEAST_SHOWN)
    frame.fit(0.0, 1.06 * most, low - 0.06 * (1.0 - low), 1.0 + 0.06 * (1.0 - low))
    parts = [frame.axes(round_ticks(0.0, float(most), 5), round_ticks(low, 1.0, 4))]
    line = [(p["n_nonzero"], p["gain_kept"]) for _, p in shown if p["shrinkage"] is not None]
    if len(line) > 1:
        xs, ys = (np.array(values, dtype=float) for values in zip(*line, strict=True))
        parts.append(f'<path class="series s0" d="{frame.line(xs, ys)}"/>')
    for i, point in shown:
        kind = "point chosen" if point["chosen"] else "point"
        x, y = frame.x(point["n_nonzero"]), frame.y(point["gain_kept"] or 0.0)
        words = escape(f"{point['model']}: {describe_point(point)}")
        parts.append(
            f'<circle class="{kind}" data-point="{i}" cx="{x:.1f}" cy="{y:.1f}" '
            f'r="{6 if point["chosen"] else 4}"><title>{words}</title></circle>'
        )
    parts.append(frame.label_x("links used (across) and fraction of the best gain kept (up)"))
    chosen = next((describe_point(p) for p in points if p["chosen"]), "")
    return frame.svg("trade-figure", f"Links against held-out gain. {chosen}", parts)
