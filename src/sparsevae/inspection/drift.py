r"""Drift of a table from the one that was fitted: a mix of factors that has moved, or a curve that broke.

A feature is judged by what the others say of it. Let :math:`\hat f_{ij}` be the output of feature j at the
factors that the *other* features of row i indicate, and :math:`e_{ij}` what the feature leaves of it. While
the curve of j holds, e has mean zero whatever :math:`\hat f` is, in any mix of the factors, and the
regression of e on :math:`\hat f` is what it was in the table fitted. A shift of the feature moves its
intercept, another slope of the curve its slope.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from scipy.stats import chi2, kstwobign
from torch import Tensor

from sparsevae.aliases import JSON
from sparsevae.decoder.threads import side_by_side
from sparsevae.exceptions import DataError
from sparsevae.inspection.codes import Codes, spread_rows
from sparsevae.inspection.newton import newton_expansion
from sparsevae.modules import Batch, LatentModule
from sparsevae.summaries import dense_table

__all__ = ["Drift", "find_drift", "reference_of"]

_ROWS = (200, 2000)  # of the table fitted, and of a new one, that are looked at: fewer of wide tables
_CELLS = 250_000, 2_000_000  # the same, in cells: every fit pays for the first
_SLOPES_AT_ONCE = 1 << 23
_LEAST_ROWS = 20
_NEWTON_STEPS = 3
_MIX_ROUNDS = 8  # of codes and of their mean and covariance in turn
_UNSEEN = 0.01  # part of a factor's variance that codes show, below which they hardly change it
_QUANTILES = 51
_SHRINKAGE = 1e-3  # of the mix of new rows towards that of the fit, for an inverse
_ALLOWANCE = 0.05  # in deviations: a fitted curve is not the true one, and differs so much where rows are new
_LEAST_SPREAD = 1e-6  # of predictions; below, there is no slope
_MOST_BROKEN = 0.5  # of the features; beyond, nothing is left to judge by

Reference = dict[str, np.ndarray]
"""What is kept of the table fitted: sums over its rows, no row of it."""


@dataclass(frozen=True)
class Drift:
    """What has changed between the table fitted and another one.

    Attributes
    ----------
    features : DataFrame
        A row per feature: ``broken``; ``p_value`` of the hypothesis that its curve is what it was, and
        ``adjusted`` for the number of features (Holm); ``shift``, in standard deviations of what the factors
        leave of the feature; ``slope``, relative to that of the fit; ``column_p_value``, of a
        Kolmogorov-Smirnov test of the column alone, which a moved mix moves too.
    factors : DataFrame
        A row per active factor: ``moved``, ``p_value`` (Kolmogorov-Smirnov), ``adjusted``, ``mean`` and
        ``deviation`` in the new table, in standard deviations of the fit.
    n_samples : int
        New rows looked at.
    level : float
        Of all tests of a kind together.
    """

    features: pd.DataFrame
    factors: pd.DataFrame
    n_samples: int
    level: float = 0.05

    @property
    def broken(self) -> list[str]:
        """Features whose curves have broken, the clearest first."""
        return self.features.index[self.features["broken"]].tolist()

    @property
    def moved(self) -> list[str]:
        """Factors whose distribution has moved."""
        return self.factors.index[self.factors["moved"]].tolist()

    def summary(self) -> str:
        """What has changed, in words."""
        broken, moved = self.broken, self.moved
        lines = [f"{self.n_samples} new rows."]
        if broken:
            follow = "follows its" if len(broken) == 1 else "follow their"
            lines.append(f"{len(broken)} of {len(self.features)} features no longer {follow} factors:")
            for name in broken:
                row = self.features.loc[name]
                lines.append(
                    f"  {name}: shift {row['shift']:+.2f} standard deviations, slope {row['slope']:.2f} of "
                    f"the fit's (p = {row['adjusted']:.2g})"
                )
        else:
            lines.append("Every feature follows its factors as in the fit.")
        if moved:
            lines.append(f"The mix of rows has moved on {len(moved)} of {len(self.factors)} factors:")
            for name in moved:
                row = self.factors.loc[name]
                lines.append(
                    f"  {name}: mean {row['mean']:+.2f}, deviation {row['deviation']:.2f} "
                    f"(p = {row['adjusted']:.2g})"
                )
        else:
            lines.append("The mix of rows has not moved on any factor.")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.summary()

    def to_dict(self) -> JSON:
        """Plain values that JSON can hold."""

        def records(table: pd.DataFrame, name: str) -> list[JSON]:
            frame = table.rename_axis(name).reset_index().astype(object)
            rows = frame.to_dict("records")
            return [{str(k): None if value != value else value for k, value in row.items()} for row in rows]

        return {
            "n_samples": self.n_samples,
            "level": self.level,
            "broken": self.broken,
            "moved": self.moved,
            "features": records(self.features, "feature"),
            "factors": records(self.factors, "factor"),
        }


def reference_of(codes: Codes) -> Reference:
    """What later tables are compared with: numbers of each feature and each factor of the table fitted."""
    rows = _rows(codes, _CELLS[0])
    module = codes.module
    active = torch.nonzero(module.active()).ravel()
    if not len(active):
        return {}
    batch = codes.batch(rows)
    predicted, left, weight, z = _left_out(module, batch, None)
    centre, spread = _moments(predicted, weight)
    coefficients, covariance, noise = _regress(predicted, left, weight, centre, spread)
    levels = np.linspace(0.0, 1.0, _QUANTILES)
    table = dense_table(codes.X[rows]).astype(np.float64)
    return {
        "n_samples": np.array(len(rows)),
        "centre": centre,
        "spread": spread,
        "coefficients": coefficients,
        "covariance": covariance,
        "noise": noise,
        "factor_quantiles": np.quantile(z, levels, axis=0),
        "factor_moments": np.stack([z.mean(0), z.std(0)]),
        "column_quantiles": np.nanquantile(table, levels, axis=0).astype(np.float32),
    }


def find_drift(
    codes: Codes,
    reference: Mapping[str, np.ndarray],
    feature_names: np.ndarray,
    factor_names: np.ndarray,
    level: float = 0.05,
) -> Drift:
    """Compare a table with the one that was fitted.

    Parameters
    ----------
    codes : Codes
        Of the new table.
    reference : mapping
        From `reference_of` of the table fitted.
    feature_names, factor_names : ndarray of str
        Of all features, and of the active factors.
    level : float
        Of all tests of features together, and of all tests of factors.

    Returns
    -------
    Drift

    Notes
    -----
    A broken feature would move the factors, and with them what is expected of others. The clearest one is
    therefore left out of the new rows before the rest is judged again, until no more is found.
    """
    if not reference:
        raise DataError("Expected a model with at least one factor; got none. Nothing can be compared.")
    rows = _rows(codes, _CELLS[1])
    if len(rows) < _LEAST_ROWS:
        raise DataError(
            f"Expected at least {_LEAST_ROWS} new rows; got {len(rows)}. Collect more before you judge."
        )
    batch = codes.batch(rows)
    n_features = codes.module.n_features
    p_values, shift, slope = np.ones(n_features), np.zeros(n_features), np.ones(n_features)
    broken: list[int] = []
    left_in = np.ones(n_features, dtype=bool)
    while True:
        masked = _without(batch, ~left_in)
        mix = _mix(codes.module, masked)
        p, a, b = _compare_features(codes.module, masked, mix, reference)
        p_values[left_in], shift[left_in], slope[left_in] = p[left_in], a[left_in], b[left_in]
        worst = int(np.where(left_in, p, np.inf).argmin())
        if p_values[worst] * left_in.sum() > level or len(broken) >= _MOST_BROKEN * n_features:
            break
        broken.append(worst)
        left_in[worst] = False
    for j in broken:  # how far each is off, by a mix that no fault has a part in
        hidden = ~left_in
        hidden[j] = False
        _, a, b = _compare_features(codes.module, _without(batch, hidden), mix, reference)
        shift[j], slope[j] = a[j], b[j]
    order = [*broken, *np.flatnonzero(left_in)[np.argsort(p_values[left_in], kind="stable")]]
    # Each in the round in which it was judged, among those that were left.
    rounds = np.array([n_features - broken.index(j) if j in broken else left_in.sum() for j in order])
    adjusted = np.maximum.accumulate(np.minimum(1.0, p_values[order] * rounds))
    table = dense_table(codes.X[rows]).astype(np.float64)
    column_p = np.array([_ks_p(table[:, j], reference["column_quantiles"][:, j], reference) for j in order])
    features = pd.DataFrame(
        {
            "broken": np.isin(order, broken),
            "p_value": p_values[order],
            "adjusted": adjusted,
            "shift": shift[order],
            "slope": slope[order],
            "column_p_value": column_p,
        },
        index=pd.Index(np.asarray(feature_names, dtype=object)[order], name="feature"),
    )
    z = _left_out(codes.module, _without(batch, ~left_in), None)[3]
    return Drift(features, _compare_factors(z, reference, factor_names, level), len(rows), level)


def _rows(codes: Codes, n_cells: int) -> np.ndarray:
    return spread_rows(codes.X.shape[0], int(np.clip(n_cells // codes.X.shape[1], *_ROWS)))


def _parts(module: LatentModule, batch: Batch) -> Iterator[Batch]:
    """Rows in parts whose slopes are small beside the memory."""
    n_active = max(1, int(module.active().sum()))
    return batch.split(max(1, _SLOPES_AT_ONCE // (n_active * module.n_features)))


def _without(batch: Batch, hidden: np.ndarray) -> Batch:
    """Rows without some of their features."""
    if not hidden.any():
        return batch
    seen = torch.as_tensor(~hidden).expand_as(batch.x)
    observed = seen if batch.observed is None else batch.observed & seen
    return batch._replace(observed=observed, inputs=torch.where(observed, batch.inputs, 0.0))


Prior = tuple[Tensor, Tensor]
"""Mean and inverse covariance of the active factors."""


@torch.no_grad()
def _left_out(
    module: LatentModule, batch: Batch, prior: Prior | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    r"""Output of each cell predicted by the rest of its row, what the cell leaves of it, weight, and codes.

    With :math:`h = I_j J_j^\top P^{-1} J_j`, the leverage of a cell, and its working residual
    :math:`r = s_j/I_j`, leaving it out changes the output by :math:`-r\,h/(1 - h)`: no row is encoded twice.
    """
    parts = side_by_side(lambda part: _left_out_of(module, part, prior), _parts(module, batch))
    return tuple(np.concatenate(values) for values in zip(*parts, strict=True))  # type: ignore[return-value]


def _left_out_of(module: LatentModule, batch: Batch, prior: Prior | None) -> tuple[np.ndarray, ...]:
    mean, slopes, score, information, precision = newton_expansion(module, batch, prior, _NEWTON_STEPS)
    solved = torch.linalg.solve(precision, slopes)  # sample × active × feature
    leverage = (information * (slopes * solved).sum(1)).clamp(0.0, 0.95)
    there = information > 0
    residual = torch.where(there, score / information.clamp_min(1e-12), 0.0)
    output = module.shifted(batch, module.decode(mean))
    predicted = output - residual * leverage / (1.0 - leverage)
    left = residual / (1.0 - leverage)
    active = torch.nonzero(module.active()).ravel()
    weight = torch.where(there, information, 0.0)
    arrays = (predicted, left, weight, mean[:, active])
    return tuple(value.double().numpy() for value in arrays)


@torch.no_grad()
def _mix(module: LatentModule, batch: Batch) -> Prior:
    r"""Mean and inverse covariance of the factors of new rows: a moved mix is no fault of a feature.

    Let M be the covariance of the codes and V their mean posterior covariance, both in units of B where the
    covariance is :math:`BB^\top`. If it is right, :math:`M = Q = I - V`; each round goes on with
    :math:`B Q^{-1/2} M Q^{-1/2} B^\top`. Steps of EM, :math:`M + V`, hardly move once a variance is small.
    """
    active = torch.nonzero(module.active()).ravel()
    fitted = module.prior_covariance()[active][:, active]
    centre, covariance, identity = torch.zeros(len(active)), fitted, torch.eye(len(active))
    for _ in range(_MIX_ROUNDS):
        own: Prior = (centre, torch.linalg.inv(covariance))
        means, left = [], torch.zeros_like(covariance)
        for part in _parts(module, batch):
            mean, _, _, _, precision = newton_expansion(module, part, own, _NEWTON_STEPS)
            means.append(mean[:, active])
            left = left + torch.linalg.inv(precision).sum(0)
        z = torch.cat(means)
        centre = z.mean(0)
        basis = torch.linalg.cholesky(covariance)
        codes = torch.linalg.solve_triangular(basis, (z - centre).T, upper=False)
        unseen = torch.linalg.solve_triangular(basis, left / len(z), upper=False)
        unseen = torch.linalg.solve_triangular(basis, unseen.T, upper=False)
        values, vectors = torch.linalg.eigh((1.0 + _UNSEEN) * identity - unseen)
        root = basis @ (vectors / values.clamp_min(_UNSEEN).sqrt()) @ vectors.T
        covariance = root @ (codes @ codes.T / len(z) + _UNSEEN * identity) @ root.T
        covariance = (1.0 - _SHRINKAGE) * covariance + _SHRINKAGE * fitted
    return centre, torch.linalg.inv(covariance)


def _moments(predicted: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weighted mean and standard deviation of each feature's predictions."""
    total = np.maximum(weight.sum(0), 1e-12)
    centre = np.nansum(weight * predicted, 0) / total
    return centre, np.sqrt(np.nansum(weight * np.square(predicted - centre), 0) / total)


