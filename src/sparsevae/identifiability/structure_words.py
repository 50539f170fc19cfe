"""What the zeros of the mask say of each factor, in words, where the assumptions of a rule hold."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import spearmanr

from sparsevae.identifiability.structure import MatchingProof, contained, matched, mixtures, short_set

__all__ = ["Setting", "StructureLine", "describe_structure", "one_to_one"]

_ONE_TO_ONE = 0.99  # rank correlation of a response curve with its factor


class Setting(NamedTuple):
    """What the rules on structure assume."""

    linear: bool
    gaussian: bool
    covariance: str  # of the factors: "learned", "fixed" or "identity"


class StructureLine(NamedTuple):
    """A factor's line, and the factors that it can be mixed with while the mask stays as it is."""

    words: str
    mixed_with: list[str]


def describe_structure(
    support: np.ndarray,
    setting: Setting,
    *,
    factor_names: list[str],
    feature_names: np.ndarray,
    measured: dict[int, list[int]],
) -> list[StructureLine]:
    """A line for each factor; empty where no rule applies.

    Parameters
    ----------
    support : boolean array of shape (n_features, n_factors)
        Of the active factors.
    setting : Setting
    factor_names : list of str
    feature_names : array of shape (n_features,)
    measured : dict
        For each factor, anchors with one-to-one curves, strongest first.
    """
    exact = setting.linear and setting.gaussian
    mixed = mixtures(support) if exact else contained(support)
    mixed |= mixed.T  # one takes up scores, the other loadings
    short = short_set(support) if exact else []
    proofs = matched(support) if exact and setting.covariance == "identity" else {}
    lines = []
    for k, name in enumerate(factor_names):
        others = [factor_names[other] for other in np.flatnonzero(mixed[k])]
        if exact and setting.covariance != "learned":
            others = []  # a mixture would correlate the factors otherwise
        words = ""
        if k in proofs:
            words = _matching(proofs[k], feature_names)
        elif exact and not mixed[k].any():
            words = _rotations(short, support, factor_names)
        elif exact and others:
            words = f"Not settled by the zeros of the mask: {_set([name, *others])} can be mixed under them."
        elif others:
            words = (
                f"Settled only together, {_set([name, *others])}: a factor that has all features of another "
                "can be mixed into it, and the links stay."
            )
        elif not exact:
            words = _sparsity(setting)
        if setting.gaussian and len(measured.get(k, [])) >= 3:
            words += _three([str(feature_names[j]) for j in measured[k][:3]])
        lines.append(StructureLine(words.strip(), others))
    return lines


def one_to_one(curves: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Whether each response curve rises, or falls, throughout the samples: boolean, (n_anchors,).

    Parameters
    ----------
    curves : array of shape (n_samples, n_anchors)
    z : array of shape (n_samples, n_anchors)
        The factor of each anchor.
    """
    varies = (np.ptp(curves, axis=0) > 0) & (np.ptp(z, axis=0) > 0)
    return np.array(
        [
            bool(v) and abs(spearmanr(curve, own).statistic) >= _ONE_TO_ONE
            for v, curve, own in zip(varies, curves.T, z.T, strict=True)
        ],
        dtype=bool,
    )


def _matching(proof: MatchingProof, names: np.ndarray) -> str:
    first, second = (_set([str(names[j]) for j in features]) for features in (proof.first, proof.second))
    return (
        "Settled by the zeros of the mask in the linear model with uncorrelated factors (matching criterion: "
        f"{names[proof.feature]} with {first} and {second})."
    )


def _rotations(short: list[int], support: np.ndarray, names: list[str]) -> str:
    if not short:
        return (
            "Settled by the zeros of the mask in the linear model: no other axes have them (rotations), and "
            "every q factors have 2q + 1 features (counting rule)."
        )
    n_features = int(support[:, short].any(1).sum())
    return (
        "No other axes have the zeros of the mask, given the noise variances of the linear model. The "
        f"counting rule does not settle these: {_set([names[k] for k in short])} "
        f"{'has' if len(short) == 1 else 'have'} {n_features} features, where "
        f"{2 * len(short) + 1} are asked for."
    )


def _sparsity(setting: Setting) -> str:
    words = "No other factor has all of its features (structural sparsity)"
    if setting.covariance == "identity":
        return f"{words}: sufficient for independent factors without noise, not proved with noise."
    return f"{words}: needed, not sufficient."


def _three(names: list[str]) -> str:
    return (
        f" Three features that depend on it alone by one-to-one curves of any shape ({', '.join(names)}) "
        "settle it, if they are truly its own."
    )


def _set(names: list[str]) -> str:
    return "{" + ", ".join(names) + "}"
