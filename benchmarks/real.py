"""The paper's data sets with the settings that its appendix states for each."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from sparsevae.datasets import (
    Dataset,
    data_directory,
    load_movielens,
    load_peerread,
    load_zeisel,
    make_semisynthetic,
    make_sparse_factors,
)

__all__ = ["PROBLEMS", "Folders", "Problem", "add_folder_arguments"]


class Folders(NamedTuple):
    """Where the real data lie."""

    data: Path
    movielens: Path | None

    @classmethod
    def of(cls, arguments: argparse.Namespace) -> Folders:
        """From the arguments that `add_folder_arguments` added."""
        return cls(arguments.data, arguments.movielens_1m)


class Problem(NamedTuple):
    """A data set and the paper's settings for it (`tb:experiment_details`).

    Attributes
    ----------
    load : callable
        From folders to a data set; `FileNotFoundError` or `DataError` where it is not there.
    likelihood : str
    options : dict
        n_factors, hidden_sizes and batch_size, which any recipe may have.
    literal : dict
        Learning rate, epochs and Laplace rates, which belong to the paper's recipe.
    minutes : float
        The paper's own time per split.
    aim : float
        Seconds that a fit may take here.
    """

    load: Callable[[Folders], Dataset]
    likelihood: str
    options: dict[str, Any]
    literal: dict[str, Any]
    minutes: float
    aim: float


def _problem(
    load: Callable[[Folders], Dataset],
    likelihood: str,
    n_factors: int,
    width: int,
    batch_size: int,
    *,
    rate: float,
    epochs: int,
    rates: tuple[float, float],
    minutes: float,
    aim: float,
) -> Problem:
    options = {"n_factors": n_factors, "hidden_sizes": (width,) * 3, "batch_size": batch_size}
    spike, slab = rates
    literal = {"learning_rate": rate, "max_epochs": epochs, "spike_rate": spike, "slab_rate": slab}
    return Problem(load, likelihood, options, literal, minutes, aim)


def _peerread(folders: Folders) -> Dataset:
    return load_peerread(folders.data / "peerread_abstracts.jsonl.gz")


def _movielens(folders: Folders) -> Dataset:
    if folders.movielens is None:
        raise FileNotFoundError("MovieLens 1M not given: pass --movielens-1m FOLDER")
    return load_movielens(folders.movielens, min_ratings=20)


PROBLEMS = {
    "synthetic": _problem(
        lambda _: make_sparse_factors(500, correlation=0.4, random_state=0),
        "gaussian", 5, 50, 100, rate=0.01, epochs=200, rates=(10.0, 1.0), minutes=2, aim=10,
    ),
    "zeisel": _problem(
        lambda folders: load_zeisel(folders.data / "zeisel"),
        "gaussian", 15, 100, 512, rate=0.01, epochs=100, rates=(10.0, 1.0), minutes=15, aim=180,
    ),
    "peerread": _problem(
        _peerread,
        "multinomial", 20, 100, 128, rate=0.01, epochs=40, rates=(5.0, 0.001), minutes=20, aim=300,
    ),
    "semisynthetic": _problem(
        lambda folders: make_semisynthetic(_peerread(folders), random_state=0),
        "multinomial", 20, 50, 128, rate=0.01, epochs=50, rates=(5.0, 0.01), minutes=30, aim=240,
    ),
    "movielens": _problem(
        _movielens,
        "multinomial", 30, 300, 100, rate=1e-4, epochs=100, rates=(10.0, 1.0), minutes=60, aim=float("nan"),
    ),
}  # fmt: skip


def add_folder_arguments(parser: argparse.ArgumentParser) -> None:
    """Let the user say where the real data lie."""
    default = Path(os.environ.get("SPARSEVAE_TEST_DATA") or data_directory())
    help = "folder of the real data; by default SPARSEVAE_TEST_DATA, or the data directory"
    parser.add_argument("--data", type=Path, default=default, help=help)
    parser.add_argument("--movielens-1m", type=Path, help="folder with MovieLens 1M's ratings.csv")
