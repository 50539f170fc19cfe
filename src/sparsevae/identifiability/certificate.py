"""The identifiability certificate: for each factor of a fit, what speaks for it and what does not."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
import torch

from sparsevae.aliases import JSON
from sparsevae.identifiability.anchors import AnchorGroups, anchors_from_covariance
from sparsevae.identifiability.evidence import PairEvidence, pair_evidence
from sparsevae.identifiability.refits import Stability
from sparsevae.identifiability.resamples import Resamples
from sparsevae.identifiability.slopes import anchor_positions, dominance, response_curves
from sparsevae.identifiability.structure_words import Setting, StructureLine, describe_structure, one_to_one
from sparsevae.identifiability.verdict import (
    THRESHOLDS,
    FactorEvidence,
    describe_covariance,
    describe_return,
    describe_theorem,
    judge,
    theory_notes,
)
from sparsevae.inspection.codes import Codes, spread_rows
from sparsevae.modules import SparseVAEModule

__all__ = ["Certificate", "certify"]

_ROWS_FOR_CURVES = 2000
_ROWS_FOR_SLOPES = 300
_ROWS_FOR_CORRELATIONS = 20_000
_LEAST_ROWS = 40  # below which correlations say nothing


@dataclass(frozen=True)
class Certificate:
    """What may be believed of each factor.

    Attributes
    ----------
    table : DataFrame
        A row per active factor, see Notes.
    pairs : DataFrame
        A row per pair of anchors of one factor: factor, anchor, other, curve_difference and its threshold,
        same_curve, data_difference, p_value.
    notes : list of str
        What the theory does not cover here.
    thresholds : dict
        The numbers that the verdicts rest on.
    likelihood : str
        Of the fit.

    Notes
    -----
    Columns of the table:

    - ``verdict`` ("identified", "weak", "not identified") and ``reason``, one sentence. The verdict says
      whether another sample of this size would show the factor, by how halves of the rows agree on it.
    - ``theorem``, ``came_back``, ``covariance``: what the theorem asks for and whether it holds; whether the
      factor came back; what the correlations of the data alone say. A sentence or two each.
    - ``structure``, what the zeros of the mask settle beyond two anchors, in words, where the assumptions of
      a rule hold; ``mixed_with``, factors that can be mixed with this one while the mask stays as it is.
    - ``match``, mean rank correlation of the factor between halves of the rows; ``return_rate``, fraction of
      the ``n_pairs`` halvings with 0.8 or more. NaN where no halves were compared, or no linear factor is
      near. ``group``, factors whose space comes back together though this one alone does not, and
      ``group_match``, the smallest canonical correlation of that space between halves.
    - ``n_practical``: practical anchors, see `SparseVAE.anchor_features`.
    - ``n_anchors``, ``anchors``: features that depend on this factor alone, strongest first.
    - A1: ``pair``, the two anchors that speak best for the factor. ``curve_difference``, the share of one
      fitted response curve that the other does not explain up to scale, at most
      ``thresholds["curve_difference"]``; ``n_same_curve``, anchors with such a partner. From the data
      alone, without the fit: ``data_difference``, the share of the variance of the pair's best contrast
      that other features explain, estimated with held-out instruments, and its ``p_value``. ``strength``,
      the share of variance that the factor explains in the weaker of the pair.
    - A2: ``a2_margin``, first-order correlation of the pair less that of ``a2_rival``, the feature that is
      not an anchor and follows the factor most closely; positive where the anchors stand out. ``a2_ratio``
      is the paper's inequality in the units of the model (below 1 where it holds), which depends on how
      features are scaled.
    - A3: ``a3_margin`` is ``1 - |ρ|`` with ``nearest_factor``. Factors have unit variance, so that A3 always
      holds: a description, not a test.
    - ``returns``: share of refits in which the factor came back; NaN without a stability result.
    - ``confirmed``: anchors that the correlations of the data, without the fit, also put together;
      ``suggested``: features that the correlations put with them and the mask does not.
    """

    table: pd.DataFrame
    pairs: pd.DataFrame = field(repr=False)
    notes: list[str] = field(default_factory=list)
    thresholds: dict[str, float] = field(default_factory=lambda: dict(THRESHOLDS))
    likelihood: str = "gaussian"

    def with_stability(self, stability: Stability) -> Certificate:
        """The same evidence, with how often each factor returned, and the verdicts that follow from both.

        Parameters
        ----------
        stability : Stability
            From `sparsevae.stability`, of the same fit.
        """
        rows = []
        for name, row in self.table.iterrows():
            item = FactorEvidence.from_columns({str(key): value for key, value in row.items()})
            item.returns = _returns(stability, str(name))
            rows.append(_row(str(name), item, self.likelihood))
        return replace(self, table=_factor_table(rows))

    def summary(self) -> str:
        """The verdicts in words, with what is not proved."""
        counts = self.table["verdict"].value_counts()
        words = ", ".join(f"{counts.get(v, 0)} {v}" for v in ("identified", "weak", "not identified"))
        lines = [f"{len(self.table)} active factors: {words}."]
        for name, row in self.table.iterrows():
            lines.append(f"  {name}: {row['verdict']}. {row['reason']}")
        if self.notes:
            lines.append("Limits:")
            lines += [f"  - {note}" for note in self.notes]
        return "\n".join(
            textwrap.fill(line, 100, subsequent_indent="      ", break_long_words=False) for line in lines
        )

    def __str__(self) -> str:
        return self.summary()


def certify(
    module: SparseVAEModule,
    codes: Codes,
    *,
    feature_names: Sequence[object] | np.ndarray,
    factor_names: Sequence[object] | np.ndarray,
    stability: Stability | None = None,
    resamples: Resamples | None = None,
    practical: np.ndarray | None = None,
    correlation: np.ndarray | None = None,
) -> Certificate:
    """Examine each active factor of a fitted module on a table.

    Parameters
    ----------
    module : SparseVAEModule
        Fitted, without replicates, on the CPU.
    codes : Codes
        Of the table of the fit, or of another of its kind.
    feature_names, factor_names : sequences of str
        Of all features and of all factors, active or not.
    stability : Stability, optional
        From `sparsevae.stability`: adds how often each factor returns.
    resamples : Resamples, optional
        What halves of the rows of the fit showed. Without it the theorem alone speaks.
    practical : integer array of shape (n_factors,), optional
        Practical anchors of each factor.
    correlation : array of shape (n_active, n_active), optional
        Of the active factors; by default that of the prior which the fit has learned.

    Returns
    -------
    Certificate
    """
    support = module.support().numpy()
    active = np.flatnonzero(support.any(0))
    n_samples = codes.n_counted
    rows = codes.spread_rows(_ROWS_FOR_CURVES)
    z, inputs = torch.as_tensor(codes.means(rows)), codes.inputs(rows)
    data = None
    if n_samples >= _LEAST_ROWS:
        data = codes.inputs(codes.spread_rows(_ROWS_FOR_CORRELATIONS))
        data = None if np.isnan(data).all(0).any() else data  # nothing is known of some feature
    features, factors = anchor_positions(support)
    curves = response_curves(module, z, features)
    between = _factor_correlation(module, z)
    if correlation is not None and module.config.covariance != "identity":
        between[np.ix_(active, active)] = correlation
    follow = dominance(module, z[spread_rows(len(z), _ROWS_FOR_SLOPES)], between, features, factors)
    evidence = pair_evidence(curves, features, factors, data)
    strength = _strength(module, curves, features, inputs)
    groups = None if data is None else anchors_from_covariance(data, feature_names=feature_names)
    given = (module.mask.frozen | module.mask.known).all(1).numpy()

    names, labels = np.asarray(feature_names, dtype=object), [str(name) for name in factor_names]
    measures = strength >= THRESHOLDS["strength"]
    measures &= one_to_one(curves, z.double().numpy()[:, factors])
    structure = _structure(
        module,
        support[:, active],
        names,
        [labels[k] for k in active],
        {
            a: features[own[np.argsort(-strength[own], kind="stable")]].tolist()
            for a, k in enumerate(active)
            for own in [np.flatnonzero(measures & (factors == k))]
        },
    )
    judged = []
    for a, k in enumerate(active.tolist()):
        own = np.flatnonzero(factors == k)
        item = FactorEvidence.gather(own, features, strength, evidence, follow, names)
        item.given = [str(names[j]) for j in features[own] if given[j]]
        item.structure, item.mixed_with = structure[a]
        item.returns = _returns(stability, labels[k])
        nearest, item.a3_margin = _nearest(between, k, active)
        item.nearest_factor = None if nearest is None else labels[nearest]
        if groups is not None:
            item.confirmed, item.suggested = _cross_check(groups, features[own], names)
        if resamples is not None:
            _add_return(item, resamples, a, [labels[other] for other in active])
        if practical is not None:
            item.n_practical = int(practical[k])
        judged.append(_row(labels[k], item, module.observation.likelihood.name))
    return Certificate(
        table=_factor_table(judged),
        pairs=_pairs_table(evidence, features, factors, names, labels),
        notes=theory_notes(module.observation, n_samples, _LEAST_ROWS),
        likelihood=module.observation.likelihood.name,
    )


def _factor_correlation(module: SparseVAEModule, z: torch.Tensor) -> np.ndarray:
    """Correlation of the factors; under an identity prior, which says nothing about it, that of the means."""
    covariance = module.factor_covariance.double().numpy()
    if module.config.covariance == "identity":
        covariance = np.atleast_2d(np.cov(z.double().numpy().T))
    scale = np.sqrt(np.maximum(covariance.diagonal(), 0.0))
    scale = np.where(scale > 0, scale, 1.0)
    correlation = covariance / scale / scale[:, None]
    np.fill_diagonal(correlation, 1.0)
    return correlation


def _structure(
    module: SparseVAEModule,
    support: np.ndarray,
    feature_names: np.ndarray,
    factor_names: list[str],
    measured: dict[int, list[int]],
) -> list[StructureLine]:
    """What the zeros of the mask say of each active factor."""
    setting = Setting(
        linear=not module.config.hidden_sizes,
        gaussian=module.observation.likelihood.name == "gaussian",
        covariance=module.config.covariance,
    )
    return describe_structure(
        support, setting, factor_names=factor_names, feature_names=feature_names, measured=measured
    )


def _strength(
    module: SparseVAEModule, curves: np.ndarray, features: np.ndarray, inputs: np.ndarray
) -> np.ndarray:
    """Share of each anchor's variance that its factor explains; shape (n_anchors,)."""
    signal = curves.var(0)
    noise = module.noise_variance.double().numpy()[features]
    by_model = signal / np.maximum(signal + noise, 1e-12)
    x = inputs[:, features].astype(np.float64)
    mean, variance = (np.nanmean, np.nanvar) if np.isnan(x).any() else (np.mean, np.var)
    spread = np.sqrt(np.maximum(variance(x, 0) * signal, 1e-24))
    by_data = np.square(mean((x - mean(x, 0)) * (curves - curves.mean(0)), 0) / spread)
    real = module.observation.real_columns[features]
    return np.where(real, by_model, np.minimum(by_data, 1.0))


