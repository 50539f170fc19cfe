"""The command line: one file per command. Results go to stdout or files, everything else to stderr."""

from sparsevae.cli.app import app, main

__all__ = ["app", "main"]
