"""Response curves of generated data: how the mean of one feature depends on the factors.

A curve is called with all factors of all samples and uses the columns it names; its text uses ``z0`` for the
first column, ``z1`` for the second.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

__all__ = ["Curve", "Term", "TopicCurve", "shape_scale"]


@dataclass(frozen=True)
class Term:
    """One summand of a curve: ``coefficient * shape(z_k)``, or a product of several factors.

    Parameters
    ----------
    coefficient : float
    shape : {"linear", "square", "sin", "tanh", "softplus", "product"}
    factors : tuple of int
        One factor, or at least two for ``"product"``.
    """

    coefficient: float
    shape: str
    factors: tuple[int, ...]

    def __call__(self, factors: np.ndarray) -> np.ndarray:
        """Evaluate the term.

        Parameters
        ----------
        factors : ndarray of shape (n_samples, n_factors)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        if self.shape == "product":
            return self.coefficient * np.prod(factors[:, list(self.factors)], axis=1)
        return self.coefficient * _SHAPES[self.shape](factors[:, self.factors[0]])

    def __str__(self) -> str:
        if self.shape == "product":
            return f"{self.coefficient:.3g}*" + "*".join(f"z{k}" for k in self.factors)
        return f"{self.coefficient:.3g}*" + _TEXTS[self.shape].format(f"z{self.factors[0]}")


@dataclass(frozen=True)
class Curve:
    """A sum of terms and a constant.

    Parameters
    ----------
    terms : tuple of Term
    intercept : float, default=0.0
    """

    terms: tuple[Term, ...]
    intercept: float = 0.0

    @property
    def factors(self) -> tuple[int, ...]:
        """The factors on which the curve depends, in rising order."""
        return tuple(sorted({k for term in self.terms for k in term.factors}))

    def __call__(self, factors: np.ndarray) -> np.ndarray:
        """Evaluate the curve.

        Parameters
        ----------
        factors : ndarray of shape (n_samples, n_factors)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        value = np.full(len(factors), self.intercept)
        for term in self.terms:
            value += term(factors)
        return value

    def scaled(self, scale: float, intercept: float = 0.0) -> Curve:
        """Return the curve with every coefficient multiplied by ``scale`` and another constant."""
        terms = tuple(Term(scale * term.coefficient, term.shape, term.factors) for term in self.terms)
        return Curve(terms, intercept)

    def __str__(self) -> str:
        parts = [str(term) for term in self.terms]
        if self.intercept or not parts:
            parts.append(f"{self.intercept:.3g}")
        return " + ".join(parts).replace("+ -", "- ")


@dataclass(frozen=True)
class TopicCurve:
    r"""The log weight of a word in a document: :math:`\log(\beta_0 + \sum_k \beta_k e^{s z_k})`.

    Parameters
    ----------
    factors : tuple of int
        The topics in which the word occurs.
    weights : tuple of float
        Its weight in each of them.
    background : float
        Its weight in every document, whatever the topics.
    strength : float
        The standard deviation of a topic's log weight over documents.
    """

    factors: tuple[int, ...]
    weights: tuple[float, ...]
    background: float
    strength: float

    def __call__(self, factors: np.ndarray) -> np.ndarray:
        """Evaluate the log weight.

        Parameters
        ----------
        factors : ndarray of shape (n_samples, n_factors)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        weight = np.full(len(factors), self.background)
        for k, beta in zip(self.factors, self.weights, strict=True):
            weight += beta * np.exp(self.strength * factors[:, k])
        return np.log(weight)

    def __str__(self) -> str:
        parts = [
            f"{beta:.3g}*exp({self.strength:.3g}*z{k})"
            for k, beta in zip(self.factors, self.weights, strict=True)
        ]
        if self.background or not parts:
            parts.append(f"{self.background:.3g}")
        return f"log({' + '.join(parts)})"


def shape_scale(shape: str) -> float:
    """Return the standard deviation of ``shape(z)`` under a standard normal z, by Gauss-Hermite quadrature.

    Parameters
    ----------
    shape : str
        One of the one-factor shapes of `Term`.
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    weights = weights / weights.sum()
    values = _SHAPES[shape](nodes)
    return float(np.sqrt(weights @ values**2 - (weights @ values) ** 2))


def _softplus(z: np.ndarray) -> np.ndarray:
    return np.logaddexp(0.0, 2.0 * z)


_SHAPES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "linear": lambda z: z,
    "square": np.square,
    "sin": np.sin,
    "tanh": np.tanh,
    "softplus": _softplus,
}
_TEXTS = {
    "linear": "{}",
    "square": "{}^2",
    "sin": "sin({})",
    "tanh": "tanh({})",
    "softplus": "softplus(2*{})",
}
