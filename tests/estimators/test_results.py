from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from sparsevae import SparseVAE
from sparsevae.exceptions import DataError, DataWarning, ParameterError
from sparsevae.metrics import npmi_coherence

# -- samples -------------------------------------------------------------------------------------------------


def test_the_samples_of_the_fit_are_remembered(fitted, make_table, tmp_path):
    model = fitted()
    remembered = model.top_samples(5)
    pd.testing.assert_frame_equal(remembered, model.top_samples(5, make_table()))
    Z = model.transform(make_table())
    first = remembered[(remembered["factor"] == "sparsevae0") & (remembered["end"] == "strongest")]
    assert first["sample"].tolist() == np.argsort(-Z[:, 0], kind="stable")[:5].tolist()
    model.save(tmp_path / "model")
    pd.testing.assert_frame_equal(SparseVAE.load(tmp_path / "model").top_samples(5), remembered)


def test_samples_have_the_names_of_the_table_or_those_given(fitted, make_table):
    model = fitted()
    texts = [f"text {i}" for i in range(60)]
    named = model.top_samples(2, make_table(), samples=texts)
    assert named["sample"].str.startswith("text ").all()
    from_mixed = fitted("mixed").top_samples(1, make_table("mixed").set_axis(texts))
    assert from_mixed["sample"].str.startswith("text ").all()


def test_samples_that_cannot_be_listed_are_refused(fitted, make_table):
    model = fitted()
    with pytest.raises(ParameterError, match="n to be a whole number"):
        model.top_samples(0)
    with pytest.raises(ParameterError, match="at most 30 samples at each end"):
        model.top_samples(31)
    with pytest.raises(DataError, match="a name for each of 60 samples; got 3"):
        model.top_samples(3, make_table(), samples=list("abc"))


def test_a_model_of_version_0_1_asks_for_the_table(request):
    saved = request.path.parents[1] / "saved" / "0.1"
    with pytest.warns(DataWarning, match="saved by sparsevae 0.1.0"):
        model = SparseVAE.load(saved / "SparseVAE-gaussian")
    with pytest.raises(DataError, match=r"saved by version 0\.1\. Pass the table as X"):
        model.top_samples(1)


# -- words ---------------------------------------------------------------------------------------------------


def test_coherence_of_values_below_zero_is_refused(fitted, make_table):
    with pytest.raises(DataError, match="where 0 says that a feature does not occur; got negative values"):
        fitted("gaussian").coherence(make_table())


def test_coherence_is_npmi_of_the_strongest_rising_features(trained, make_table):
    model, X = trained("multinomial"), make_table("multinomial", n_samples=200)
    found = model.coherence(X, n=3)
    topics = np.where(model.effects_ > 0, model.variance_shares_, 0.0)[:, model.active_factors_].T
    np.testing.assert_allclose(found, npmi_coherence(topics, X, n_words=3, per_topic=True))
    assert found.index.tolist() == model.loadings().columns.tolist()


def test_evidence_of_counts_has_frequencies(trained, make_table):
    model, X = trained("multinomial"), make_table("multinomial", n_samples=200)
    words = model.evidence(X)["words"]
    np.testing.assert_allclose(words["overall"], X.mean(0), rtol=1e-3)
    for k, name in zip(model.active_factors_, words["high"], strict=True):
        z = np.zeros((1, 2))
        z[0, k] = 2.0
        expected = model.inverse_transform(z)[0, words["features"][name]]
        np.testing.assert_allclose(words["high"][name], expected, rtol=1e-3)
    assert "words" not in trained().evidence(make_table(n_samples=200))


# -- gene sets -----------------------------------------------------------------------------------------------


def test_enrichment_tests_the_features_of_each_factor(trained, tmp_path):
    model = trained("poisson")
    k = model.active_factors_[0]
    own = [f"x{j}" for j in np.flatnonzero(model.mask_[:, k])]
    table = model.enrichment({"own": own, "far": ["y1", "y2", "y3"]}, min_size=1)
    first = table[table["factor"] == f"sparsevae{k}"].iloc[0]
    assert first["set"] == "own"
    assert first["n_overlap"] == first["n_factor"] == len(own)
    (tmp_path / "sets.gmt").write_text("own\tx\t" + "\t".join(own) + "\n")
    pd.testing.assert_frame_equal(
        model.enrichment(tmp_path / "sets.gmt", min_size=1), model.enrichment({"own": own}, min_size=1)
    )
    up, down = (model.enrichment({"own": own}, min_size=1, direction=way) for way in ("up", "down"))
    counted = sum(t[t["factor"] == f"sparsevae{k}"]["n_overlap"].sum() for t in (up, down))
    assert counted == len(own)


def test_sets_of_another_kind_are_refused(fitted):
    with pytest.raises(ParameterError, match="a dict from names to lists of features"):
        fitted().enrichment({"T": "CD3D"})
    with pytest.raises(ParameterError, match="direction to be one of"):
        fitted().enrichment({"T": ["x0"]}, direction="left")
    with pytest.raises(DataError, match="Expected sets with at least 3 features of the fit"):
        fitted().enrichment({"T": ["CD3D"]})
