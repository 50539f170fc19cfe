"""Draw the picture of the README: a true mask beside the one that a fit recovers from the data alone.

Usage: python examples/recovered_mask.py [FILE.png]

Forty features are made from five correlated factors: five anchors for each factor, and fifteen features of
two or three factors, half of them with products. The fit has room for eight factors and is not told how many
there are. It takes about a minute.
"""

from __future__ import annotations

import sys

import numpy as np
from matplotlib.figure import Figure

from sparsevae import SparseVAE
from sparsevae.datasets import make_anchored_factors
from sparsevae.metrics import match_supports, support_score


def main(path: str = "docs/images/mask.png") -> None:
    data = make_anchored_factors(1000, 40, 5, correlation=0.3, random_state=1)
    model = SparseVAE(n_factors=8, random_state=0).fit(data.X)
    score = support_score(model.mask_, data.mask)
    n_active = len(model.active_factors_)
    print(f"{n_active} factors found; links: precision {score.precision:.2f}, recall {score.recall:.2f}")

    # Factors come in an order of their own: those with a true partner go in its place, others behind.
    partner = {true: found for found, true in match_supports(model.mask_, data.mask)}
    unmatched = [k for k in model.active_factors_ if k not in partner.values()]
    columns = [partner[k] for k in sorted(partner)] + unmatched
    draw(data.mask, model.mask_[:, columns], path)
    print(f"wrote {path}")


def draw(true_mask: np.ndarray, mask: np.ndarray, path: str) -> None:
    figure = Figure(figsize=(5.6, 5.2), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for ax, title, values in zip(axes, ("true mask", "recovered mask"), (true_mask, mask), strict=True):
        size = np.abs(values) / np.abs(values).max(axis=1, keepdims=True).clip(
            1e-12
        )  # relative to the feature
        ax.imshow(np.ma.masked_equal(size, 0), cmap="Blues", vmin=-0.6, vmax=1.0, aspect="auto")
        ax.set_title(title)
        ax.set_xlabel("factor")
        ax.set_xticks(range(values.shape[1]), [str(k + 1) for k in range(values.shape[1])])
        ax.set_xticks(np.arange(values.shape[1] + 1) - 0.5, minor=True)
        ax.set_yticks(np.arange(len(values) + 1) - 0.5, minor=True)
        ax.grid(which="minor", color="0.88", linewidth=0.6)
        ax.tick_params(which="both", length=0)
    axes[0].set_ylabel("feature")
    axes[0].set_yticks(range(0, len(mask), 5))
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main(*sys.argv[1:2])
