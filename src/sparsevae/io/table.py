"""Tables from files: `read_table`, and the checks that every format shares."""

from __future__ import annotations

import hashlib
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeAlias, TypedDict, cast

import numpy as np
import pandas as pd
from scipy import sparse

from sparsevae.aliases import Parameters
from sparsevae.exceptions import DataError, ParameterError, SparseVAEError
from sparsevae.io import formats, modalities, survey_files
from sparsevae.io.delimited import read_delimited
from sparsevae.io.formats import Cell, RawTable, ReadOptions, how_to_drop
from sparsevae.io.matrix_market import read_matrix_market
from sparsevae.io.memory import check_memory
from sparsevae.io.sides import describe_sides, read_sides
from sparsevae.io.streamed import fingerprint_parts, holds_parts, is_streamed, open_streamed
from sparsevae.io.text import TextOptions, as_text_options, fingerprint_folder, read_documents
from sparsevae.stored import is_stored
from sparsevae.validation import canonical_csr

__all__ = [
    "READERS",
    "Fingerprint",
    "Reader",
    "TableFile",
    "blocks_of_values",
    "list_names",
    "read_raw",
    "read_table",
]


class Reader(NamedTuple):
    """How files of an ending are read; a new format is a line in `READERS`.

    Attributes
    ----------
    read : callable
        Takes a path and `ReadOptions`, returns a `RawTable`. Whatever it raises becomes one sentence.
    kind : str
        What such a file is, for that sentence.
    packed : bool
        Whether it may be gzipped.
    """

    read: Callable[[Path, ReadOptions], RawTable]
    kind: str
    packed: bool = False


READERS: dict[str, Reader] = {
    ".csv": Reader(read_delimited, "a table in text", packed=True),
    ".tsv": Reader(read_delimited, "a table in text", packed=True),
    ".txt": Reader(read_delimited, "a table in text", packed=True),
    ".npy": Reader(formats.read_npy, "a plain array of numbers, saved by numpy"),
    ".npz": Reader(formats.read_npz, "an archive of numpy or scipy"),
    ".parquet": Reader(formats.read_parquet, "a Parquet file"),
    ".mtx": Reader(read_matrix_market, "a matrix in Matrix Market format", packed=True),
    ".h5ad": Reader(formats.read_h5ad, "an H5AD file"),
    ".h5mu": Reader(modalities.read_h5mu, "an H5MU file"),
    ".sav": Reader(survey_files.read_sav, "an SPSS file"),
    ".zsav": Reader(survey_files.read_sav, "an SPSS file"),
    ".dta": Reader(survey_files.read_dta, "a Stata file"),
    ".xlsx": Reader(survey_files.read_xlsx, "an Excel workbook"),
}
"""The formats by the ending of a file's name."""

