"""Readers of NPY, NPZ, Parquet and H5AD: numbers, names and what was assumed, unchecked.

Every reader takes a path and `ReadOptions` and returns a `RawTable`.
"""

from __future__ import annotations

import gzip
import io
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import BinaryIO, NamedTuple, TextIO, cast

import numpy as np
import pandas as pd
from scipy import sparse

from sparsevae.exceptions import DataError, ParameterError
from sparsevae.io.memory import check_room
from sparsevae.io.probe import check_hdf5

__all__ = [
    "ID_NAMES",
    "Cell",
    "RawTable",
    "ReadOptions",
    "how_to_drop",
    "no_id_column",
    "not_utf8",
    "open_bytes",
    "open_text",
    "read_h5ad",
    "read_names",
    "read_npy",
    "read_npz",
    "read_parquet",
    "to_numbers",
]

# fmt: off
ID_NAMES = frozenset((
    "id", "ids", "index", "name", "sample", "sample_id", "sampleid", "subject", "subject_id", "rownames",
    "respondent_id", "caseid", "serial",
    "participant", "participant_id", "respondent", "case", "case_id", "row", "row_id", "cell", "cell_id",
    "barcode", "user", "user_id", "userid", "document", "doc_id", "pupil", "student", "patient",
    "patient_id",
))
# fmt: on
"""Headings that speak for a column of labels rather than of measurements."""


@dataclass(frozen=True)
class ReadOptions:
    """How a table is to be read; None leaves the choice to a look at the file.

    Attributes
    ----------
    header : bool, optional
        Whether the first line of a CSV or TSV holds names.
    id_column : str, optional
        Column with the names of the samples; "none" for no such column.
    drop : str or sequence of str
        Columns to leave out; an entry may name several, with commas between them. Kept as a tuple.
    strict : bool
        Whether a column to leave out must be there.
    transpose : bool
        Whether the file has a row per feature and a column per sample.
    layer : str, optional
        Layer of an H5AD or H5MU file.
    feature_names : str or Path, optional
        A file with a name per line, for formats that hold none. Kept as a path.
    text : TextOptions, optional
        How documents are counted, where the table is made from documents.
    groups, weights, exposure : str, optional
        Columns that say of each row its group, how often it counts, and its size; no features.
    """

    header: bool | None = None
    id_column: str | None = None
    drop: str | Sequence[str] = ()
    strict: bool = True
    transpose: bool = False
    layer: str | None = None
    feature_names: str | Path | None = None
    text: object = None
    groups: str | None = None
    weights: str | None = None
    exposure: str | None = None

    def __post_init__(self) -> None:
        drop = (self.drop,) if isinstance(self.drop, str) else self.drop
        if not isinstance(drop, list | tuple) or not all(isinstance(name, str) for name in drop):
            raise ParameterError(f"Expected drop to be names of columns; got {drop!r}. Pass drop=['age'].")
        object.__setattr__(self, "drop", tuple(drop))
        for name, kind, what in _KINDS:
            value = getattr(self, name)
            if not isinstance(value, kind):
                raise ParameterError(f"Expected {name} to be {what}; got {value!r}.")
        if self.feature_names is not None:
            object.__setattr__(self, "feature_names", Path(self.feature_names))

    @property
    def side_columns(self) -> dict[str, str]:
        """Columns that describe the rows, by the name of the argument of ``fit`` that they are for."""
        named = {"groups": self.groups, "sample_weight": self.weights, "exposure": self.exposure}
        return {argument: column for argument, column in named.items() if column is not None}

    def columns_to_drop(self, names: Collection[str]) -> list[str]:
        """Columns to leave out of a table with these names; a name with commas in it is a name.

        So are columns that describe the rows, where they are among the names.
        """
        entries = ([entry] if entry in names else entry.split(",") for entry in self.drop)
        beside = [column for column in self.side_columns.values() if column in names]
        return [*(name.strip() for entry in entries for name in entry), *beside]


_KINDS = (
    ("header", bool | None, "True, False or None"),
    ("id_column", str | None, "the name of a column, or 'none'"),
    ("strict", bool, "True or False"),
    ("transpose", bool, "True or False"),
    ("layer", str | None, "the name of a layer"),
    ("feature_names", str | Path | None, "the path of a file with a name per line"),
    *((name, str | None, "the name of a column") for name in ("groups", "weights", "exposure")),
)


class Cell(NamedTuple):
    """A cell that is no number: its row, counted from 0, and what is in it."""

    row: int
    content: object


