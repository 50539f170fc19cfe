import gzip

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from sparsevae.datasets import DataNotFoundError, load_zeisel, quantile_normalise
from sparsevae.datasets import zeisel as module
from sparsevae.exceptions import DataError, ParameterError

N_CELLS, N_GENES = 40, 30


@pytest.fixture
def table():
    generator = np.random.default_rng(0)
    activity = generator.gamma(1.0, 3.0, size=(N_CELLS, 1))
    counts = generator.poisson(activity * generator.uniform(0.5, 2.0, size=N_GENES))
    counts[:, -1] = 0  # a gene that is hardly seen
    counts[0, -1] = 24
    genes = np.array([f"Gene{j}" for j in range(N_GENES)])
    types = np.array(["microglia", "interneurons"])[generator.integers(2, size=N_CELLS)]
    return counts, genes, types


@pytest.fixture
def official(table, tmp_path):
    counts, genes, types = table
    rows = [["", "tissue"] + ["sscortex"] * N_CELLS]
    rows += [
        ["", name] + ["1"] * N_CELLS
        for name in ("group #", "total mRNA mol", "well", "sex", "age", "diameter")
    ]
    rows += [["", "cell_id"] + [f"c{i}" for i in range(N_CELLS)]]
    rows += [["", "level1class", *types], ["", "level2class"] + ["(none)"] * N_CELLS, [""] * (N_CELLS + 2)]
    rows += [[gene, "-1", *map(str, column)] for gene, column in zip(genes, counts.T, strict=True)]
    path = tmp_path / "expression_mRNA_17-Aug-2014.txt"
    path.write_text("".join("\t".join(row) + "\n" for row in rows))
    return path


@pytest.fixture
def copy(table, tmp_path):
    counts, genes, types = table
    folder = tmp_path / "zeisel"
    folder.mkdir()
    sparse.save_npz(folder / "counts.npz", sparse.csr_matrix(counts.astype(np.uint16)))
    pd.DataFrame({"cell_id": range(N_CELLS), "level1class": types}).to_csv(folder / "cells.csv", index=False)
    pd.DataFrame({"gene": genes}).to_csv(folder / "genes.csv", index=False)
    return folder


def test_official_file_holds_the_counts(official, table):
    data = load_zeisel(official, n_features=100, transform="counts", filter_genes=False)
    counts, genes, types = table
    order = [int(name.removeprefix("Gene")) for name in data.feature_names]
    np.testing.assert_array_equal(data.X.toarray(), counts[:, order])
    assert data.target.tolist() == types.tolist()
    assert sorted(order) == list(range(len(genes)))


def test_official_file_folder_gzip_and_copy_agree(official, copy):
    expected = load_zeisel(official, n_features=10)
    zipped = official.with_name(official.name + ".gz")
    zipped.write_bytes(gzip.compress(official.read_bytes()))
    for path in (copy, official.parent, zipped):
        data = load_zeisel(path, n_features=10)
        np.testing.assert_allclose(data.X, expected.X)
        assert data.feature_names.tolist() == expected.feature_names.tolist()


def test_the_data_directory_is_searched(official, data_folder):
    assert load_zeisel(n_features=5).X.shape == (N_CELLS, 5)


def test_absent_data_are_asked_for(data_folder):
    with pytest.raises(DataNotFoundError, match=r"expression_mRNA_17-Aug-2014\.txt"):
        load_zeisel()


def test_rare_genes_are_filtered_and_the_description_counts_them(official):
    data = load_zeisel(official)
    assert "Gene29" not in data.feature_names
    assert "29 genes with at least 25 molecules" in data.description


def test_genes_without_companions_are_filtered():
    generator = np.random.default_rng(1)
    shared = generator.poisson(5, size=(500, 1))
    together = shared + generator.poisson(1, size=(500, 6))
    alone = generator.poisson(5, size=(500, 3))
    counts = sparse.csr_array(np.hstack([together, alone]))
    np.testing.assert_array_equal(module._companions(counts, block=4), [5] * 6 + [0] * 3)
    keep, steps = module._filter(counts)
    np.testing.assert_array_equal(keep, np.arange(6))
    assert "6 correlated above 0.2091" in steps[1]