def _regress(
    predicted: np.ndarray, left: np.ndarray, weight: np.ndarray, centre: np.ndarray, spread: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Coefficients of residuals on 1 and predictions, their robust covariances, and the residual deviation.

    Returns
    -------
    coefficients : ndarray of shape (n_features, 2)
    covariance : ndarray of shape (n_features, 2, 2)
    noise : ndarray of shape (n_features,)
    """
    scale = np.where(spread > _LEAST_SPREAD, spread, np.inf)
    basis = np.stack([np.ones_like(predicted), (predicted - centre) / scale], -1)  # sample × feature × 2
    weighted = basis * weight[..., None]
    gram = np.einsum("ija,ijb->jab", weighted, basis) + 1e-9 * np.eye(2)
    inverse = np.linalg.inv(gram)
    coefficients = np.einsum("jab,ijb,ij->ja", inverse, weighted, left)
    rest = left - np.einsum("ija,ja->ij", basis, coefficients)
    count = np.maximum((weight > 0).sum(0), 3)
    meat = np.einsum("ija,ijb,ij->jab", weighted, weighted, np.square(rest))
    covariance = inverse @ meat @ inverse * (count / (count - 2.0))[:, None, None]
    noise = np.sqrt((weight * np.square(rest)).sum(0) / np.maximum(weight.sum(0), 1e-12))
    return coefficients, covariance, noise


def _compare_features(
    module: LatentModule, batch: Batch, mix: Prior, reference: Mapping[str, np.ndarray]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """P-value, shift in deviations of the residual, and relative slope of each feature."""
    predicted, left, weight, _ = _left_out(module, batch, mix)
    centre, spread = reference["centre"], reference["spread"]
    coefficients, covariance, _ = _regress(predicted, left, weight, centre, spread)
    change = coefficients - reference["coefficients"]
    both = covariance + reference["covariance"]
    # A feature that uses no factor has no slope.
    flat = spread <= _LEAST_SPREAD
    both[flat, 1, 1], both[flat, 0, 1], both[flat, 1, 0], change[flat, 1] = 1.0, 0.0, 0.0, 0.0
    noise = reference["noise"]
    # Of rows that hardly differ in their factors, a slope of any size changes outputs little.
    present = np.maximum(_moments(predicted, weight)[1], _LEAST_SPREAD)
    steep = np.maximum(np.maximum(noise, spread), noise * spread / present)
    allowed = np.stack([noise, np.where(flat, 1.0, steep)], -1)
    both = both + np.square(_ALLOWANCE * allowed)[:, :, None] * np.eye(2) + 1e-12 * np.eye(2)
    statistic = np.einsum("ja,jab,jb->j", change, np.linalg.inv(both), change)
    p = chi2.sf(statistic, np.where(flat, 1, 2))
    p = np.where((weight > 0).sum(0) >= _LEAST_ROWS, p, 1.0)
    slope = 1.0 + change[:, 1] / np.where(flat, np.inf, spread)
    return p, change[:, 0] / np.maximum(noise, 1e-12), slope


def _compare_factors(
    z: np.ndarray, reference: Mapping[str, np.ndarray], names: np.ndarray, level: float
) -> pd.DataFrame:
    p = np.array([_ks_p(z[:, k], reference["factor_quantiles"][:, k], reference) for k in range(z.shape[1])])
    order = np.argsort(p, kind="stable")
    adjusted = np.empty(len(p))
    steps = np.minimum(1.0, p[order] * (len(p) - np.arange(len(p))))
    adjusted[order] = np.maximum.accumulate(steps)
    mean, deviation = reference["factor_moments"]
    return pd.DataFrame(
        {
            "moved": adjusted <= level,
            "p_value": p,
            "adjusted": adjusted,
            "mean": (z.mean(0) - mean) / np.maximum(deviation, 1e-12),
            "deviation": z.std(0) / np.maximum(deviation, 1e-12),
        },
        index=pd.Index(np.asarray(names, dtype=object), name="factor"),
    )


def _ks_p(values: np.ndarray, quantiles: np.ndarray, reference: Mapping[str, np.ndarray]) -> float:
    """Kolmogorov-Smirnov test of values against a sample of which only quantiles were kept."""
    values = np.sort(values[~np.isnan(values)])
    n, m = len(values), int(reference["n_samples"])
    if not n:
        return 1.0
    # Compared where the quantiles lie, from both sides: columns may have ties.
    inner = quantiles[1:-1].astype(np.float64)
    levels = np.linspace(0.0, 1.0, len(quantiles))
    points = np.unique(inner)
    slack = 1e-6 * (np.abs(points) + 1e-12)
    above = np.searchsorted(values, points + slack, side="right") / n
    below = np.searchsorted(values, points - slack, side="left") / n
    highest = np.array(
        [levels[quantiles <= point + gap].max() for point, gap in zip(points, slack, strict=True)]
    )
    lowest = np.array(
        [levels[quantiles >= point - gap].min() for point, gap in zip(points, slack, strict=True)]
    )
    distance = max(np.maximum(lowest - above, below - highest).max(initial=0.0), 0.0)
    return float(kstwobign.sf(distance * np.sqrt(n * m / (n + m))))
