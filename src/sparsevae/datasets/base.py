"""The record that every loader and generator returns, and the helpers that they share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from sparsevae.aliases import Matrix
from sparsevae.exceptions import DataError, ParameterError

if TYPE_CHECKING:
    from sparsevae.datasets.curves import Curve, TopicCurve

__all__ = ["Dataset", "as_generator", "check_count"]


@dataclass(frozen=True, eq=False)
class Dataset:
    """A table with everything that is known about it.

    Parameters
    ----------
    X : ndarray or CSR array of shape (n_samples, n_features)
    feature_names : ndarray of str of shape (n_features,)
    factors : ndarray of shape (n_samples, n_factors), optional
        The true factors, where they are known.
    mask : ndarray of shape (n_features, n_factors), optional
        The true support: 1 where a feature depends on a factor, 0 elsewhere.
    target : ndarray of shape (n_samples,), optional
        Labels of the samples, never used in fitting.
    description : str
        Source, terms, shape and every preprocessing step.
    mean : ndarray of shape (n_samples, n_features), optional
        The noise-free mean of ``X``, where it is known.
    noise_variance : ndarray of shape (n_features,), optional
        The true noise variance of each feature, where it is known.
    curves : tuple of callables, one per feature, optional
        The true response curves: ``curves[j](factors)`` has shape (n_samples,), ``str(curves[j])`` is
        readable.
    test : Dataset, optional
        Held-out samples, where the data set prescribes them.
    """

    X: Matrix
    feature_names: np.ndarray
    factors: np.ndarray | None = None
    mask: np.ndarray | None = None
    target: np.ndarray | None = None
    description: str = ""
    mean: np.ndarray | None = None
    noise_variance: np.ndarray | None = None
    curves: tuple[Curve | TopicCurve, ...] | None = None
    test: Dataset | None = None

    def __post_init__(self) -> None:
        if getattr(self.X, "ndim", None) != 2:
            raise DataError(
                f"Expected X with two dimensions; got {type(self.X).__name__}. Pass an array or CSR array."
            )
        names = np.asarray(self.feature_names, dtype=str)
        object.__setattr__(self, "feature_names", names)
        n_samples, n_features = self.X.shape
        n_factors = None if self.factors is None else np.shape(self.factors)[1]
        expected = {
            "feature_names": (names, (n_features,)),
            "factors": (self.factors, (n_samples, n_factors)),
            "mask": (self.mask, (n_features, n_factors)),
            "target": (self.target, (n_samples,)),
            "mean": (self.mean, (n_samples, n_features)),
            "noise_variance": (self.noise_variance, (n_features,)),
        }
        for field, (value, shape) in expected.items():
            if value is not None and not _agrees(np.shape(value), shape):
                raise DataError(
                    f"Expected {field} of shape {shape} beside X of shape {self.X.shape}; got "
                    f"{np.shape(value)}."
                )
        if self.curves is not None and len(self.curves) != n_features:
            raise DataError(f"Expected one curve per feature ({n_features}); got {len(self.curves)}.")

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.X.shape[1])

    def take(self, rows: Sequence[int] | np.ndarray) -> Dataset:
        """Return the same data set with some of its samples, in the given order.

        Parameters
        ----------
        rows : sequence of int, or boolean array of shape (n_samples,)
        """
        rows = np.asarray(rows)
        factors, target, mean = (
            None if values is None else values[rows] for values in (self.factors, self.target, self.mean)
        )
        return replace(self, X=self.X[rows], factors=factors, target=target, mean=mean)

    def __repr__(self) -> str:
        kind = "CSR" if sparse.issparse(self.X) else "array"
        known = [
            field
            for field in ("factors", "mask", "target", "mean", "noise_variance", "curves", "test")
            if getattr(self, field) is not None
        ]
        size = f"{self.n_samples} samples x {self.n_features} features"
        return f"Dataset({size}, {kind}; known: {', '.join(known) or '-'})"


def as_generator(
    random_state: int | np.random.Generator | np.random.RandomState | None,
) -> np.random.Generator:
    """Return a local generator; the global seed of numpy is never touched.

    Parameters
    ----------
    random_state : int, Generator, RandomState or None
    """
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31))
    return np.random.default_rng(random_state)


def check_count(name: str, value: int, *, minimum: int) -> int:
    """Return ``value`` as an int, or refuse what is not a whole number of at least ``minimum``."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or value < minimum:
        raise ParameterError(f"Expected {name} to be a whole number >= {minimum}; got {value!r}.")
    return int(value)


def _agrees(got: tuple[int, ...], expected: tuple[int | None, ...]) -> bool:
    return len(got) == len(expected) and all(e is None or g == e for g, e in zip(got, expected, strict=True))
