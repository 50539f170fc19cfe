from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.slow
def test_the_picture_of_the_readme_can_be_drawn(tmp_path, capsys):
    example = runpy.run_path(str(EXAMPLES / "recovered_mask.py"))
    example["main"](str(tmp_path / "mask.png"))
    assert (tmp_path / "mask.png").read_bytes().startswith(b"\x89PNG")
    assert "factors found" in capsys.readouterr().out
