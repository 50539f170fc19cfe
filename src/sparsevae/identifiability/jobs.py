"""Fits of one model to many samples of rows: cut from a table, in this process or in several."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from typing import Any, Protocol, TypeAlias

import numpy as np
import pandas as pd
import torch
from joblib import Parallel, delayed, effective_n_jobs
from scipy import sparse
from tqdm import tqdm

from sparsevae.aliases import Matrix, Parameters, State, TableLike
from sparsevae.annotations.missing import with_nan
from sparsevae.exceptions import DataError, ParameterError
from sparsevae.inspection.codes import Codes
from sparsevae.training.processes import alone
from sparsevae.validation import canonical_csr

__all__ = [
    "FittedModel",
    "Table",
    "by_rows",
    "count_workers",
    "given_names",
    "of_rows",
    "row_params",
    "run_jobs",
    "take_rows",
    "transform_params",
]

Table: TypeAlias = "pd.DataFrame | Matrix"
"""What `by_rows` returns: rows can be taken by position."""

_NOT_OF_ROWS = ("callbacks", "checkpoint", "checkpoint_every")


class FittedModel(Protocol):
    """A fitted estimator with a mask, that can be cloned and fitted again."""

    mask_: np.ndarray

    def fit(self, X: TableLike, **fit_params: object) -> FittedModel:
        """Fit it to a table."""

    def transform(self, X: TableLike, **row_params: object) -> np.ndarray:
        """Posterior means of rows."""

    def codes(self, X: TableLike, **row_params: object) -> Codes:
        """Posterior of rows."""

    def get_feature_names_out(self) -> np.ndarray:
        """Names of the factors."""


def run_jobs(
    jobs: Iterable[Any], total: int, workers: int, *, unit: str = "refit", verbose: int = 0
) -> Iterator[Any]:
    """Results of jobs in their order, from this process or from several with one thread each.

    Parameters
    ----------
    jobs : iterable of joblib.delayed
    total : int
        How many there are.
    workers : int
        Processes, as `count_workers` has them.
    unit : str
        What the progress bar counts.
    verbose : int
        1 shows it.
    """
    if workers == 1:
        results: Iterable[Any] = (_alone(job) for job in jobs)
    else:
        results = Parallel(n_jobs=workers, return_as="generator")(
            delayed(_single_threaded)(job) for job in jobs
        )
    yield from tqdm(results, total=total, unit=unit, dynamic_ncols=True, disable=not verbose)


def count_workers(model: object, n_jobs: int | None, total: int) -> int:
    """Processes for so many fits: no more than there are fits, and one on an accelerator."""
    device = str(getattr(model, "device", "cpu"))
    on_accelerator = device != "cpu" and (device != "auto" or torch.cuda.is_available())
    return 1 if on_accelerator else min(effective_n_jobs(n_jobs), total)


def by_rows(X: TableLike) -> Table:
    """A table whose rows can be taken by position, masked cells as NaN; data frames keep their names."""
    table: Table = with_nan(X)
    if sparse.issparse(table):
        return canonical_csr(table)
    return table if hasattr(table, "columns") else np.asarray(table)


def take_rows(table: Table, rows: np.ndarray) -> Table:
    """Rows of a table that `by_rows` returned."""
    return table.iloc[rows] if hasattr(table, "iloc") else table[rows]


def given_names(model: object) -> dict[str, np.ndarray]:
    """Names that were given by hand and that the table does not carry; likelihood= may refer to them."""
    names = getattr(model, "given_feature_names", None)
    return {} if names is None else {"feature_names": names}


def row_params(model: FittedModel, table: Table, fit_params: Parameters) -> State:
    """What fit gets beside the table, checked: arrays with an entry per row, and names of the features."""
    known = inspect.signature(model.fit).parameters
    params = {name: value for name, value in fit_params.items() if value is not None}
    for name, value in params.items():
        if name not in known or name in _NOT_OF_ROWS:
            raise ParameterError(
                f"Expected arguments of {type(model).__name__}.fit; got {name}. Leave it out."
            )
        if name != "feature_names":
            length = value.shape[0] if hasattr(value, "shape") else len(value)
            if length != table.shape[0]:
                raise DataError(
                    f"Expected an entry of {name} for each of {table.shape[0]} rows; got {length}. Pass as "
                    "many as rows."
                )
            params[name] = value if sparse.issparse(value) else np.asarray(value)
    return {**given_names(model), **params}


def of_rows(params: Parameters, rows: np.ndarray) -> State:
    """The same for some of the rows."""
    return {name: value if name == "feature_names" else value[rows] for name, value in params.items()}


def transform_params(model: FittedModel, params: Parameters) -> State:
    """Those of them that ``transform`` takes too."""
    known = inspect.signature(model.transform).parameters
    return {name: value for name, value in params.items() if name in known}


def _single_threaded(job: tuple[Any, tuple[Any, ...], dict[str, Any]]) -> Any:
    # In a worker process: several with several threads each would fight over the cores.
    torch.set_num_threads(1)
    return _alone(job)


def _alone(job: tuple[Any, tuple[Any, ...], dict[str, Any]]) -> Any:
    # Others that share a fit with this process do not share this one.
    function, args, kwargs = job
    with alone():
        return function(*args, **kwargs)
