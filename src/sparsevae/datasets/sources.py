"""Where the public data sets come from and where local copies lie."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sparsevae.exceptions import DataError, ParameterError, SparseVAEError

__all__ = [
    "SOURCES",
    "DataNotFoundError",
    "DownloadError",
    "Source",
    "data_directory",
    "get_source",
    "locate",
]


class DataNotFoundError(DataError, FileNotFoundError):
    """A data file is not where it was looked for: the message says where to put it."""


class DownloadError(SparseVAEError, ConnectionError):
    """A download could not be begun or finished: the message says what to do instead."""


@dataclass(frozen=True)
class Source:
    """An official file.

    Parameters
    ----------
    name : str
        The name for `fetch`.
    title : str
    url : str
        The publisher's address.
    filename : str
        Name of the copy in the data directory.
    size : int or None
        Bytes, where the file never changes.
    checksum : str or None
        ``"sha256:..."`` or ``"md5:..."``, where it is known.
    terms : str
        What the publisher allows.
    """

    name: str
    title: str
    url: str
    filename: str
    size: int | None
    checksum: str | None
    terms: str


_GROUPLENS = "https://files.grouplens.org/datasets/movielens/"
_RESEARCH_ONLY = "GroupLens: research use, not to be passed on; cite Harper & Konstan (2015)"

SOURCES: dict[str, Source] = {
    source.name: source
    for source in (
        Source(
            "movielens-25m",
            "MovieLens 25M: 25,000,095 ratings of 59,047 movies by 162,541 users",
            _GROUPLENS + "ml-25m.zip",
            "ml-25m.zip",
            261_978_986,
            "sha256:8b21cfb7eb1706b4ec0aac894368d90acf26ebdfb6aced3ebd4ad5bd1eb9c6aa",
            _RESEARCH_ONLY,
        ),
        Source(
            "movielens-20m",
            "MovieLens 20M: 20,000,263 ratings of 26,744 movies by 138,493 users",
            _GROUPLENS + "ml-20m.zip",
            "ml-20m.zip",
            198_702_078,
            "sha256:96f243c338a8665f6bcc89c53edf6ee39162a846940de6b7c8c48aeada765ff3",
            _RESEARCH_ONLY,
        ),
        Source(
            "movielens-1m",
            "MovieLens 1M: 1,000,209 ratings of 3,706 movies by 6,040 users",
            _GROUPLENS + "ml-1m.zip",
            "ml-1m.zip",
            5_917_549,
            "sha256:a6898adb50b9ca05aa231689da44c217cb524e7ebd39d264c56e2832f2c54e20",
            _RESEARCH_ONLY,
        ),
        Source(
            "movielens-latest-small",
            "MovieLens latest-small of 2018: 100,836 ratings of 9,724 movies by 610 users",
            _GROUPLENS + "ml-latest-small.zip",
            "ml-latest-small.zip",
            978_202,
            "sha256:696d65a3dfceac7c45750ad32df2c259311949efec81f0f144fdfb91ebc9e436",
            "GroupLens: non-commercial use, may be passed on on the same terms; cite Harper & Konstan (2015)",
        ),
        Source(
            "peerread",
            "PeerRead: abstracts of 12,364 papers, 11,778 of them from arXiv (Kang et al. 2018)",
            "https://github.com/allenai/PeerRead/archive/refs/heads/master.zip",
            "PeerRead-master.zip",
            None,  # an archive of a living repository: GitHub makes it anew at each request
            None,
            "no licence on the arXiv part: research use; cite Kang et al. (2018)",
        ),
        Source(
            "zeisel",
            "Zeisel: RNA molecule counts of 19,972 genes in 3,005 cells of mouse cortex and hippocampus",
            "https://storage.googleapis.com/linnarsson-lab-www-blobs/blobs/cortex/expression_mRNA_17-Aug-2014.txt",
            "expression_mRNA_17-Aug-2014.txt",
            None,
            "md5:6bb4c2a9ade87b16909d39004021849e",
            "GEO GSE60361: research use; cite Zeisel et al. (2015)",
        ),
    )
}


def get_source(name: str) -> Source:
    """Return the official source of that name, or list the names there are."""
    if name not in SOURCES:
        raise ParameterError(f"Expected name to be one of {', '.join(map(repr, SOURCES))}; got {name!r}.")
    return SOURCES[name]


def data_directory() -> Path:
    """Folder of downloaded data: ``SPARSEVAE_DATA``, or ``sparsevae`` in the user's cache (XDG).

    Returns
    -------
    Path
        Not created by this function.
    """
    if chosen := os.environ.get("SPARSEVAE_DATA"):
        return Path(chosen).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "sparsevae"


def locate(
    path: str | os.PathLike[str] | None,
    names: Sequence[str],
    source: Source,
    directory: str | os.PathLike[str] | None = None,
) -> Path:
    """Return the given path, or the first of ``names`` that exists in the data directory.

    Parameters
    ----------
    path : path or None
        What the caller of a loader passed.
    names : sequence of str
        Files or folders to look for where no path is given, the preferred one first.
    source : Source
        For the message.
    directory : path, optional
        In place of `data_directory`.
    """
    if path is not None:
        given = Path(path).expanduser()
        if not given.exists():
            raise DataNotFoundError(
                f"Expected {source.title.split(':')[0]} at {given}; there is no such file or folder."
            )
        return given
    folder = data_directory() if directory is None else Path(directory).expanduser()
    for name in names:
        if (folder / name).exists():
            return folder / name
    raise DataNotFoundError(
        f"Expected {source.title.split(':')[0]} in {folder}; put {' or '.join(names)} there (from "
        f"{source.url}), get it by `sparsevae data fetch {source.name}`, or pass path= in Python."
    )
