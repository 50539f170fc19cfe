from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from .helpers import blocks

ROOT = Path(__file__).parents[2]
DOCS, RESULTS = ROOT / "docs", ROOT / "results"


@pytest.mark.slow
def test_the_documentation_builds_without_a_warning(tmp_path):
    pytest.importorskip("sphinx")
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-W",
        "--keep-going",
        "-q",
        "-E",
        "-b",
        "html",
        str(DOCS),
        str(tmp_path),
    ]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    for page in DOCS.rglob("*.md"):
        if "_build" not in page.parts:
            assert (tmp_path / page.relative_to(DOCS).with_suffix(".html")).exists()
    assert len(list(tmp_path.glob("_downloads/*/survey.ipynb"))) == 1
    for page in RESULTS.rglob("*.md"):
        assert (tmp_path / page.relative_to(ROOT).with_suffix(".html")).exists()


def test_every_picture_is_described():
    for page in (ROOT / "README.md", *DOCS.rglob("*.md")):
        if "_build" in page.parts:
            continue
        text = page.read_text("utf-8")
        shown = re.findall(r"^```\{(?:image|figure)\} .+?^```", text, flags=re.MULTILINE | re.DOTALL)
        assert all(re.search(r"^:alt: \S.{20}", part, flags=re.MULTILINE) for part in shown), page
        assert all(words for words in re.findall(r"!\[(.*?)\]\(", text)), page


@pytest.mark.parametrize("picture", sorted((DOCS / "images").glob("*.svg")), ids=lambda path: path.stem)
def test_a_drawing_has_a_title_and_both_schemes_of_colours(picture):
    drawing = ElementTree.parse(picture).getroot()
    assert drawing.get("viewBox")
    assert drawing.findtext("{http://www.w3.org/2000/svg}title") == drawing.get("aria-label")
    style = drawing.findtext("{http://www.w3.org/2000/svg}style")
    assert "@media (prefers-color-scheme: dark)" in style


def test_tutorials_become_notebooks_without_the_output_that_they_show():
    pytest.importorskip("sphinx")
    make = runpy.run_path(str(DOCS / "conf.py"))["make_tutorials_notebooks"]
    for page in sorted((DOCS / "tutorials").glob("*.md")):
        text = page.read_text("utf-8")
        source = [text]
        make(None, f"tutorials/{page.stem}", source)
        cells = blocks(text, "python")
        assert blocks(source[0], "{code-cell}") == cells
        assert ("file_format: mystnb" in source[0]) == bool(cells)
        assert "```text" not in source[0]


def test_the_short_page_counts_the_claims_as_the_long_one_does():
    held: dict[str, list[bool]] = {}
    for line in (RESULTS / "claims-paper.md").read_text("utf-8").splitlines():
        if found := re.match(r"\| \[(\w+)\]\(.+?\) \| .+? \| (.+?) \|", line):
            name, answer = found.groups()
            of = re.match(r"(\d+) of (\d+)", answer)
            held.setdefault(name, []).append(of[1] == of[2] if of else answer.startswith("yes"))
    shown = {}
    for line in (DOCS / "research" / "claims.md").read_text("utf-8").splitlines():
        if found := re.match(r"\| (\w+) \| (\d+) of (\d+)", line):
            shown[found[1].lower()] = (int(found[2]), int(found[3]))
    assert shown == {name: (sum(answers), len(answers)) for name, answers in held.items()}
    assert sum(len(answers) for answers in held.values()) == 20, "the page says twenty"


def test_the_page_of_results_has_every_page_that_a_command_wrote():
    """They are in no table of contents."""
    page = DOCS / "research" / "results.md"
    links = re.findall(r"\]\(([^)#]+)\)", page.read_text("utf-8"))
    linked = {(page.parent / link).resolve() for link in links}
    small = re.compile(r"smoke|quick")  # scales that are tried in a clone and not committed
    assert linked >= {
        page for page in RESULTS.rglob("*.md") if not small.search(str(page.relative_to(RESULTS)))
    }
