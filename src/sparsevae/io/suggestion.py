"""Which likelihood suits a table, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
from scipy import sparse

from sparsevae.aliases import Matrix
from sparsevae.io.table import TableFile, blocks_of_values
from sparsevae.stored import StoredTable, is_stored
from sparsevae.summaries import OVERDISPERSED, column_moments, resembles_counts

__all__ = ["suggest_by_view", "suggest_for_table", "suggest_likelihood"]

_FEW_LEVELS = 10  # of a column, up to which whole numbers look like answers on a scale


def suggest_likelihood(
    X: np.ndarray | pd.DataFrame | sparse.spmatrix | StoredTable,
    *,
    names: Sequence[str] | np.ndarray | None = None,
) -> tuple[str, str]:
    """Suggest a likelihood by a look at the values.

    Parameters
    ----------
    X : array, data frame, sparse matrix or table on disk of shape (n_samples, n_features)
    names : sequence of str, default=None
        Names of the columns, for the reason; those of a data frame are taken.

    Returns
    -------
    (str, str)
        Name of the likelihood, and the reason as a clause.

    Examples
    --------
    >>> from sparsevae.io import suggest_likelihood
    >>> suggest_likelihood([[0, 1], [1, 1]])
    ('bernoulli', 'every value is 0 or 1')
    """
    if names is None and isinstance(X, pd.DataFrame):
        names = [str(name) for name in X.columns]
    if not is_stored(X):
        X = sparse.csr_matrix(X) if sparse.issparse(X) else np.asarray(X)
    n_cells, n_nonzero, largest = X.shape[0] * X.shape[1], 0, 0.0
    for values in _looked_at(X):
        values = values[~np.isnan(values)]
        if not values.size:
            continue
        if values.min() < 0:
            return "gaussian", "some values are negative"
        if not np.array_equal(values, np.rint(values)):
            return "gaussian", "some values are fractions"
        n_nonzero += int(np.count_nonzero(values))
        largest = max(largest, float(values.max()))
    if is_stored(X):
        n_nonzero = X.survey.n_nonzero
    if not n_nonzero:
        return "gaussian", "every value is zero"
    if largest <= 1:
        return "bernoulli", "every value is 0 or 1"
    zeros = 1.0 - n_nonzero / n_cells
    mean, variance = column_moments(X)
    ratio = float(np.median(variance[mean > 0] / mean[mean > 0]))
    what = f"the values are whole numbers with {zeros:.0%} zeros"
    if not resembles_counts(X, mean, variance):
        is_dense = not sparse.issparse(X) and not getattr(X, "is_sparse", False)
        on_scale = _have_few_levels(X) if is_dense else np.zeros(X.shape[1], bool)
        if on_scale.all():
            return "ordinal", (
                f"every column holds whole numbers of at most {_FEW_LEVELS} levels, as answers on a scale do"
            )
        if 2 * on_scale.sum() > on_scale.size:
            return "gaussian", (
                f"{on_scale.sum()} of {on_scale.size} columns hold whole numbers of at most {_FEW_LEVELS} "
                f"levels, as answers on a scale do, and {_listed(~on_scale, names)} more; leave out columns "
                "that are not answers, such as ages, to fit the rest as ordinal"
            )
        return "gaussian", f"{what}, as scores are; if they are counts, choose negative_binomial"
    if ratio > OVERDISPERSED:
        return (
            "negative_binomial",
            f"{what} that vary more than Poisson counts do (variance {ratio:.1f} times the mean); for words "
            "in documents consider multinomial",
        )
    return "poisson", f"{what} that vary as Poisson counts do (variance {ratio:.1f} times the mean)"


def suggest_for_table(table: TableFile) -> tuple[str | dict[str, list[int]], str]:
    """Suggest a likelihood for a table from a file: words are multinomial, and each view has its own.

    Parameters
    ----------
    table : TableFile
        From `read_table`.

    Returns
    -------
    likelihood : str or dict
        As for `suggest_by_view`.
    words : str
        Which likelihood, and why.
    """
    if table.options.text is not None:
        return "multinomial", "multinomial, because the values are counts of words in documents"
    if table.views is not None and isinstance(table.X, np.ndarray | sparse.csr_matrix):
        return suggest_by_view(table.X, table.views)
    name, reason = suggest_likelihood(table.X, names=table.feature_names)
    return name, f"{name}, because {reason}"


def suggest_by_view(
    X: np.ndarray | sparse.spmatrix, views: Sequence[str]
) -> tuple[str | dict[str, list[int]], str]:
    """Suggest a likelihood for each view of the features.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
    views : sequence of length n_features

    Returns
    -------
    likelihood : str or dict
        One name, or from each name to the positions of its features.
    words : str
        Which view has which, and why.
    """
    labels, words = np.asarray(views), []
    columns: dict[str, list[int]] = {}
    for view in dict.fromkeys(views):
        own = np.flatnonzero(labels == view)
        kind, reason = suggest_likelihood(X[:, own])
        columns.setdefault(kind, []).extend(own.tolist())
        words.append(f"{kind} for {view}, because {reason}")
    return (next(iter(columns)) if len(columns) == 1 else columns), "; ".join(words)


def _listed(chosen: np.ndarray, names: Sequence[str] | np.ndarray | None) -> str:
    """Subject and verb of a sentence on some columns: the first three by name."""
    if names is None:
        return "the others hold"
    found = [repr(str(name)) for name, other in zip(names, chosen, strict=True) if other]
    if len(found) > 3:
        found[3:] = ["others"]
    words = " and ".join([", ".join(found[:-1]), found[-1]]) if len(found) > 1 else found[0]
    return f"{words} {'hold' if len(found) > 1 else 'holds'}"


def _looked_at(X: Matrix) -> Iterator[np.ndarray]:
    """Values that tell the kind of a table: all in blocks, or of a table on disk the ends of its columns."""
    if is_stored(X):
        yield np.concatenate([X.survey.minimum, X.survey.maximum, X.survey.fraction])
    else:
        yield from blocks_of_values(X)


def _have_few_levels(X: np.ndarray | StoredTable) -> np.ndarray:
    """Which columns of a table of whole numbers reach over a few of them only, and over more than one."""
    if is_stored(X):
        lowest, highest = X.survey.minimum, X.survey.maximum
        return (highest - lowest < _FEW_LEVELS) & (highest > lowest)
    lowest, highest = np.full(X.shape[1], np.inf), np.full(X.shape[1], -np.inf)
    for values in blocks_of_values(X):
        # The "f" of fmin: of a number and NaN the number.
        lowest = np.fmin(lowest, np.fmin.reduce(values, axis=0))
        highest = np.fmax(highest, np.fmax.reduce(values, axis=0))
    return (highest - lowest < _FEW_LEVELS) & (highest > lowest)
