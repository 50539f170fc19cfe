from __future__ import annotations

import numpy as np
import pytest

from sparsevae import VAE
from sparsevae.datasets import make_anchored_factors
from sparsevae.estimators import choose_n_factors


def test_hidden_cells_show_how_many_factors_there_are():
    data = make_anchored_factors(400, 12, 2, nonlinear_share=0.0, interaction_share=0.0, random_state=0)
    model = VAE(7, hidden_sizes=(), max_epochs=80, learning_rate=0.02, random_state=0)
    choice = choose_n_factors(model, data.X, [4, 1, 2])
    assert choice.n_factors == 2
    assert choice.table["n_factors"].tolist() == [1, 2, 4]
    assert choice.table["chosen"].tolist() == [False, True, False]
    assert "2 factors predict hidden cells" in choice.reason
    assert not hasattr(model, "module_")
    again = choose_n_factors(model, data.X, [1, 2, 4], sample_weight=np.ones(400))
    np.testing.assert_allclose(again.table["score"], choice.table["score"], atol=0.05)


def test_numbers_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="some numbers of factors to try"):
        choose_n_factors(VAE(), np.eye(4), [])
    with pytest.raises(ValueError, match="whole number of at least 1"):
        choose_n_factors(VAE(), np.eye(4), [0])
