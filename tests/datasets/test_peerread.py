import gzip
import json
import zipfile

import numpy as np
import pytest
from scipy import sparse

from sparsevae.datasets import DataNotFoundError, load_peerread
from sparsevae.datasets import peerread as module
from sparsevae.exceptions import DataError

PAPERS = [
    ("arxiv.cs.ai_2007-2017", "Neural networks learn; networks &amp; graphs."),
    ("arxiv.cs.cl_2007-2017", "Word embeddings of words, \\cite{x} state-of-the-art 3d networks"),
    ("arxiv.cs.lg_2007-2017", ""),
    ("arxiv.cs.lg_2007-2017", "Kernel networks and kernel methods: the theory of kernel learning"),
    ("acl_2017", "Translation translation translation"),
]
KEEP_ALL = {"min_document_share": 0.0, "max_document_share": 1.0, "lemmatise": False}


@pytest.fixture
def jsonl(tmp_path):
    path = tmp_path / "papers.jsonl.gz"
    lines = "".join(json.dumps({"venue": venue, "abstract": text}) + "\n" for venue, text in PAPERS)
    path.write_bytes(gzip.compress(lines.encode()))
    return path


@pytest.fixture
def folder(tmp_path):
    for number, (venue, text) in enumerate(PAPERS):
        reviews = tmp_path / "PeerRead" / "data" / venue / "train" / "reviews"
        reviews.mkdir(parents=True, exist_ok=True)
        (reviews / f"{number}.json").write_text(
            json.dumps({"abstract": text, "reviews": [], "id": str(number)})
        )
        parsed = reviews.parent / "parsed_pdfs"
        parsed.mkdir(exist_ok=True)
        (parsed / f"{number}.pdf.json").write_text('{"metadata": {}}')
    return tmp_path / "PeerRead"


def test_counts_are_those_of_a_hand_count(jsonl):
    data = load_peerread(jsonl, n_features=50, **KEEP_ALL)
    assert sparse.issparse(data.X)
    table = {name: data.X.toarray()[:, j].tolist() for j, name in enumerate(data.feature_names)}
    assert table["networks"] == [2, 1, 1]
    assert table["kernel"] == [0, 0, 3]
    assert table["word"] == [0, 1, 0]
    for dropped in ("the", "amp", "cite", "state", "art", "3d", "translation"):
        assert dropped not in table


def test_target_is_the_venue_and_empty_abstracts_are_named_in_the_description(jsonl):
    data = load_peerread(jsonl, **KEEP_ALL)
    assert data.target.tolist() == [PAPERS[i][0] for i in (0, 1, 3)]
    assert "4 of 5 papers" in data.description
    assert "1 empty abstracts dropped" in data.description
    assert "plain tokens" in data.description


def test_folder_and_archive_give_the_table_of_the_lines(jsonl, folder, tmp_path):
    archive = tmp_path / "PeerRead-master.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for path in folder.glob("**/*.json"):
            file.write(path, "PeerRead-master" / path.relative_to(folder))
    expected = load_peerread(jsonl, **KEEP_ALL)
    for path in (folder, folder / "data", archive):
        data = load_peerread(path, **KEEP_ALL)
        np.testing.assert_array_equal(data.X.toarray(), expected.X.toarray())
        assert data.feature_names.tolist() == expected.feature_names.tolist()
        assert data.target.tolist() == expected.target.tolist()


def test_the_data_directory_is_searched(jsonl, data_folder):
    jsonl.rename(data_folder / "peerread_abstracts.jsonl.gz")
    assert load_peerread(**KEEP_ALL).n_samples == 3


def test_absent_data_are_asked_for(data_folder):
    with pytest.raises(DataNotFoundError, match="allenai/PeerRead"):
        load_peerread()


def test_the_most_used_words_within_the_shares_are_kept(jsonl):
    assert load_peerread(jsonl, n_features=2, **KEEP_ALL).feature_names.tolist() == ["kernel", "networks"]
    limits = KEEP_ALL | {"max_document_share": 0.9}
    assert "networks" not in load_peerread(jsonl, **limits).feature_names


def test_venues_are_chosen_by_name(jsonl):
    assert load_peerread(jsonl, venues="all", **KEEP_ALL).n_samples == 4
    assert load_peerread(jsonl, venues=["acl_2017"], **KEEP_ALL).feature_names.tolist() == ["translation"]
    with pytest.raises(DataError, match="Expected papers of venues 'icml'"):
        load_peerread(jsonl, venues="icml", **KEEP_ALL)


def test_abstracts_of_fewer_than_two_words_are_dropped(tmp_path):
    path = tmp_path / "a.jsonl"
    texts = ["graph graph", "graph", "kernel graph"]
    path.write_text("".join(json.dumps({"venue": "arxiv", "abstract": text}) + "\n" for text in texts))
    data = load_peerread(path, **KEEP_ALL)
    assert data.n_samples == 2
    assert "1 abstracts with fewer than two" in data.description


def test_lemmas_are_used_and_stated_where_they_can_be_had(jsonl, monkeypatch):
    monkeypatch.setattr(module, "_lemmatiser", lambda wanted: lambda word: word.removesuffix("s"))
    data = load_peerread(jsonl, min_document_share=0.0, max_document_share=1.0)
    assert "network" in data.feature_names
    assert "lemmas by WordNet" in data.description


def test_lemmatisation_on_demand_is_done_or_refused(jsonl):
    try:
        from nltk.stem import WordNetLemmatizer

        WordNetLemmatizer().lemmatize("words")
    except (ImportError, LookupError):
        with pytest.raises(DataError, match="lemmatise=False"):
            load_peerread(jsonl, lemmatise=True)
    else:
        assert "network" in load_peerread(jsonl, **KEEP_ALL | {"lemmatise": True}).feature_names


def test_a_truncated_gzip_file_is_refused_by_name(jsonl):
    jsonl.write_bytes(jsonl.read_bytes()[:-30])
    with pytest.raises(DataError, match=r"papers\.jsonl\.gz"):
        load_peerread(jsonl)


def test_a_damaged_line_is_refused_by_number(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"venue": "arxiv", "abstract": "one two"}\n{"venue": "arx')
    with pytest.raises(DataError, match=r"a\.jsonl, line 2"):
        load_peerread(path)


def test_a_damaged_paper_is_refused_by_file(folder):
    broken = next(folder.glob("**/reviews/*.json"))
    broken.write_text('{"abstract": ')
    with pytest.raises(DataError, match=broken.name):
        load_peerread(folder)


@pytest.mark.parametrize("name", ["papers.csv", "empty"])
def test_another_kind_of_file_is_refused(tmp_path, name):
    path = tmp_path / name
    path.mkdir() if name == "empty" else path.write_text("a,b")
    with pytest.raises(DataError, match=name):
        load_peerread(path)


def test_the_real_abstracts_give_the_papers_table(real_data):
    data = load_peerread(real_data("peerread_abstracts.jsonl.gz"), lemmatise=False)
    assert data.n_features == 500
    assert data.n_samples == pytest.approx(11_777, abs=3)
    assert {"neural", "reinforcement", "translation"} <= set(data.feature_names)
    shares = (data.X > 0).sum(axis=0) / data.n_samples
    assert shares.min() >= 0.00099
    assert shares.max() <= 0.9
