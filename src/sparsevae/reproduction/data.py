"""The data of a run: sources are loaded once, where the command runs; each run cuts or draws its own.

A loaded source is small (a sparse table, or topics), so that it can travel to workers that have no files.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold

from sparsevae.aliases import Parameters
from sparsevae.datasets import (
    DataNotFoundError,
    Dataset,
    Topics,
    data_directory,
    fit_topics,
    load_movielens,
    load_peerread,
    load_zeisel,
    make_semisynthetic,
    make_sparse_factors,
)
from sparsevae.exceptions import ParameterError

if TYPE_CHECKING:
    from sparsevae.reproduction.spec import Run

__all__ = ["SOURCES", "SPLITTINGS", "LoadedSource", "load_source", "make_data"]

SPLITTINGS = ("folds", "stratified", "half", "given", "none")

_RELEASES = ("25m", "20m", "1m", "latest-small")


class LoadedSource(NamedTuple):
    """What runs draw their data from; generators need only a seed, so theirs is empty."""

    table: Dataset | None = None
    topics: Topics | None = None
    description: str = ""


def load_source(name: str, parameters: Parameters, directory: Path | None = None) -> LoadedSource:
    """Read a source from the data directory.

    Parameters
    ----------
    name : {"synthetic", "peerread", "movielens", "zeisel", "semisynthetic"}
    parameters : dict
        Of the loader; ``n_samples`` takes so many rows at random.
    directory : path, optional
        In place of the data directory of `sparsevae.datasets`.
    """
    if name not in SOURCES:
        raise ParameterError(f"Expected a source among {', '.join(SOURCES)}; got {name!r}.")
    return SOURCES[name](directory, **parameters)


def make_data(run: Run, source: LoadedSource) -> tuple[Dataset, Dataset]:
    """Rows to fit and rows to measure on.

    Parameters
    ----------
    run : Run
    source : LoadedSource
    """
    if run.source == "synthetic":
        data = make_sparse_factors(random_state=run.seed, **run.data_parameters)
    elif run.source == "semisynthetic":
        data = make_semisynthetic(
            source.table, topics=source.topics, random_state=run.seed, **run.data_parameters
        )
    else:
        assert source.table is not None
        data = source.table
    if run.splitting == "given":
        assert data.test is not None
        return data, data.test
    if run.splitting == "none":
        return data, data
    train, test = _split(data, run)
    return data.take(train), data.take(test)


def _split(data: Dataset, run: Run) -> tuple[np.ndarray, np.ndarray]:
    rows = np.arange(data.n_samples)
    if run.splitting == "half":  # what comes is in random order already
        return rows[: len(rows) // 2], rows[len(rows) // 2 :]
    if run.splitting == "folds":
        folds = KFold(run.n_splits, shuffle=True, random_state=run.seed).split(rows)
    elif run.splitting == "stratified":
        folds = StratifiedKFold(run.n_splits, shuffle=True, random_state=run.seed).split(rows, data.target)
    else:
        raise ParameterError(
            f"Expected splitting to be one of {', '.join(SPLITTINGS)}; got {run.splitting!r}."
        )
    return list(folds)[run.split]


def _table(load: Callable[..., Dataset]) -> Callable[..., LoadedSource]:
    def read(directory: Path | None, n_samples: int | None = None, **parameters: Any) -> LoadedSource:
        data = _some_rows(load(directory=directory, **parameters), n_samples)
        return LoadedSource(table=data, description=data.description)

    return read


def _movielens(directory: Path | None, n_samples: int | None = 100_000, **parameters: Any) -> LoadedSource:
    folder = data_directory() if directory is None else directory
    here = [release for release in _RELEASES if _has_release(folder, release)]
    if not here:
        raise DataNotFoundError(
            f"Expected a release of MovieLens in {folder}, as the folder or archive ml-25m, ml-20m, ml-1m or "
            "ml-latest-small; got none. Fetch one: sparsevae data fetch movielens-25m."
        )
    data = load_movielens(directory=folder, release=here[0], n_samples=n_samples, **parameters)
    return LoadedSource(table=data, description=f"Release {here[0]}. {data.description}")


def _has_release(folder: Path, release: str) -> bool:
    return any((folder / f"ml-{release}{ending}").exists() for ending in ("", ".zip"))


def _semisynthetic(
    directory: Path | None, n_samples: int | None = None, n_factors: int = 20, **parameters: Any
) -> LoadedSource:
    data = _some_rows(load_peerread(directory=directory, **parameters), n_samples)
    topics = fit_topics(data, n_factors=n_factors, random_state=0)
    description = f"LDA with {n_factors} topics of: {data.description}"
    return LoadedSource(table=data, topics=topics, description=description)


def _some_rows(data: Dataset, n_samples: int | None) -> Dataset:
    if n_samples is None or n_samples >= data.n_samples:
        return data
    rows = np.random.default_rng(0).choice(data.n_samples, n_samples, replace=False)
    return data.take(np.sort(rows))


SOURCES: dict[str, Callable[..., LoadedSource]] = {
    "synthetic": lambda directory: LoadedSource(),
    "peerread": _table(load_peerread),
    "movielens": _movielens,
    "zeisel": _table(load_zeisel),
    "semisynthetic": _semisynthetic,
}
"""What a description may name as the source of a data set: from the data directory and parameters."""
