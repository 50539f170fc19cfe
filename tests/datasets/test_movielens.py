import zipfile

import numpy as np
import pytest

from sparsevae.datasets import DataNotFoundError, load_movielens
from sparsevae.exceptions import DataError, ParameterError

# user 1 likes movies 10, 20, 30; user 2 likes 10, 20 and dislikes 30; user 7 likes 10; user 8 dislikes all
RATINGS = [
    (1, 10, 4.0),
    (1, 20, 5.0),
    (1, 30, 4.5),
    (2, 10, 4.0),
    (2, 20, 4.5),
    (2, 30, 3.5),
    (7, 10, 5.0),
    (8, 10, 1.0),
    (8, 20, 2.0),
    (8, 30, 0.5),
]
TITLES = {10: "Heat (1995)", 20: 'Comma, The "Quoted" (1996)', 30: "Star Wars: Episode IV (1977)"}


def write_csv(folder):
    folder.mkdir(exist_ok=True)
    lines = ["userId,movieId,rating,timestamp"] + [f"{u},{m},{r},96498270{u}" for u, m, r in RATINGS]
    (folder / "ratings.csv").write_text("\r\n".join(lines) + "\r\n")
    titles = ["movieId,title,genres"]
    titles += [f'{m},"{t.replace(chr(34), chr(34) * 2)}",Drama|War' for m, t in TITLES.items()]
    (folder / "movies.csv").write_text("\n".join(titles) + "\n")
    return folder


def write_dat(folder):
    folder.mkdir(exist_ok=True)
    (folder / "ratings.dat").write_text("".join(f"{u}::{m}::{r:g}::96498270{u}\n" for u, m, r in RATINGS))
    content = "".join(f"{m}::{t}::Drama|War\n" for m, t in TITLES.items())
    (folder / "movies.dat").write_bytes(content.encode("latin-1"))
    return folder


@pytest.fixture
def release(tmp_path):
    return write_csv(tmp_path / "ml-25m")


def test_table_is_that_of_a_hand_count(release):
    data = load_movielens(release, min_ratings=0)
    assert data.feature_names.tolist() == [TITLES[10], TITLES[20], TITLES[30]]
    np.testing.assert_array_equal(data.X.toarray(), [[1, 1, 1], [1, 1, 0], [1, 0, 0]])


def test_users_need_more_ratings_than_the_minimum(release):
    assert load_movielens(release, min_ratings=1).n_samples == 2
    assert load_movielens(release, min_ratings=2).n_samples == 1
    assert load_movielens(release, min_ratings=2, count="all").n_samples == 2
    with pytest.raises(DataError, match="smaller min_ratings"):
        load_movielens(release)


def test_movies_are_the_most_liked_in_falling_order(release):
    data = load_movielens(release, n_features=2, min_ratings=0)
    assert data.feature_names.tolist() == [TITLES[10], TITLES[20]]


def test_users_without_any_chosen_movie_are_dropped(release):
    with (release / "ratings.csv").open("a") as file:
        file.write("9,30,5.0,964982709\r\n")
    data = load_movielens(release, n_features=1, min_ratings=0)
    np.testing.assert_array_equal(data.X.toarray(), [[1], [1], [1]])


def test_threshold_moves_the_line(release):
    assert load_movielens(release, min_ratings=0, threshold=4.5).X.sum() == 4


def test_the_sample_of_users_is_repeatable_and_keeps_their_order(release):
    tables = [load_movielens(release, min_ratings=0, n_samples=2, random_state=s).X.toarray() for s in (3, 3)]
    np.testing.assert_array_equal(*tables)
    assert tables[0].shape == (2, 3)
    assert "drawn at random" in load_movielens(release, min_ratings=0, n_samples=2).description


