"""Pictures of a report as SVG: they take their colours from the page, and so follow light, dark and print."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup, escape
from numpy.typing import ArrayLike

from sparsevae.report.numbers import significant, tick
from sparsevae.report.schema import History, ResponseCurve
from sparsevae.report.text import shorten

__all__ = [
    "Frame",
    "correlation_figure",
    "curve_figure",
    "history_figure",
    "history_terms",
    "path_figure",
    "round_ticks",
]

_LONGEST = 80  # characters of a name in a description
_TERMS = ("objective", "reconstruction", "kl", "mask_penalty", "noise_penalty", "weight_penalty")


def curve_figure(curve: ResponseCurve, feature: str, factor: str) -> Markup:
    """A response curve with its points: values of the factor to the right, of the feature upwards.

    Parameters
    ----------
    curve : dict
        With grid, curve, at and points.
    feature, factor : str
        Names for the description; escaped here.
    """
    frame = Frame(188, 118, left=40, right=6, top=7, bottom=19)
    points = np.asarray([value for value in curve["points"] if value is not None], dtype=float)
    line = np.asarray(curve["curve"], dtype=float)
    grid, at = np.asarray(curve["grid"], dtype=float), np.asarray(curve["at"], dtype=float)
    # A few outlying points must not flatten the curve.
    low, high = line.min(), line.max()
    if len(points):
        low, high = min(low, np.quantile(points, 0.01)), max(high, np.quantile(points, 0.99))
    frame.fit(grid.min(), grid.max(), *_padded(low, high))
    parts = [frame.axes(x_ticks=(-2, 0, 2), y_ticks=_two_ticks(frame))]
    if len(points) == len(at):
        parts.append(f'<path class="dots" d="{frame.dots(at, points)}"/>')
    parts.append(f'<path class="curve" d="{frame.line(grid, line)}"/>')
    words = (
        f"{shorten(feature, _LONGEST)} as {factor} goes from {grid.min():.1f} to {grid.max():.1f}: "
        + _course(line)
    )
    return frame.svg("curve-figure", words, parts)


def history_terms(history: History) -> list[str]:
    """Terms of the objective that are not zero throughout, in the order in which they are drawn."""
    return [name for name in _TERMS if any(history.get(name) or [])]


def history_figure(history: History) -> Markup:
    """Terms of the objective, epoch by epoch; those that are zero throughout are left out."""
    terms = history_terms(history)
    if not terms:
        return Markup("")
    frame = Frame(760, 250, left=56, right=12, top=26, bottom=32)
    epochs = np.asarray(history["epoch"], dtype=float)
    values = {name: _numbers(history[name]) for name in terms}
    # The first epochs are off the scale of all others: they may leave the picture.
    settled = np.concatenate([series[min(10, len(series) // 4) :] for series in values.values()])
    frame.fit(epochs[0], max(epochs[-1], epochs[0] + 1), *_padded(np.nanmin(settled), np.nanmax(settled)))
    parts = [
        _phases(frame, history),
        frame.axes(round_ticks(epochs[0], epochs[-1]), round_ticks(*frame.y_range)),
    ]
    parts += [
        f'<path class="series s{i}" d="{frame.line(epochs, series)}"><title>{escape(name.replace("_", " "))}'
        "</title></path>"
        for i, (name, series) in enumerate(values.items())
    ]
    last = ", ".join(f"{name.replace('_', ' ')} {significant(series[-1])}" for name, series in values.items())
    parts.append(frame.label_x("epoch"))
    return frame.svg(
        "wide-figure", f"Terms of the objective by epoch, in nats per sample; at the end: {last}.", parts
    )


def path_figure(history: History) -> Markup:
    """How many entries of the mask are not zero, epoch by epoch."""
    if not history.get("n_nonzero"):
        return Markup("")
    frame = Frame(760, 180, left=56, right=12, top=26, bottom=32)
    epochs, links = np.asarray(history["epoch"], dtype=float), _numbers(history["n_nonzero"])
    frame.fit(epochs[0], max(epochs[-1], epochs[0] + 1), 0.0, 1.08 * max(links.max(), 1.0))
    parts = [
        _phases(frame, history),
        frame.axes(round_ticks(epochs[0], epochs[-1]), round_ticks(0.0, float(links.max()))),
    ]
    parts.append(f'<path class="series s0" d="{frame.line(epochs, links)}"/>')
    parts.append(frame.label_x("epoch"))
    words = f"Non-zero links by epoch: from {links[0]:,.0f} at first to {links[-1]:,.0f} at the end."
    return frame.svg("wide-figure", words, parts)


def correlation_figure(correlation: Sequence[Sequence[float]], names: Sequence[str]) -> Markup:
    """Correlations of the factors as coloured squares, each with its value as a tooltip."""
    n = len(names)
    cell = float(np.clip(520 / max(n, 1), 9, 44))
    numbered = cell >= 26
    margin = 40.0
    side = margin + n * cell + 4
    parts = []
    for a in range(n):
        middle = margin + (a + 0.5) * cell
        if cell >= 12 or a % 5 == 0:
            parts.append(
                f'<text class="tick" x="{margin - 6:.0f}" y="{middle + 3.5:.1f}" text-anchor="end">{a}</text>'
            )
            parts.append(
                f'<text class="tick" x="{middle:.1f}" y="{margin - 8:.0f}" text-anchor="middle">{a}</text>'
            )
        for b in range(n):
            value = float(correlation[a][b])
            x, y = margin + b * cell, margin + a * cell
            kind = "pos" if value >= 0 else "neg"
            words = f"{escape(names[a])} and {escape(names[b])}: {value:+.2f}"
            parts.append(
                f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{cell - 1:.1f}" '
                f'height="{cell - 1:.1f}" style="--v:{abs(value):.3f}"><title>{words}</title></rect>'
            )
            if numbered:
                strong = " strong" if abs(value) > 0.55 else ""
                parts.append(
                    f'<text class="cell{strong}" x="{x + cell / 2:.1f}" y="{y + cell / 2 + 3.5:.1f}" '
                    f'text-anchor="middle">{value:.2f}</text>'
                )
    frame = Frame(round(side), round(side))
    return frame.svg("square-figure", f"Correlations of {n} factors.", parts)


class Frame:
    """Where data are on the paper."""

    def __init__(
        self, width: int, height: int, *, left: int = 0, right: int = 0, top: int = 0, bottom: int = 0
    ):
        self.width, self.height = width, height
        self.left, self.right, self.top, self.bottom = left, width - right, top, height - bottom
        self.x_range = self.y_range = (0.0, 1.0)

    def fit(self, x_low: float, x_high: float, y_low: float, y_high: float) -> None:
        """Say which values are at the edges."""
        self.x_range, self.y_range = (float(x_low), float(x_high)), (float(y_low), float(y_high))

    def x(self, value: ArrayLike) -> np.ndarray:
        """Where a value is, from the left."""
        low, high = self.x_range
        return self.left + (np.asarray(value, dtype=float) - low) / (high - low) * (self.right - self.left)

    def y(self, value: ArrayLike) -> np.ndarray:
        """Where a value is, from the top; far outside it is cut."""
        low, high = self.y_range
        inside = np.clip(value, low - 0.2 * (high - low), high + 0.2 * (high - low))
        return self.bottom - (inside - low) / (high - low) * (self.bottom - self.top)

    def line(self, x: np.ndarray, y: np.ndarray) -> str:
        """A path through points; those that are not finite are left out."""
        kept = np.isfinite(y)
        pairs = zip(self.x(x[kept]), self.y(y[kept]), strict=True)
        return "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in pairs) if kept.any() else "M0 0"

    def dots(self, x: np.ndarray, y: np.ndarray) -> str:
        """All points as one path of strokes without length, which round caps make dots."""
        low, high = self.y_range
        kept = (y >= low) & (y <= high)
        return (
            "".join(f"M{a:.0f} {b:.0f}h0" for a, b in zip(self.x(x[kept]), self.y(y[kept]), strict=True))
            or "M0 0"
        )

    def axes(self, x_ticks: Sequence[float], y_ticks: Sequence[float]) -> str:
        """Both axes with their ticks."""
        parts = [f'<path class="axis" d="M{self.left} {self.top}V{self.bottom}H{self.right}"/>']
        for value in x_ticks:
            x = self.x(value)
            parts.append(f'<path class="axis" d="M{x:.1f} {self.bottom}v3"/>')
            parts.append(
                f'<text class="tick" x="{x:.1f}" y="{self.bottom + 13}" text-anchor="middle">'
                f"{tick(value)}</text>"
            )
        for value in y_ticks:
            y = self.y(value)
            parts.append(f'<path class="axis" d="M{self.left} {y:.1f}h-3"/>')
            parts.append(
                f'<text class="tick" x="{self.left - 5}" y="{y + 3.5:.1f}" text-anchor="end">'
                f"{tick(value)}</text>"
            )
        return "".join(parts)

    def label_x(self, words: str) -> str:
        """Words below the horizontal axis."""
        return (
            f'<text class="tick" x="{(self.left + self.right) / 2:.0f}" y="{self.height - 4}" '
            f'text-anchor="middle">{words}</text>'
        )

    def svg(self, kind: str, words: str, parts: Sequence[str]) -> Markup:
        """The picture with its description."""
        return Markup(
            f'<svg class="figure {kind}" viewBox="0 0 {self.width} {self.height}" width="{self.width}" '
            f'role="img" aria-label="{escape(words)}">{"".join(parts)}</svg>'
        )


def _phases(frame: Frame, history: History) -> str:
    names = history.get("phase") or []
    epochs = history["epoch"]
    parts, start, band = [], 0, 0
    for i in range(1, len(names) + 1):
        if i == len(names) or names[i] != names[start]:
            a, b = float(frame.x(epochs[start])), float(frame.x(epochs[min(i, len(names) - 1)]))
            shade = "band" if band % 2 else "band none"
            parts.append(f'<rect class="{shade}" x="{a:.1f}" y="{frame.top}" width="{max(b - a, 0):.1f}" '
                         f'height="{frame.bottom - frame.top}"/>')  # fmt: skip
            if b - a > 34:
                parts.append(
                    f'<text class="tick" x="{(a + b) / 2:.1f}" y="{frame.top - 8}" text-anchor="middle">'
                    f"{escape(names[start])}</text>"
                )
            start, band = i, band + 1
    return "".join(parts)


def round_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round numbers between two others."""
    if not high > low:
        return [low]
    raw = (high - low) / most
    power = 10.0 ** np.floor(np.log10(raw))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw)
    first = int(np.ceil(low / step - 1e-9))
    return [float(i * step) for i in range(first, int(np.floor(high / step + 1e-9)) + 1)]


def _two_ticks(frame: Frame) -> list[float]:
    inside = round_ticks(*frame.y_range, most=4)
    return inside if len(inside) <= 2 else [inside[0], inside[-1]]


def _padded(low: float, high: float) -> tuple[float, float]:
    room = 0.06 * (high - low) or max(abs(low), 1.0) * 0.5
    return float(low - room), float(high + room)


def _numbers(values: Sequence[float | None]) -> np.ndarray:
    return np.asarray([np.nan if value is None else value for value in values], dtype=float)


def _course(line: np.ndarray) -> str:
    low, high = int(line.argmin()), int(line.argmax())
    ends = {0, len(line) - 1}
    shape = "rises" if low < high else "falls"
    if not {low, high} <= ends:
        shape = "bends"
    return f"{shape} from {significant(line[0])} to {significant(line[-1])}."
