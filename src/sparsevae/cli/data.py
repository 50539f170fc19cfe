"""``sparsevae data``: the public data sets, and verified copies of their files."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from sparsevae.cli.console import one_sentence_errors, print_json, say
from sparsevae.cli.options import JsonOption, one_of
from sparsevae.datasets import SOURCES, data_directory, fetch

__all__ = ["data"]

data = typer.Typer(
    name="data",
    help="Public data sets: what there is, and how to get it.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@data.command("list")
@one_sentence_errors
def list_sources(as_json: JsonOption = False) -> None:
    """List the data sets that fetch knows, their terms, and which are here already."""
    folder = data_directory()
    present = {name: (folder / source.filename).exists() for name, source in SOURCES.items()}
    if as_json:
        print_json([{**asdict(source), "present": present[name]} for name, source in SOURCES.items()])
        return
    for name, source in SOURCES.items():
        size = "size varies" if source.size is None else f"{source.size / 1e6:.0f} MB"
        print(f"{name}  ({size}{', here' if present[name] else ''})")
        print(f"    {source.title}")
        print(f"    {source.terms}")
    say(f"Files go to {folder} (set SPARSEVAE_DATA for another place).")


@data.command("fetch")
@one_sentence_errors
def fetch_source(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="A name from: sparsevae data list.", autocompletion=one_of(SOURCES)
        ),
    ],
    directory: Annotated[Path | None, typer.Option(metavar="DIR", help="Where to put the file.")] = None,
    url: Annotated[str | None, typer.Option(help="A mirror, instead of the publisher's address.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Download a data set from its publisher, check it, and print where it is. A good copy is kept."""
    path = fetch(name, directory=directory, url=url)
    say(f"{SOURCES[name].title}. Terms: {SOURCES[name].terms}.")
    if as_json:
        print_json({"name": name, "path": path})
    else:
        print(path)
