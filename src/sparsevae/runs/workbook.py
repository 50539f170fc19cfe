"""The tables of a fit as one Excel workbook."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd

from sparsevae.estimators import SparseVAE
from sparsevae.exceptions import DataError
from sparsevae.persistence import check_writable, replacing

__all__ = ["check_size", "check_workbook", "write_workbook"]

_WIDEST = 60  # characters of a column
_ROWS, _COLUMNS = 1_048_576, 16_384  # of a sheet, as Excel limits it
_CONTROL = re.compile(r"[\000-\010]|[\013-\014]|[\016-\037]")
_BELOW = 3  # rows of a sheet for headings and sums


def check_workbook(path: Path, *, force: bool) -> None:
    """Refuse, before a fit, a workbook that could not be written."""
    if path.suffix.lower() != ".xlsx":
        raise DataError(f"Expected a workbook that ends in .xlsx; got {path.name}.")
    if path.exists() and not force:
        raise DataError(f"Expected a new file for the workbook; {path} exists. Add --force to replace it.")
    try:
        import openpyxl  # noqa: F401
    except ImportError as error:
        raise DataError(
            "Expected openpyxl, to write Excel; it is not installed. Run: pip install openpyxl"
        ) from error
    check_writable(path)


def check_size(n_samples: int, n_features: int) -> None:
    """Refuse, before a fit, a table of which a sheet could not have a row for each sample and feature."""
    if max(n_samples, n_features) > _ROWS - _BELOW:
        raise DataError(
            f"Expected at most {_ROWS - _BELOW:,} samples and features, for a workbook; got {n_samples:,} x "
            f"{n_features:,}. Leave out --excel: the CSV files of the run have all rows."
        )


def write_workbook(
    path: Path, model: SparseVAE, factors: pd.DataFrame, verdicts: pd.DataFrame | None
) -> None:
    """Write loadings, explained variance, correlations, reliability, verdicts, effects and factors as sheets.

    Parameters
    ----------
    path : Path
    model : SparseVAE
        Fitted.
    factors : DataFrame of shape (n_samples, n_active)
        Of the samples.
    verdicts : DataFrame, optional
        The table of a certificate.
    """
    check_size(len(factors), len(model.mask_))
    columns = ["verdict", "reason", "n_anchors"]
    sheets = {
        "loadings": model.survey_table(cut=0.0).rename_axis("feature"),
        "explained": model.explained(),
        **({} if model.feature_views() is None else {"views": model.explained_by_view()}),
        "correlations": model.factor_correlation(),
        "reliability": model.reliability(),
        **({} if verdicts is None else {"verdicts": verdicts[columns].rename_axis("factor")}),
        "effects": model.effects().rename_axis("feature"),
        "factors": factors,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as partial, pd.ExcelWriter(partial, engine="openpyxl") as writer:
        for name, sheet in sheets.items():
            frame = _printable(sheet)
            frame.to_excel(writer, sheet_name=name, freeze_panes=(1, 1))
            for column in writer.sheets[name].columns:
                longest = max(len(_text(cell)) for cell in column)
                writer.sheets[name].column_dimensions[column[0].column_letter].width = min(
                    longest + 2, _WIDEST
                )


def _printable(frame: pd.DataFrame) -> pd.DataFrame:
    """Names without control characters, which a workbook cannot hold."""

    def clean(name: object) -> object:
        return _CONTROL.sub("\ufffd", name) if isinstance(name, str) else name

    rows = frame.index if isinstance(frame.index, pd.RangeIndex) else frame.index.map(clean)
    return frame.set_axis(rows, axis=0).set_axis(frame.columns.map(clean), axis=1)


def _text(cell) -> str:  # type: ignore[no-untyped-def]
    """What a cell shows; a name that begins with = must not become a formula."""
    if cell.data_type == "f":
        cell.data_type = "s"
    if isinstance(cell.value, float):
        cell.number_format = "0.000"
        return f"{cell.value:.3f}"
    return str(cell.value or "")
