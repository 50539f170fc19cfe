from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

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
    for page in RESULTS.rglob("*.md"):
        assert (tmp_path / page.relative_to(ROOT).with_suffix(".html")).exists()


def test_the_page_of_results_has_every_page_that_a_command_wrote():
    """They are in no table of contents."""
    page = DOCS / "research" / "results.md"
    links = re.findall(r"\]\(([^)#]+)\)", page.read_text("utf-8"))
    linked = {(page.parent / link).resolve() for link in links}
    small = re.compile(r"smoke|quick")  # scales that are tried in a clone and not committed
    assert linked >= {
        page for page in RESULTS.rglob("*.md") if not small.search(str(page.relative_to(RESULTS)))
    }
