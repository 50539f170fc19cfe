"""The commands under one name."""

from __future__ import annotations

from typing import Annotated

import typer

from sparsevae._version import __version__
from sparsevae.cli.lazy import Commands

__all__ = ["app", "main"]

app = typer.Typer(
    name="sparsevae",
    cls=Commands,
    help="Factors that can be named: a deep factor model in which each feature depends on few of them.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run the command line on the arguments of the process."""
    app(prog_name="sparsevae")


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"sparsevae {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    pass
