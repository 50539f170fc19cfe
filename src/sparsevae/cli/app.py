"""The commands under one name."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from sparsevae._version import __version__
from sparsevae.cli.lazy import Commands

__all__ = ["app", "main"]

app = typer.Typer(
    name="sparsevae",
    cls=Commands,
    help="Factors that can be named: a deep factor model in which each feature depends on a few of them.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run the command line on the arguments of the process."""
    if "WORLD_SIZE" in os.environ:  # what the network has to say is said in a sentence, not in stack traces
        os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "FATAL")
    try:
        app(prog_name="sparsevae")
    except SystemExit as end:
        if "WORLD_SIZE" in os.environ:  # else torch need not be imported
            from sparsevae.cli.processes import end_process
            from sparsevae.training.processes import is_one_of_several

            if is_one_of_several():
                end_process(end.code if isinstance(end.code, int) else int(end.code is not None))
        raise


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
