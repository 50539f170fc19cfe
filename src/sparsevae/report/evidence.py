"""What a report takes from the data: certificate, ablation, points behind the curves, extreme samples.

It is gathered once, after a fit or on another table, and kept as plain values. The page is made from it later
without the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from sparsevae.aliases import JSON, Matrix, TableLike
from sparsevae.estimators.evaluating import fixed_draws
from sparsevae.estimators.posterior import posterior
from sparsevae.estimators.reading import Outputs
from sparsevae.estimators.responses import responses_of_factors, spread_rows
from sparsevae.identifiability.records import certificate_record
from sparsevae.report.numbers import rounded
from sparsevae.training import Table

if TYPE_CHECKING:
    from sparsevae.estimators import SparseVAE

__all__ = ["EVIDENCE_FORMAT", "gather_evidence"]

EVIDENCE_FORMAT = 1

_CURVES = 6  # features of a factor whose response curve is drawn
_POINTS = 120  # samples behind each curve
_EXTREME = 5  # samples named at each end of a factor
_SHOWN_VALUES = 3  # features whose values are given for such a sample
_ABLATION_ROWS = 200
_ABLATION_DRAWS = 2


def gather_evidence(
    model: SparseVAE,
    X: TableLike,
    *,
    samples: Sequence[object] | np.ndarray | None = None,
    table_name: str = "",
    seen_in_fit: bool = True,
) -> JSON:
    """Look at a table through a fitted model.

    Parameters
    ----------
    model : SparseVAE
        Fitted.
    X : array, data frame or sparse matrix of shape (n_samples, n_features)
    samples : sequence of length n_samples, optional
        Names of the rows; by default their numbers from 0.
    table_name : str
        What to call the table.
    seen_in_fit : bool
        Whether it is the table of the fit; costs on another one are held-out costs.

    Returns
    -------
    dict
        Plain values that JSON can hold: format, source, certificate, ablation, curves, samples.
    """
    certificate = model.identifiability(X)
    checked = model._check_table(X, reset=False)
    codes = np.asarray(model.transform(X))
    names = np.arange(checked.shape[0]) if samples is None else np.asarray(samples, dtype=object)
    factors = [(int(k), str(model.get_feature_names_out()[k])) for k in model.active_factors_]
    few = checked[spread_rows(checked.shape[0], _POINTS)]
    return {
        "format": EVIDENCE_FORMAT,
        "source": {
            "table": table_name,
            "n_samples": int(checked.shape[0]),
            "seen_in_fit": bool(seen_in_fit),
        },
        "certificate": certificate_record(certificate),
        "ablation": _ablation(model, checked, factors),
        "curves": _curves(model, few, factors),
        "samples": {name: _extremes(model, k, codes[:, k], checked, names) for k, name in factors},
    }


@torch.no_grad()
def _ablation(model: SparseVAE, X: Matrix, factors: list[tuple[int, str]]) -> JSON:
    r"""Log-likelihood lost per sample, in nats, when a factor is held at its mean.

    .. math:: E_{q(z|x)}\big[\log p(x \mid z) - \log p(x \mid z \text{ with } z_k = 0)\big]
    """
    module = model.module_
    rows = spread_rows(X.shape[0], _ABLATION_ROWS)
    x = Table(X[rows], module.observation).rows(torch.arange(len(rows)))
    mean, log_variance = posterior(module, x)
    costs = np.zeros((len(factors), len(rows)))
    draws = fixed_draws(module.n_noise)
    half = _ABLATION_DRAWS // 2
    for draw in torch.cat([draws[:half], -draws[:half]]).float():
        outputs = Outputs(module, mean + torch.exp(0.5 * log_variance) * draw)
        full = module.log_likelihood(x, outputs.given)
        for a, (k, _) in enumerate(factors):
            lost = full - module.log_likelihood(x, outputs.changed(k, 0.0))
            costs[a] += lost.double().numpy() / _ABLATION_DRAWS
    error = costs.std(1) / np.sqrt(max(len(rows), 1))
    return {
        name: {"cost": rounded(costs[a].mean()), "standard_error": rounded(error[a]), "n_rows": len(rows)}
        for a, (_, name) in enumerate(factors)
    }


def _curves(model: SparseVAE, X: Matrix, factors: list[tuple[int, str]]) -> dict[str, list[JSON]]:
    """Response curves of the strongest features of each factor, with points behind them."""
    strongest = {k: model._strongest(k)[:_CURVES] for k, _ in factors}
    found = responses_of_factors(model, strongest, X)
    return {
        name: [
            {
                "feature": int(j),
                "grid": rounded(found[k].grid),
                "curve": rounded(found[k].curves[:, column]),
                "at": rounded(found[k].at),
                "points": rounded(found[k].points[:, column]),
            }
            for column, j in enumerate(strongest[k])
        ]
        for k, name in factors
    }


def _extremes(model: SparseVAE, k: int, codes: np.ndarray, X: Matrix, names: np.ndarray) -> JSON:
    """The samples at both ends of a factor, with their values of its strongest features."""
    order = np.argsort(-codes, kind="stable")
    n = min(_EXTREME, len(order) // 2 or 1)
    shown = model._strongest(k)[:_SHOWN_VALUES]

    def describe(i: int) -> JSON:
        row = X[[i]]
        values = np.asarray(row.todense() if hasattr(row, "todense") else row).ravel()[shown]
        name = names[i]
        return {
            "sample": name.item() if isinstance(name, np.generic) else name,
            "value": rounded(codes[i]),
            "values": rounded(values),
        }

    return {
        "features": shown.tolist(),
        "strongest": [describe(int(i)) for i in order[:n]],
        "weakest": [describe(int(i)) for i in order[::-1][:n]],
    }
