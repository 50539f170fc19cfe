"""What a page about a fit takes from the data: ablation, points behind the curves, extreme samples.

It is gathered once, after a fit or on another table, and kept as plain values. The page is made from it later
without the data and without the network.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, overload

import numpy as np
import torch

from sparsevae.aliases import JSON
from sparsevae.inspection.codes import Codes, fixed_draws, spread_rows
from sparsevae.inspection.curves import response_curves
from sparsevae.inspection.outputs import Outputs
from sparsevae.modules import SparseVAEModule

__all__ = ["EVIDENCE_FORMAT", "gather_evidence", "rounded"]

EVIDENCE_FORMAT = 1

_CURVES = 6  # features of a factor whose response curve is drawn
_POINTS = 120  # samples behind each curve
_EXTREME = 5  # samples named at each end of a factor
_SHOWN_VALUES = 3  # features whose values are given for such a sample
_ABLATION_ROWS = 200
_ABLATION_DRAWS = 2


def gather_evidence(
    module: SparseVAEModule,
    codes: Codes,
    factors: Mapping[int, str],
    strongest: Mapping[int, np.ndarray],
    samples: Sequence[object] | np.ndarray | None = None,
) -> JSON:
    """Look at a table through a fitted module.

    Parameters
    ----------
    module : SparseVAEModule
        Fitted.
    codes : Codes
        Of the table.
    factors : mapping from int to str
        Names of the active factors.
    strongest : mapping from int to integer array
        Features of each factor, strongest first.
    samples : sequence of length n_samples, optional
        Names of the rows; by default their numbers from 0.

    Returns
    -------
    dict
        Plain values that JSON can hold: ablation, curves, samples.
    """
    names = codes.positions if samples is None else np.asarray(samples, dtype=object)
    Z = codes.means()
    return {
        "ablation": _ablation(module, codes, factors),
        "curves": _curves(module, codes, factors, strongest),
        "samples": {
            name: _extremes(Z[:, k], codes, names, strongest[k][:_SHOWN_VALUES])
            for k, name in factors.items()
        },
    }


@overload
def rounded(value: float, digits: int = 4) -> float | None: ...
@overload
def rounded(value: np.ndarray, digits: int = 4) -> list[Any]: ...
def rounded(value: float | np.ndarray, digits: int = 4) -> float | list[Any] | None:
    """Numbers with so many significant digits, as plain Python values; None for what is not finite.

    Parameters
    ----------
    value : float or array
        Arrays become (nested) lists.
    digits : int
    """
    array = np.asarray(value, dtype=np.float64)
    if array.ndim:
        return [rounded(item, digits) for item in array]
    number = float(array)
    return float(f"{number:.{digits}g}") if math.isfinite(number) else None


@torch.no_grad()
def _ablation(module: SparseVAEModule, codes: Codes, factors: Mapping[int, str]) -> JSON:
    r"""Log-likelihood lost per sample, in nats, when a factor is held at its mean.

    .. math:: E_{q(z|x)}\big[\log p(x \mid z) - \log p(x \mid z \text{ with } z_k = 0)\big]
    """
    rows = spread_rows(codes.X.shape[0], _ABLATION_ROWS)
    batch = codes.batch(rows)
    mean, log_variance = torch.as_tensor(codes.moments(rows)).chunk(2, -1)
    costs = np.zeros((len(factors), len(rows)))
    draws = fixed_draws(module.n_noise)
    half = _ABLATION_DRAWS // 2
    for draw in torch.cat([draws[:half], -draws[:half]]).float():
        outputs = Outputs(module, mean + torch.exp(0.5 * log_variance) * draw)
        full = module.log_likelihood(batch, outputs.given)
        for a, k in enumerate(factors):
            lost = full - module.log_likelihood(batch, outputs.changed(k, 0.0))
            costs[a] += lost.double().numpy() / _ABLATION_DRAWS
    error = costs.std(1) / np.sqrt(max(len(rows), 1))
    return {
        name: {"cost": rounded(costs[a].mean()), "standard_error": rounded(error[a]), "n_rows": len(rows)}
        for a, name in enumerate(factors.values())
    }


def _curves(
    module: SparseVAEModule, codes: Codes, factors: Mapping[int, str], strongest: Mapping[int, np.ndarray]
) -> dict[str, list[JSON]]:
    """Response curves of the strongest features of each factor, with points behind them."""
    shown = {k: strongest[k][:_CURVES] for k in factors}
    found = response_curves(module, shown, codes, spread_rows(codes.X.shape[0], _POINTS))

    def describe(k: int, column: int, feature: int) -> JSON:
        own = found[k]
        there = ~np.isnan(own.points[:, column])  # rows without a value of the feature have no point
        return {
            "feature": int(feature),
            "grid": rounded(own.grid),
            "curve": rounded(own.curves[:, column]),
            "at": rounded(own.at[there]),
            "points": rounded(own.points[there, column]),
        }

    return {
        name: [describe(k, column, int(j)) for column, j in enumerate(shown[k])]
        for k, name in factors.items()
    }


def _extremes(values: np.ndarray, codes: Codes, names: np.ndarray, shown: np.ndarray) -> JSON:
    """The samples at both ends of a factor, with their values of its strongest features."""
    order = np.argsort(-values, kind="stable")
    n = min(_EXTREME, len(order) // 2 or 1)

    def describe(i: int) -> JSON:
        row = codes.X[[i]]
        cells = np.asarray(row.todense() if hasattr(row, "todense") else row).ravel()[shown]
        name = names[i]
        return {
            "sample": name.item() if isinstance(name, np.generic) else name,
            "value": rounded(values[i]),
            "values": rounded(cells),
        }

    return {
        "features": shown.tolist(),
        "strongest": [describe(int(i)) for i in order[:n]],
        "weakest": [describe(int(i)) for i in order[::-1][:n]],
    }