def test_every_official_layout_gives_the_same_table(release, tmp_path):
    expected = load_movielens(release, min_ratings=0)
    dat = write_dat(tmp_path / "ml-1m")
    archive = tmp_path / "ml-1m.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for path in dat.iterdir():
            file.write(path, f"ml-1m/{path.name}")
    for path in (release / "ratings.csv", dat, dat / "ratings.dat", archive):
        data = load_movielens(path, min_ratings=0)
        np.testing.assert_array_equal(data.X.toarray(), expected.X.toarray())
        assert data.feature_names.tolist() == expected.feature_names.tolist()


def test_a_movie_rated_twice_counts_once(release):
    with (release / "ratings.csv").open("a") as file:
        file.write("1,10,5.0,964982709\r\n")
    assert load_movielens(release, min_ratings=0).X.max() == 1


def test_a_file_is_read_in_pieces_without_loss(release, monkeypatch):
    expected = load_movielens(release, min_ratings=0)
    monkeypatch.setattr("sparsevae.datasets.movielens._CHUNK", 3)
    data = load_movielens(release, min_ratings=0)
    np.testing.assert_array_equal(data.X.toarray(), expected.X.toarray())
    assert data.description == expected.description


def test_absent_data_are_asked_for(data_folder):
    with pytest.raises(DataNotFoundError, match=r"ml-20m or ml-20m\.zip there .*movielens-20m"):
        load_movielens(release="20m")


def test_a_copy_in_the_data_directory_must_be_complete(data_folder):
    write_csv(data_folder / "ml-latest-small")
    with pytest.raises(DataError, match=r"Expected the 100836 ratings.*got 10"):
        load_movielens(release="latest-small")


@pytest.mark.parametrize("ending", ["7", "7,", "7,10", "7,10,", "7,10,5.0", "7,10,5.0,", "7,10,5.0,9"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_a_file_cut_off_anywhere_in_its_last_line_is_refused_by_name(release, ending, line_end):
    path = release / "ratings.csv"
    path.write_bytes(path.read_bytes().replace(b"\r\n", line_end.encode()) + ending.encode())
    with pytest.raises(DataError, match=r"ratings\.csv"):
        load_movielens(release, min_ratings=0)


@pytest.mark.parametrize("content", ["", "a,b\n1,2\n", "userId,movieId,rating,timestamp\n", "\x00\x01\x02"])
def test_a_file_of_another_kind_is_refused_by_name(release, content):
    (release / "ratings.csv").write_text(content)
    with pytest.raises(DataError, match=r"ratings\.csv"):
        load_movielens(release)


def test_a_damaged_archive_is_refused_by_name(release, tmp_path):
    archive = tmp_path / "ml.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.write(release / "ratings.csv", "ml-25m/ratings.csv")
    whole = archive.read_bytes()
    archive.write_bytes(whole.replace(b"1,20,5.0", b"1,20,4.0"))
    with pytest.raises(DataError, match=r"ml\.zip"):
        load_movielens(archive)
    archive.write_bytes(whole[:200])
    with pytest.raises(DataError, match=r"ml\.zip"):
        load_movielens(archive)


def test_a_folder_without_ratings_or_titles_is_refused(release, tmp_path):
    with pytest.raises(DataError, match=r"ratings\.csv or ratings\.dat"):
        load_movielens(tmp_path)
    (release / "movies.csv").unlink()
    with pytest.raises(DataError, match=r"movies\.csv or movies\.dat"):
        load_movielens(release, min_ratings=0)


@pytest.mark.parametrize("bad", [{"count": "some"}, {"release": "100m"}, {"n_features": 0}, {"n_samples": 0}])
def test_bad_parameters_are_refused(release, bad):
    with pytest.raises(ParameterError, match=next(iter(bad))):
        load_movielens(release, **bad)


def test_the_real_small_release_loads(real_data):
    data = load_movielens(real_data("ml-latest-small"))
    assert data.n_features == 300
    assert "official release latest-small" in data.description
    assert "Pulp Fiction (1994)" in data.feature_names[:5]
    assert (np.diff(data.X.sum(axis=0)) <= 0).all()
