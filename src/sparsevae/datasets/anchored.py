"""The structure behind every anchored problem: which factors a feature has, and through which curve."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sparsevae.datasets.base import as_generator, check_count
from sparsevae.datasets.curves import Curve, Term, shape_scale
from sparsevae.exceptions import ParameterError

__all__ = [
    "AnchoredProblem",
    "anchors_of",
    "correlation_matrix",
    "draw_curves",
    "draw_problem",
    "draw_supports",
    "mask_of",
]

# Enough draws to know the spread of a curve to about one per cent, whatever n_samples is.
_PILOT_SAMPLES = 8192


class AnchoredProblem(NamedTuple):
    """Curves and factors of an anchored problem; each part has a generator of its own."""

    curves: list[Curve]
    factors: np.ndarray
    """(n_samples, n_factors)"""
    pilot: np.ndarray
    """(8192, n_factors): factors to measure a curve's spread with, the same for every n_samples."""
    structure: np.random.Generator
    """For what else belongs to the structure, such as the units of features."""
    noise: np.random.Generator
    """For the noise of the samples."""


def draw_problem(
    random_state: int | np.random.Generator | np.random.RandomState | None,
    *,
    n_samples: int,
    n_factors: int,
    correlation: float | np.ndarray,
    interaction_share: float,
    nonlinear_share: float,
    **sizes: int,
) -> AnchoredProblem:
    """Draw the structure and the factors, in streams that do not depend on each other's length.

    Parameters
    ----------
    random_state : int, Generator, RandomState or None
    n_samples, n_factors : int
    correlation : float or ndarray of shape (n_factors, n_factors)
    interaction_share, nonlinear_share : see `draw_curves`
    **sizes
        See `draw_supports`.

    Returns
    -------
    AnchoredProblem
    """
    check_count("n_samples", n_samples, minimum=1)
    root = np.linalg.cholesky(correlation_matrix(correlation, n_factors)).T
    structure, reference, sampling, noise = as_generator(random_state).spawn(4)
    supports = draw_supports(structure, n_factors=n_factors, **sizes)
    return AnchoredProblem(
        curves=draw_curves(
            structure, supports, interaction_share=interaction_share, nonlinear_share=nonlinear_share
        ),
        factors=sampling.standard_normal((n_samples, n_factors)) @ root,
        pilot=reference.standard_normal((_PILOT_SAMPLES, n_factors)) @ root,
        structure=structure,
        noise=noise,
    )


def correlation_matrix(correlation: float | np.ndarray, n_factors: int) -> np.ndarray:
    """Correlation matrix of the factors from one number for all pairs, or from the matrix itself.

    Parameters
    ----------
    correlation : float, or ndarray of shape (n_factors, n_factors)
    n_factors : int

    Returns
    -------
    ndarray of shape (n_factors, n_factors)
    """
    matrix = np.asarray(correlation, dtype=float)
    if matrix.ndim == 0:
        matrix = np.full((n_factors, n_factors), float(matrix))
        np.fill_diagonal(matrix, 1.0)
    if (
        matrix.shape != (n_factors, n_factors)
        or not np.allclose(matrix, matrix.T)
        or not np.allclose(np.diag(matrix), 1)
    ):
        raise ParameterError(
            f"Expected correlation to be a number or a symmetric {n_factors} x {n_factors} matrix with ones "
            f"on its diagonal; got shape {np.shape(correlation)}."
        )
    if n_factors and np.linalg.eigvalsh(matrix).min() <= 0:
        raise ParameterError(
            f"Expected a positive definite correlation of {n_factors} factors; got {correlation!r}. "
            f"One number for all pairs must lie strictly between -1/(n_factors - 1) and 1."
        )
    return matrix