_BLOCK = 1 << 22  # values looked at together

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
    X : ndarray, CSR matrix or StoredTable of shape (n_samples, n_features)
    feature_names, sample_names : ndarray of str, or None where the file has none
    path : Path
        The file.
    options : ReadOptions
        What the caller said about it.
    id_name : str
        Heading of the sample names.
    assumptions : tuple of str
        What was guessed about the file, one sentence each.
    sides : dict from str to ndarray of shape (n_samples,)
        Groups, weights and sizes of the rows, as arguments of ``fit``: groups, sample_weight, exposure.
    views : list of str of length n_features, optional
        The modality of each feature, of MuData.
    """

    X: Matrix
    feature_names: np.ndarray | None
    sample_names: np.ndarray | None
    path: Path
    options: ReadOptions
    id_name: str = "sample"
    assumptions: tuple[str, ...] = ()
    sides: Parameters = field(default_factory=dict)
    views: list[str] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Samples, features."""
        return int(self.X.shape[0]), int(self.X.shape[1])

    @property
    def on_disk(self) -> bool:
        """Whether the rows stay on disk, to be read block by block."""
        return is_stored(self.X)

    def for_estimator(self) -> Matrix | pd.DataFrame:
        """The table as `fit` takes it: a data frame if it has names and is dense, else X."""
        if self.feature_names is None or sparse.issparse(self.X) or self.on_disk:
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
            size, checksum = (fingerprint_parts if self.on_disk else fingerprint_folder)(self.path)
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
    text: str | Parameters | TextOptions | None = None,
    groups: str | None = None,
    weights: str | None = None,
    exposure: str | None = None,
) -> TableFile:
    """Read a table with a row per sample and check that a model can be fitted to it.

    Parameters
    ----------
    path : str or Path
        CSV, TSV or TXT (gzipped or not), NPY, NPZ, Parquet, Matrix Market (MTX), H5AD, H5MU, SPSS (SAV),
        Stata (DTA) or Excel (XLSX); the ending decides. The modalities of H5MU stand side by side.
        NPY is mapped into memory, not loaded; sparse tables stay sparse. NPY, Parquet and H5AD tables that
        take 512 MB or more, and folders of Parquet files, of NPZ parts, or of Zarr arrays as anndata writes
        them, stay on disk: see `sparsevae.open_rows`.
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
        Layer of an H5AD or H5MU file, in place of X; sheet of a workbook, in place of the first.
    feature_names : str or Path, optional
        A text file with a name per line, for formats that hold none.
    strict : bool
        Whether it is an error if a column to drop is absent.
    text : str, dict or TextOptions, optional
        A column of documents whose words are counted, or how to count them, see `sparsevae.io.TextOptions`.
        A folder is read as one document per text file.
    groups, weights, exposure : str, optional
        Columns that say of each row its group (text or numbers), how often it counts, and its size. They are
        no features: ``sides`` has them, as ``fit`` takes them. Of H5AD, columns of ``obs``.

    Returns
    -------
    TableFile
        Its ``assumptions`` say what was guessed about the file.

    Raises
    ------
    DataError
        If the file is absent, damaged or too large for memory, or holds something else than numbers and
        empty cells (missing values, NaN in the result).
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
    folder = path.is_dir() and not holds_parts(path)
    documents = as_text_options(text) or (TextOptions() if folder else None)
    options = ReadOptions(
        header, id_column, drop, strict, transpose, layer, feature_names, documents, groups, weights, exposure
    )
    if documents is None and is_streamed(path, options):
        return _stay_on_disk(path, options)
    raw = read_raw(path, options)
    X, names, samples, words, lines = raw.X, raw.feature_names, raw.sample_names, dict(raw.text), raw.lines
    views = None if raw.views is None or options.transpose else list(raw.views)
    if isinstance(X, pd.DataFrame):
        X, words = formats.to_numbers(X)
    elif sparse.issparse(X):
        X = canonical_csr(X, str(path))
    if X.ndim != 2:
        raise DataError(f"Expected rows and columns in {path}; got an array of shape {X.shape}.")
    names, samples = _as_text(names), _as_text(samples)
    if id_column is None and raw.id_name in options.side_columns.values():
        samples = None  # a column of text was taken for names of the rows
    _check_lengths(X, names, samples, path)
    if options.transpose:
        _refuse_text(words, names, lines, path)
        X, names, samples, lines = X.T, samples, names, None
    if options.feature_names is not None:
        names = _names_from(Path(options.feature_names), X.shape[-1])
    _check_names(names, path)
    kept, left_out = _kept_columns(X.shape[1], names, options, path)
    if len(kept) < X.shape[1]:
        X, names = X[:, kept], None if names is None else names[kept]
        words = {new: words[old] for new, old in enumerate(kept.tolist()) if old in words}
        views = None if views is None else [views[j] for j in kept]
    if 0 in X.shape:
        raise DataError(
            f"Expected at least one row and one column of numbers in {path}; got {X.shape[0]} x {X.shape[1]}."
        )
    _refuse_text(words, names, lines, path)
    X = X if isinstance(X, np.ndarray) else X.tocsr()
    _check_cells(X, names, lines, path)
    missing = _say_missing(X, names, lines)
    sides = read_sides(
        lambda column: read_raw(path, ReadOptions(header=header, id_column=column, layer=layer)),
        options,
        path,
    )
    suspicious = _suspicious_columns(X, names)
    notes = (*raw.assumptions, *left_out, *missing, *suspicious, *describe_sides(sides, options))
    id_name = "sample" if samples is None or raw.id_name is None else raw.id_name
    return TableFile(X, names, samples, path, options, id_name, notes, sides, views)


def _stay_on_disk(path: Path, options: ReadOptions) -> TableFile:
    """A table whose rows are read when they are asked for; its samples are numbered."""
    table = open_streamed(path, options)
    names = _as_text(table.feature_names)
    if options.feature_names is not None:
        names = _names_from(Path(options.feature_names), table.shape[1])
    _check_names(names, path)
    notes = ["The table stays on disk and is read block by block; samples are numbered from 0."]
    n_missing, first = int(table.survey.n_missing.sum()), table.survey.first_missing
    if first is not None:
        notes.append(_missing_note(n_missing, table.shape, names, first, None))
    table.feature_names = names
    return TableFile(cast(Matrix, table), names, None, path, options, "sample", tuple(notes))


def read_raw(path: Path, options: ReadOptions) -> RawTable:
    """What a file holds, unchecked; whatever a reader raises becomes one sentence about the file."""
    if options.text is None:
        reader = READERS[_check_file(path)]
    else:
        _check_there(path)
        reader = Reader(_read_documents, "a folder of documents, or a table with a column of them")
    try:
        if path.is_file():
            check_memory(path, _ending(path))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of libraries; what matters is refused
            return reader.read(path, options)
    except SparseVAEError:
        raise
    except MemoryError as error:
        raise DataError(
            f"Expected a table that fits into memory; {path} needs more than there is, or its sizes are "
            "damaged. Take fewer rows or columns, or save it as NPY, which is read piece by piece (NPZ if it "
            "is mostly zeros)."
        ) from error
    except EOFError as error:
        raise DataError(
            f"Expected {path} to be {reader.kind}; the file is cut off. Copy it again, or make it again."
        ) from error
    except Exception as error:  # libraries raise what they like
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the file system's own words: not found, no permission
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        if "pickle" in reason:  # numpy's advice to load it unsafely is none
            reason = "it holds objects of Python, or is no file of numpy"
        raise DataError(
            f"Expected {path} to be {reader.kind}; it cannot be read as one: it is damaged, or something "
            f"else ({reason})."
        ) from error


def _read_documents(path: Path, options: ReadOptions) -> RawTable:
    assert isinstance(options.text, TextOptions)
    return read_documents(path, options.text, options.id_column)


_REMEDIES = {
    ".xls": "Save it as .xlsx.",
}


def _check_file(path: Path) -> str:
    """Return the ending that decides the format; refuse a file that is absent, empty or of no known kind."""
    ending = _ending(path)
    if path.suffix.lower() == ".gz" and ending in READERS and not READERS[ending].packed:
        raise DataError(f"Expected {ending} without gzip around it; got {path}. Unpack it first.")
    _check_there(path)
    if ending not in READERS:
        remedy = _REMEDIES.get(ending, "Save the table as CSV.")
        raise DataError(f"Expected a file that ends in {', '.join(READERS)}; got {path.name}. {remedy}")
    if path.stat().st_size == 0:
        raise DataError(f"Expected a table in {path}; the file is empty.")
    return ending


def _ending(path: Path) -> str:
    ending = path.suffix.lower()
    return path.with_suffix("").suffix.lower() if ending == ".gz" else ending


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


def _kept_columns(
    n_columns: int, names: np.ndarray | None, options: ReadOptions, path: Path
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Positions of the columns to keep, and a sentence on those that are left out."""
    unwanted = options.columns_to_drop([] if names is None else names.tolist())
    absent = [name for name in unwanted if names is None or name not in names]
    if absent and options.strict:
        there = "its columns have no names" if names is None else f"there is {list_names(names)}"
        raise DataError(
            f"Expected to leave out {list_names(absent)}; {path} has no such column. Name one of its "
            f"columns: {there}."
        )
    if names is None:
        return np.arange(n_columns), ()
    drop = np.isin(names, unwanted)
    asked = names[drop & ~np.isin(names, list(options.side_columns.values()))]
    said = (f"Left out as asked: {list_names(asked, 20)}.",) if len(asked) else ()
    return np.flatnonzero(~drop), said


