"""Word counts of the PeerRead abstracts, from the official folder, its archive or one file of JSON lines."""

from __future__ import annotations

import gzip
import html
import json
import os
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, CountVectorizer

from sparsevae.datasets.base import Dataset, check_count
from sparsevae.datasets.sources import get_source, locate
from sparsevae.exceptions import DataError

__all__ = ["load_peerread"]


class _Paper(NamedTuple):
    venue: str
    abstract: str


def load_peerread(
    path: str | os.PathLike[str] | None = None,
    *,
    directory: str | os.PathLike[str] | None = None,
    n_features: int = 500,
    min_document_share: float = 0.001,
    max_document_share: float = 0.9,
    venues: str | Sequence[str] = "arxiv",
    lemmatise: bool | None = None,
) -> Dataset:
    """Count the most used words in the abstracts of PeerRead (Kang et al. 2018).

    Parameters
    ----------
    path : path, optional
        The official repository's folder (or its ``data`` folder), its zip archive, or a file of JSON lines
        (``.jsonl``, ``.jsonl.gz``) with the fields venue and abstract. By default the data directory is
        searched.
    directory : path, optional
        Where to search, in place of `data_directory`.
    n_features : int, default=500
        Number of words, the most used ones.
    min_document_share, max_document_share : float, default=0.001 and 0.9
        Words in fewer or more than these shares of the abstracts are left out.
    venues : str or sequence of str, default="arxiv"
        ``"arxiv"`` (the paper's 11,000 abstracts), ``"all"``, or names of venues such as ``"acl_2017"``.
    lemmatise : bool, optional
        True: WordNet's lemmas, and an error where nltk or its resource is missing; False: plain tokens;
        None: lemmas where they can be had. The description says which.

    Returns
    -------
    Dataset
        ``X`` is a CSR array of counts, ``target`` the venue.

    Notes
    -----
    Appendix "Dataset details and preprocessing". Tokens are words of two or more letters in lower case; words
    with digits, inner hyphens or a leading backslash are left out, as in the released code. That code uses
    nltk's stop words and a document share of at least 0.0007; here scikit-learn's English list and the
    paper's 0.1 %.
    """
    check_count("n_features", n_features, minimum=1)
    source = get_source("peerread")
    found = locate(
        path,
        ("peerread_abstracts.jsonl.gz", "PeerRead", "PeerRead-master", source.filename),
        source,
        directory,
    )
    papers = list(_read_papers(found))
    wanted = [paper for paper in papers if _is_wanted(paper.venue, venues)]
    if not wanted:
        raise DataError(
            f"Expected papers of venues {venues!r} in {found}; got {len(papers)} papers of "
            f"{sorted({paper.venue for paper in papers})}."
        )
    filled = [paper for paper in wanted if paper.abstract]
    lemma = _lemmatiser(lemmatise)
    vectoriser = CountVectorizer(
        analyzer=lambda text: _tokens(text, lemma),
        min_df=min_document_share,
        max_df=max_document_share,
        max_features=n_features,
        dtype=np.int32,
    )
    try:
        counts = vectoriser.fit_transform([paper.abstract for paper in filled])
    except ValueError as error:
        raise DataError(f"Expected abstracts with words to count in {found}; got {error}.") from error
    # A document of one word says nothing of how words go together; the released code drops it too.
    long_enough = np.asarray(counts.sum(axis=1)).ravel() > 1
    venue = np.array([paper.venue for paper in filled])[long_enough]
    X = sparse.csr_array(counts[long_enough])
    X.sort_indices()
    return Dataset(
        X=X,
        feature_names=vectoriser.get_feature_names_out(),
        target=venue,
        description=(
            f"PeerRead (Kang et al. 2018, {source.url}); terms: {source.terms}. Word counts of {X.shape[0]} "
            f"abstracts and {X.shape[1]} words. Steps: {len(wanted)} of {len(papers)} papers by venue "
            f"({venues!r}); {len(wanted) - len(filled)} empty abstracts dropped; HTML entities decoded; "
            "words of two or more letters in lower case, without digits, inner hyphens or a leading "
            f"backslash; {'lemmas by WordNet' if lemma else 'plain tokens, not lemmatised'}; scikit-learn's "
            f"English stop words removed; words in {min_document_share:.2%} to {max_document_share:.0%} of "
            f"the abstracts; the {n_features} most used; {int((~long_enough).sum())} abstracts with fewer "
            "than two of these words dropped."
        ),
    )


def _read_papers(path: Path) -> Iterator[_Paper]:
    if path.is_dir():
        files = sorted(path.glob("**/reviews/*.json"))
        if not files:
            raise DataError(f"Expected folders <venue>/<split>/reviews/*.json below {path}; got none.")
        for file in files:
            yield _paper(file.read_bytes(), str(file), venue=file.parts[-4])
    elif zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            members = sorted(name for name in archive.namelist() if re.search(r"/reviews/[^/]+\.json$", name))
            if not members:
                raise DataError(f"Expected <venue>/<split>/reviews/*.json inside {path}; got none.")
            for member in members:
                try:
                    content = archive.read(member)
                except (zipfile.BadZipFile, zlib.error, EOFError) as error:
                    raise DataError(
                        f"Expected a whole archive; member {member} of {path} is damaged."
                    ) from error
                yield _paper(content, f"{path}:{member}", venue=PurePosixPath(member).parts[-4])
    elif path.name.endswith((".jsonl", ".jsonl.gz")):
        number = 0
        try:
            with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as lines:
                for number, line in enumerate(lines, start=1):
                    yield _paper(line, f"{path}, line {number}", venue=None)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise DataError(f"Expected a whole gzip file; {path} breaks off after line {number}.") from error
    else:
        raise DataError(f"Expected a folder, a zip archive or a .jsonl or .jsonl.gz file; got {path}.")


def _paper(content: bytes, where: str, *, venue: str | None) -> _Paper:
    try:
        record = json.loads(content)
        abstract = record.get("abstract") or ""
        return _Paper(venue or record["venue"], html.unescape(abstract).strip())
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise DataError(
            f"Expected a JSON object with venue and abstract in {where}; got {content[:40]!r}. The file is "
            "damaged or of another kind."
        ) from error


def _is_wanted(venue: str, venues: str | Sequence[str]) -> bool:
    if isinstance(venues, str):
        return venues == "all" or venue == venues or (venues == "arxiv" and venue.startswith("arxiv"))
    return venue in venues


_WORD = re.compile(r"\\?[^\W_]+(?:[-'’][^\W_]+)*")


def _tokens(text: str, lemma: Callable[[str], str] | None) -> list[str]:
    words = (word for word in _WORD.findall(text.lower()) if len(word) > 1 and word.isalpha())
    if lemma is not None:
        words = (lemma(word) for word in words)
    return [word for word in words if word not in ENGLISH_STOP_WORDS]


def _lemmatiser(wanted: bool | None) -> Callable[[str], str] | None:
    if wanted is False:
        return None
    try:
        from nltk.stem import WordNetLemmatizer

        lemmatize = WordNetLemmatizer().lemmatize
        lemmatize("words")  # nltk looks for its resource at the first use
    except (ImportError, LookupError) as error:
        if wanted:
            raise DataError(
                "Expected nltk and its WordNet resource for lemmatise=True; got neither or one of them. "
                "Install nltk, run nltk.download('wordnet'), or pass lemmatise=False."
            ) from error
        return None
    return lru_cache(maxsize=None)(lemmatize)
