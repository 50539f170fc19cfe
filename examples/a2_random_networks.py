r"""Assumption A2 in random ReLU networks: what grows with the width, and what does not.

The paper's appendix ("Discussion of identifiability assumptions") argues that in a wide network with
independent Gaussian weights two anchors of one factor covary more with each other than with anything else.
This script draws such networks,

    E[x_j | z] = H3_j ReLU(H2 ReLU(H1 (w_j * z))),

with two anchors of one factor that share w_j and H3_j, and looks at three things for widths from 8 to 512:

1. the sum that the appendix keeps: products of a weight with itself;
2. the same first-order covariance with all its terms;
3. the correlation of the noise-free features.

Run it with ``python examples/a2_random_networks.py``; it takes about half a minute and writes
docs/images/a2_random_networks.png.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NamedTuple

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

WIDTHS = (8, 32, 128, 512)
N_NETWORKS = 40
N_SAMPLES = 200
N_FACTORS = 5
FACTOR_CORRELATION = 0.3
GROUPS = {
    "same factor, another curve": range(2, 8),
    "anchor of another factor": range(8, 14),
    "two or three factors": range(14, 26),
}
N_FEATURES = 26
COLOURS = dict(zip(GROUPS, ("#c2410c", "#0f766e", "#4338ca"), strict=True))


class Network(NamedTuple):
    """One network's slopes, active units and noise-free features at the samples."""

    first: np.ndarray
    second: np.ndarray
    heads: np.ndarray
    mask: np.ndarray
    active: list[tuple[np.ndarray, np.ndarray]]
    slopes: np.ndarray
    """(n_samples, n_features, n_factors)"""
    features: np.ndarray
    """(n_samples, n_features)"""


def draw_mask(rng: np.random.Generator) -> np.ndarray:
    """Features 0 and 1 are the pair of anchors of factor 0; the others as GROUPS says."""
    mask = np.zeros((N_FEATURES, N_FACTORS))
    size = rng.choice([-1.0, 1.0], (N_FEATURES, N_FACTORS)) * rng.uniform(0.5, 1.5, (N_FEATURES, N_FACTORS))
    for j in range(N_FEATURES):
        if j < 8:
            support = [0]
        elif j < 14:
            support = [int(rng.integers(1, N_FACTORS))]
        else:
            support = rng.choice(N_FACTORS, int(rng.integers(2, 4)), replace=False).tolist()
        mask[j, support] = size[j, support]
    mask[1:8, 0] = np.sign(mask[0, 0]) * np.abs(mask[1:8, 0])  # one side of the ReLU: they can agree
    mask[1] = mask[0]
    return mask


def draw_network(rng: np.random.Generator, width: int, factors: np.ndarray) -> Network:
    """Independent Gaussian weights, but for the head that the two anchors share."""
    mask = draw_mask(rng)
    first = rng.standard_normal((width, N_FACTORS))
    second = rng.standard_normal((width, width)) / np.sqrt(width)
    heads = rng.standard_normal((N_FEATURES, width)) / np.sqrt(width)
    heads[1] = heads[0]
    slopes = np.empty((len(factors), N_FEATURES, N_FACTORS))
    features = np.empty((len(factors), N_FEATURES))
    active = []
    for j in range(N_FEATURES):
        hidden = (mask[j] * factors) @ first.T
        above = np.maximum(hidden, 0.0) @ second.T
        active.append((hidden > 0, above > 0))
        slopes[:, j] = (((above > 0) * heads[j]) @ second * (hidden > 0)) @ first * mask[j]
        features[:, j] = np.maximum(above, 0.0) @ heads[j]
    return Network(first, second, heads, mask, active, slopes, features)


def kept_terms(network: Network, correlation: np.ndarray) -> np.ndarray:
    """First-order covariance of feature 0 with each, with only the terms that the appendix keeps."""
    result = np.empty(N_FEATURES)
    squares = network.second.T**2
    first_0, above_0 = network.active[0]
    for j, (first_j, above_j) in enumerate(network.active):
        through = (network.first * network.mask[0]) @ correlation * (network.first * network.mask[j])
        layer = ((first_0 & first_j) * through.sum(1)) @ squares * (above_0 & above_j)
        result[j] = (layer @ (network.heads[0] * network.heads[j])).mean()
    return result


