"""Run directories: a fit on disk, with its model, its tables and how it was made."""

from __future__ import annotations

import copy
import os
import warnings as python_warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import fields
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import sparse

from sparsevae.aliases import JSON
from sparsevae.estimators import SparseVAE
from sparsevae.exceptions import DataError, DataWarning, ParameterError
from sparsevae.identifiability import Stability
from sparsevae.identifiability.records import stability_from_record, stability_record
from sparsevae.inspection.codes import Codes
from sparsevae.inspection.drift import Drift
from sparsevae.io import ReadOptions, TableFile, read_table
from sparsevae.io.formats import how_to_drop
from sparsevae.io.record import read_record, to_json
from sparsevae.io.spreadsheet import restore_text
from sparsevae.io.table import list_names
from sparsevae.persistence import (
    Place,
    check_writable,
    finish_replacement,
    keep_elsewhere,
    recover_place,
    replacing_together,
    take_place,
)
from sparsevae.runs.files import STABILITY_FILES, check_place, write_blocks, write_csv
from sparsevae.runs.names import rename_factors
from sparsevae.runs.record import RunRecord, believed, make_record, read_run_record

__all__ = ["Run"]

Evidence = JSON
"""Plain values that JSON can hold: the certificate, ablations, curves and samples that a report shows."""


# Names are compared when a table is read; an array or sparse matrix cannot show them.
_NAMES_COMPARED = "X (does not have valid|has) feature names"