def _check_lengths(X: Matrix, names: np.ndarray | None, samples: np.ndarray | None, path: Path) -> None:
    for what, found, n in (("columns", names, X.shape[1]), ("rows", samples, X.shape[0])):
        if found is not None and found.shape != (n,):
            raise DataError(
                f"Expected a name for each of the {n} {what} of {path}; got {found.size} names. Write the "
                "file again with as many."
            )


def _check_names(names: np.ndarray | None, path: Path) -> None:
    if names is None or len(set(names)) == len(names):
        return
    twice = [name for name, count in Counter(names.tolist()).items() if count > 1]
    raise DataError(
        f"Expected a different name for every column of {path}; got {list_names(twice)} more than once. "
        "Rename them."
    )


def _refuse_text(
    text: Mapping[int, Cell], names: np.ndarray | None, lines: np.ndarray | None, path: Path
) -> None:
    """Refuse columns that hold something else than numbers, with the first such cell."""
    if not text:
        return
    columns = sorted(text)
    cell = text[columns[0]]
    labels = [_name(names, j) for j in columns]
    shown = ", ".join(labels[:5]) + (f" and {len(labels) - 5} more" if len(labels) > 5 else "")
    remedy = "" if names is None else f" ({how_to_drop([names[j] for j in columns])})"
    raise DataError(
        f"Expected numbers in every column of {path}; got something else in column {shown}, for example "
        f"'{str(cell.content)[:60]}' in {_row(cell.row, lines)}. Leave it out{remedy}, or encode it as "
        "numbers."
    )


