"""Several studies of the same features: factors that all share, factors of one study, shifts between them."""

from __future__ import annotations

import numpy as np

from sparsevae.datasets.base import Dataset, as_generator, check_count
from sparsevae.datasets.synthetic import make_anchored_factors

__all__ = ["make_grouped_factors"]


def make_grouped_factors(
    n_samples: int,
    n_features: int,
    *,
    n_shared: int = 3,
    n_specific: int = 1,
    n_groups: int = 2,
    shift: float = 1.0,
    noise_level: float = 0.5,
    interaction_share: float = 0.0,
    nonlinear_share: float = 0.5,
    random_state: int | np.random.Generator | np.random.RandomState | None = None,
) -> Dataset:
    """Draw rows of several groups with known shared and specific factors.

    Parameters
    ----------
    n_samples, n_features : int
    n_shared : int
        Factors that vary in all groups; they come first.
    n_specific : int
        Factors of each group, which are zero in the rows of the others.
    n_groups : int
    shift : float
        Standard deviation of the shifts of the features between groups, as a multiple of that of the feature.
    noise_level, interaction_share, nonlinear_share
        See `make_anchored_factors`.
    random_state : int, Generator, RandomState or None

    Returns
    -------
    Dataset
        ``target`` has the group of each row, "group 0" and so on; ``factors`` are zero in the rows of groups
        that lack them, so that they tell the role of each factor.
    """
    check_count("n_groups", n_groups, minimum=1)
    check_count("n_shared", n_shared, minimum=0)
    check_count("n_specific", n_specific, minimum=0)
    structure, draws = as_generator(random_state).spawn(2)
    n_factors = n_shared + n_groups * n_specific
    base = make_anchored_factors(
        n_samples,
        n_features,
        n_factors,
        noise_level=noise_level,
        interaction_share=interaction_share,
        nonlinear_share=nonlinear_share,
        random_state=structure,
    )
    assert base.factors is not None
    assert base.curves is not None
    assert base.noise_variance is not None
    group = draws.permutation(np.arange(n_samples) % n_groups)
    owner = np.r_[np.full(n_shared, -1), np.repeat(np.arange(n_groups), n_specific)]
    factors = np.where((owner == -1) | (owner == group[:, None]), base.factors, 0.0)
    signal = np.column_stack([np.asarray(curve(factors), dtype=float) for curve in base.curves])
    level = shift * draws.standard_normal((n_groups, n_features)) * np.asarray(base.X).std(0)
    mean = signal + level[group]
    noise = np.sqrt(base.noise_variance) * draws.standard_normal(mean.shape)
    return Dataset(
        X=mean + noise,
        feature_names=base.feature_names,
        factors=factors,
        mask=base.mask,
        target=np.array([f"group {g}" for g in range(n_groups)])[group],
        description=(
            f"{n_groups} groups of anchored synthetic data: {n_samples} samples of {n_features} features, "
            f"{n_shared} shared factors and {n_specific} of each group; shifts of {shift} deviations."
        ),
        mean=mean,
        noise_variance=base.noise_variance,
        curves=base.curves,
    )
