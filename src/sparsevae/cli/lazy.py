"""Commands that are imported when they are run: help, version and completion of names need none of them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

__all__ = ["Commands", "load_command"]

_SUMMARIES = {
    "demo": "Fit data whose factors are known, and show what was found.",
    "fit": "Fit a table and write everything about it to a directory.",
    "transform": "Write the factors of the rows of a table.",
    "name": "Name the factors of a fit.",
    "report": "Write a page about a fit, with a card per factor.",
    "drift": "Does a fit still suit a new table, and where does it not?",
    "stability": "Which factors come back in refits of the same table?",
    "replicate": "Which factors come back in other rows, or another study?",
    "power": "How many rows do I need? Simulate, fit, and see.",
    "compare": "Fit several methods and measure them on held-out rows.",
    "reproduce": "Make a table or figure of the paper.",
    "data": "Public data sets: what there is, and how to get it.",
}


class Commands(TyperGroup):
    """The commands of the package under their names."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, summary in _SUMMARIES.items():
            self.add_command(_Later(name, summary))


def load_command(name: str) -> Any:
    """Import a command: the function, or the group of commands, called like its module."""
    target = getattr(import_module(f"sparsevae.cli.{name}"), name)
    if not isinstance(target, typer.Typer):
        holder = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
        holder.command(name)(target)
        target = holder
    return typer.main.get_command(target)


class _Later(TyperCommand):
    """A name and a line of help in the place of a command."""

    def __init__(self, name: str, summary: str) -> None:
        super().__init__(name, help=summary, rich_markup_mode=None)

    def make_context(
        self, info_name: str | None, args: list[str], parent: object = None, **extra: object
    ) -> Any:
        command = load_command(self.name or "")
        return command.make_context(info_name, args, parent=parent, **extra)