def all_terms(network: Network, correlation: np.ndarray) -> np.ndarray:
    """First-order covariance of feature 0 with each, averaged over the samples."""
    return (network.slopes[:, :1] @ correlation * network.slopes).sum(2).mean(0)


def measure(seed: int = 0) -> dict[str, dict[int, np.ndarray]]:
    """For each measure and width, sizes relative to that of the two anchors: (n_networks, n_features)."""
    rng = np.random.default_rng(seed)
    correlation = np.full((N_FACTORS, N_FACTORS), FACTOR_CORRELATION)
    np.fill_diagonal(correlation, 1.0)
    root = np.linalg.cholesky(correlation)
    results: dict[str, dict[int, np.ndarray]] = {"kept": {}, "all": {}, "correlation": {}}
    for width in WIDTHS:
        rows: dict[str, list[np.ndarray]] = {name: [] for name in results}
        for _ in range(N_NETWORKS):
            factors = rng.standard_normal((N_SAMPLES, N_FACTORS)) @ root.T
            network = draw_network(rng, width, factors)
            for name, covariance in (
                ("kept", kept_terms(network, correlation)),
                ("all", all_terms(network, correlation)),
            ):
                rows[name].append(np.abs(covariance) / covariance[1])
            centred = network.features - network.features.mean(0)
            spread = np.maximum(np.sqrt((centred**2).sum(0)), 1e-12)
            rows["correlation"].append(np.abs(centred[:, 0] @ centred) / (spread[0] * spread))
        for name in results:
            results[name][width] = np.array(rows[name])
    return results


def first_share(values: np.ndarray) -> float:
    """Share of networks in which the two anchors come strictly before every other feature."""
    return float((values[:, 2:] < 1.0 - 1e-6).all(1).mean())


def draw(results: dict[str, dict[int, np.ndarray]], path: Path) -> None:
    """One panel per measure: median and middle 80 % over networks and features of each group."""
    titles = {
        "kept": "1. terms that the appendix keeps",
        "all": "2. first-order covariance, all terms",
        "correlation": "3. correlation of noise-free features",
    }
    figure, axes = plt.subplots(1, 3, figsize=(13.0, 4.3), sharex=True, layout="constrained")
    for axis, (name, title) in zip(axes, titles.items(), strict=True):
        for group, columns in GROUPS.items():
            chosen = [results[name][width][:, list(columns)] for width in WIDTHS]
            low, middle, high = ([np.quantile(values, q) for values in chosen] for q in (0.1, 0.5, 0.9))
            axis.plot(WIDTHS, middle, "o-", color=COLOURS[group], label=group, markersize=4)
            axis.fill_between(WIDTHS, low, high, color=COLOURS[group], alpha=0.15, linewidth=0)
        axis.axhline(1.0, color="black", linewidth=1.2)
        axis.text(WIDTHS[0], 1.03, "the two anchors", fontsize=9, va="bottom")
        wins = [first_share(results[name][width]) for width in WIDTHS]
        shares = " / ".join(f"{100 * win:.0f}" for win in wins)
        axis.set_title(f"{title}\nanchors first in {shares} % of networks", fontsize=10)
        axis.set(xscale="log", xlabel="width of the network", ylim=(0, 2.6))
        axis.set_xticks(WIDTHS, [str(width) for width in WIDTHS])
        axis.minorticks_off()
    axes[0].set_ylabel("with the anchor, relative to the other anchor")
    axes[2].set_ylim(0, 1.25)
    axes[1].legend(frameon=False, fontsize=9, loc="upper right")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def main() -> None:
    """Measure, print, draw."""
    default = Path(__file__).resolve().parents[1] / "docs" / "images" / "a2_random_networks.png"
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, default=default)
    path = parser.parse_args().output
    results = measure()
    print(f"{'':34}" + "".join(f"{width:>9}" for width in WIDTHS))
    for name, by_width in results.items():
        for group, columns in GROUPS.items():
            medians = [np.median(by_width[width][:, list(columns)]) for width in WIDTHS]
            print(f"{name + ': ' + group:34.34}" + "".join(f"{value:9.3f}" for value in medians))
        wins = [first_share(by_width[width]) for width in WIDTHS]
        print(f"{name + ': anchors first':34}" + "".join(f"{value:9.0%}" for value in wins))
    draw(results, path)
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
