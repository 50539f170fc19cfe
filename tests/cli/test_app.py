from __future__ import annotations

import sparsevae

from .helpers import invoke


def test_version_and_help_need_no_command():
    assert invoke("--version").stdout == f"sparsevae {sparsevae.__version__}\n"
    shown = invoke("--help")
    assert shown.exit_code == 0
    for command in ("demo", "fit", "transform", "report", "stability", "replicate", "data"):
        assert command in shown.stdout


def test_a_command_that_does_not_exist_ends_with_code_2():
    result = invoke("fitt")
    assert result.exit_code == 2
    assert "fitt" in result.stderr


def test_every_command_has_help_that_fits_a_terminal():
    for command in (
        "demo",
        "fit",
        "transform",
        "report",
        "stability",
        "replicate",
        "data list",
        "data fetch",
    ):
        result = invoke(*command.split(), "-h")
        assert result.exit_code == 0
        assert max(map(len, result.stdout.splitlines())) <= 80
