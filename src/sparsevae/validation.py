"""Checks of tables and parameters: every refusal says what was expected, what came, and what to do."""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.sparsefuncs import mean_variance_axis, min_max_axis

from sparsevae.aliases import Matrix, TableLike
from sparsevae.exceptions import DataError, ParameterError
from sparsevae.stored import StoredTable, is_stored
from sparsevae.stored.survey import merge_moments

__all__ = [
    "EXTREME",
    "OVERDISPERSED",
    "canonical_csr",
    "check_choice",
    "check_columns_numeric",
    "check_duration",
    "check_finite",
    "check_fraction",
    "check_in_memory",
    "check_positive",
    "check_support",
    "column_moments",
    "constant_columns",
    "extreme_cell",
    "lone_cell",
    "resembles_counts",
    "reveal_missing",
    "row_totals",
    "shown",
    "visible",
]

_CELLS_AT_ONCE = 1 << 22  # of a dense table in one look: temporary arrays stay small beside any table
_LARGEST, _SMALLEST_DEVIATION = 1e37, 1e-37  # what float32 has room for
OVERDISPERSED = 1.2  # typical ratio of variance to mean above which counts are more than Poisson
EXTREME = 1e4  # times its usual size: a number that is wrong, or the cause of a failure, not a long tail
_FIRST_ROWS = 4096  # of a table on disk, in which what is usual is seen
_LONE = 0.99  # of the variance of a column that one cell makes
_MANY_ZEROS, _SOME_ZEROS, _FAR = 0.2, 0.01, 3.0  # see `resembles_counts`
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


def reveal_missing(X: TableLike) -> TableLike:
    """A table with NaN where a masked array hides its cells; arrays of dates and time spans are refused.

    numpy would convert the one to the hidden values and the other to counts of some unit.
    """
    kind = getattr(getattr(X, "dtype", None), "kind", "")
    if isinstance(X, np.ndarray) and kind in "mM":
        raise DataError(
            f"Expected numbers; got dates or time spans ({X.dtype}). Convert them to numbers of a unit "
            "first, for example (X - X.min()) / np.timedelta64(1, 'D')."
        )
    if isinstance(X, np.ma.MaskedArray):
        if kind == "c":
            raise DataError("Expected real numbers; got complex ones (Complex data not supported).")
        if not np.ma.getmaskarray(X).any():
            return np.asarray(X.data)
        return np.ma.filled(X.astype(np.float64), np.nan)
    return X


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
        for block in _row_blocks(X):
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