def _check_cells(X: Matrix, names: np.ndarray | None, lines: np.ndarray | None, path: Path) -> None:
    """Refuse what is neither a finite number nor missing (NaN)."""
    if X.dtype.kind in "biu":
        return
    if X.dtype.kind != "f":
        raise DataError(
            f"Expected numbers in {path}; got values of type {X.dtype}. Save it again as numbers."
        )
    if not any(np.isinf(values).any() for values in blocks_of_values(X)):
        return
    row, column = _first_cell(X, np.isinf)
    where = f"column {_name(names, column)}, {_row(row, lines)}"
    raise DataError(
        f"Expected finite numbers in {path}; got infinity in {where}. Correct the cell, or empty it if it is "
        "missing."
    )


def _say_missing(X: Matrix, names: np.ndarray | None, lines: np.ndarray | None) -> list[str]:
    """A sentence on cells without a value; columns that have none at all are refused by the model."""
    n_missing = 0
    if X.dtype.kind == "f":
        n_missing = sum(int(np.isnan(values).sum()) for values in blocks_of_values(X))
    if not n_missing:
        return []
    return [_missing_note(n_missing, X.shape, names, _first_cell(X, np.isnan), lines)]


def _missing_note(
    n_missing: int,
    shape: tuple[int, ...],
    names: np.ndarray | None,
    first: tuple[int, int],
    lines: np.ndarray | None,
) -> str:
    share = n_missing / (shape[0] * shape[1])
    cells = "1 cell is" if n_missing == 1 else f"{n_missing} cells are"
    return (
        f"{cells} empty or NA ({share:.1%}) and counted as missing, the first in column "
        f"{_name(names, first[1])}, {_row(first[0], lines)}."
    )


def _first_cell(X: Matrix, is_wanted: Callable[[np.ndarray], np.ndarray]) -> tuple[int, int]:
    """Row and column of the first cell that is wanted."""
    if isinstance(X, np.ndarray):
        row, column = np.argwhere(is_wanted(X))[0]
        return int(row), int(column)
    entries = X.tocoo()
    at = np.flatnonzero(is_wanted(entries.data))[0]
    return int(entries.row[at]), int(entries.col[at])


def _row(row: int, lines: np.ndarray | None) -> str:
    return f"row {row + 1}" if lines is None else f"row {row + 1} (line {lines[row]})"


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