class Run:
    """A fit in a directory, as ``sparsevae fit TABLE --out RUN`` writes it.

    Attributes
    ----------
    path : Path
        The directory.
    record : dict
        The content of ``run.json``: settings, seed, versions, fingerprint of the data, the result in short.

    Examples
    --------
    >>> from sparsevae import Run
    >>> run = Run.open("run")  # doctest: +SKIP
    >>> run.model().loadings()  # doctest: +SKIP
    >>> run.factors("new.csv")  # doctest: +SKIP
    """

    def __init__(self, path: Path, record: RunRecord, model: SparseVAE | None = None) -> None:
        self.path = path
        self.record = record
        self._model = model

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r})"

    @classmethod
    def open(cls, path: str | Path) -> Run:
        """Open a run directory.

        Parameters
        ----------
        path : str or Path

        Raises
        ------
        DataError
            If it is not a run, or one of another format.
        """
        path = Path(path)
        recover_place(path)
        record = read_run_record(path)
        if os.access(path, os.W_OK):
            finish_replacement([path / name for name in STABILITY_FILES])
        return cls(path, record)

    @classmethod
    def create(
        cls,
        path: str | Path,
        model: SparseVAE,
        table: TableFile,
        codes: Codes | None = None,
        *,
        force: bool = False,
        notes: Sequence[str] = (),
        warnings: Sequence[str] = (),
        interrupted: bool = False,
        seconds: float | None = None,
        log: Sequence[str] = (),
        raw_names: bool = False,
        place: Place | None = None,
    ) -> Run:
        """Write a fit to a new directory, all of it or nothing.

        Parameters
        ----------
        path : str or Path
        model : SparseVAE
            Fitted to the table. It gets the names of a sparse table, which the matrix cannot carry.
        table : TableFile
            From `read_table`.
        codes : Codes, optional
            Of the table, from ``model.fit_codes``: the rows are then neither checked nor encoded again.
        force : bool
            Whether a run at this path is replaced. It stays until the new one is complete.
        notes, warnings, log : sequence of str
            To keep in ``run.json`` and ``log.txt``.
        interrupted : bool
            Whether the fit was stopped early.
        seconds : float, optional
            The time of the fit.
        raw_names : bool
            Whether CSV files have names as they are. By default a name that a spreadsheet would take for a
            formula has an apostrophe in front.
        place : Place, optional
            Of this path, from `sparsevae.persistence.take_place`, if it was taken before the fit.

        Returns
        -------
        Run
            Its ``path`` is another one, with a warning, where the run cannot be written to the one asked for.

        Raises
        ------
        DataError
            If something else than a run is at the path, or a run and ``force`` is false.
        """
        path = Path(path)
        if not isinstance(model, SparseVAE):
            raise ParameterError(f"Expected a fitted SparseVAE; got {type(model).__name__}.")
        if not isinstance(table, TableFile):
            raise ParameterError(
                f"Expected a table from sparsevae.read_table; got {type(table).__name__}. To save a model "
                "alone, use model.save."
            )
        check_place(path, force=force)
        if table.feature_names is not None and sparse.issparse(table.X):
            model.set_feature_names(table.feature_names)
        record = make_record(
            model,
            table,
            notes=notes,
            warnings=warnings,
            interrupted=interrupted,
            seconds=seconds,
            raw_names=raw_names,
        )
        codes = _codes(model, table) if codes is None else codes

        def write(folder: Path) -> None:
            # The model first: what follows takes its time, and can be made again.
            model.save(folder / "model")
            evidence = _examine(model, table, codes, seen_in_fit=True)
            write_blocks(_factor_blocks(model, table, codes), folder / "factors.csv", raw_names=raw_names)
            tables = {
                "loadings.csv": model.loadings().rename_axis("feature"),
                "effects.csv": model.effects().rename_axis("feature"),
                "history.csv": model.history_,
            }
            for name, frame in tables.items():
                write_csv(frame, folder / name, index=frame is not model.history_, raw_names=raw_names)
            texts = {
                "log.txt": "".join(f"{line}\n" for line in log),
                "run.json": to_json(record) + "\n",
                "evidence.json": to_json(evidence, compact=True) + "\n",
            }
            for name, text in texts.items():
                (folder / name).write_text(text, "utf-8")

        with nullcontext(place) if place is not None else take_place(path, "run") as taken:
            taken.release_reserve()
            try:
                write(taken.folder)
                # Checked again: the examination took its time.
                written = taken.commit(lambda there: check_place(there, force=force), keep=True)
            except OSError as error:
                if taken.kept:
                    raise
                elsewhere = keep_elsewhere(path, write)
                if elsewhere is None:
                    raise
                written = elsewhere
                _warn(f"The run could not be written to {path} ({error.strerror or error}).")
        if written != taken.path:
            _warn(f"The finished run is in {written}.")
        else:
            written = path
        return cls(written, read_run_record(written), model)

    def model(self) -> SparseVAE:
        """The fitted model; loaded at the first call."""
        if self._model is None:
            self._model = SparseVAE.load(self.path / "model")
        return self._model

    def name_factors(self, names: Mapping[int | str, str | None]) -> Run:
        """Name factors in the model, in all tables and in what a report is made from.

        Parameters
        ----------
        names : dict
            As for ``model.name_factors``.

        Returns
        -------
        Run
            This one, with the new names.
        """
        model = copy.deepcopy(self.model())
        before = [str(name) for name in model.get_feature_names_out()]
        model.name_factors(names)
        after = [str(name) for name in model.get_feature_names_out()]
        rename_factors(self.path, dict(zip(before, after, strict=True)), model)
        self._model, self.record = model, read_run_record(self.path)
        return self

    def read_table(
        self,
        path: str | Path,
        *,
        header: bool | None = None,
        id_column: str | None = None,
        drop: str | Sequence[str] = (),
        transpose: bool | None = None,
        layer: str | None = None,
        groups: str | None = None,
        weights: str | None = None,
        exposure: str | None = None,
    ) -> TableFile:
        """Read a table as the fit's table was read, and check that it has the features of the fit.

        Parameters
        ----------
        path : str or Path
        header, id_column, transpose, layer, groups, weights, exposure
            As in `sparsevae.read_table`; None is what the fit was told.
        drop : str or sequence of str
            Columns to leave out, in addition to those that the fit left out.

        Raises
        ------
        DataError
            If the features are others than those of the fit, or in another order.
        """
        known = {field.name for field in fields(ReadOptions)} - {"feature_names"}
        options: JSON = {name: value for name, value in self.record["reading"].items() if name in known}
        typed = {
            "header": header,
            "id_column": id_column,
            "transpose": transpose,
            "layer": layer,
            "groups": groups,
            "weights": weights,
            "exposure": exposure,
        }
        options.update({name: value for name, value in typed.items() if value is not None})
        options["drop"] = [*options["drop"], *([drop] if isinstance(drop, str) else drop)]
        options["strict"] = False  # what the fit left out need not be there
        if options.get("text") is not None:
            options["text"] = {**options["text"], "vocabulary": self.model().feature_names().tolist()}
        table = read_table(path, **options)
        _check_features(self.model(), table)
        return table

    def read_fitted_table(self, path: str | Path) -> TableFile:
        """Read the table of the fit again.

        Raises
        ------
        DataError
            If the table has another number of samples. Another file of the same size gives a warning.
        """
        table = self.read_table(path)
        n_samples = self.record["data"]["n_samples"]
        if table.shape[0] != n_samples:
            raise DataError(
                f"Expected the table of the fit, with {n_samples} samples; {path} has {table.shape[0]}. Name "
                "the table that was fitted."
            )
        if not self._saw(table):
            _warn(f"{path} is not the file that was fitted; it is taken to hold the same table.")
        return table

    def factors(self, table: TableFile | str | Path) -> pd.DataFrame:
        """The factors of each sample of a table: posterior means, a column per active factor.

        Parameters
        ----------
        table : TableFile, str or Path
            From `Run.read_table`, or the path of a file to be read by it.
        """
        table = self._as_table(table)
        return _factors(self.model(), table, _codes(self.model(), table))

    def fitted_factors(self) -> pd.DataFrame:
        """The factors of the samples of the fit, as factors.csv has them."""
        path = self.path / "factors.csv"
        names = self.model().get_feature_names_out()[self.model().active_factors_]
        with believed(path):
            frame = pd.read_csv(path, dtype={0: str}, keep_default_na=False, float_precision="round_trip")
            labels, values = frame.iloc[:, 0], frame.iloc[:, 1:].astype(np.float64)
            values.columns = pd.Index(names)
        if not self.record.get("raw_names", False):
            labels = labels.map(restore_text)
        numbered = labels.tolist() == [str(i) for i in range(len(labels))]
        index = pd.RangeIndex(len(labels)) if numbered else pd.Index(labels)
        return values.set_axis(index.rename(str(frame.columns[0])), axis=0)

    def factor_blocks(self, table: TableFile | str | Path) -> Iterator[pd.DataFrame]:
        """The same in blocks of rows, of a table that stays on disk."""
        table = self._as_table(table)
        return _factor_blocks(self.model(), table, _codes(self.model(), table))

    def evidence(self) -> Evidence | None:
        """What a report needs of the table of the fit, or None where the run does not have it."""
        return read_record(self.path / "evidence.json")

    def examine(self, table: TableFile | str | Path) -> Evidence:
        """What a report needs, gathered from another table.

        Parameters
        ----------
        table : TableFile, str or Path
            From `Run.read_table`, or the path of a file to be read by it.
        """
        table = self._as_table(table)
        codes = _codes(self.model(), table)
        return _examine(self.model(), table, codes, seen_in_fit=self._saw(table))

    def drift(self, table: TableFile | str | Path, *, level: float = 0.05) -> Drift:
        """What has changed between the table of the fit and another one.

        Parameters
        ----------
        table : TableFile, str or Path
            From `Run.read_table`, or the path of a file to be read by it.
        level : float
            See `SparseVAE.drift`.
        """
        table = self._as_table(table)
        with python_warnings.catch_warnings():
            python_warnings.filterwarnings("ignore", message=_NAMES_COMPARED)
            sides = {name: values for name, values in table.sides.items() if name != "sample_weight"}
            return self.model().drift(table.for_estimator(), level=level, **sides)

    def stability(self) -> Stability | None:
        """The result of refits, or None where there are none."""
        file = self.path / STABILITY_FILES[0]
        with believed(file):
            record = read_record(file)
            return None if record is None else stability_from_record(record)

    def check_stability(self, *, force: bool = False) -> None:
        """Refuse to replace the result of refits, unless that is asked for, and a run that is read-only."""
        present = [name for name in STABILITY_FILES if (self.path / name).exists()]
        if present and not force:
            raise DataError(
                f"Expected a run without {present[0]}; {self.path} has one. Add --force (in Python "
                "force=True) to replace it."
            )
        check_writable(self.path / STABILITY_FILES[0])

    def add_stability(self, result: Stability, *, force: bool = False) -> None:
        """Keep the result of refits in the run, where a report finds it.

        Parameters
        ----------
        result : Stability
            From `sparsevae.stability`.
        force : bool
            Whether an earlier result is replaced.
        """
        self.check_stability(force=force)
        raw_names = bool(self.record.get("raw_names", False))

        def write(record: Path, table: Path, selection: Path) -> None:
            record.write_text(to_json(stability_record(result), compact=True) + "\n", "utf-8")
            write_csv(result.table.rename_axis("factor"), table, raw_names=raw_names)
            frame = result.selection_probability.rename_axis("feature")
            write_csv(frame, selection, raw_names=raw_names)

        try:
            with replacing_together([self.path / name for name in STABILITY_FILES]) as partials:
                write(*partials)
        except OSError as error:
            elsewhere = keep_elsewhere(
                self.path, lambda folder: write(*(folder / name for name in STABILITY_FILES))
            )
            if elsewhere is not None:
                _warn(f"The result of the refits is in {elsewhere}.")
            raise error

    def _as_table(self, table: TableFile | str | Path) -> TableFile:
        return table if isinstance(table, TableFile) else self.read_table(table)

    def _saw(self, table: TableFile) -> bool:
        return table.fingerprint()["sha256"] == self.record["data"]["sha256"]


