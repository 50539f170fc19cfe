"""Tables from files: `read_table`, and the checks that every format shares."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypedDict

import numpy as np
import pandas as pd
from scipy import sparse

from sparsevae.exceptions import DataError, ParameterError
from sparsevae.io import formats, survey_files
from sparsevae.io.delimited import read_delimited
from sparsevae.io.formats import RawTable, ReadOptions, how_to_drop
from sparsevae.io.memory import check_memory
from sparsevae.io.text import TextOptions, as_text_options, fingerprint_folder, read_documents
from sparsevae.validation import canonical_csr

__all__ = ["Fingerprint", "TableFile", "blocks_of_values", "list_names", "read_table"]

_READERS: dict[str, Callable[[Path, ReadOptions], RawTable]] = {
    ".csv": read_delimited,
    ".tsv": read_delimited,
    ".txt": read_delimited,
    ".npy": formats.read_npy,
    ".npz": formats.read_npz,
    ".parquet": formats.read_parquet,
    ".mtx": formats.read_matrix_market,
    ".h5ad": formats.read_h5ad,
    ".sav": survey_files.read_sav,
    ".zsav": survey_files.read_sav,
    ".dta": survey_files.read_dta,
    ".xlsx": survey_files.read_xlsx,
}
_BLOCK = 1 << 22  # values looked at together
_COMPRESSIBLE = (".csv", ".tsv", ".txt", ".mtx")

Matrix: TypeAlias = np.ndarray | sparse.csr_matrix


class Fingerprint(TypedDict):
    """Name, size and checksum of a file, by which it is recognised later."""

    file: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class TableFile:
    """A table that was read from a file and checked.

    Attributes
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
    feature_names, sample_names : ndarray of str, or None where the file has none
    path : Path
        The file.
    options : ReadOptions
        What the caller said about it.
    id_name : str
        Heading of the sample names.
    assumptions : tuple of str
        What was guessed about the file, one sentence each.
    """

    X: Matrix
    feature_names: np.ndarray | None
    sample_names: np.ndarray | None
    path: Path
    options: ReadOptions
    id_name: str = "sample"
    assumptions: tuple[str, ...] = ()

    @property
    def shape(self) -> tuple[int, int]:
        """Samples, features."""
        return int(self.X.shape[0]), int(self.X.shape[1])

    def for_estimator(self) -> Matrix | pd.DataFrame:
        """The table as `fit` takes it: a data frame if it has names and is dense, else X."""
        if self.feature_names is None or sparse.issparse(self.X):
            return self.X
        return pd.DataFrame(self.X, columns=self.feature_names.tolist(), copy=False)

    def row_labels(self) -> pd.Index:
        """Names of the samples, or their numbers from 0."""
        if self.sample_names is None:
            return pd.RangeIndex(self.shape[0], name=self.id_name)
        return pd.Index(self.sample_names, name=self.id_name)

    def fingerprint(self) -> Fingerprint:
        """Name, size and checksum of the file, by which it is recognised later."""
        if self.path.is_dir():
            size, checksum = fingerprint_folder(self.path)
            return {"file": self.path.name, "bytes": size, "sha256": checksum}
        with self.path.open("rb") as file:
            checksum = hashlib.file_digest(file, "sha256").hexdigest()
        return {"file": self.path.name, "bytes": self.path.stat().st_size, "sha256": checksum}


def read_table(
    path: str | Path,
    *,
    header: bool | None = None,
    id_column: str | None = None,
    drop: str | Sequence[str] = (),
    transpose: bool = False,
    layer: str | None = None,
    feature_names: str | Path | None = None,
    strict: bool = True,
    text: str | Mapping[str, Any] | TextOptions | None = None,
) -> TableFile:
    """Read a table with a row per sample and check that a model can be fitted to it.

    Parameters
    ----------
    path : str or Path
        CSV, TSV or TXT (gzipped or not), NPY, NPZ, Parquet, Matrix Market (MTX), H5AD, SPSS (SAV), Stata
        (DTA) or Excel (XLSX); the ending decides.
        NPY is mapped into memory, not loaded; sparse tables stay sparse.
    header : bool, optional
        Whether the first line of a CSV or TSV holds names. None: look at it. Of SPSS and Stata files: True
        for the names of the variables in place of their labels.
    id_column : str, optional
        Column with the names of the samples; "none" for no such column. None: look for one.
    drop : str or sequence of str
        Columns to leave out.
    transpose : bool
        Whether the file has a row per feature and a column per sample.
    layer : str, optional
        Layer of an H5AD file, in place of X; sheet of a workbook, in place of the first.
    feature_names : str or Path, optional
        A text file with a name per line, for formats that hold none.
    strict : bool
        Whether it is an error if a column to drop is absent.
    text : str, dict or TextOptions, optional
        A column of documents whose words are counted, or how to count them, see `sparsevae.io.TextOptions`.
        A folder is read as one document per text file.

    Returns
    -------
    TableFile
        Its ``assumptions`` say what was guessed about the file.

    Raises
    ------
    DataError
        If the file is absent, damaged or too large for memory, or holds something else than numbers.
    ParameterError
        If an option has another type.

    Examples
    --------
    >>> import sparsevae
    >>> table = sparsevae.read_table("answers.csv", drop=["school"])  # doctest: +SKIP
    >>> model = sparsevae.SparseVAE().fit(table.for_estimator())  # doctest: +SKIP
    """
    if not isinstance(path, str | Path):
        raise ParameterError(
            f"Expected the path of a table; got {type(path).__name__}. Pass an array to fit as it is."
        )
    path = Path(path)
    documents = as_text_options(text) or (TextOptions() if path.is_dir() else None)
    options = ReadOptions(header, id_column, drop, strict, transpose, layer, feature_names, documents)
    if documents is not None:
        _check_there(path)
        raw = read_documents(path, documents, id_column)
    else:
        ending = _check_file(path)
        check_memory(path, ending)
        raw = _READERS[ending](path, options)
    X, names, samples = raw.X, raw.feature_names, raw.sample_names
    if sparse.issparse(X):
        X = canonical_csr(X, str(path))
    if options.transpose:
        X = formats.to_numbers(X, _as_text(names), path) if isinstance(X, pd.DataFrame) else X
        X, names, samples = X.T, samples, names
    if options.feature_names is not None:
        names = _names_from(Path(options.feature_names), X.shape[-1])
    names, samples = _as_text(names), _as_text(samples)
    _check_names(names, path)
    X, names, left_out = _drop(X, names, options, path)
    _check_shape(X, path)
    if isinstance(X, pd.DataFrame):
        X = formats.to_numbers(X, names, path)
    X = X if isinstance(X, np.ndarray) else X.tocsr()
    _check_cells(X, names, path)
    notes = (*raw.assumptions, *left_out, *_suspicious_columns(X, names))
    return TableFile(X, names, samples, path, options, raw.id_name or "sample", notes)


def _check_file(path: Path) -> str:
    """Return the ending that decides the format; refuse a file that is absent, empty or of no known kind."""
    ending = path.suffix.lower()
    if ending == ".gz":
        ending = path.with_suffix("").suffix.lower()
        if ending in _READERS and ending not in _COMPRESSIBLE:
            raise DataError(f"Expected {ending} without gzip around it; got {path}. Unpack it first.")
    _check_there(path)
    if ending not in _READERS:
        raise DataError(
            f"Expected a file that ends in {', '.join(_READERS)}; got {path.name}. Save the table as CSV."
        )
    if path.stat().st_size == 0:
        raise DataError(f"Expected a table in {path}; the file is empty.")
    return ending


def _check_there(path: Path) -> None:
    if not path.exists():
        raise DataError(f"Expected a table at {path}; there is no such file.")


def blocks_of_values(X: Matrix) -> Iterator[np.ndarray]:
    """The values of a table in parts, since a mapped file need not fit into memory; stored ones if sparse."""
    if not isinstance(X, np.ndarray):
        yield from (X.data[i : i + _BLOCK] for i in range(0, X.nnz, _BLOCK))
        return
    step = max(1, _BLOCK // X.shape[1])
    yield from (np.asarray(X[i : i + step]) for i in range(0, X.shape[0], step))


def list_names(names: Sequence[str] | np.ndarray, most: int = 5) -> str:
    """The first few names in quotes, and how many more there are."""
    shown = ", ".join(f"'{name}'" for name in list(names)[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")


def _as_text(names: Sequence[str] | np.ndarray | None) -> np.ndarray | None:
    return None if names is None else np.asarray(names, dtype=object).astype(str)


def _drop(
    X: Matrix | pd.DataFrame, names: np.ndarray | None, options: ReadOptions, path: Path
) -> tuple[Matrix | pd.DataFrame, np.ndarray | None, tuple[str, ...]]:
    if not options.drop:
        return X, names, ()
    unwanted = options.columns_to_drop([] if names is None else names.tolist())
    absent = [name for name in unwanted if names is None or name not in names]
    if absent and options.strict:
        raise DataError(f"Expected to leave out {list_names(absent)}; {path} has no such column.")
    if names is None or len(absent) == len(unwanted):
        return X, names, ()
    drop = np.isin(names, unwanted)
    keep = np.flatnonzero(~drop)
    left_out = (f"Left out as asked: {list_names(names[drop], 20)}.",)
    return X.iloc[:, keep] if isinstance(X, pd.DataFrame) else X[:, keep], names[keep], left_out


def _check_shape(X: Matrix | pd.DataFrame, path: Path) -> None:
    if X.ndim != 2:
        raise DataError(f"Expected rows and columns in {path}; got an array of shape {X.shape}.")
    if 0 in X.shape:
        raise DataError(
            f"Expected at least one row and one column of numbers in {path}; got {X.shape[0]} x {X.shape[1]}."
        )


def _check_names(names: np.ndarray | None, path: Path) -> None:
    if names is None or len(set(names)) == len(names):
        return
    twice = [name for name, count in Counter(names.tolist()).items() if count > 1]
    raise DataError(
        f"Expected a different name for every column of {path}; got {list_names(twice)} more than once. "
        "Rename them."
    )


def _check_cells(X: Matrix, names: np.ndarray | None, path: Path) -> None:
    if X.dtype.kind in "biu":
        return
    if X.dtype.kind != "f":
        raise DataError(f"Expected numbers in {path}; got values of type {X.dtype}.")
    if all(np.isfinite(values).all() for values in blocks_of_values(X)):
        return
    if not isinstance(X, np.ndarray):
        entries = X.tocoo()
        rows, columns = (index[~np.isfinite(entries.data)] for index in (entries.row, entries.col))
    else:
        rows, columns = np.nonzero(~np.isfinite(X))
    where = f"column {_name(names, int(columns[0]))}, row {int(rows[0]) + 1}"
    n_missing = sum(int(np.isnan(values).sum()) for values in blocks_of_values(X))
    if n_missing:
        empty = f"{n_missing} {'is' if n_missing == 1 else 'are'} empty"
        raise DataError(
            f"Expected a number in every cell of {path}; {empty}, the first in {where}. Missing values are "
            "not supported yet: fill them in, or leave out such rows or columns."
        )
    raise DataError(f"Expected finite numbers in {path}; got infinity in {where}.")


def _suspicious_columns(X: Matrix, names: np.ndarray | None) -> list[str]:
    """Columns that count or number the rows; fitted as asked, but worth a word."""
    if names is None or sparse.issparse(X) or len(X) < 3:
        return []
    found = []
    for j, name in enumerate(names):
        if name.lower() in formats.ID_NAMES and len(np.unique(X[:, j])) == len(X):
            found.append(
                f"Column '{name}' differs in every row, like an id, and is taken as a feature; if it is "
                f"none, leave it out ({how_to_drop([name])})."
            )
    return found


def _names_from(path: Path, n_features: int) -> np.ndarray:
    names = formats.read_names(path)
    if len(names) == n_features + 1:
        names = names[1:]  # a heading
    if len(names) != n_features:
        raise DataError(f"Expected {n_features} feature names in {path}, one per line; got {len(names)}.")
    return names


def _name(names: np.ndarray | None, column: int) -> str:
    return f"{column + 1}" if names is None else f"'{names[column]}'"
