"""Binary user x movie tables from any official MovieLens release, sparse from the first step to the last."""

from __future__ import annotations

import io
import os
import re
import zipfile
import zlib
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import sparse

from sparsevae.datasets.base import Dataset, as_generator, check_count
from sparsevae.datasets.sources import get_source, locate
from sparsevae.exceptions import DataError, ParameterError

__all__ = ["load_movielens"]

_RELEASES = {"25m": 25_000_095, "20m": 20_000_263, "1m": 1_000_209, "latest-small": 100_836}
_CHUNK = 2_000_000


class _Ratings(NamedTuple):
    user: np.ndarray
    movie: np.ndarray
    value: np.ndarray


def load_movielens(
    path: str | os.PathLike[str] | None = None,
    *,
    directory: str | os.PathLike[str] | None = None,
    n_features: int = 300,
    n_samples: int | None = 100_000,
    threshold: float = 4.0,
    min_ratings: int = 20,
    count: str = "positive",
    release: str = "25m",
    random_state: int | np.random.Generator | np.random.RandomState | None = 0,
) -> Dataset:
    """Who liked which movie: ones where a user rated a movie at or above a threshold.

    Parameters
    ----------
    path : path, optional
        An official release: its zip archive, its folder, or its ratings file (``ratings.csv``,
        ``ratings.dat``); titles are read from ``movies.csv`` or ``movies.dat`` beside it. By default the data
        directory is searched.
    directory : path, optional
        Where to search, in place of `data_directory`.
    n_features : int, default=300
        The most rated movies, in falling order.
    n_samples : int or None, default=100_000
        Users drawn without replacement; all of them where there are fewer, or None.
    threshold : float, default=4.0
        Ratings of at least this are ones.
    min_ratings : int, default=20
        Users with more ratings than this are kept.
    count : {"positive", "all"}, default="positive"
        Which ratings count for ``min_ratings``: those at or above the threshold, or any.
    release : {"25m", "20m", "1m", "latest-small"}, default="25m"
        Which release to look for where no path is given.
    random_state : int, Generator, RandomState or None, default=0

    Returns
    -------
    Dataset
        ``X`` is a CSR array of ones; rows are users in the order of their numbers.

    Notes
    -----
    Appendix "Dataset details and preprocessing": ratings of four or higher are ones, users with more than 20
    ratings, the 300 most rated movies, 100,000 users. The released code keeps users with *at least* 20
    positive ratings: pass ``min_ratings=19`` to repeat it. Users who liked none of the chosen movies are
    dropped.
    """
    check_count("n_features", n_features, minimum=1)
    check_count("min_ratings", min_ratings, minimum=0)
    if n_samples is not None:
        check_count("n_samples", n_samples, minimum=1)
    if count not in ("positive", "all"):
        raise ParameterError(f"Expected count to be 'positive' or 'all'; got {count!r}.")
    if release not in _RELEASES:
        raise ParameterError(
            f"Expected release to be one of {', '.join(map(repr, _RELEASES))}; got {release!r}."
        )
    source = get_source(f"movielens-{release}")
    found = locate(path, (f"ml-{release}", source.filename), source, directory)
    with _open_member(found, "ratings") as (file, name):
        ratings, n_ratings = _read_ratings(
            file, name, keep_from=threshold if count == "positive" else -np.inf
        )
    if path is None and n_ratings != _RELEASES[release]:
        raise DataError(
            f"Expected the {_RELEASES[release]} ratings of MovieLens {release} in {found}; got {n_ratings}. "
            f"The copy is incomplete or another release: fetch it again, or pass path= to load it as it is."
        )
    rows, users = pd.factorize(ratings.user, sort=True)
    enough = np.bincount(rows, minlength=len(users)) > min_ratings
    chosen = enough[rows] & (ratings.value >= threshold)
    if not chosen.any():
        raise DataError(
            f"Expected users with more than {min_ratings} ratings in {found}; got none among {len(users)} "
            "users. Pass a smaller min_ratings."
        )
    columns, movies = pd.factorize(ratings.movie[chosen], sort=True)
    popularity = np.bincount(columns)
    top = np.argsort(-popularity, kind="stable")[:n_features]
    position = np.full(len(movies), -1)
    position[top] = np.arange(len(top))
    row, column = rows[chosen], position[columns]
    row, column = row[column >= 0], column[column >= 0]
    row, with_likes = pd.factorize(row, sort=True)
    n_kept = len(with_likes)
    X = sparse.csr_array((np.ones(len(row), dtype=np.int32), (row, column)), shape=(n_kept, len(top)))
    X.data[:] = 1  # the same movie rated twice is still one
    if n_samples is not None and n_samples < n_kept:
        drawn = as_generator(random_state).choice(n_kept, size=n_samples, replace=False)
        X = X[np.sort(drawn)]
    titles = _read_titles(found)
    names = np.array([titles.get(int(movie), f"movie {movie}") for movie in movies[top]])
    return Dataset(
        X=X,
        feature_names=names,
        description=(
            f"MovieLens (Harper & Konstan 2015, GroupLens), {n_ratings} ratings ({_release_of(n_ratings)}); "
            f"terms: {source.terms if path is None else 'see the README of the release'}. {X.shape[0]} users "
            f"x {X.shape[1]} movies, {X.nnz} ones. Steps: ratings of {threshold} and above are ones; "
            f"{enough.sum()} users with more than {min_ratings} "
            f"{'positive ratings' if count == 'positive' else 'ratings'}; the {X.shape[1]} movies with most "
            f"ones among them, in falling order; {n_kept} users with at least one of these; {X.shape[0]} of "
            f"them {'drawn at random' if X.shape[0] < n_kept else 'kept, that is all'}."
        ),
    )


