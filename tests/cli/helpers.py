"""Running commands in this process, and looking at what they leave."""

from __future__ import annotations

import os
from pathlib import Path

from typer.testing import CliRunner, Result

from sparsevae.cli import app


def invoke(*arguments: object) -> Result:
    """Run the command line in this process; the result has stdout, stderr and exit_code."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def refusal(*arguments: object) -> str:
    """What is said on stderr by a command that must fail: one sentence, no traceback, nothing on stdout."""
    result = invoke(*arguments)
    assert isinstance(result.exception, SystemExit), repr(result.exception)
    assert result.exit_code == 1, result.output
    assert result.stdout == ""
    lines = result.stderr.strip().splitlines()
    assert lines[-1].startswith("Error: "), result.stderr
    assert "Traceback" not in result.stderr
    return lines[-1]


def files_under(folder: Path) -> set[str]:
    """Everything in a folder, hidden files too."""
    return {
        os.path.relpath(os.path.join(at, name), folder) for at, _, names in os.walk(folder) for name in names
    }