@dataclass(frozen=True)
class RawTable:
    """What a reader found, unchecked.

    Attributes
    ----------
    X : ndarray, sparse matrix or data frame of shape (n_rows, n_columns)
        As it lies in the file; NaN where a cell is empty.
    feature_names, sample_names : sequence of str, optional
    id_name : str, optional
        Heading of the sample names.
    assumptions : tuple of str
        What was guessed, one sentence each.
    text : mapping
        From a column to the first of its cells that is no number and not empty.
    lines : ndarray of shape (n_rows,), optional
        Line of a text file that each row is in.
    views : sequence of str, optional
        The modality of each feature.
    """

    X: np.ndarray | sparse.spmatrix | pd.DataFrame
    feature_names: Sequence[str] | np.ndarray | None = None
    sample_names: Sequence[str] | np.ndarray | None = None
    id_name: str | None = None
    assumptions: tuple[str, ...] = ()
    text: Mapping[int, Cell] = field(default_factory=dict)
    lines: np.ndarray | None = None
    views: Sequence[str] | None = None


def read_npy(path: Path, options: ReadOptions) -> RawTable:
    """A numpy array, not read into memory before it is used."""
    return RawTable(np.load(path, mmap_mode="r", allow_pickle=False))


def read_npz(path: Path, options: ReadOptions) -> RawTable:
    """A sparse matrix of `scipy.sparse.save_npz`, or arrays ``X`` and ``feature_names`` of `numpy.savez`."""
    with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
        entries = set(archive.files)
        if "format" in entries and "shape" in entries:
            _check_sparse_sizes(archive, path)
            return RawTable(sparse.load_npz(path))
        key = "X" if "X" in entries else next(iter(entries)) if len(entries) == 1 else None
        if key is None:
            raise DataError(
                f"Expected {path} to hold a scipy sparse matrix or an array called X; got "
                f"{', '.join(sorted(entries)) or 'nothing'}."
            )
        return RawTable(archive[key], archive["feature_names"] if "feature_names" in entries else None)


def _check_sparse_sizes(archive: Mapping[str, np.ndarray], path: Path) -> None:
    """Refuse a sparse matrix whose shape cannot be true, before scipy makes room for it."""
    shape = np.asarray(archive["shape"])
    if shape.shape != (2,) or shape.dtype.kind not in "iu" or not (shape >= 0).all():
        raise DataError(f"Expected {path} to hold rows and columns; got a matrix of shape {shape.tolist()}.")
    check_room(8 * (int(shape.max()) + 1), path)  # the pointers of its rows or columns


def read_parquet(path: Path, options: ReadOptions) -> RawTable:
    """A data frame; an index that is not just a count holds the names of the samples."""
    try:
        frame = pd.read_parquet(path, engine="pyarrow")
    except ImportError as error:
        raise DataError(
            "Expected pyarrow, to read Parquet; it is not installed. Run: pip install pyarrow"
        ) from error
    labels, notes = _split_labels(frame, options.id_column, path)
    if labels is not None and labels.name in frame.columns:
        frame = frame.drop(columns=labels.name)
    names = [str(column) for column in frame.columns]
    if labels is None:
        return RawTable(frame, names, assumptions=notes)
    return RawTable(frame, names, labels.astype(str).to_numpy(), str(labels.name or "sample"), notes)


def _split_labels(
    frame: pd.DataFrame, wanted: str | None, path: Path
) -> tuple[pd.Series | None, tuple[str, ...]]:
    """Names of the samples: the column asked for, an index that says something, or a first column of text."""
    if wanted == "none":
        return None, ()
    index = frame.index.to_series()
    if wanted is not None:
        if wanted in frame.columns:
            return frame[wanted], ()
        if wanted == index.name:
            return index, ()
        raise no_id_column(wanted, path)
    if not isinstance(frame.index, pd.RangeIndex):
        return index, ("Sample names are in the index of the data frame.",)
    if len(frame.columns) > 1 and _is_text(frame.iloc[:, 0]) and frame.iloc[:, 0].is_unique:
        return frame.iloc[:, 0], (f"Sample names are in column '{frame.columns[0]}': it holds text.",)
    return None, ()


