"""What the README and the quick start show is what happens."""

from __future__ import annotations

import inspect
import re
import runpy
import shlex
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from sparsevae import SparseVAE
from sparsevae.cli import app

from .helpers import assert_alike, blocks, printed_by, run

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
QUICK_START = (ROOT / "docs" / "tutorials" / "quick-start.md").read_text("utf-8")
BUILT = ("_build", "results")  # Sphinx copies the pages of results to docs/results
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "results").rglob("*.md")),
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if page.relative_to(ROOT).parts[1] not in BUILT),
]

comparison = SimpleNamespace(**runpy.run_path(str(ROOT / "tools" / "comparison.py")))
every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


@pytest.fixture(scope="module")
def example() -> tuple[str, dict[str, object]]:
    """What the README's example prints, and the names that it leaves."""
    names: dict[str, object] = {"__name__": "readme"}
    (code,) = blocks(README, "python")
    return run(code, names), names


def test_the_example_prints_what_is_shown(example):
    (shown,) = blocks(README, "text")
    assert example[0] == shown


def test_the_comparison_has_the_numbers_of_the_rows():
    """Each name with its number; what is said about them may be put in other words."""
    expected = [lines_of_table(comparison.table()), len(comparison.common_tables())]
    shown = README.partition(comparison.BEGIN)[2].partition(comparison.END)[0]
    found = int(re.search(r"(\d+) real tables", shown).group(1))
    assert [lines_of_table(shown), found] == expected, "write it anew: python tools/comparison.py"


def lines_of_table(text: str) -> list[list[str]]:
    """Names and numbers of each row of the comparison."""
    rows = [line.strip("| ").split(" | ") for line in text.splitlines()[2:]]
    return [[row[-2].strip("*"), *row[-1].split(", ")] for row in rows]


def test_the_caption_has_the_numbers_of_the_picture():
    """The picture itself is drawn by the slow tests."""
    code = (ROOT / "examples" / "recovered_mask.py").read_text("utf-8")
    n_rows, n_features, n_factors = re.search(r"make_anchored_factors\((\d+), (\d+), (\d+)", code).groups()
    room = re.search(r"n_factors=(\d+)", code).group(1)
    words = {"5": "five", "8": "eight", "40": "forty"}
    said = f"{words[n_features]} features made from {words[n_factors]} correlated factors"
    caption = " ".join(README.split())
    assert said in caption
    assert f"up to {words[room]} factors found in {int(n_rows):,} rows" in caption


def test_the_quick_start_goes_on_from_the_example(example, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first, *more = blocks(QUICK_START, "python")
    assert first == blocks(README, "python")[0]
    shown = blocks(QUICK_START, "text")
    assert shown[0] == example[0]
    for text, expected in zip(printed_by(more, example[1]), shown[1:], strict=True):
        assert_alike(text, expected)


def test_the_table_of_parameters_has_the_defaults_of_the_code():
    page = (ROOT / "docs" / "reference" / "estimators" / "sparse-vae.md").read_text("utf-8")
    written = dict(
        re.findall(r"^\| `(\w+)` \| `(.+?)` \| ", page.split("## Parameters")[1], flags=re.MULTILINE)
    )
    signature = inspect.signature(SparseVAE).parameters
    assert written == {name: repr(parameter.default) for name, parameter in signature.items()}


@every_page
def test_every_file_that_is_linked_is_there(page):
    for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
        assert link.startswith("http") or (page.parent / link).exists(), link


@every_page
def test_the_make_targets_that_are_named_exist(page):
    makefile = (ROOT / "Makefile").read_text("utf-8")
    code = re.findall(r"`[^`]+`|^make .*$", page.read_text("utf-8"), flags=re.MULTILINE)
    for target in re.findall(r"\bmake (\w+)", "\n".join(code)):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target


@every_page
def test_the_commands_that_are_shown_have_the_options_that_they_use(page):
    for line in "".join(blocks(page.read_text("utf-8"), "console")).splitlines():
        words = shlex.split(line.split("|")[0], comments=True)
        if words and words[0] == "sparsevae" and not words[1].startswith("-"):
            path = words[1:3] if words[1] == "data" else words[1:2]
            shown = CliRunner().invoke(app, [*path, "--help"]).stdout
            for word in words[1 + len(path) :]:
                if word.startswith("-"):
                    assert re.search(rf"(^|[ ,]){word}\b", shown, flags=re.MULTILINE), line