def column_moments(X: Matrix, weight: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of each column in float64, without making a sparse table dense.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
        NaN for what is missing: moments are those of the other rows; 0 for a column without any.
    weight : ndarray of shape (n_samples,), optional
        How often each row counts.
    """
    if is_stored(X):
        return (X.survey.mean, X.survey.variance) if weight is None else _streamed_moments(X, weight)
    if sparse.issparse(X):
        mean, variance = mean_variance_axis(X.astype(np.float64, copy=False), axis=0, weights=weight)
        return np.nan_to_num(np.asarray(mean)), np.maximum(np.nan_to_num(np.asarray(variance)), 0.0)
    mean, variance = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for block in _row_blocks(X):
        mean += block.sum(axis=0, dtype=np.float64)
    if weight is not None or np.isnan(mean).any():
        return _careful_moments(X, np.ones(len(X)) if weight is None else weight)
    mean /= len(X)
    for block in _row_blocks(X):
        variance += np.square(block - mean).sum(axis=0)
    return mean, variance / len(X)


def constant_columns(mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """Which columns vary by less than a millionth of their mean; float32 hardly sees it."""
    return variance <= np.maximum(1e-12 * mean**2, _SMALLEST_DEVIATION**2)


def resembles_counts(X: Matrix, mean: np.ndarray, variance: np.ndarray) -> bool:
    """Whether whole numbers of 0 or more look like counts of something, to judge by a typical used column.

    Counts of rare things have many zeros. Others have a few at least, vary more than a Poisson allows, and
    reach far above their mean: test scores, ratings and ages do not.
    """
    if is_stored(X):
        zeros = X.survey.zeros
    else:
        stored = np.asarray(X.data) if sparse.issparse(X) else np.asarray(X)
        n_missing = np.count_nonzero(np.isnan(stored))
        zeros = 1.0 - (np.count_nonzero(stored) - n_missing) / max(X.shape[0] * X.shape[1] - n_missing, 1)
    if zeros >= _MANY_ZEROS:
        return True
    used = mean > 0
    if zeros < _SOME_ZEROS or not used.any():
        return False
    if is_stored(X):
        largest = X.survey.maximum
    elif sparse.issparse(X):
        largest = np.asarray(X.nanmax(axis=0).toarray()).ravel()  # type: ignore[union-attr]
    else:
        largest = np.fmax.reduce(X)
    ratio, reach = (np.median(size[used] / mean[used]) for size in (variance, largest))
    return bool(ratio > OVERDISPERSED and reach > _FAR)


def row_totals(X: Matrix) -> np.ndarray:
    """Sum of each row in float64, of what is there of it."""
    totals = np.asarray(X.sum(axis=1, dtype=np.float64)).ravel()
    holed = np.flatnonzero(np.isnan(totals))
    if len(holed):
        rows = X[holed]
        dense = rows.toarray() if sparse.issparse(rows) else np.asarray(rows)  # type: ignore[union-attr]
        totals[holed] = np.nansum(dense, axis=1, dtype=np.float64)
    return totals


def extreme_cell(X: Matrix) -> tuple[int, int, float, float]:
    """The cell that is largest beside its column: row, column, value, and how many times its typical size.

    The typical size is the median of the absolute values that are not zero, without this cell.

    Parameters
    ----------
    X : ndarray, CSR matrix or StoredTable of shape (n_samples, n_features)
        Of a table on disk the typical size is the root mean square, and the row is -1: it is not looked for.
    """
    found = (0, 0, 0.0, 0.0)
    if is_stored(X):
        survey = X.survey
        sizes = np.maximum(np.abs(survey.minimum), np.abs(survey.maximum))
        ratios = sizes / np.maximum(np.sqrt(survey.variance + survey.mean**2), 1e-300)
        j = int(np.nan_to_num(ratios).argmax())
        ends = survey.minimum[j], survey.maximum[j]
        return -1, j, float(max(ends, key=abs)), float(ratios[j])
    columns = sparse.csc_array(X) if sparse.issparse(X) else X
    for j in range(X.shape[1]):
        part: Any = columns[:, [j]]
        column = np.asarray(part.toarray() if sparse.issparse(part) else part).ravel()
        sizes = np.nan_to_num(np.abs(column.astype(np.float64)))  # a missing cell is the cause of nothing
        i = int(sizes.argmax())
        usual = _typical_size(np.delete(sizes, i))
        ratio = float(sizes[i] / usual) if usual else 0.0
        if ratio > found[3]:
            found = (i, j, float(column[i]), ratio)
    return found


def lone_cell(X: Matrix, mean: np.ndarray, variance: np.ndarray) -> tuple[int, int, float, float] | None:
    """A cell that makes nearly all of its column's variance, and how far it is from what is usual there.

    The rest of such a column is next to constant once it is standardised: a fit does not see it.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
    mean, variance : ndarray of shape (n_features,)
        Of the columns.

    Returns
    -------
    row, column, value, ratio, or None
        As of `extreme_cell`; None where the largest cell is less than 10,000 times its typical size.
    """
    if is_stored(X):
        low, high = X.survey.minimum, X.survey.maximum
    elif sparse.issparse(X):
        low, high = min_max_axis(X, axis=0, ignore_nan=True)
    else:
        low, high = np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)
    furthest = np.maximum(high - mean, mean - low).astype(np.float64)
    alone = np.flatnonzero((variance > 0) & (furthest**2 >= _LONE * (X.shape[0] - 1) * variance))
    if not len(alone):
        return None
    if not is_stored(X):
        row, place, value, ratio = extreme_cell(X[:, alone])
    else:  # what is usual is seen in the first rows
        usual = [_typical_size(column) for column in X.slice(0, min(_FIRST_ROWS, X.shape[0]))[:, alone].T]
        ends = np.where(high + low > 0, high, low)[alone]
        ratios = np.divide(np.abs(ends), usual, out=np.zeros(len(alone)), where=np.array(usual) > 0)
        place = int(ratios.argmax())
        row, value, ratio = -1, float(ends[place]), float(ratios[place])
    return (row, int(alone[place]), value, ratio) if ratio >= EXTREME else None


def _typical_size(column: Any) -> float:
    """Median of the absolute values of a column that are neither zero nor missing; 0 where there are none."""
    values = np.asarray(column.toarray() if sparse.issparse(column) else column, dtype=np.float64).ravel()
    sizes = np.abs(values[np.isfinite(values) & (values != 0)])
    return float(np.median(sizes)) if len(sizes) else 0.0


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


def _row_blocks(X: np.ndarray) -> Iterator[np.ndarray]:
    step = max(1, _CELLS_AT_ONCE // max(1, X.shape[1]))
    for begin in range(0, len(X), step):
        yield X[begin : begin + step]


def _streamed_moments(X: StoredTable, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weighted mean and variance of what is there of each column, in one pass."""
    total = tuple(np.zeros((3, X.shape[1])))
    for begin, block in X.blocks():
        share = weight[begin : begin + block.shape[0]].astype(np.float64)
        own = np.full(X.shape[1], share.sum())
        if X.survey.has_missing:
            table = block if isinstance(block, np.ndarray) else block.toarray()
            own = share @ ~np.isnan(table)
            mean, variance = _careful_moments(table, share)
        else:
            mean, variance = column_moments(block, share)
        total = merge_moments(total, (mean, variance * own, own))  # type: ignore[arg-type]
    return total[0], total[1] / np.maximum(total[2], 1e-300)


def _careful_moments(X: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weighted mean and variance of what is there of each column."""

    def blocks() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        begin = 0
        for block in _row_blocks(X):
            yield block, weight[begin : begin + len(block), None]
            begin += len(block)

    count, mean, variance = np.zeros((3, X.shape[1]))
    for block, share in blocks():
        there = ~np.isnan(block)
        count += (share * there).sum(0)
        mean += (share * np.where(there, block, 0.0)).sum(0)
    mean /= np.maximum(count, 1e-300)
    for block, share in blocks():
        variance += (share * np.square(np.where(np.isnan(block), mean, block) - mean)).sum(0)
    return mean, variance / np.maximum(count, 1e-300)


def _values(X: Matrix, columns: np.ndarray) -> Iterator[np.ndarray]:
    """Values of some columns, in pieces; of a sparse table those that are stored."""
    every = len(columns) == X.shape[1]
    if sparse.issparse(X):
        yield np.asarray(X.data if every else X[:, columns].data)
        return
    for block in _row_blocks(X):
        yield block if every else block[:, columns]
