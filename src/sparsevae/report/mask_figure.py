"""The mask as a picture for paper and for browsers without scripts; on the screen there is a canvas."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup, escape

from sparsevae.report.schema import Content, Factor
from sparsevae.report.text import shorten
from sparsevae.validation import visible

__all__ = ["draw_mask"]

_NAMED = 60  # features up to which every row has its name
_ROWS = 300  # of the picture; more features are drawn several to a row
_LEVELS = (0.35, 0.65, 1.0)  # shades of strength
_KINDS = {1: "pos", -1: "neg", 0: "bent"}
_LONGEST = 30


def draw_mask(content: Content, factors: Sequence[Factor]) -> Markup:
    """Heat map of the links, features in rows by their strongest factor, in three shades of strength.

    Parameters
    ----------
    content : dict
        From `build_content`.
    factors : sequence of dict
        With the id that each has on the page.
    """
    n_features, n_factors = len(content["features"]), len(factors)
    if not n_factors:
        return Markup("")
    named = n_features <= _NAMED
    n_rows = min(n_features, _ROWS)
    shown = content["feature_order"] if named else []
    names = [shorten(visible(content["features"][j]["name"]), _LONGEST) for j in shown]
    left, top = 12.0 + 6.2 * max(map(len, names), default=0), 22.0
    width, height = float(np.clip(560 / n_factors, 9, 44)), 15.0 if named else 640 / n_rows
    parts = [
        f'<text class="tick" x="{left + (a + 0.5) * width:.1f}" y="{top - 7:.0f}" text-anchor="middle">'
        f"{escape(factor['id'])}</text>"
        for a, factor in enumerate(factors)
        if width >= 26 or a % 5 == 0
    ]
    parts.append(
        f'<rect class="frame" x="{left:.1f}" y="{top:.1f}" width="{n_factors * width:.1f}" '
        f'height="{n_rows * height:.1f}"/>'
    )
    parts += [
        f'<text class="tick" x="{left - 6:.0f}" y="{top + (row + 0.75) * height:.1f}" text-anchor="end">'
        f"{escape(name)}</text>"
        for row, name in enumerate(names)
    ]
    gap = 1.0 if named else 0.0
    for (direction, level), cells in _cells(content, n_rows).items():
        d = "".join(
            f"M{left + column * width:.1f} {top + row * height:.2f}h{width - 1:.1f}v{height - gap:.2f}"
            f"h{1 - width:.1f}z"
            for row, column in cells
        )
        parts.append(f'<path class="{_KINDS[direction]}" fill-opacity="{_LEVELS[level]}" d="{d}"/>')
    whole = left + n_factors * width + 8
    box = f"0 0 {whole:.0f} {top + n_rows * height + 8:.0f}"
    words = f"Which of {n_features} features, in rows, depends on which of {n_factors} factors, in columns."
    return Markup(  # all names were escaped above
        f'<svg class="figure mask-figure" style="max-width:{whole:.0f}px" viewBox="{box}" role="img" '
        f'aria-label="{words}">{"".join(parts)}</svg>'
    )


def _cells(content: Content, n_rows: int) -> dict[tuple[int, int], list[tuple[int, int]]]:
    """Cells of the picture by direction and shade; of several links in one cell the strongest is shown."""
    order = np.asarray(content["feature_order"], dtype=int)
    row_of = np.empty(len(order), dtype=int)
    row_of[order] = np.arange(len(order)) * n_rows // max(len(order), 1)
    links = content["links"]
    strength = np.abs(np.asarray(links["strength"], dtype=float))
    strongest: dict[tuple[int, int], int] = {}
    for link in np.argsort(strength, kind="stable"):
        strongest[int(row_of[links["feature"][link]]), int(links["factor"][link])] = int(link)
    result: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for cell, link in sorted(strongest.items()):
        level = int(np.searchsorted((0.25, 0.6), strength[link]))
        result.setdefault((int(links["direction"][link]), level), []).append(cell)
    return result
