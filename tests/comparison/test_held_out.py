from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.stats import multinomial
from sklearn.model_selection import train_test_split

import sparsevae
from sparsevae import NMF, VAE, compare
from sparsevae.comparison.methods import METHODS
from sparsevae.exceptions import ParameterError
from sparsevae.metrics import heldout_nll

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

COLUMNS = ["score", "reconstruction", "seconds", "factors", "sparsity", "note"]
QUICK = {"n_factors": 2, "max_epochs": 3, "hidden_sizes": (5,), "n_init": 1}


@pytest.fixture(scope="module")
def counts():
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(8, 5.0), size=2)
    shares = rng.dirichlet([0.5, 0.5], size=60) @ topics
    return np.array([rng.multinomial(30, share / share.sum()) for share in shares]).astype(float)


@pytest.fixture(scope="module")
def everything(counts):
    return compare(counts, list(METHODS), likelihood="multinomial", **QUICK)


def test_every_method_can_be_compared_by_name(everything):
    assert list(everything.index) == list(METHODS)
    assert list(everything.columns) == COLUMNS
    assert (everything["note"] == "").all()
    assert np.isfinite(everything["reconstruction"]).all()
    assert (everything["seconds"] > 0).all()


def test_only_models_of_codes_have_a_score(everything):
    scored = everything.index[everything["score"].notna()]
    assert set(scored) == {"SparseVAE", "SparseLinear", "VAE", "VSC", "OIVAE", "LDA"}
    assert list(everything.index[everything["sparsity"].notna()]) == [
        name for name in ("SparseVAE", "SparseLinear", "OIVAE", "NMF") if everything.loc[name, "factors"]
    ]


def test_a_guess_from_the_average_is_beaten_by_every_method_that_sees_the_row(counts, everything):
    training, test = train_test_split(counts, test_size=0.2, random_state=0)
    average = heldout_nll(test, np.tile(training.mean(0) + 1e-6, (len(test), 1)))
    assert everything.loc["NMF", "reconstruction"] < average
    assert everything.loc["LDA", "reconstruction"] < average


def test_reconstruction_is_the_papers_held_out_likelihood(counts):
    """At the posterior mean, without the multinomial coefficient."""
    result = compare(counts, [VAE(2, likelihood="multinomial", max_epochs=3, random_state=0)])
    training, test = train_test_split(counts, test_size=0.2, random_state=0)
    model = VAE(2, likelihood="multinomial", max_epochs=3, random_state=0).fit(training)
    share = model.inverse_transform(model.transform(test).astype(np.float64))
    share = share / share.sum(1, keepdims=True)
    direct = np.mean([-(x * np.log(p)).sum() for x, p in zip(test, share, strict=True)])
    assert result.loc["VAE", "reconstruction"] == pytest.approx(direct, rel=1e-4)
    assert result.loc["VAE", "score"] == pytest.approx(model.score(test))
    exact = multinomial.logpmf(test, 30, share / share.sum(1, keepdims=True)).mean()
    assert result.loc["VAE", "score"] < exact


def test_reconstruction_of_real_values_is_in_their_units():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 1)) * [1.0, 2.0, 3.0] + 0.3 * rng.standard_normal((60, 3))
    result = compare(X, "VAE, PCA", n_factors=1, max_epochs=3)
    other = compare(10.0 * X, "VAE, PCA", n_factors=1, max_epochs=3)
    for column, sign in (("score", -1), ("reconstruction", 1)):
        np.testing.assert_allclose(other[column], result[column] + sign * 3 * np.log(10), atol=0.05)


def test_a_method_that_cannot_take_the_table_says_why_and_the_others_go_on():
    X = np.random.default_rng(0).standard_normal((40, 4))
    result = compare(X, "NMF, LDA, PCA", n_factors=2)
    assert "Negative values" in result.loc["NMF", "note"]
    assert "Negative values" in result.loc["LDA", "note"]
    assert np.isnan(result.loc["NMF", "reconstruction"])
    assert result.loc["PCA", "note"] == ""


def test_parameters_go_to_the_methods_that_have_them(counts):
    result = compare(
        counts, "VAE(beta=4, max_epochs=2), NMF", n_factors=2, max_epochs=300, likelihood="poisson"
    )
    assert list(result.index) == ["VAE(beta=4, max_epochs=2)", "NMF"]
    assert result["factors"].tolist()[1] == 2


def test_estimators_and_labels_are_taken_as_they_are(counts):
    models = {"plain": NMF(2, likelihood="multinomial", alpha=0.0), "ridge": NMF(3, likelihood="multinomial")}
    result = compare(counts, models, n_factors=7)
    assert result["factors"].tolist() == [2, 3]
    assert not hasattr(models["plain"], "components_")
    twice = compare(counts, list(models.values()))
    assert list(twice.index) == ["NMF", "NMF 2"]


@pytest.mark.parametrize("kind", [sparse.csr_array, pd.DataFrame], ids=["csr", "frame"])
def test_tables_of_any_kind_give_the_same_numbers(counts, kind):
    options = {"likelihood": "multinomial", "n_factors": 2}
    expected = compare(counts, "NMF, PCA, EASE", **options).drop(columns="seconds")
    result = compare(kind(counts), "NMF, PCA, EASE", **options).drop(columns="seconds")
    pd.testing.assert_frame_equal(result, expected, rtol=1e-4)


def test_the_split_follows_its_seed(counts):
    first, again, other = (
        compare(counts, "PCA", n_factors=2, random_state=seed).loc["PCA", "score"] for seed in (0, 0, 1)
    )
    assert first == again != other


def test_unknown_parameters_are_refused_with_those_that_exist(counts):
    with pytest.raises(ParameterError, match=r"got gamma\. It has .*beta"):
        compare(counts, "VAE(gamma=4)")


def test_what_is_wrong_with_any_method_is_said_before_the_first_fit(counts, monkeypatch):
    monkeypatch.setattr(NMF, "fit", lambda *_: pytest.fail("fitted before all parameters were checked"))
    with pytest.raises(ParameterError, match="Expected beta"):
        compare(counts, "NMF, VAE(beta=-1)")
    with pytest.raises(ParameterError, match="at least one method"):
        compare(counts, [])


def test_a_bad_likelihood_is_an_error_and_not_a_note(counts):
    with pytest.raises(ParameterError, match="Expected likelihood"):
        compare(counts, "NMF", likelihood="softmax")


def test_it_is_there_under_the_name_of_the_package():
    assert sparsevae.compare is compare
