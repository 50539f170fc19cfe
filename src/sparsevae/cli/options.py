"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated

import typer

from sparsevae.likelihoods import LIKELIHOODS

__all__ = [
    "PICTURES",
    "ConfigOption",
    "DropOption",
    "FactorsOption",
    "FeatureNamesOption",
    "HeaderOption",
    "IdColumnOption",
    "JsonOption",
    "LayerOption",
    "LikelihoodOption",
    "MaxEpochsOption",
    "RawNamesOption",
    "RunArgument",
    "StopWordsOption",
    "TableArgument",
    "TextOption",
    "WordsOption",
    "one_of",
    "text_settings",
]

PICTURES = (".png", ".svg", ".pdf")
"""Endings of files with a picture."""


def one_of(names: Iterable[str]) -> Callable[[str], list[str]]:
    """What the Tab key offers for an argument that is one of some names."""
    known = list(names)

    def matching(incomplete: str) -> list[str]:
        return [name for name in known if name.startswith(incomplete)]

    return matching


RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="Directory that fit wrote.")]
TableArgument = Annotated[
    Path,
    typer.Argument(
        metavar="TABLE",
        help="CSV or TSV (gzipped or not), NPY, NPZ, Parquet, Matrix Market, H5AD, H5MU, SPSS, Stata or "
        "Excel; a row per sample. Or a folder with a text file per document.",
    ),
]
LikelihoodOption = Annotated[
    str | None,
    typer.Option(
        "--likelihood",
        metavar="NAME",
        help=f"{', '.join(LIKELIHOODS)}, or auto: a look at the values decides. [default: auto]",
        autocompletion=one_of(("auto", *LIKELIHOODS)),
    ),
]
MaxEpochsOption = Annotated[
    int | None,
    typer.Option(
        "--max-epochs", min=1, help="Epochs of each fit. [default: enough for the size of the table]"
    ),
]
ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE.toml",
        help="Any parameter of SparseVAE, by its name; what is typed wins.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
FactorsOption = Annotated[
    int | None,
    typer.Option(
        "--factors",
        "-k",
        min=1,
        help="Largest number of factors. [default: as many as a linear analysis of the table shows]",
    ),
]
DropOption = Annotated[
    list[str] | None,
    typer.Option("--drop", metavar="NAMES", help="Leave out this column, or several: a,b,c."),
]
IdColumnOption = Annotated[
    str | None,
    typer.Option(
        "--id-column", metavar="NAME", help="Column with the names of samples; 'none' for no such column."
    ),
]
HeaderOption = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header", help="Whether the first line of a CSV or TSV holds names.", show_default=False
    ),
]
LayerOption = Annotated[
    str | None,
    typer.Option("--layer", metavar="NAME", help="Layer of an H5AD or H5MU file, or sheet of a workbook."),
]
GroupsOption = Annotated[
    str | None,
    typer.Option(
        "--groups",
        metavar="COLUMN",
        help="Column with the study, batch or country of each row, which stays out of the factors.",
    ),
]
WeightsOption = Annotated[
    str | None,
    typer.Option("--weights", metavar="COLUMN", help="Column that says how often each row counts."),
]
ExposureOption = Annotated[
    str | None,
    typer.Option("--exposure", metavar="COLUMN", help="Column with the known size of each row of counts."),
]
RawNamesOption = Annotated[
    bool,
    typer.Option(
        "--raw-names",
        help="Write names to CSV files as they are, also those that a spreadsheet would run as a formula.",
    ),
]
ViewSeparatorOption = Annotated[
    str | None,
    typer.Option(
        "--view-separator",
        metavar="TEXT",
        help="Text between the view and the name of a feature (':' in rna:CD3D); the report compares views.",
    ),
]
FeatureNamesOption = Annotated[
    Path | None,
    typer.Option("--feature-names", metavar="FILE", help="A name per line, for formats that hold no names."),
]
TextOption = Annotated[
    str | None,
    typer.Option("--text", metavar="COLUMN", help="Count the words of the documents in this column."),
]
WordsOption = Annotated[
    int | None,
    typer.Option(
        "--words", min=1, help="Most frequent words to keep. [default: half of the documents, 100 to 2000]"
    ),
]
StopWordsOption = Annotated[
    str | None,
    typer.Option(
        "--stop-words",
        metavar="WORDS",
        help="Words to leave out: english, none, or a,b,c. [default: english]",
    ),
]


def text_settings(column: str | None, words: int | None, stop_words: str | None) -> dict[str, object] | None:
    """How to count words, as `read_table` takes it; None where nothing was typed."""
    listed = stop_words.split(",") if stop_words and "," in stop_words else stop_words
    typed = {"column": column, "max_words": words, "stop_words": listed}
    return {name: value for name, value in typed.items() if value is not None} or None