def _read_ratings(file: IO[bytes], name: str, *, keep_from: float) -> tuple[_Ratings, int]:
    """Read the ratings of at least ``keep_from``, in chunks, so that the others never pile up; count all."""
    columns = ["userId", "movieId", "rating", "timestamp"]
    # 1::1193::5::978300760 read with single colons has empty fields in between.
    layout: dict[str, Any] = {"usecols": columns}
    if name.endswith(".dat"):
        layout = {
            "usecols": [0, 2, 4, 6],
            "sep": ":",
            "names": [columns[0], "", columns[1], " ", columns[2], "  ", columns[3]],
        }
    types: dict[Hashable, str] = {
        "userId": "int32",
        "movieId": "int32",
        "rating": "float32",
        "timestamp": "int64",
    }
    parts: list[pd.DataFrame] = []
    n_ratings = 0
    try:
        for chunk in pd.read_csv(file, dtype=types, chunksize=_CHUNK, **layout):
            if chunk["rating"].isna().any():
                raise ValueError("a line without a rating")
            n_ratings += len(chunk)
            parts.append(chunk.loc[chunk["rating"] >= keep_from, columns[:3]])
    except (ValueError, zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise DataError(
            f"Expected userId, movieId, rating, timestamp in every line of {name}; got {error} after "
            f"{n_ratings} or more ratings. The file is truncated, damaged or of another kind."
        ) from error
    if not n_ratings:
        raise DataError(f"Expected ratings in {name}; got none.")
    table = pd.concat(parts, ignore_index=True)
    return _Ratings(*(table[column].to_numpy() for column in columns[:3])), n_ratings


@contextmanager
def _open_member(path: Path, stem: str) -> Iterator[tuple[IO[bytes], str]]:
    """Open ``ratings`` or ``movies`` (``.csv``, ``.dat``) in a folder, an archive or beside the ratings."""
    names: tuple[str, ...] = (f"{stem}.csv", f"{stem}.dat")
    if path.is_file() and path.suffix == ".zip":
        try:
            with zipfile.ZipFile(path) as archive:
                members = [member for member in archive.namelist() if member.rpartition("/")[2] in names]
                if not members:
                    raise DataError(f"Expected {' or '.join(names)} inside {path}; got neither.")
                with archive.open(members[0]) as file:
                    yield file, f"{path}:{members[0]}"
        except zipfile.BadZipFile as error:
            raise DataError(
                f"Expected {path} to be a whole zip archive; got {error}. Fetch it again."
            ) from error
        return
    if path.is_file() and stem == "ratings":
        names = (path.name,)
    folder = path.parent if path.is_file() else path
    found = next((folder / name for name in names if (folder / name).is_file()), None)
    if found is None:
        raise DataError(f"Expected {' or '.join(names)} in {folder}; got neither.")
    if stem == "ratings":
        _check_last_line(found)
    with found.open("rb") as file:
        yield file, str(found)


def _check_last_line(path: Path) -> None:
    """Refuse a file that was cut off inside its last time stamp, which would still be a number."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 200))
        lines = file.read().splitlines(keepends=True)
    if len(lines) > 2 and not lines[-1].endswith(b"\n"):
        last, before = (re.split(rb",|::", line.strip())[-1] for line in (lines[-1], lines[-2]))
        if len(last) < len(before):
            raise DataError(f"Expected whole lines in {path}; it ends with {lines[-1]!r}: it is truncated.")


def _read_titles(path: Path) -> dict[int, str]:
    with _open_member(path, "movies") as (file, name):
        try:
            if name.endswith(".dat"):
                lines = io.TextIOWrapper(file, encoding="latin-1")
                fields = (line.rstrip("\n").split("::") for line in lines if line.strip())
                return {int(movie): title for movie, title, _ in fields}
            types: dict[Hashable, str] = {"movieId": "int32", "title": "str"}
            table = pd.read_csv(file, usecols=list(types), dtype=types)
        except ValueError as error:
            raise DataError(
                f"Expected movieId, title, genres in every line of {name}; got {error}."
            ) from error
    return dict(zip(table["movieId"].tolist(), table["title"].tolist(), strict=True))


def _release_of(n_ratings: int) -> str:
    for release, expected in _RELEASES.items():
        if n_ratings == expected:
            return f"as in the official release {release}"
    return "not the number of any official release"
