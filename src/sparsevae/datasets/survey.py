"""Questionnaires: the twenty-five items of bfi, read from a file, and answers with known traits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import norm

from sparsevae.datasets.anchored import correlation_matrix
from sparsevae.datasets.base import Dataset, as_generator, check_count
from sparsevae.exceptions import DataError, ParameterError

__all__ = ["load_bfi", "make_survey"]

_TRAITS = {
    "A": "agreeableness", "C": "conscientiousness", "E": "extraversion", "N": "neuroticism", "O": "openness",
}  # fmt: skip
_ITEMS = [f"{trait}{number}" for trait in _TRAITS for number in range(1, 6)]


def load_bfi(path: str | Path) -> Dataset:
    """Twenty-five personality items of 2,800 people, from a file of yours.

    The items were made to measure five traits, five items each: agreeableness (A1 to A5), conscientiousness,
    extraversion, neuroticism and openness, answered on a scale from 1 to 6. That design is an expectation, so
    ``mask`` is None. The data belong to the SAPA project and come with the R package psych
    (``write.csv(psych::bfi, "bfi.csv")``); they may not be shipped with this one.

    Parameters
    ----------
    path : str or Path
        ``bfi.csv``.

    Returns
    -------
    Dataset
        The people who answered every item; ``target`` is their gender (1 and 2) where the file has it.
    """
    path = Path(path)
    if not path.is_file():
        raise DataError(
            f"Expected bfi.csv at {path}; there is no such file. Write it in R: write.csv(psych::bfi, "
            "'bfi.csv')."
        )
    try:
        frame = pd.read_csv(path)
    except ValueError as error:  # of the decoder, or of pandas' parser
        raise DataError(f"Expected {path} to be a CSV file; it cannot be read. Is it bfi.csv?") from error
    absent = [item for item in _ITEMS if item not in frame.columns]
    if absent:
        raise DataError(
            f"Expected the items A1 to O5 in {path}; got none called {', '.join(absent[:5])}. Is it bfi.csv?"
        )
    answered = frame[_ITEMS].notna().all(axis=1)
    kept = frame[answered]
    traits = ", ".join(f"{trait} ({letter})" for letter, trait in _TRAITS.items())
    return Dataset(
        X=kept[_ITEMS].to_numpy(dtype=np.float64),
        feature_names=np.array(_ITEMS),
        target=kept["gender"].to_numpy() if "gender" in kept else None,
        description=(
            f"bfi (Revelle, the SAPA project; R package psych), read from {path.name}: {len(kept)} of "
            f"{len(frame)} people, those without a missing answer, on 25 items from 1 to 6 made to measure "
            f"{traits}. Research use; not to be passed on with software."
        ),
    )


def make_survey(
    n_samples: int = 500,
    n_factors: int = 3,
    items_per_factor: int = 5,
    *,
    n_levels: int = 5,
    loading: float = 0.7,
    correlation: float | np.ndarray = 0.3,
    reversed_items: int = 1,
    skew: float = 0.0,
    random_state: int | np.random.Generator | None = None,
) -> Dataset:
    r"""Generate answers on a scale from 1 to ``n_levels``, from traits that are known.

    .. math:: y_j = l_j z_{k(j)} + \sqrt{1 - l_j^2}\, e_j, \qquad x_j = 1 + \#\{c : y_j > \tau_c\}

    Parameters
    ----------
    n_samples : int
    n_factors : int
        Traits.
    items_per_factor : int
        Items of each trait, of no other one.
    n_levels : int
        Of the scale.
    loading : float
        Correlation of an item, before it is cut into levels, with its trait.
    correlation : float or array of shape (n_factors, n_factors)
        Of the traits.
    reversed_items : int
        Items of each trait that are worded the other way round; the last ones.
    skew : float
        Moves all thresholds: above 0 most people choose low answers, as for complaints.
    random_state : int, Generator or None

    Returns
    -------
    Dataset
        With factors and mask.
    """
    check_count("n_samples", n_samples, minimum=1)
    check_count("n_factors", n_factors, minimum=1)
    check_count("items_per_factor", items_per_factor, minimum=1)
    check_count("n_levels", n_levels, minimum=2)
    check_count("reversed_items", reversed_items, minimum=0)
    if not 0 < loading < 1 or reversed_items > items_per_factor:
        raise ParameterError(
            f"Expected 0 < loading < 1 and at most {items_per_factor} reversed items; got "
            f"loading={loading!r} "
            f"and reversed_items={reversed_items!r}."
        )
    rng = as_generator(random_state)
    covariance = correlation_matrix(correlation, n_factors)
    factors = rng.multivariate_normal(np.zeros(n_factors), covariance, size=n_samples)
    trait = np.repeat(np.arange(n_factors), items_per_factor)
    place = np.tile(np.arange(items_per_factor), n_factors)
    sign = np.where(place >= items_per_factor - reversed_items, -1.0, 1.0)
    noise = rng.standard_normal((n_samples, len(trait)))
    latent = loading * sign * factors[:, trait] + np.sqrt(1.0 - loading**2) * noise
    thresholds = norm.ppf(np.arange(1, n_levels) / n_levels) + skew
    answers = 1.0 + (latent[:, :, None] > thresholds).sum(-1)
    return Dataset(
        X=answers,
        feature_names=np.array([f"trait {k + 1} item {j + 1}" for k, j in zip(trait, place, strict=True)]),
        factors=factors,
        mask=(trait[:, None] == np.arange(n_factors)).astype(float),
        description=(
            f"Answers of {n_samples} simulated people to {len(trait)} items from 1 to {n_levels} on "
            f"{n_factors} traits; loading {loading:g} before the answers are cut into levels."
        ),
    )