def draw_supports(
    generator: np.random.Generator,
    *,
    n_features: int,
    n_factors: int,
    anchors_per_factor: int,
    max_factors_per_feature: int,
    n_noise_features: int,
    n_factors_without_anchors: int,
) -> list[tuple[int, ...]]:
    """Draw the factors of each feature: anchors first, then features of several factors, then pure noise.

    The number of anchors per factor is lowered where the features do not suffice. Features of several factors
    have 2 to ``max_factors_per_feature`` of them and use all factors equally often.

    Returns
    -------
    list of n_features tuples of int
    """
    check_count("n_features", n_features, minimum=1)
    check_count("n_factors", n_factors, minimum=0)
    check_count("anchors_per_factor", anchors_per_factor, minimum=1)
    check_count("max_factors_per_feature", max_factors_per_feature, minimum=1)
    check_count("n_noise_features", n_noise_features, minimum=0)
    check_count("n_factors_without_anchors", n_factors_without_anchors, minimum=0)
    if n_factors == 0:
        return [()] * n_features
    n_anchored = n_factors - n_factors_without_anchors
    n_signal = n_features - n_noise_features
    reserved = 2 * n_factors_without_anchors
    if n_anchored < 0 or n_signal < n_anchored + reserved:
        raise ParameterError(
            f"Expected room for an anchor of each of {n_anchored} factors and two features for each of "
            f"{n_factors_without_anchors} factors without anchors; got {n_signal} features that are not pure "
            "noise. Ask for more features or fewer factors."
        )
    most = min(max_factors_per_feature, n_factors)
    if n_factors_without_anchors and most < 2:
        raise ParameterError(
            "Expected n_factors >= 2 and max_factors_per_feature >= 2 when some factors have no anchors; "
            f"got n_factors={n_factors}, max_factors_per_feature={max_factors_per_feature}."
        )
    per_factor = 0
    if n_anchored:
        room = n_signal - reserved
        per_factor = room // n_anchored if most < 2 else min(anchors_per_factor, room // n_anchored)
    supports: list[tuple[int, ...]] = [(k,) for k in range(n_anchored) for _ in range(per_factor)]
    if most < 2:
        supports += [(k % n_factors,) for k in range(n_signal - len(supports))]
    uses = np.zeros(n_factors)
    uses[n_anchored:] = -2  # a factor without anchors gets its two features before the others get any
    for _ in range(n_signal - len(supports)):
        size = int(generator.integers(2, most + 1))
        chosen = np.lexsort((generator.random(n_factors), uses))[:size]
        uses[chosen] += 1
        supports.append(tuple(sorted(int(k) for k in chosen)))
    return supports + [()] * n_noise_features


def draw_curves(
    generator: np.random.Generator,
    supports: list[tuple[int, ...]],
    *,
    interaction_share: float,
    nonlinear_share: float,
) -> list[Curve]:
    """Draw a response curve for each support; scales are arbitrary and left to the caller.

    The first two anchors of a factor are linear, as assumption A1 of the paper asks for two of the same
    curve; the others, and the main effects of features with several factors, are ``tanh`` or ``softplus``
    with probability ``nonlinear_share``. A share ``interaction_share`` of the features with several factors
    adds the product of two of them.

    Returns
    -------
    list of Curve
    """
    for name, share in (("interaction_share", interaction_share), ("nonlinear_share", nonlinear_share)):
        if not 0 <= share <= 1:
            raise ParameterError(f"Expected {name} between 0 and 1; got {share!r}.")
    several = [j for j, support in enumerate(supports) if len(support) > 1]
    n_interacting = round(interaction_share * len(several))
    interacting = set(generator.permutation(several)[:n_interacting].tolist())
    anchors_seen: dict[int, int] = {}
    curves = []
    for j, support in enumerate(supports):
        terms = []
        for k in support:
            shape = "linear"
            if len(support) == 1:
                anchors_seen[k] = anchors_seen.get(k, 0) + 1
            if len(support) > 1 or anchors_seen[k] > 2:
                bent = generator.random() < nonlinear_share
                shape = ("tanh", "softplus")[int(generator.integers(2))] if bent else "linear"
            terms.append(Term(_signed(generator) / shape_scale(shape), shape, (k,)))
        if j in interacting:
            pair = sorted(generator.choice(support, size=2, replace=False).tolist())
            terms.append(Term(_signed(generator), "product", tuple(pair)))
        curves.append(Curve(tuple(terms)))
    return curves


def mask_of(supports: list[tuple[int, ...]], n_factors: int) -> np.ndarray:
    """Support as an array of ones and zeros.

    Returns
    -------
    ndarray of shape (n_features, n_factors)
    """
    mask = np.zeros((len(supports), n_factors))
    for j, support in enumerate(supports):
        mask[j, list(support)] = 1.0
    return mask


def anchors_of(mask: np.ndarray) -> list[int]:
    """Count the anchors of each factor.

    Parameters
    ----------
    mask : ndarray of shape (n_features, n_factors)
    """
    return [int(count) for count in mask[mask.sum(axis=1) == 1].sum(axis=0)]


def _signed(generator: np.random.Generator) -> float:
    # Bounded away from zero: an effect that is in the mask can be seen in the data.
    return float(generator.uniform(0.6, 1.4) * generator.choice((-1.0, 1.0)))
