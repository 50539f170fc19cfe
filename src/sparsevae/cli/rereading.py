"""Tables for a run that is there already: read as the fit's table was, with the features of the fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from sparsevae.cli.console import say
from sparsevae.cli.formats import ReadOptions
from sparsevae.cli.tables import TableFile, list_names, read_table
from sparsevae.estimators import SparseVAE
from sparsevae.exceptions import DataError

__all__ = ["read_for_run"]


def read_for_run(
    record: dict[str, Any], model: SparseVAE, path: Path, typed: dict[str, Any] | None = None
) -> TableFile:
    """Read a table, and refuse one with other features than the fit's, or in another order.

    Parameters
    ----------
    record : dict
        The run's record, which says how the table of the fit was read.
    model : SparseVAE
    path : Path
    typed : dict, optional
        What the user says about this table; it wins over the record.
    """
    data = read_table(path, _reading(record["reading"], {"drop": (), **(typed or {})}))
    _check_features(model, data, path)
    return data


def _reading(recorded: dict[str, Any], typed: dict[str, Any]) -> ReadOptions:
    """Read as the fit did, except for what was typed; what the fit left out need not be there."""
    kept = {name: value for name, value in recorded.items() if name not in ("feature_names", "drop")}
    given = {name: value for name, value in typed.items() if value is not None and name != "drop"}
    drop = (*recorded["drop"], *typed["drop"])
    return ReadOptions(**{**kept, **given, "drop": drop, "strict": False})


def _check_features(model: SparseVAE, data: TableFile, path: Path) -> None:
    """The table must have the features of the fit, in their order."""
    expected, got = getattr(model, "feature_names_in_", None), data.feature_names
    n_expected, n_got = model.n_features_in_, data.shape[1]
    if expected is None or got is None:
        if n_got != n_expected:
            raise DataError(f"Expected {n_expected} features in {path}, as in the fit; got {n_got}.")
        if expected is not None:
            say(f"{path} has no names: its columns are taken to be the features of the fit in their order.")
        return
    absent = [name for name in expected if name not in set(got)]
    strange = [name for name in got if name not in set(expected)]
    if absent:
        beside = f", and {list_names(strange)} {'is' if len(strange) == 1 else 'are'} new" if strange else ""
        verb = "is" if len(absent) == 1 else "are"
        raise DataError(
            f"Expected the features of the fit in {path}; {list_names(absent)} {verb} missing{beside}."
        )
    if strange:
        remedy = " ".join(f"--drop '{name}'" for name in strange[:3])
        raise DataError(
            f"Expected only the features of the fit in {path}; got {list_names(strange)} too. Leave them "
            f"out: {remedy}."
        )
    moved = np.flatnonzero(np.asarray(expected, dtype=str) != got)
    if len(moved):
        j = int(moved[0])
        raise DataError(
            f"Expected the features of {path} in the order of the fit; column {j + 1} is '{got[j]}' where "
            f"the fit had '{expected[j]}'. Put the columns in that order."
        )
