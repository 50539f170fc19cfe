"""Checks of tables and parameters: every refusal says what was expected, what came, and what to do."""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal

import numpy as np
from scipy import sparse

from sparsevae.aliases import Matrix, TableLike
from sparsevae.exceptions import DataError, ParameterError
from sparsevae.stored import is_stored
from sparsevae.summaries import row_blocks

__all__ = [
    "canonical_csr",
    "check_choice",
    "check_columns_numeric",
    "check_duration",
    "check_finite",
    "check_fraction",
    "check_in_memory",
    "check_positive",
    "check_support",
    "shown",
    "visible",
]

_LARGEST = 1e37  # what float32 has room for
_NUMBER_WORDS = ("int", "float", "bool", "decimal", "double")  # as they occur in the names of column types
_TURNS = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_SECONDS = {"": 1.0, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*(ms|min|s|m|h|d|)", re.ASCII)
_DURATION = re.compile(rf"(?:{_DURATION_PART.pattern}\s*)+", re.ASCII)
_INVISIBLE = dict.fromkeys((*range(0x20), *range(0x7F, 0xA0), *_TURNS))


def check_positive(name: str, value: object, *, integer: bool = False) -> None:
    """Refuse what is not a number above zero, or not a whole number of at least one."""
    kind = numbers.Integral if integer else numbers.Real
    if isinstance(value, bool) or not isinstance(value, kind) or not 0 < float(value) < np.inf:
        what = "a whole number of at least 1" if integer else "a number above 0"
        example = "10" if integer else "0.5"
        raise ParameterError(f"Expected {name} to be {what}; got {value!r}. Pass for example {example}.")


def check_fraction(name: str, value: object, remedy: str = "0.1, or 0 for none") -> None:
    """Refuse what is not a number from 0 up to, but not including, 1."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not 0.0 <= float(value) < 1.0:
        raise ParameterError(
            f"Expected {name} to be a share from 0 up to but not including 1; got {value!r}. Pass "
            f"{name}={remedy}."
        )


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Refuse what is not one of a few words."""
    if not isinstance(value, str) or value not in choices:
        words = ", ".join(repr(choice) for choice in choices)
        raise ParameterError(
            f"Expected {name} to be one of {words}; got {value!r}. Pass {name}={choices[0]!r}."
        )


def check_duration(name: str, value: object) -> float:
    """Seconds of a duration: a number of them, or text such as "30s", "5m" or "1h30m"."""
    seconds = math.nan
    if isinstance(value, int | float | np.number) and not isinstance(value, bool):
        seconds = float(value)
    elif isinstance(value, str) and _DURATION.fullmatch(value.strip().lower()):
        parts = _DURATION_PART.findall(value.lower())
        seconds = sum(float(number) * _SECONDS[unit] for number, unit in parts)
    if not 0.0 <= seconds < math.inf:
        raise ParameterError(
            f"Expected {name} to be a duration such as 30s, 5m or 1h30m, or a number of seconds; got "
            f"{value!r}. Pass 5m."
        )
    return seconds


def check_in_memory(X: TableLike) -> None:
    """Refuse containers of several tables, and tables that are yet to be computed, by what their types are.

    Neither library is imported. An AnnData object would be taken for a list of its names; a dask collection
    would be computed in silence, however large it is.
    """
    kind = type(X)
    if all(hasattr(kind, name) for name in ("X", "obs", "var")):
        raise DataError(
            f"Expected one table, as an array, data frame or sparse matrix; got {kind.__name__}, which may "
            "hold several. Call sparsevae.tl.sparse_vae(adata, layer='counts'), or pass adata.X, or "
            "adata.to_df() to "
            "keep the names of the features."
        )
    if kind.__module__.split(".")[0] in ("dask", "dask_expr"):
        raise DataError(
            f"Expected a table that is there; got a dask {kind.__name__}, which would be computed and "
            "read into memory as a whole. Pass X.compute() if there is room for it; else "
            "X.to_dask_array(lengths=True), which is read chunk by chunk."
        )


def check_columns_numeric(X: TableLike) -> None:
    """Name the columns that do not hold numbers, before an array conversion loses their names."""
    names, types = getattr(X, "columns", None), getattr(X, "dtypes", None)
    if names is None or types is None:
        return
    others = [
        (name, str(dtype))
        for name, dtype in zip(names, list(types), strict=True)
        if not _is_number_type(str(dtype)) and not _holds_numbers(X[name])  # type: ignore[index]
    ]
    wrong = [name for name, _ in others]
    if others and all(dtype.lower().startswith("categor") for _, dtype in others):
        raise DataError(
            f"Expected every column to hold numbers; got categories in {shown(wrong)}, whose order and "
            "distance are not known. Where they are measurements, convert them: X[name].astype(float); else "
            "drop these columns, or encode each category as a column of 0 and 1."
        )
    if others:
        raise DataError(
            f"Expected every column to hold numbers; got text or other values (could not convert string to "
            f"float) in {shown(wrong)}. Drop these columns, or encode them as numbers."
        )


def canonical_csr(X: sparse.csr_array, name: str = "the table") -> Matrix:
    """Bring a sparse table into compressed rows, sorted and without duplicates; the caller's is not changed.

    scipy and scikit-learn believe the indices of a sparse matrix: one out of bounds reads and writes foreign
    memory. Entries that occur twice count as their sum, as in a dense table.

    Parameters
    ----------
    X : sparse matrix or array of any format
    name : str
        What the message calls it.

    Raises
    ------
    DataError
        If indices or pointers lie outside the table.
    """
    _check_indices(X, name)
    table = X.tocsr()
    if table.format == "csr" and not _is_canonical(table):
        table = table.copy()
        table.has_canonical_format = False  # the flag may be wrong, and is believed
        table.sum_duplicates()
    return table


def check_finite(
    X: Matrix, feature_names: Sequence[object] | np.ndarray, *, may_be_missing: bool = False
) -> None:
    """Refuse NaN, infinity and what is too large for float32, and say in which columns they are.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
    feature_names : sequence of length n_features
    may_be_missing : bool
        Whether NaN stands for a missing value and is allowed.
    """
    bad = np.zeros(X.shape[1], dtype=np.int64)
    n_missing = 0
    if is_stored(X):
        bad = X.survey.n_large
    elif sparse.issparse(X):
        wrong = ~(np.abs(X.data) < _LARGEST)
        missing = np.isnan(X.data)
        wrong &= ~missing if may_be_missing else True
        np.add.at(bad, X.indices[wrong], 1)  # type: ignore[union-attr]
        n_missing = int(missing.sum())
    else:
        for block in row_blocks(X):
            wrong = ~(np.abs(block) < _LARGEST)
            if wrong.any():
                missing = np.isnan(block)
                wrong &= ~missing if may_be_missing else True
                bad += wrong.sum(axis=0)
                n_missing += int(missing.sum())
    if not bad.any():
        return
    where = shown([feature_names[int(j)] for j in np.flatnonzero(bad)])
    if is_stored(X) and X.survey.first_large is not None:
        row, column = X.survey.first_large
    else:
        row, column = _first_bad_cell(X, int(np.flatnonzero(bad)[0]))
    first = f"the first in row {row + 1} of {feature_names[column]!r}"
    if n_missing and not may_be_missing:
        raise DataError(
            f"Expected a number in every cell; got NaN in {n_missing} cells, columns {where}, {first}. Drop "
            "those rows or columns, or fill them in first."
        )
    raise DataError(
        f"Expected numbers of a size below {_LARGEST:g}; got infinity (inf) or larger numbers in "
        f"{int(bad.sum())} cells, columns {where}, {first}. Look for a division by zero or the logarithm of "
        "zero, and replace these cells, or change the unit of these columns."
    )


def check_support(X: Matrix, support: str, columns: np.ndarray, likelihood: str) -> None:
    """Refuse values that the likelihood of these columns cannot produce.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
    support : {"real", "count", "binary", "level"}
        Levels are those of the fit: see `annotations.levels`.
    columns : integer array
    likelihood : str
        Named in the message.
    """
    if support in ("real", "level"):
        return
    if is_stored(X):
        survey = X.survey
        own = [survey.minimum[columns], survey.maximum[columns], survey.fraction[columns]]
        found = [values[~np.isnan(values)] for values in own]
        pieces: Iterable[np.ndarray] = [np.concatenate(found)]
    else:
        pieces = _values(X, columns)
    for values in pieces:
        if values.size and np.isnan(values.min()):
            values = values[~np.isnan(values)]
        if values.size == 0:
            continue
        if values.min() < 0:
            # scikit-learn's checks look for the words "Negative values in data passed to".
            raise DataError(
                f"Expected no Negative values in data passed to a {likelihood} likelihood; got a minimum of "
                f"{values.min():g}. Use likelihood='gaussian' for real-valued features."
            )
        if support == "binary" and not np.isin(values, (0, 1)).all():
            raise DataError(
                f"Expected only 0 and 1 for a {likelihood} likelihood; got "
                f"{values[~np.isin(values, (0, 1))][0]:g}. Binarise the table, or use a count likelihood."
            )
        if support == "count" and not np.array_equal(values, np.rint(values)):
            raise DataError(
                f"Expected whole numbers for a {likelihood} likelihood; got fractions such as "
                f"{values[values != np.rint(values)][0]:g}. Pass raw counts, or use likelihood='gaussian'."
            )


def visible(text: str) -> str:
    """Text without what cannot be seen: control characters, and marks that turn the direction of writing.

    Without them a name can neither turn around the sentence that it stands in nor command a terminal.
    """
    return text.translate(_INVISIBLE)


def shown(names: Sequence[object] | np.ndarray, most: int = 5) -> str:
    """The first few of a list of names, for a message."""
    words = ", ".join(repr(str(name)) for name in names[:most])
    return words + (f" and {len(names) - most} more" if len(names) > most else "")


def _check_indices(X: sparse.csr_array, name: str) -> None:
    """Refuse a sparse matrix whose indices or pointers do not fit its shape and its values."""
    kind, (n_rows, n_columns) = X.format, X.shape
    if kind in ("csr", "csc", "bsr"):
        major, minor = (n_columns, n_rows) if kind == "csc" else (n_rows, n_columns)
        if kind == "bsr":
            major, minor = major // X.blocksize[0], minor // X.blocksize[1]
        pointers, indices = np.asarray(X.indptr), np.asarray(X.indices)
        n_stored = len(X.data)
        sound = (
            pointers.ndim == indices.ndim == 1
            and pointers.dtype.kind in "iu"
            and indices.dtype.kind in "iu"
            and len(pointers) == major + 1
            and len(indices) == n_stored
            and pointers[0] == 0
            and pointers[-1] <= n_stored
            and bool((np.diff(pointers.astype(np.int64)) >= 0).all())
            and _within(indices[: int(pointers[-1])], minor)
        )
    elif kind == "coo":
        sound = (
            len(X.row) == len(X.col) == len(X.data) and _within(X.row, n_rows) and _within(X.col, n_columns)
        )
    elif kind == "lil":
        lengths = [len(row) == len(values) for row, values in zip(X.rows, X.data, strict=True)]
        sound = all(lengths) and all(_within(np.asarray(row, dtype=np.int64), n_columns) for row in X.rows)
    else:
        sound = True  # DIA and DOK cannot name a place outside the table
    if not sound:
        raise DataError(
            f"Expected indices of {name} within its {n_rows} rows and {n_columns} columns; got a damaged "
            f"sparse matrix ({kind.upper()}). Build it, or write it, again."
        )


def _within(indices: np.ndarray, size: int) -> bool:
    return not len(indices) or (int(indices.min()) >= 0 and int(indices.max()) < size)


def _is_canonical(X: sparse.csr_array) -> bool:
    """Whether column indices rise strictly in every row."""
    if len(X.indices) < 2:
        return True
    rises = np.diff(X.indices.astype(np.int64)) > 0
    starts = X.indptr[1:-1]
    starts = starts[(starts > 0) & (starts < len(X.indices))]
    rises[starts - 1] = True  # from the last entry of a row to the first of the next anything goes
    return bool(rises[: max(int(X.indptr[-1]) - 1, 0)].all())


def _is_number_type(name: str) -> bool:
    return any(word in name.lower() for word in _NUMBER_WORDS) and not name.lower().startswith("interval")


def _holds_numbers(column: object) -> bool:
    """Whether a column of Python objects holds numbers all the same."""
    if str(getattr(column, "dtype", "")).startswith("categor"):
        return False
    values = np.asarray(column)
    return values.dtype == object and all(isinstance(v, numbers.Real | Decimal) or v is None for v in values)


def _first_bad_cell(X: Matrix, column: int) -> tuple[int, int]:
    """Row and column of the first cell of a column that is not a number of usual size."""
    if sparse.issparse(X):
        cells = sparse.coo_array(X[:, [column]])
        return int(cells.row[~(np.abs(cells.data) < _LARGEST)].min()), column
    return int(np.flatnonzero(~(np.abs(X[:, column]) < _LARGEST))[0]), column


def _values(X: Matrix, columns: np.ndarray) -> Iterator[np.ndarray]:
    """Values of some columns, in pieces; of a sparse table those that are stored."""
    every = len(columns) == X.shape[1]
    if sparse.issparse(X):
        yield np.asarray(X.data if every else X[:, columns].data)
        return
    for block in row_blocks(X):
        yield block if every else block[:, columns]
