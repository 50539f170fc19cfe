"""Draw the pictures of the explanation: the model, the ladder, the trade of simplicity.

Usage: python examples/explain_pictures.py [FOLDER]

Each is an SVG that follows the light or dark setting of the reader. It takes about a minute.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from sparsevae import SparseVAE
from sparsevae.datasets import load_ability_tests, make_sparse_factors

STYLE = """\
text { font: 13px sans-serif; fill: #222; text-anchor: middle }
.t { font-weight: bold; font-size: 15px }
.r { text-anchor: end } .l { text-anchor: start }
.a { stroke: #666; stroke-width: 1.5; fill: none } .h { fill: #666 } .n { stroke: #ccc }
.b { fill: #eef3fa; stroke: #1f5fa8 } .e { fill: #fdf1e6; stroke: #c1601c } .z { fill: #fff; stroke: #999 }
.one { stroke: #1f5fa8; fill: none; stroke-width: 2.5 }
.two { stroke: #c1601c; fill: none; stroke-width: 2.5 }
.f1 { fill: #1f5fa8 } .f2 { fill: #c1601c } .f3 { fill: #2d7a4b } .g { fill: #fff }
@media (prefers-color-scheme: dark) {
  text { fill: #ddd } .a { stroke: #aaa } .h { fill: #aaa } .n { stroke: #444 }
  .b { fill: #1c2a3c } .e { fill: #3a2719 } .z { fill: #131416; stroke: #777 } .g { fill: #131416 }
  .one { stroke: #6ea8f0 } .two { stroke: #f0955a }
  .f1 { fill: #6ea8f0 } .f2 { fill: #f0955a } .f3 { fill: #6cc08b }
}"""
ARROW = (
    '<defs><marker id="h" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
    '<path class="h" d="M0 0 L8 4 L0 8 z"/></marker></defs>'
)
MASK = [(1, 0, 0), (1, 0, 0), (0, 1, 0), (0, 1, 1), (0, 0, 1)]
NAMES = ["tense", "pulse", "rested", "errors", "speed"]


def main(folder: str = "docs/images") -> None:
    data = make_sparse_factors(500, correlation=0.4, random_state=0)
    ladder = SparseVAE(5, gain_kept=1.0, n_init=8, random_state=0).fit(data.X).history_
    trade = SparseVAE(random_state=0).fit(load_ability_tests().X).simplicity_path_
    pictures = {"model": draw_model(), "ladder": draw_ladder(ladder), "simplicity": draw_trade(trade)}
    for name, picture in pictures.items():
        (Path(folder) / f"{name}.svg").write_text(picture, "utf-8")
    print(f"{len(ladder)} epochs of the ladder, {len(trade)} points of the trade")


def draw_model() -> str:
    """Factors, a row of the mask for each feature, one network for all, features."""
    parts = []
    for x, title in ((70, "factors z"), (260, "mask W"), (420, "one network f"), (580, "features x")):
        parts.append(f'<text class="t" x="{x}" y="28">{title}</text>')
    for k in range(3):
        y = 80 + 80 * k
        parts.append(f'<circle class="f{k + 1}" cx="70" cy="{y}" r="20"/>')
        parts.append(f'<text x="38" y="{y + 5}" class="r">z{k + 1}</text>')
        parts.append(f'<path class="a" d="M95 {y} L196 {160 + 10 * (k - 1)}" marker-end="url(#h)"/>')
        parts.append(f'<text x="{220 + 40 * k}" y="52">z{k + 1}</text>')
    parts.append('<path class="a" d="M58 100 Q44 120 58 140 M58 180 Q44 200 58 220" stroke-dasharray="4 4"/>')
    for j, (row, name) in enumerate(zip(MASK, NAMES, strict=True)):
        y = 80 + 40 * j
        for k, on in enumerate(row):
            kind = f"f{k + 1}" if on else "z"
            parts.append(
                f'<rect class="{kind}" x="{203 + 40 * k}" y="{y - 16}" width="34" height="32" rx="4"/>'
            )
            if not on:
                parts.append(f'<text x="{220 + 40 * k}" y="{y + 5}">0</text>')
        parts.append(f'<path class="a" d="M322 {y} L362 {y}" marker-end="url(#h)"/>')
        parts.append(f'<path class="a" d="M474 {y} L526 {y}" marker-end="url(#h)"/>')
        parts.append(f'<text class="l" x="534" y="{y + 5}">{name} + noise</text>')
    parts.append('<rect class="b" x="364" y="60" width="112" height="200" rx="8"/>')
    for y, words in ((140, "the same for"), (158, "all features,"), (176, "with a head"), (194, "for each")):
        parts.append(f'<text x="420" y="{y}">{words}</text>')
    parts.append(
        '<text x="320" y="296">A feature sees only the factors that its row of the mask lets through.</text>'
    )
    title = "The model: correlated factors, a mask with exact zeros, one network for all features, features"
    return svg(640, 310, title, parts)


def draw_ladder(history: pd.DataFrame) -> str:
    """Laplace rates of a fit, and its links, epoch by epoch."""
    history = history[history["slab_rate"] > 0].reset_index(drop=True)
    epochs = history.index.to_numpy()
    top = history["spike_rate"].max() * 1.5
    rates = Axes((60, 50, 560, 130), (0, len(epochs)), (1, top), log=True)
    links = Axes((60, 220, 560, 90), (0, len(epochs)), (0, history["n_nonzero"].max() * 1.1))
    parts = ['<text class="t l" x="60" y="28">rates of the penalty</text>', *rates.frame([1, 10, 100])]
    for name, kind in (("spike", "one"), ("slab", "two")):
        parts.append(rates.line(epochs, history[f"{name}_rate"], kind))
        y = rates.y(history[f"{name}_rate"].iloc[-1]) - 8
        parts.append(f'<text class="r" x="612" y="{y:.0f}">{name}</text>')
    parts.append('<text class="t l" x="60" y="206">links: entries of the mask that are not zero</text>')
    highest = int(history["n_nonzero"].max())
    last = int(history["n_nonzero"].iloc[-1])
    parts += [*links.frame(sorted({0, last, highest})), links.line(epochs, history["n_nonzero"], "one")]
    for phase, part in history.groupby("phase", sort=False):
        left, right = links.x(part.index[0]), links.x(part.index[-1] + 1)
        parts.append(f'<path class="n" d="M{left:.0f} 50 V180 M{left:.0f} 220 V310"/>')
        if right - left > 40:
            parts.append(f'<text x="{(left + right) / 2:.0f}" y="330">{phase}</text>')
    return svg(
        640, 345, "The ladder: the slab rate falls in steps and the spike rate stays; links fall away", parts
    )


def draw_trade(path: pd.DataFrame) -> str:
    """The held-out gain that fits of more and fewer links keep."""
    path = path[path["model"] == "linear"].drop_duplicates("n_nonzero").sort_values("n_nonzero")
    links, kept = path["n_nonzero"].to_numpy(), path["gain_kept"].to_numpy()
    axes = Axes((70, 30, 550, 190), (links.min() - 1, links.max() + 1), (0.7, 1.05))
    parts = [*axes.frame([0.7, 0.8, 0.9, 1.0], form="{:.0%}")]
    limit = axes.y(0.95)
    parts.append(f'<path class="two" stroke-dasharray="6 5" d="M70 {limit:.0f} H620"/>')
    parts.append(f'<text class="l" x="78" y="{limit - 6:.0f}">keep 95 %</text>')
    parts.append(axes.line(links, kept, "one"))
    for n, gain, chosen in zip(links, kept, path["chosen"], strict=True):
        parts.append(f'<circle class="f1" cx="{axes.x(n):.0f}" cy="{axes.y(gain):.0f}" r="4"/>')
        parts.append(f'<text x="{axes.x(n):.0f}" y="240">{n}</text>')
        if chosen:
            x, y = axes.x(n), axes.y(gain)
            parts.append(f'<circle class="two" cx="{x:.0f}" cy="{y:.0f}" r="9"/>')
            parts.append(f'<text x="{x:.0f}" y="{y - 14:.0f}">chosen</text>')
    parts.append('<text class="t" x="345" y="265">links</text>')
    parts.append('<text class="t l" x="70" y="20">part of the best held-out gain that is kept</text>')
    return svg(
        640, 280, "The trade of simplicity: gain kept against links; the simplest fit above 95 % wins", parts
    )


class Axes:
    """A rectangle of the picture, and where values lie in it."""

    def __init__(self, box, across, up, log: bool = False):
        self.box, self.across, self.up, self.log = box, across, up, log

    def x(self, value: float) -> float:
        """Where a value lies across the picture."""
        left, _, width, _ = self.box
        low, high = self.across
        return left + width * (value - low) / (high - low)

    def y(self, value: float) -> float:
        """Where a value lies down the picture."""
        _, top, _, height = self.box
        low, high, value = (math.log10(v) if self.log else v for v in (*self.up, value))
        return top + height * (1 - (value - low) / (high - low))

    def frame(self, ticks: Sequence[float], form: str = "{:g}") -> list[str]:
        """Lines across at these values, with their labels."""
        left, _, width, _ = self.box
        parts = []
        for tick in ticks:
            if self.up[0] <= tick <= self.up[1]:
                y = self.y(tick)
                parts.append(f'<path class="n" d="M{left} {y:.0f} h{width}"/>')
                parts.append(f'<text class="r" x="{left - 8}" y="{y + 5:.0f}">{form.format(tick)}</text>')
        return parts

    def line(self, across, up, kind: str) -> str:
        """The points, joined."""
        points = " ".join(f"{self.x(a):.1f},{self.y(b):.1f}" for a, b in zip(across, up, strict=True))
        return f'<polyline class="{kind}" points="{points}"/>'


def svg(width: int, height: int, title: str, parts: list[str]) -> str:
    """The parts as a picture with its title, in light and dark colours."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" ',
            f'aria-label="{title}">',
            f"<title>{title}</title>",
            f"<style>\n{STYLE}\n</style>",
            ARROW,
            f'<rect class="g" width="{width}" height="{height}" rx="10"/>',
            *parts,
            "</svg>\n",
        ]
    )


if __name__ == "__main__":
    main(*sys.argv[1:2])
