"""What all plots share: colours for colour-blind readers too, new axes, short names."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LinearSegmentedColormap, to_rgb

__all__ = [
    "CATEGORIES",
    "DATA",
    "LINE",
    "MUTED",
    "colour_of",
    "diverging",
    "new_axes",
    "room",
    "short",
    "spaced",
    "tidy",
]

LINE = "#1f5fa8"
DATA = "#8a94a0"
MUTED = "#6b7480"
CATEGORIES = ("#1f5fa8", "#d9792b", "#2a9d75", "#b0529c", "#c9a227", "#4fb0d8", "#8a5a44", "#6b7480")

_NEGATIVE, _POSITIVE = "#b8560b", "#14539a"
_LONGEST = 28


def new_axes(ax: Axes | None, width: float, height: float) -> Axes:
    """The axes given, or those of a new figure of this size in inches.

    The figure is one of pyplot's, so that ``plt.show()``, ``plt.savefig()`` and notebooks show it. As with
    pandas and seaborn it stays open until ``plt.close()``; on given axes nothing is opened.
    """
    if ax is not None:
        return ax
    from matplotlib import pyplot  # not at import: it chooses a window system

    return pyplot.subplots(figsize=(width, height), layout="constrained")[1]


def room(ax: Axes) -> tuple[float, float]:
    """Width and height of axes in inches."""
    return ax.bbox.width / ax.figure.dpi, ax.bbox.height / ax.figure.dpi


def spaced(count: int, length: float, each: float = 0.18) -> range:
    """Thin ``count`` tick positions so that labels ``each`` inches wide fit into ``length`` inches."""
    return range(0, count, max(1, math.ceil(count * each / max(length, each))))


def colour_of(k: int) -> tuple[float, float, float]:
    """The colour of the k-th kind; after the last one they begin again, each time paler."""
    paler = 1.0 - 0.55 ** (k // len(CATEGORIES))
    red, green, blue = (part + paler * (1.0 - part) for part in to_rgb(CATEGORIES[k % len(CATEGORIES)]))
    return red, green, blue


def diverging() -> Colormap:
    """Orange below zero, blue above, pale in between; what is masked is left white."""
    pale = [(0.0, _NEGATIVE), (0.35, "#eea766"), (0.5, "#f2f0ec"), (0.65, "#7fb0df"), (1.0, _POSITIVE)]
    colours = LinearSegmentedColormap.from_list("sparsevae", pale)
    return colours.with_extremes(bad="white")


def short(name: object, longest: int = _LONGEST) -> str:
    """A name that fits a label: on one line, cut in the middle where its two ends tell most.

    Dollar signs are escaped: matplotlib would set what stands between two of them as a formula.
    """
    text = " ".join(str(name).split()) or "(no name)"
    if len(text) > longest:
        tail = longest // 3
        text = f"{text[: longest - tail - 1]}…{text[-tail:]}"
    return text.replace("\\", "\\\\").replace("$", r"\$") if "$" in text else text


def tidy(ax: Axes, *, sides: Sequence[str] = ("top", "right")) -> None:
    """Take away what carries no information."""
    for side in sides:
        ax.spines[side].set_visible(False)
    for side in set(ax.spines) - set(sides):
        ax.spines[side].set_color("#c4cad0")
    ax.tick_params(colors=MUTED, length=3 if len(sides) < len(ax.spines) else 0, labelcolor="#3a424b")
