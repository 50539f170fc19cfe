"""The page in a real browser: it opens without network and complaint, and its controls work."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from sparsevae.report import build_content, write_report

from .conftest import HOSTILE

TURN = "\u202e"  # from here on written from right to left
VISIBLE = "[...document.querySelectorAll('#feature-table tbody tr')].filter(row => !row.hidden)"


def names_shown(page):
    return page.evaluate(f"{VISIBLE}.map(row => row.cells[0].textContent)")


def text(page, selector):
    return page.evaluate(f"document.querySelector('{selector}').textContent")


def choose(page, selector, value):
    page.evaluate(
        f"(() => {{ const control = document.querySelector('{selector}'); control.value = '{value}';"
        "control.dispatchEvent(new Event('change')); })()"
    )


def pixels(page):
    """How many different colours the heat map has."""
    return page.evaluate(
        "(() => { const c = document.querySelector('#map canvas');"
        "const d = new Uint32Array(c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer);"
        "return new Set(d).size; })()"
    )


def test_it_opens_without_network_and_without_complaint(page):
    assert page.problems == []
    assert page.evaluate("performance.getEntriesByType('resource').length") == 0
    assert pixels(page) > 3


def test_names_from_strangers_stay_text(page):
    assert page.evaluate("window.broken === undefined")
    assert page.evaluate("document.querySelectorAll('img').length") == 0
    assert page.evaluate("document.querySelectorAll('script').length") == 2
    shown = names_shown(page)
    for name in HOSTILE:
        assert any(name.replace(TURN, "")[:70] in other for other in shown), name[:70]
    assert not page.evaluate(f"document.body.textContent.includes({TURN!r})")
    assert page.evaluate("document.title").startswith("Answers of <em>strangers</em>")
    assert "<b>sample" in text(page, ".samples")


def test_a_script_that_got_in_all_the_same_would_not_run(page):
    page.evaluate(
        "(() => { const s = document.createElement('script'); s.textContent = 'window.broken = 3';"
        "document.body.append(s); })()"
    )
    assert page.evaluate("window.broken === undefined")


def test_a_long_name_does_not_widen_the_page(page):
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_searching_finds_a_feature_and_its_factors(page):
    page.press("/")
    assert page.evaluate("document.activeElement.id") == "search"
    page.type("EMOJI")
    assert [name[:5] for name in names_shown(page)] == ["emoji"]
    assert text(page, "#search-status").startswith("1 feature. Factors: F")
    page.press("Escape")
    assert len(names_shown(page)) == len(HOSTILE)
    page.type("no such name")
    assert names_shown(page) == []
    assert "No feature" in text(page, "#search-status")
    page.press("Escape")
    page.type("<img src")
    assert len(names_shown(page)) == 1
    assert page.problems == []


def test_headings_sort_up_and_down(page):
    by_share = "#feature-table thead th:nth-child(3) button"
    values = f"{VISIBLE}.map(row => Number(row.cells[2].dataset.value))"
    page.click(by_share)
    falling = page.evaluate(values)
    assert falling == sorted(falling, reverse=True)
    assert page.evaluate(f"document.querySelector('{by_share}').parentNode.ariaSort") == "descending"
    page.evaluate(f"document.querySelector('{by_share}').focus()")
    page.press("Enter")
    assert page.evaluate(values) == falling[::-1] or page.evaluate(values) == sorted(falling)
    assert page.evaluate("document.querySelectorAll('#feature-table [aria-sort]').length") == 1


def test_features_are_filtered_by_role_and_factor(page):
    choose(page, "#feature-role", "shared")
    assert names_shown(page) == ["=1+1"]
    choose(page, "#feature-role", "none")
    assert names_shown(page) == ["plain"]
    choose(page, "#feature-role", "")
    choose(page, "#feature-factor", "0")
    assert len(names_shown(page)) == 4


def test_the_heat_map_is_walked_with_the_keyboard(page):
    page.evaluate("document.querySelector('#map').focus()")
    page.press("ArrowDown")
    first = text(page, "#map-readout")
    assert "× sparsevae0" in first
    assert "average effect" in first
    page.press("ArrowRight")
    assert "exact zero" in text(page, "#map-readout")
    page.press("End")
    assert text(page, "#map-readout").startswith("plain")
    page.press("Enter")
    assert page.evaluate("document.activeElement.id") == "F1"


def test_a_click_on_the_heat_map_reads_a_cell(page):
    page.evaluate("document.querySelector('#map').scrollIntoView({block: 'center'})")
    page.click("#map")
    assert "×" in text(page, "#map-readout")


def test_cards_are_sorted_and_filtered(page):
    order = "[...document.querySelectorAll('.card')].filter(card => !card.hidden).map(card => card.id)"
    assert page.evaluate(order) == ["F0", "F1"]
    choose(page, "#card-sort", "cost")
    costs = page.evaluate("[...document.querySelectorAll('.card')].map(card => Number(card.dataset.cost))")
    assert costs == sorted(costs, reverse=True)
    page.evaluate("document.querySelectorAll('.card-verdict').forEach(box => box.checked && box.click())")
    assert page.evaluate(order) == []
    assert "0 of 2" in text(page, "#card-status")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_text_stands_out_from_the_paper(chromium, written, dark):
    chromium.emulate(dark=dark)
    chromium.open(written["page"])
    assert chromium.evaluate(CONTRAST) >= 4.5


CONTRAST = """(() => {
  const linear = v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = colour => { const [r, g, b] = colour.match(/[\\d.]+/g).slice(0, 3).map(v => linear(v / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const paper = element => { for (let e = element; e; e = e.parentElement) {
    const c = getComputedStyle(e).backgroundColor; if (!/, 0\\)$/.test(c)) return c; }
    return 'rgb(255, 255, 255)'; };
  const kinds = 'p, td, th, dt, dd, a, h2, h3, h4, .verdict, .chip, .anchor, label';
  const texts = [...document.querySelectorAll(kinds)]
    .filter(e => e.offsetParent && e.textContent.trim());
  return Math.min(...texts.map(e => { const a = light(getComputedStyle(e).color), b = light(paper(e));
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05); }));
})()"""


def test_the_theme_can_be_turned(page):
    paper = "getComputedStyle(document.body).backgroundColor"
    before = page.evaluate(paper)
    page.click("#theme")
    assert page.evaluate(paper) != before
    page.click("#theme")
    assert page.evaluate(paper) == before


def test_everything_that_can_be_used_has_a_name(page):
    unnamed = page.evaluate(
        "[...document.querySelectorAll('button, select, input, a[href], [tabindex=\"0\"]')].filter(e =>"
        "!(e.textContent.trim() || e.ariaLabel || e.labels?.length)).map(e => e.outerHTML)"
    )
    assert unnamed == []
    assert page.evaluate("[...document.querySelectorAll('svg.figure')].every(e => e.ariaLabel)")
    assert page.evaluate(
        "new Set([...document.querySelectorAll('[id]')].map(e => e.id)).size"
    ) == page.evaluate("document.querySelectorAll('[id]').length")


def test_it_fits_a_narrow_screen(chromium, written):
    chromium.emulate(width=400, height=800)
    chromium.open(written["page"])
    assert chromium.evaluate("document.documentElement.scrollWidth") <= 400
    assert chromium.problems == []


def test_it_prints(page):
    assert page.pdf().startswith(b"%PDF")


def test_nothing_is_cut_off_on_paper(chromium, written):
    chromium.emulate(media="print", width=700)
    chromium.open(written["page"])
    assert chromium.evaluate("document.documentElement.scrollWidth") <= 700
    too_wide = (
        "[...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth + 1).length"
    )
    assert chromium.evaluate(too_wide) == 0


def test_the_mask_is_on_paper_and_the_controls_are_not(chromium, written):
    shown = "(s) => document.querySelector(s).getBoundingClientRect().height > 0"
    for media, on_paper in (("print", True), ("screen", False)):
        chromium.emulate(media=media)
        chromium.open(written["page"])
        assert chromium.evaluate(f"({shown})('.mask-figure')") is on_paper
        assert chromium.evaluate(f"({shown})('#map')") is not on_paper
    chromium.emulate()


def test_without_script_the_features_are_there(chromium, written, tmp_path):
    html = written["page"].read_text("utf-8")
    bare = tmp_path / "bare.html"
    bare.write_text(html[: html.rindex("<script>")] + "</body></html>", "utf-8")
    chromium.emulate()
    chromium.open(bare)
    assert len(names_shown(chromium)) == len(HOSTILE)


@pytest.fixture(scope="module")
def word_page(chromium, linear_model, tmp_path_factory):
    """A page on counts: one frequent word of both factors, and rare ones of one factor."""
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 200))
    rate = np.column_stack([8 * np.exp(0.3 * a), np.exp(0.9 * a), np.exp(0.9 * b), np.exp(0.8 * b)])
    frame = pd.DataFrame(rng.poisson(rate).astype(float), columns=["often", "<b>rare</b>", "hail", "rain"])
    mask = np.array([[0.95, 0.0], [0.6, 0.0], [0.0, 0.9], [0.0, 0.8]])
    model = linear_model(frame, np.column_stack([a, b]), mask, likelihood="poisson")
    path = tmp_path_factory.mktemp("words") / "words.html"
    write_report(build_content(model, evidence=model.evidence(frame)), path)
    chromium.problems.clear()
    chromium.emulate()
    chromium.open(path)
    return chromium


def words_of(page, factor):
    return page.evaluate(
        f"[...document.querySelectorAll('.word-list')[{factor}].querySelectorAll('.word')].map(w => "
        "w.textContent)"
    )


def test_the_page_and_its_script_rank_words_alike(word_page):
    before = [words_of(word_page, k) for k in (0, 1)]
    word_page.evaluate("document.querySelector('#relevance').dispatchEvent(new Event('input'))")
    assert [words_of(word_page, k) for k in (0, 1)] == before


def test_the_slider_ranks_words_by_frequency_or_by_what_is_special(word_page):
    factor = next(k for k in (0, 1) if "often" in words_of(word_page, k))
    slide = (
        "(() => { const s = document.querySelector('#relevance'); s.value = '%s';"
        "s.dispatchEvent(new Event('input')); })()"
    )
    word_page.evaluate(slide % "1")
    assert words_of(word_page, factor)[0] == "often"
    assert text(word_page, "#relevance-status") == "λ = 1.00"
    word_page.evaluate(slide % "0")
    assert words_of(word_page, factor)[0] == "<b>rare</b>"
    assert word_page.problems == []


def test_on_a_phone_verdicts_are_in_view_and_words_of_pictures_legible(page):
    page.emulate(width=400)
    edge = page.evaluate("document.querySelector('#factor-table .verdict').getBoundingClientRect().right")
    words = "document.querySelector('.wide-figure text')"
    size = page.evaluate(f"{words}.getBoundingClientRect().height")
    page.emulate()
    assert edge <= 400
    assert size >= 8


def test_a_page_on_real_values_has_no_words(page):
    assert page.evaluate("document.querySelector('#words')") is None
