"""Errors and warnings of the package; each also is the built-in that a caller would catch."""

from __future__ import annotations

from sklearn.exceptions import ConvergenceWarning

__all__ = [
    "ConvergenceWarning",
    "DataError",
    "DataTypeError",
    "DataWarning",
    "DivergenceError",
    "MeetingError",
    "OutOfMemoryError",
    "ParameterError",
    "ProcessError",
    "SparseVAEError",
]


class SparseVAEError(Exception):
    """Base of every error that this package raises on purpose."""


class DataError(SparseVAEError, ValueError):
    """A table that cannot be used: the message says what was expected, what came, what to do."""


class DataTypeError(DataError, TypeError):
    """A table with cells of a type that is no number."""


class ParameterError(SparseVAEError, ValueError):
    """A constructor or function argument that cannot be used."""


class DivergenceError(SparseVAEError, ArithmeticError):
    """Training produced a value that is not finite: the message names the term and the epoch."""


class OutOfMemoryError(SparseVAEError, MemoryError):
    """A model or table that needs more memory than there is."""


class ProcessError(SparseVAEError, RuntimeError):
    """One of several processes that fit a model together is missing or does not answer."""


class MeetingError(ProcessError):
    """The processes that are to fit a model together have not found each other."""


class DataWarning(UserWarning):
    """A table that can be used, with something in it that the user should know."""