def read_h5ad(path: Path, options: ReadOptions) -> RawTable:
    """An AnnData file: X or a layer, with the names of cells and genes."""
    try:
        import anndata
    except ImportError as error:
        raise DataError(
            "Expected anndata, to read H5AD; it is not installed. Run: pip install anndata"
        ) from error
    check_hdf5(path)
    cells = anndata.read_h5ad(path)
    if options.layer is not None and options.layer not in cells.layers:
        there = ", ".join(cells.layers) or "none"
        remedy = (
            "Name one of them, or leave it out to read X" if len(cells.layers) else "Leave it out to read X"
        )
        raise DataError(f"Expected a layer '{options.layer}' in {path}; there is {there}. {remedy}.")
    X = cells.X if options.layer is None else cells.layers[options.layer]
    if X is None:
        raise DataError(
            f"Expected {path} to have a matrix X; it has none. Name one of its layers (layer=..., on the "
            "command line --layer NAME)."
        )
    notes: tuple[str, ...] = ()
    if options.layer is None and len(cells.layers):
        notes = (f"Read X; the file also has the layers {', '.join(cells.layers)}.",)
    marked = cells.var.get("highly_variable")
    if marked is not None and marked.dtype == bool and 0 < (n_marked := int(marked.sum())) < cells.n_vars:
        notes += (
            f"All {cells.n_vars} features are read; to fit the {n_marked} that var marks as highly_variable, "
            "keep those alone in the file, or call sparsevae.tl.sparse_vae.",
        )
    labels, wanted = cells.obs_names.to_series(), options.id_column
    if wanted not in (None, "none", labels.name):
        if wanted not in cells.obs:
            raise no_id_column(str(wanted), path)
        labels = cells.obs[wanted]
    return RawTable(X, np.asarray(cells.var_names), labels.astype(str).to_numpy(), "cell", notes)


def read_names(path: Path) -> np.ndarray:
    """First field of every line of a text file."""
    try:
        with open_text(path) as file:
            lines = [line.rstrip("\r\n") for line in file]
    except UnicodeDecodeError as error:
        raise not_utf8(path) from error
    return np.array([line.split("\t")[0].split(",")[0].strip('"') for line in lines if line], dtype=object)


def open_text(path: Path) -> TextIO:
    """A text file in UTF-8, with or without a byte order mark or gzip around it."""
    return io.TextIOWrapper(open_bytes(path), encoding="utf-8-sig", newline="")


def how_to_drop(names: Sequence[str], most: int = 5) -> str:
    """How a caller leaves out columns, in Python and on the command line."""
    few = [str(name) for name in names[:most]]
    typed = " ".join(f"--drop '{name}'" for name in few)
    return f"drop={few if len(few) > 1 else repr(few[0])}, on the command line {typed}"


def no_id_column(name: str, path: Path) -> DataError:
    """The error for a column of names, groups, weights or sizes of the rows that is not there."""
    return DataError(
        f"Expected a column '{name}' in {path}; there is none. Give its name as the file has it."
    )


def not_utf8(path: Path) -> DataError:
    """The error for a text file that is not in UTF-8, with the place where that shows."""
    with open_bytes(path) as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                return DataError(
                    f"Expected {path} to be text in UTF-8; got byte {line[error.start]:#04x} in line "
                    f"{number}. Save it again as UTF-8."
                )
    return DataError(f"Expected {path} to be text in UTF-8. Save it again as UTF-8.")


def to_numbers(frame: pd.DataFrame) -> tuple[np.ndarray, dict[int, Cell]]:
    """The values of a data frame in float64, and of each column with something else its first such cell.

    Cells without a value, and those with something else, are NaN. Decimals are numbers; dates and categories
    are not.
    """
    X = np.full(frame.shape, np.nan)
    others: dict[int, Cell] = {}
    for j in range(frame.shape[1]):
        column = frame.iloc[:, j]
        if pd.api.types.is_numeric_dtype(column) and column.dtype.kind != "c":
            X[:, j] = column.to_numpy(dtype=np.float64, na_value=np.nan)
            continue
        values = [_to_number(value) for value in column.astype(object)]
        wrong = next((i for i, value in enumerate(values) if value is None), None)
        if isinstance(column.dtype, pd.CategoricalDtype) and len(column):
            wrong = 0
        if wrong is not None:
            others[j] = Cell(wrong, column.iloc[wrong])
        X[:, j] = [np.nan if value is None else value for value in values]
    return X, others


def _to_number(value: object) -> float | None:
    if isinstance(value, bool | int | float | np.number | np.bool_ | Decimal) and not isinstance(
        value, np.complexfloating | np.timedelta64
    ):
        return float(value)
    missing = value is None or value is pd.NA or value is pd.NaT
    return float("nan") if missing else None


def open_bytes(path: Path) -> BinaryIO:
    """A file of bytes, with or without gzip around it."""
    return cast(BinaryIO, gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb"))


def _is_text(column: pd.Series) -> bool:
    return not pd.api.types.is_numeric_dtype(column) and any(isinstance(value, str) for value in column)
