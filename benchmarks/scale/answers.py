"""Peak memory of everything that goes over all rows, for two numbers of rows: what a further row costs."""

from __future__ import annotations

import os
import traceback
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.memory import megabytes
from benchmarks.scale.tables import write_normal
from sparsevae import Run, SparseVAE, open_rows
from sparsevae.cli import app
from sparsevae.cli import fit as _fit_command  # noqa: F401 - imported before the processes are forked
from sparsevae.io import suggest_likelihood

__all__ = ["measure_answers"]

_FEATURES, _HOLES = 20, 0.01
_SETTINGS = "hidden_sizes = []\nmax_epochs = 1\nn_factors = 5\nn_init = 1\nlikelihood = 'gaussian'\n"


def measure_answers(
    folder: Path, n_rows: list[int], only: list[str] | None = None
) -> Iterator[dict[str, Any]]:
    """Peak resident memory of each action for each number of rows, from folders of Parquet files.

    Each action has a process of its own, forked from this one, which has imported all it needs.
    """
    (folder / "settings.toml").write_text(_SETTINGS)
    small, *tables = [_write(folder / f"rows-{n}", n) for n in (2000, *n_rows)]
    _in_process(lambda: _run_command("fit", small, "-o", folder / "run", *_config(folder)))
    for what, action in _ACTIONS.items():
        if only is not None and what not in only:
            continue
        peaks = [_in_process(partial(action, table, folder)) for table in tables]
        growth = 1e6 * (peaks[-1] - peaks[0]) / (n_rows[-1] - n_rows[0])
        yield {
            "what": what,
            **{f"MB at {n} rows": round(peak, 1) for n, peak in zip(n_rows, peaks, strict=True)},
            "bytes a further row": round(growth, 1),
        }


def _config(folder: Path) -> tuple[object, ...]:
    return "--config", folder / "settings.toml"


def _run_command(*arguments: object) -> None:
    app([str(argument) for argument in arguments], standalone_mode=False)


def _model(folder: Path) -> SparseVAE:
    return Run.open(folder / "run").model()


_ACTIONS: dict[str, Callable[[Path, Path], object]] = {
    "transform": lambda table, folder: _model(folder).transform(open_rows(table), out=folder / "z.npy"),
    "score": lambda table, folder: _model(folder).score(open_rows(table)),
    "choice of the likelihood": lambda table, folder: suggest_likelihood(open_rows(table)),
    "sparsevae transform": lambda table, folder: _run_command(
        "transform", folder / "run", table, "-o", folder / "z.csv", "--force"
    ),
    "sparsevae report": lambda table, folder: _run_command(
        "report", folder / "run", "-o", folder / "page.html", "--table", table, "--force"
    ),
    "impute": lambda table, folder: _model(folder).impute(open_rows(table), out=folder / "full.npy"),
    "sparsevae fit": lambda table, folder: _run_command(
        "fit", table, "-o", folder / f"run-{table.name}", *_config(folder)
    ),
}


def _write(folder: Path, n_rows: int) -> Path:
    """A folder of Parquet files, with some holes."""
    folder.mkdir(exist_ok=True)
    X = np.load(write_normal(folder / "all.npy", n_rows, _FEATURES, n_factors=4))
    X[np.random.default_rng(0).random(X.shape) < _HOLES] = np.nan
    names = [f"x{j}" for j in range(_FEATURES)]
    for part, begin in enumerate(range(0, n_rows, 50_000)):
        frame = pd.DataFrame(X[begin : begin + 50_000], columns=names)
        frame.to_parquet(folder / f"{part:03d}.parquet", row_group_size=5000)
    (folder / "all.npy").unlink()
    return folder


def _in_process(action: Callable[[], object]) -> float:
    """Megabytes at most of a process that does this."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        code = 1
        try:
            warnings.simplefilter("ignore")
            action()
            os.write(writer, str(megabytes(peak=True)).encode())
            code = 0
        except BaseException:
            traceback.print_exc()
        os._exit(code)
    os.close(writer)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    with os.fdopen(reader) as file:
        return float(file.read())