def test_noise_is_the_height_above_the_line_of_cv_on_mean():
    generator = np.random.default_rng(2)
    counts = generator.poisson(np.geomspace(1, 100, 20), size=(2000, 20))
    counts[:, 7] = generator.negative_binomial(0.5, 0.5 / (0.5 + counts[:, 7].mean()), size=2000)
    noise = module._noise(sparse.csr_array(counts))
    assert noise.argmax() == 7
    assert abs(noise.mean()) < 1e-9


def test_only_the_noisiest_genes_go_on(monkeypatch):
    monkeypatch.setattr(module, "_NOISIEST", 3)
    generator = np.random.default_rng(3)
    base = generator.gamma(1.0, 5.0, size=(300, 1))
    counts = sparse.csr_array(generator.poisson(base * np.linspace(1, 3, 8)))
    keep, _ = module._filter(counts)
    assert len(keep) == 3
    assert (np.diff(keep) > 0).all()


def test_quantile_normalisation_of_the_textbook_example():
    values = np.array([[5, 2, 3, 4], [4, 1, 4, 2], [3, 4, 6, 8]], dtype=float)
    # sorted rows 2 3 4 5, 1 2 4 4, 3 4 6 8 have the means 2, 3, 14/3, 17/3; the tied 4s take the mean of two
    expected = [[17 / 3, 2, 3, 14 / 3], [31 / 6, 2, 31 / 6, 3], [2, 3, 14 / 3, 17 / 3]]
    np.testing.assert_allclose(quantile_normalise(values), expected)


def test_normalised_rows_without_ties_share_one_distribution():
    values = quantile_normalise(np.random.default_rng(0).normal(size=(5, 50)) * np.arange(1, 6)[:, None])
    np.testing.assert_allclose(np.sort(values, axis=1), np.sort(values[:1], axis=1).repeat(5, axis=0))


def test_genes_come_in_falling_variance(official):
    for transform in ("quantile", "log1p"):
        data = load_zeisel(official, n_features=6, transform=transform)
        assert (np.diff(data.X.var(axis=0)) <= 1e-12).all()


def test_a_gene_called_na_keeps_its_name(official):
    official.write_text(official.read_text().replace("Gene0\t", "NA\t"))
    assert "NA" in load_zeisel(official, n_features=100, filter_genes=False).feature_names


def test_a_truncated_file_is_refused_by_name(official):
    whole = official.read_bytes()
    for size in (100, len(whole) // 2, len(whole) - 5):
        official.write_bytes(whole[:size])
        with pytest.raises(DataError, match=r"17-Aug-2014\.txt.*truncated"):
            load_zeisel(official)


def test_a_truncated_gzip_file_is_refused_by_name(official):
    zipped = official.with_name("a.txt.gz")
    zipped.write_bytes(gzip.compress(official.read_bytes())[:-100])
    with pytest.raises(DataError, match=r"a\.txt\.gz"):
        load_zeisel(zipped)


@pytest.mark.parametrize(
    "old, new", [("level1class", "class"), ("\t-1\t", "\t-1\t-"), ("Gene3\t-1\t", "Gene3\t-1\t7\t")]
)
def test_a_wrong_file_is_refused_by_name(official, old, new):
    official.write_text(official.read_text().replace(old, new, 1))
    with pytest.raises(DataError, match=r"17-Aug-2014\.txt"):
        load_zeisel(official)


def test_a_damaged_copy_is_refused_by_name(copy):
    (copy / "cells.csv").write_text("cell_id,level1class\nc0,microglia\n")
    with pytest.raises(DataError, match=r"counts.npz.*as in cells.csv"):
        load_zeisel(copy)
    (copy / "cells.csv").write_text("cell_id\nc0\n")
    with pytest.raises(DataError, match="column level1class"):
        load_zeisel(copy)
    (copy / "counts.npz").write_bytes((copy / "counts.npz").read_bytes()[:200])
    with pytest.raises(DataError, match=r"counts\.npz"):
        load_zeisel(copy)


def test_an_unknown_transform_is_refused(copy):
    with pytest.raises(ParameterError, match="'quantile', 'log1p' or 'counts'"):
        load_zeisel(copy, transform="sqrt")


def test_the_real_copy_has_its_published_classes(real_data):
    data = load_zeisel(real_data("zeisel"))
    assert data.X.shape == (3005, 558)
    assert np.unique(data.target, return_counts=True)[1].tolist() == [224, 235, 290, 98, 820, 939, 399]