def _nearest(correlation: np.ndarray, k: int, active: np.ndarray) -> tuple[int | None, float]:
    others = active[active != k]
    if not len(others):
        return None, 1.0
    nearest = int(others[np.abs(correlation[k, others]).argmax()])
    return nearest, float(1.0 - abs(correlation[k, nearest]))


def _add_return(item: FactorEvidence, resamples: Resamples, a: int, names: list[str]) -> None:
    """What halves of the rows say of the a-th active factor."""
    item.match, item.return_rate = float(resamples.match[a]), float(resamples.return_rate[a])
    item.n_pairs = len(resamples.agreement)
    least = THRESHOLDS["match_identified"]
    if item.match < least:
        together = resamples.group(a, least)
        if together is not None:
            item.group, item.group_match = [names[member] for member in together[0]], together[1]


def _row(name: str, item: FactorEvidence, likelihood: str) -> JSON:
    verdict, reason = judge(item, likelihood)
    lines = describe_theorem(item, likelihood), describe_return(item), describe_covariance(item)
    return {
        **dict(zip(LEADING, (name, verdict, reason, *lines), strict=True)),
        **item.columns(),
    }


LEADING = ("factor", "verdict", "reason", "theorem", "came_back", "covariance")
"""Columns of words, before the numbers."""


