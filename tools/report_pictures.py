"""The pictures of a report in the docs and the README; ``python -m tools.report_pictures`` draws them anew.

It needs Chromium, and fits the ability tests as ``examples/factor_cards.py`` does.
"""

from __future__ import annotations

import runpy
import tempfile
from pathlib import Path

from PIL import Image
from tests.report.browser import Browser, find_browser

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "docs" / "images"
AROUND = 6  # pixels


def main() -> None:
    """Write report.png, the top of the page, and card.png, its first card."""
    program = find_browser()
    if program is None:
        raise SystemExit("Expected Chromium; there is none. Install it.")
    example = runpy.run_path(str(ROOT / "examples" / "factor_cards.py"))
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "ability.html"
        example["main"](str(page))
        browser = Browser(program)
        try:
            photograph(browser, page, "report.png", 960, "#summary", "#mask")
            photograph(browser, page, "card.png", 1060, "#F0", "#F0")
        finally:
            browser.close()


def photograph(browser: Browser, page: Path, name: str, width: int, first: str, last: str) -> None:
    """Write the part of a page from one element to the end of another, over the width of the last."""
    browser.emulate(width=width)
    browser.open(page)
    # The picture of the whole page has no scroll bar; without one in the page, too, nothing moves.
    browser.evaluate("document.documentElement.style.scrollbarWidth = 'none'")
    box = "document.querySelector('{}').getBoundingClientRect()"
    top = 0 if first == "#summary" else browser.evaluate(f"scrollY + {box.format(first)}.top")
    left, right = 0, width
    if first == last:
        left, right = (browser.evaluate(f"{box.format(first)}.{edge}") for edge in ("left", "right"))
    bottom = browser.evaluate(f"scrollY + {box.format(last)}.bottom")
    whole = page.with_suffix(".png")
    browser.screenshot(whole, whole=True)
    with Image.open(whole) as picture:
        edges = left - AROUND, top - AROUND, right + AROUND, bottom + AROUND
        limits = (0, picture.width), (0, picture.height)
        (x0, y0, x1, y1) = (
            int(min(max(edge, low), high)) for edge, (low, high) in zip(edges, limits * 2, strict=True)
        )
        picture.convert("RGB").crop((x0, y0, x1, y1)).save(PICTURES / name, optimize=True)


if __name__ == "__main__":
    main()
