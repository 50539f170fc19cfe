"""Documents as a table of word counts: a column of a table, or a folder with a file per document."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer

from sparsevae.aliases import Parameters
from sparsevae.exceptions import DataError, ParameterError
from sparsevae.io.formats import ID_NAMES, RawTable, no_id_column, not_utf8, open_text

__all__ = ["TextOptions", "as_text_options", "fingerprint_folder", "read_documents"]

_MANY = 200  # documents from which a word must be in five of them
_WORDS = 100, 2000  # at least and at most, where the number of words is not given
_FOLDER_ENDINGS = (".txt", ".text", ".md")


@dataclass(frozen=True)
class TextOptions:
    """How documents become counts; see `sklearn.feature_extraction.text.CountVectorizer`.

    Attributes
    ----------
    column : str, optional
        Column with the documents; None for a folder of files.
    min_documents : int, optional
        Documents that a word must be in; by default 5, or 2 where there are fewer than 200 documents.
    max_fraction : float
        Fraction of the documents above which a word is too common to say anything.
    max_words : int, optional
        The most frequent words that are kept; by default one for every two documents, at least 100 and at
        most 2,000. Of more words than documents few factors return.
    stop_words : str or sequence of str, optional
        "english" for scikit-learn's list, words of your own, or None for all words.
    vocabulary : sequence of str, optional
        The words to count, in this order, in place of a choice.
    """

    column: str | None = None
    min_documents: int | None = None
    max_fraction: float = 0.5
    max_words: int | None = None
    stop_words: str | Sequence[str] | None = "english"
    vocabulary: Sequence[str] | None = None

    def __post_init__(self) -> None:
        if self.stop_words == "none":
            object.__setattr__(self, "stop_words", None)
        whole = all(
            isinstance(n, int) and n > 0 for n in (self.max_words, self.min_documents) if n is not None
        )
        if not whole or not isinstance(self.max_fraction, int | float) or not 0 < self.max_fraction <= 1:
            raise ParameterError(
                "Expected min_documents and max_words of at least 1 and max_fraction above 0 and up to 1; "
                "got "
                f"{self.min_documents!r}, {self.max_words!r} and {self.max_fraction!r}."
            )
        if isinstance(self.stop_words, str) and self.stop_words != "english":
            raise ParameterError(
                f"Expected stop_words to be 'english', 'none' or a list of words; got {self.stop_words!r}. "
                "scikit-learn has a list for English only: pass the words."
            )


def as_text_options(text: str | Parameters | TextOptions | None) -> TextOptions | None:
    """Options from the name of a column, a mapping, or options."""
    if text is None or isinstance(text, TextOptions):
        return text
    if isinstance(text, str):
        return TextOptions(text)
    known = {field.name for field in fields(TextOptions)}
    if not isinstance(text, Mapping) or not set(text) <= known:
        raise ParameterError(
            f"Expected text to be the name of a column, or options among {', '.join(sorted(known))}; got "
            f"{text!r}."
        )
    return TextOptions(**text)


def read_documents(path: Path, options: TextOptions, id_column: str | None) -> RawTable:
    """Count the words of documents.

    Parameters
    ----------
    path : Path
        A folder with a text file per document; or a CSV, TSV, JSON Lines or Parquet file with a column of
        them.
    options : TextOptions
    id_column : str, optional
        Column with the names of the documents; "none" for no such column.

    Returns
    -------
    RawTable
        Sparse counts, with words as features.
    """
    documents, names, id_name = _files(path) if path.is_dir() else _column(path, options, id_column)
    counts, words, notes = _count(documents, options, path)
    return RawTable(counts, words, names, id_name, notes)


def fingerprint_folder(path: Path) -> tuple[int, str]:
    """Bytes and checksum of the documents in a folder, by name and content."""
    digest, size = hashlib.sha256(), 0
    for file in _document_files(path):
        content = file.read_bytes()
        size += len(content)
        digest.update(file.name.encode() + b"\0" + hashlib.sha256(content).digest())
    return size, digest.hexdigest()


def _count(
    documents: list[str], options: TextOptions, path: Path
) -> tuple[sparse.csr_array, np.ndarray, tuple[str, ...]]:
    least = options.min_documents or (5 if len(documents) >= _MANY else 2)
    given = options.vocabulary is not None
    stop = options.stop_words if options.stop_words in (None, "english") else list(options.stop_words or ())
    low, high = _WORDS
    most = options.max_words or min(max(len(documents) // 2, low), high)
    vectoriser = CountVectorizer(
        stop_words=None if given else stop,
        min_df=1 if given else least,
        max_df=1.0 if given else float(options.max_fraction),
        max_features=None if given else most,
        vocabulary=None if options.vocabulary is None else [str(word) for word in options.vocabulary],
        dtype=np.float64,
    )
    try:
        counts = vectoriser.fit_transform(documents)
    except ValueError as error:
        raise DataError(
            f"Expected words that at least {least} and at most {options.max_fraction:.0%} of the "
            f"{len(documents)} documents in {path} have; got none ({error}). Choose other limits: "
            "min_documents and max_fraction, "
            "on the command line in the section [table.text] of --config."
        ) from error
    words = vectoriser.get_feature_names_out()
    empty = int((np.asarray(counts.sum(axis=1)).ravel() == 0).sum())
    if given:
        notes = [f"Counted the {len(words)} words of the fit in {len(documents)} documents."]
    else:
        without = {None: "", "english": ", without English stop words"}.get(
            stop if isinstance(stop, str | None) else "", ", without the words given"
        )
        notes = [
            f"Counted {len(words)} words in {len(documents)} documents: those in at least {least} and at "
            "most "
            f"{options.max_fraction:.0%} of them{without}, the {most} most frequent at most."
        ]
        if len(words) > len(documents):
            notes.append(
                "There are more words than documents: fewer (--words, or max_words of TextOptions) may show "
                "more factors."
            )
    if empty:
        notes.append(f"{empty} document{'s have' if empty > 1 else ' has'} none of these words.")
    return counts, words, tuple(notes)


def _files(path: Path) -> tuple[list[str], np.ndarray | None, str | None]:
    files = _document_files(path)
    if not files:
        raise DataError(
            f"Expected text files ({', '.join(_FOLDER_ENDINGS)}) in {path}, one per document; got none. Name "
            "the folder that holds them, or a table."
        )
    texts = []
    for file in files:
        try:
            texts.append(file.read_text("utf-8-sig"))
        except UnicodeDecodeError as error:
            raise not_utf8(file) from error
    return texts, np.array([file.name for file in files]), "document"


def _document_files(path: Path) -> list[Path]:
    return sorted(file for file in path.iterdir() if file.suffix.lower() in _FOLDER_ENDINGS)


def _column(
    path: Path, options: TextOptions, id_column: str | None
) -> tuple[list[str], np.ndarray | None, str | None]:
    frame = _frame(path)
    columns = [str(name) for name in frame.columns]
    if options.column not in columns:
        shown = ", ".join(f"'{name}'" for name in columns[:10])
        raise DataError(
            f"Expected a column '{options.column}' of texts in {path}; there is {shown}. Name one of them "
            "(text=..., on the command line --text COLUMN)."
        )
    texts = frame.iloc[:, columns.index(str(options.column))]
    if not texts.notna().any():
        raise DataError(f"Expected texts in column '{options.column}' of {path}; every cell is empty.")
    chosen = None if id_column == "none" else id_column
    if chosen is not None and chosen not in columns:
        raise no_id_column(chosen, path)
    if id_column is None:
        chosen = next((name for name in columns if _names_documents(frame, columns, name, options)), None)
    names = None if chosen is None else frame.iloc[:, columns.index(chosen)].astype(str).to_numpy()
    return texts.fillna("").astype(str).tolist(), names, chosen


def _names_documents(frame: pd.DataFrame, columns: list[str], name: str, options: TextOptions) -> bool:
    values = frame.iloc[:, columns.index(name)]
    return name != options.column and name.lower() in ID_NAMES | {"title", "file"} and values.is_unique


def _frame(path: Path) -> pd.DataFrame:
    ending = path.with_suffix("").suffix.lower() if path.suffix.lower() == ".gz" else path.suffix.lower()
    try:
        if ending in (".csv", ".tsv", ".txt"):
            return pd.read_csv(path, sep=_separator(path, ending), dtype=str, encoding="utf-8-sig")
        if ending in (".jsonl", ".ndjson"):
            return pd.read_json(path, lines=True, dtype=False, convert_dates=False)
        if ending == ".parquet":
            return pd.read_parquet(path, engine="pyarrow")
    except UnicodeDecodeError as error:
        raise not_utf8(path) from error
    except (ValueError, OSError, ImportError) as error:
        raise DataError(f"Expected a table with a column of texts in {path}; {error}.") from error
    raise DataError(
        f"Expected texts in a CSV, TSV, JSON Lines (.jsonl) or Parquet file, or a folder of text files; got "
        f"{path.name}. Save the table as CSV."
    )


def _separator(path: Path, ending: str) -> str:
    with open_text(path) as file:
        line = file.readline()
    expected = "\t" if ending == ".tsv" else ","
    return max([expected, ",", "\t", ";"], key=line.count)
