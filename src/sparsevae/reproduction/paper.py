"""A result of the paper by its name: runs that are missing, then tables and figures from the rows."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from sparsevae.persistence import replacing
from sparsevae.reproduction.figures import draw
from sparsevae.reproduction.overview import render_overview
from sparsevae.reproduction.results import Results
from sparsevae.reproduction.runner import Outcome, Progress, run_spec
from sparsevae.reproduction.spec import Spec, load_spec
from sparsevae.reproduction.tables import current_rows, render, summarise

__all__ = ["Reproduction", "reproduce"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Reproduction:
    """A result as it stands: where its files are, its page in Markdown, its numbers."""

    spec: Spec
    folder: Path
    page: str
    summary: pd.DataFrame
    outcome: Outcome | None
    """What this call has done; None where it was not to run anything."""


def reproduce(
    name: str,
    *,
    out: str | os.PathLike[str],
    scale: str = "quick",
    data: str | os.PathLike[str] | None = None,
    only: Mapping[str, Sequence[str]] | None = None,
    redo: bool = False,
    run: bool = True,
    jobs: int | None = 1,
    backend: str | None = None,
    scheduler: str | None = None,
    progress: Progress = logger.info,
) -> Reproduction:
    """Make a table or figure of the paper.

    Runs whose rows are in ``out`` already are not done again, so that a call which was interrupted goes on
    where it stopped. Several processes may work in one folder.

    Parameters
    ----------
    name : str
        One of `load_specs`.
    out : path
        Results go to ``out/name/scale``: ``rows.csv``, ``table.md``, figures. ``out/claims-scale.md`` says
        which claims hold, of all results that are there.
    scale : {"smoke", "quick", "paper"}
        A minute to see that it works; some minutes; the size of the paper.
    data : path, optional
        Directory of the data sets, in place of ``SPARSEVAE_DATA``.
    only : dict, optional
        Some of the runs: from field (method, recipe, data_set, seed, split) to values.
    redo : bool
        Do the chosen runs again.
    run : bool
        False draws tables and figures from the rows that are there.
    jobs : int, optional
        Runs at a time; None leaves it to a surrounding ``joblib.parallel_config``.
    backend, scheduler : str, optional
        A backend of joblib, such as "dask", and the address of its scheduler.
    progress : callable
        Gets a sentence for each run that ends.

    Returns
    -------
    Reproduction
    """
    spec = load_spec(name)
    folder = Path(out) / spec.name / scale
    results = Results(folder)
    outcome = None
    if run:
        outcome = run_spec(
            spec,
            scale,
            results,
            shared=Results(Path(out) / spec.shares_with / scale) if spec.shares_with else None,
            data=None if data is None else Path(data),
            only=only,
            redo=redo,
            jobs=jobs,
            backend=backend,
            scheduler=scheduler,
            progress=progress,
        )
    rows = current_rows(spec, scale, results)
    page = ""
    if len(rows):
        page = render(spec, scale, rows, results.about(), draw(spec, scale, rows, folder))
        _write(folder / "table.md", page)
        claims = render_overview(Path(out), scale)
        if claims:
            _write(Path(out) / f"claims-{scale}.md", claims)
    return Reproduction(spec, folder, page, summarise(rows), outcome)


def _write(path: Path, text: str) -> None:
    with replacing(path) as partial:
        partial.write_text(text, encoding="utf-8")