def _factor_table(rows: list[JSON]) -> pd.DataFrame:
    columns = [*LEADING, *FactorEvidence().columns()]
    return pd.DataFrame(rows, columns=columns).set_index("factor")


def _returns(stability: Stability | None, factor: str) -> float:
    return np.nan if stability is None else float(stability.reproducibility.get(factor, np.nan))


def _cross_check(groups: AnchorGroups, own: np.ndarray, names: np.ndarray) -> tuple[int, list[str]]:
    """Anchors that a group of the correlations joins, and features that it adds to them."""
    confirmed, suggested = 0, []
    for members in groups.groups:
        shared = np.isin(members, own)
        if shared.sum() >= 2:
            confirmed += int(shared.sum())
            suggested += [str(name) for name in names[members[~shared]]]
    return confirmed, suggested


def _pairs_table(
    evidence: PairEvidence,
    features: np.ndarray,
    factors: np.ndarray,
    names: np.ndarray,
    factor_names: list[str],
) -> pd.DataFrame:
    order = np.argsort(factors[evidence.first], kind="stable")
    evidence = PairEvidence(*(values[order] for values in evidence))
    return pd.DataFrame(
        {
            "factor": [factor_names[k] for k in factors[evidence.first]],
            "anchor": names[features[evidence.first]],
            "other": names[features[evidence.second]],
            "curve_difference": evidence.curve_difference,
            "threshold": THRESHOLDS["curve_difference"],
            "same_curve": evidence.curve_difference <= THRESHOLDS["curve_difference"],
            "data_difference": evidence.data_difference,
            "p_value": evidence.p_value,
        }
    )
