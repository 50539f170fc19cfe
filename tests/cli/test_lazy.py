from __future__ import annotations

import subprocess
import sys

import pytest

from sparsevae.cli.lazy import _SUMMARIES, load_command

from .helpers import invoke

HEAVY = "torch", "sklearn", "pandas", "scipy", "matplotlib", "numpy"


def _imported_by(code: str, *arguments: str) -> set[str]:
    """Heavy libraries that a fresh interpreter has imported when some code is through."""
    report = f"print([name for name in {HEAVY} if name in sys.modules])"
    look = f"import sys\ntry:\n    {code}\nexcept SystemExit:\n    pass\n{report}"
    result = subprocess.run(
        [sys.executable, "-c", look, *arguments], capture_output=True, text=True, check=True
    )
    return set(eval(result.stdout.splitlines()[-1]))


@pytest.mark.parametrize("argument", ["--help", "--version", "--show-completion"])
def test_what_needs_no_command_imports_no_library_that_takes_seconds(argument):
    assert _imported_by("from sparsevae.cli import main; main()", argument) == set()


def test_a_command_that_does_not_exist_is_refused_at_once():
    assert _imported_by("from sparsevae.cli import main; main()", "fitt") == set()


@pytest.mark.parametrize("name", _SUMMARIES)
def test_every_name_stands_for_a_command(name):
    command = load_command(name)
    assert command.name == name
    assert command.help


def test_summaries_of_commands_are_shown_whole():
    shown = invoke("--help").stdout
    assert all(summary in shown for summary in _SUMMARIES.values())


def test_a_command_is_shown_under_its_full_name():
    assert invoke("data", "fetch", "-h").stdout.startswith("Usage: sparsevae data fetch [OPTIONS]")


@pytest.mark.parametrize(
    "words, offered",
    [
        (("f",), "fit"),
        (("fit", "--max"), "--max-epochs"),
        (("fit", "t.csv", "--likelihood", "neg"), "negative_binomial"),
        (("stability", "run", "t.csv", "--how", "b"), "bootstrap"),
        (("data", "f"), "fetch"),
        (("data", "fetch", "zei"), "zeisel"),
    ],
)
def test_the_tab_key_completes_commands_options_and_names(monkeypatch, words, offered):
    monkeypatch.setenv("_SPARSEVAE_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", " ".join(("sparsevae", *words)))
    monkeypatch.setenv("COMP_CWORD", str(len(words)))
    assert offered in invoke().stdout.split()
