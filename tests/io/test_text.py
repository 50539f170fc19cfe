from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest

from sparsevae import read_table
from sparsevae.exceptions import DataError, ParameterError
from sparsevae.io import TextOptions

TEXTS = [
    "The sun and the moon, the sun",
    "sun moon star",
    "rain cloud\nwind",
    "rain rain cloud",
    "wind cloud star",
    "",
]
WORDS = ["cloud", "moon", "rain", "star", "sun", "wind"]


@pytest.fixture
def frame():
    return pd.DataFrame({"id": [f"d{i}" for i in range(6)], "body": TEXTS, "year": range(6)})


@pytest.mark.parametrize("ending", ["csv", "tsv", "csv.gz", "jsonl", "jsonl.gz", "parquet"])
def test_a_column_of_texts_becomes_a_table_of_words(frame, tmp_path, ending):
    path = tmp_path / f"docs.{ending}"
    if ending == "parquet":
        frame.to_parquet(path)
    elif "json" in ending:
        frame.to_json(path, orient="records", lines=True)
    else:
        frame.to_csv(path, index=False, sep="\t" if ending == "tsv" else ",")
    table = read_table(path, text="body")
    assert table.feature_names.tolist() == WORDS
    assert table.sample_names.tolist() == frame["id"].tolist()
    assert table.id_name == "id"
    counts = pd.DataFrame(table.X.toarray(), columns=WORDS)
    assert counts.loc[0].to_dict() == {"cloud": 0, "moon": 1, "rain": 0, "star": 0, "sun": 2, "wind": 0}
    assert counts.loc[2, ["cloud", "rain", "wind"]].tolist() == [1, 1, 1]
    assert "1 document has none of these words." in table.assumptions
    assert "Counted 6 words in 6 documents" in table.assumptions[0]


def test_more_words_than_documents_are_a_reason_for_fewer(tmp_path):
    for i, text in enumerate(TEXTS[:4]):
        (tmp_path / f"{i}.txt").write_text(text, "utf-8")
    hint = "There are more words than documents"
    assert any(hint in note for note in read_table(tmp_path, text=TextOptions(min_documents=1)).assumptions)
    few = read_table(tmp_path, text=TextOptions(min_documents=1, max_words=3))
    assert not any(hint in note for note in few.assumptions)


def test_few_documents_keep_few_words(tmp_path):
    for i in range(240):
        (tmp_path / f"{i:03}.txt").write_text(
            " ".join(f"word{(7 * i + k) % 150}" for k in range(40)), "utf-8"
        )
    assert read_table(tmp_path).X.shape[1] == 120
    assert read_table(tmp_path, text=TextOptions(max_words=140)).X.shape[1] == 140


def test_a_folder_is_a_document_per_file(tmp_path):
    for i, text in enumerate(TEXTS):
        (tmp_path / f"{i}.txt").write_text(text, "utf-8")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG")
    table = read_table(tmp_path)
    assert table.feature_names.tolist() == WORDS
    assert table.sample_names.tolist() == [f"{i}.txt" for i in range(6)]
    before = table.fingerprint()
    assert before["bytes"] == sum(len(text) for text in TEXTS)
    (tmp_path / "0.txt").write_text("sun sun sun", "utf-8")
    assert table.fingerprint()["sha256"] != before["sha256"]


def test_options_choose_the_words(frame, tmp_path):
    frame.to_csv(tmp_path / "docs.csv", index=False)

    def words(**options):
        return read_table(tmp_path / "docs.csv", text={"column": "body", **options}).feature_names.tolist()

    assert words(max_words=1) == ["cloud"]
    assert words(stop_words=None, min_documents=1)[:2] == ["and", "cloud"]
    assert "rain" not in words(stop_words=["rain"])
    assert words(vocabulary=["moon", "unheard"]) == ["moon", "unheard"]
    assert words(max_fraction=0.4) == ["moon", "rain", "star", "sun", "wind"]


def test_what_was_chosen_can_be_recorded():
    assert TextOptions("body", stop_words="none").stop_words is None
    options = asdict(TextOptions("body"))
    assert json.loads(json.dumps(options)) == options
    assert options["column"] == "body"


def test_a_table_of_texts_goes_to_its_estimator(frame, tmp_path):
    frame.to_csv(tmp_path / "docs.csv", index=False)
    table = read_table(tmp_path / "docs.csv", text="body")
    assert table.for_estimator() is table.X
    assert np.issubdtype(table.X.dtype, np.floating)


@pytest.mark.parametrize(
    "text, message",
    [
        ("title", "Expected a column 'title' of texts in .*; there is 'id', 'body', 'year'"),
        ({"column": "body", "min_documents": 6}, "Choose other limits"),
        ({"column": "empty"}, "there is 'id'"),
    ],
)
def test_texts_that_cannot_be_counted_are_refused(frame, tmp_path, text, message):
    frame.to_csv(tmp_path / "docs.csv", index=False)
    with pytest.raises(DataError, match=message):
        read_table(tmp_path / "docs.csv", text=text)


def test_empty_columns_folders_and_other_files_are_refused(frame, tmp_path):
    frame.assign(body=None).to_csv(tmp_path / "docs.csv", index=False)
    with pytest.raises(DataError, match="every cell is empty"):
        read_table(tmp_path / "docs.csv", text="body")
    (tmp_path / "folder").mkdir()
    with pytest.raises(DataError, match=r"Expected text files .* one per document; got none"):
        read_table(tmp_path / "folder")
    (tmp_path / "folder" / "a.txt").write_bytes(b"caf\xe9")
    with pytest.raises(DataError, match="text in UTF-8; got byte 0xe9"):
        read_table(tmp_path / "folder")
    np.save(tmp_path / "x.npy", np.ones((2, 2)))
    with pytest.raises(DataError, match="Save the table as CSV"):
        read_table(tmp_path / "x.npy", text="body")
    with pytest.raises(DataError, match="no such file"):
        read_table(tmp_path / "nowhere.csv", text="body")
    (tmp_path / "bad.jsonl").write_text("{")
    with pytest.raises(DataError, match="Expected a table with a column of texts"):
        read_table(tmp_path / "bad.jsonl", text="body")
    frame.to_csv(tmp_path / "docs.csv", index=False)
    with pytest.raises(DataError, match="Expected a column 'who'"):
        read_table(tmp_path / "docs.csv", text="body", id_column="who")


@pytest.mark.parametrize(
    "text", [7, {"colum": "body"}, {"max_words": 0}, {"max_fraction": 2.0}, {"stop_words": "german"}]
)
def test_options_that_make_no_sense_are_refused(frame, tmp_path, text):
    frame.to_csv(tmp_path / "docs.csv", index=False)
    with pytest.raises(ParameterError, match="Expected"):
        read_table(tmp_path / "docs.csv", text=text)
