from __future__ import annotations

import numpy as np
import pytest

from sparsevae.datasets import load_bfi, make_survey
from sparsevae.exceptions import DataError, ParameterError


def test_bfi_has_the_people_who_answered_everything(real_data):
    data = load_bfi(real_data("bfi.csv"))
    assert data.X.shape == (2436, 25)
    assert data.feature_names[[0, -1]].tolist() == ["A1", "O5"]
    assert set(np.unique(data.X)) == {1, 2, 3, 4, 5, 6}
    assert set(data.target) == {1, 2}
    assert "2436 of 2800 people" in data.description


def test_another_file_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"write.csv\(psych::bfi"):
        load_bfi(tmp_path / "bfi.csv")
    (tmp_path / "bfi.csv").write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match="none called A1, A2, A3, A4, A5"):
        load_bfi(tmp_path / "bfi.csv")
    for content in (b"\xf0\x28$FL2", b"", b"a,b\n1,2,3,4\n1,2,3,4,5\n"):
        (tmp_path / "bfi.csv").write_bytes(content)
        with pytest.raises(DataError, match=r"it cannot be read\. Is it bfi"):
            load_bfi(tmp_path / "bfi.csv")


def test_answers_follow_their_traits():
    data = make_survey(4000, 2, 3, n_levels=7, loading=0.8, correlation=0.4, random_state=0)
    assert data.X.shape == (4000, 6)
    assert set(np.unique(data.X)) == set(range(1, 8))
    correlation = np.corrcoef(data.X.T, data.factors.T)[:6, 6:]
    np.testing.assert_allclose(correlation[[0, 1], 0], 0.8, atol=0.05)
    np.testing.assert_allclose(correlation[[2, 5], [0, 1]], -0.8, atol=0.05)
    assert np.corrcoef(data.factors.T)[0, 1] == pytest.approx(0.4, abs=0.05)
    np.testing.assert_array_equal(data.mask.sum(0), [3, 3])
    assert len(set(data.feature_names)) == 6


def test_skew_moves_the_answers_and_seeds_repeat_them():
    low = make_survey(500, skew=1.0, reversed_items=0, random_state=1)
    assert low.X.mean() < make_survey(500, reversed_items=0, random_state=1).X.mean()
    np.testing.assert_array_equal(low.X, make_survey(500, skew=1.0, reversed_items=0, random_state=1).X)


def test_surveys_that_make_no_sense_are_refused():
    with pytest.raises(ParameterError, match="0 < loading < 1"):
        make_survey(10, loading=1.5)
    with pytest.raises(ParameterError, match="at most 5 reversed"):
        make_survey(10, reversed_items=6)