def _codes(model: SparseVAE, table: TableFile) -> Codes:
    with python_warnings.catch_warnings():
        python_warnings.filterwarnings("ignore", message=_NAMES_COMPARED)
        return model.codes(table.for_estimator(), **table.sides)


def _factors(model: SparseVAE, table: TableFile, codes: Codes) -> pd.DataFrame:
    return pd.concat(_factor_blocks(model, table, codes))


def _factor_blocks(model: SparseVAE, table: TableFile, codes: Codes) -> Iterator[pd.DataFrame]:
    labels, active = table.row_labels(), model.active_factors_
    names = model.get_feature_names_out()[active]
    for begin, means in codes.blocks_of_means():
        Z = means.astype(codes.X.dtype, copy=False)
        yield pd.DataFrame(Z[:, active], index=labels[begin : begin + len(Z)], columns=names)


def _examine(model: SparseVAE, table: TableFile, codes: Codes, *, seen_in_fit: bool) -> Evidence:
    return model.evidence(
        codes,
        samples=None if table.on_disk else table.row_labels().to_numpy(),
        table_name=table.path.name,
        seen_in_fit=seen_in_fit,
    )


def _check_features(model: SparseVAE, table: TableFile) -> None:
    """Refuse a table with other features than the fit's, or in another order."""
    path, expected, got = table.path, getattr(model, "feature_names_in_", None), table.feature_names
    if expected is None or got is None:
        if table.shape[1] != model.n_features_in_:
            raise DataError(
                f"Expected {model.n_features_in_} features in {path}, as in the fit; got {table.shape[1]}. "
                "Give a table with the same columns."
            )
        if expected is not None:
            _warn(f"{path} has no names: its columns are taken to be the features of the fit in their order.")
        return
    absent = [name for name in expected if name not in set(got)]
    new = [name for name in got if name not in set(expected)]
    if absent:
        more = f", and {list_names(new)} {'is' if len(new) == 1 else 'are'} new" if new else ""
        verb = "is" if len(absent) == 1 else "are"
        raise DataError(
            f"Expected the features of the fit in {path}; {list_names(absent)} {verb} missing{more}. Give a "
            "table with the same columns."
        )
    if new:
        raise DataError(
            f"Expected only the features of the fit in {path}; got {list_names(new)} too. Leave "
            f"{'it' if len(new) == 1 else 'them'} out ({how_to_drop(new, 3)})."
        )
    moved = np.flatnonzero(np.asarray(expected, dtype=str) != got)
    if len(moved):
        j = int(moved[0])
        raise DataError(
            f"Expected the features of {path} in the order of the fit; column {j + 1} is '{got[j]}' where "
            f"the fit had '{expected[j]}'. Put the columns in that order."
        )


def _warn(message: str) -> None:
    python_warnings.warn(message, DataWarning, stacklevel=4)
