"""From documents to a run and back."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from .helpers import invoke, refusal

FIELDS = {"sky": "sun moon star comet", "weather": "rain cloud wind storm"}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Sixty documents in a CSV and in a folder, quick settings, and a run."""
    folder = tmp_path_factory.mktemp("text")
    texts = [" ".join(FIELDS["sky" if i % 2 else "weather"].split()[: 2 + i % 3]) for i in range(60)]
    pd.DataFrame({"id": [f"d{i}" for i in range(60)], "body": texts}).to_csv(folder / "docs.csv", index=False)
    (folder / "files").mkdir()
    for i, text in enumerate(texts):
        (folder / "files" / f"d{i:02}.txt").write_text(text)
    (folder / "quick.toml").write_text(
        'n_init = 1\nmax_epochs = 3\nn_factors = 2\nrecipe = "paper"\n[table.text]\nmin_documents = 1\n'
    )
    result = invoke(
        "fit",
        folder / "docs.csv",
        "--text",
        "body",
        "--out",
        folder / "run",
        "--config",
        folder / "quick.toml",
    )
    assert result.exit_code == 0, result.stderr
    assert "The likelihood is multinomial" in result.stderr
    return folder


def test_the_run_says_how_words_were_counted(corpus):
    record = json.loads((corpus / "run" / "run.json").read_text())
    assert record["reading"]["text"]["column"] == "body"
    assert record["reading"]["text"]["min_documents"] == 1
    assert record["reading"]["text"]["stop_words"] == "english"
    loadings = pd.read_csv(corpus / "run" / "loadings.csv", index_col=0)
    assert loadings.index.tolist() == sorted(" ".join(FIELDS.values()).split())


def test_new_documents_are_counted_with_the_words_of_the_fit(corpus, tmp_path):
    (tmp_path / "new.csv").write_text("id,body\na,sun sun whale\nb,\n")
    result = invoke("transform", corpus / "run", tmp_path / "new.csv")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.splitlines()[2].startswith("b,0")
    again = invoke("transform", corpus / "run", corpus / "docs.csv", "--json")
    fitted = pd.read_csv(corpus / "run" / "factors.csv", index_col=0)
    assert json.loads(again.stdout)["samples"] == fitted.index.tolist()


def test_a_folder_gives_the_same_fit(corpus, tmp_path):
    result = invoke(
        "fit",
        corpus / "files",
        "--out",
        tmp_path / "run",
        "--config",
        corpus / "quick.toml",
        "--stop-words",
        "a,b",
    )
    assert result.exit_code == 0, result.stderr
    one, other = (pd.read_csv(run / "loadings.csv") for run in (corpus / "run", tmp_path / "run"))
    pd.testing.assert_frame_equal(one, other)


def test_the_report_has_the_words(corpus, tmp_path):
    assert invoke("name", corpus / "run", "0=zeal").exit_code == 0
    result = invoke("report", corpus / "run", "-o", tmp_path / "r.html")
    assert result.exit_code == 0, result.stderr
    page = (tmp_path / "r.html").read_text("utf-8")
    assert '<h2 id="words-h">Words</h2>' in page
    assert json.loads((tmp_path / "r.json").read_text("utf-8"))["factors"][0]["words"]["features"]


def test_a_column_that_is_not_there_is_named(corpus, tmp_path):
    message = refusal("fit", corpus / "docs.csv", "--text", "title", "--out", tmp_path / "run")
    assert "Expected a column 'title' of texts" in message
