from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import sparsevae
from sparsevae import SparseVAE
from sparsevae.exceptions import ParameterError
from sparsevae.sample_size import Power, design, power

from .cli.helpers import invoke, refusal

LINEAR = SparseVAE(4, hidden_sizes=(), n_init=1, max_epochs=60)


def test_more_rows_find_more():
    result = power(design(2, 4, loading=0.8), [20, 300], 2, estimator=LINEAR)
    assert result.n_factors == 2
    assert len(result.runs) == 4
    table = result.table
    assert table.loc[300, "support"] > table.loc[20, "support"]
    assert table.loc[300, "factors"] > 0.85
    assert result.runs.equals(power(design(2, 4, loading=0.8), [300, 20], 2, estimator=LINEAR).runs)
    assert "rows" in result.summary()


def test_a_pilot_fit_is_the_truth_of_its_tables(linear_model):
    rng = np.random.default_rng(0)
    z = rng.standard_normal((200, 2))
    mask = np.array([[0.8, 0]] * 4 + [[0, 0.8]] * 4)
    model = linear_model(z @ mask.T + 0.6 * rng.standard_normal((200, 8)), z, mask)
    result = sparsevae.power(model, [200], 1, estimator=LINEAR)
    assert result.n_factors == 2
    assert result.table.loc[200, "support"] > 0.7
    assert result.table.loc[200, "factors"] > 0.8


def make_power(rows):
    runs = pd.DataFrame(rows, columns=["n_samples", "right_number", "support", "factors"]).assign(seed=0)
    return Power(runs, 3, 0.9)


def test_the_answer_is_the_shortest_length_from_which_all_hold():
    found = make_power([(100, 1, 0.95, 0.95), (200, 0, 0.9, 0.9), (400, 1, 0.92, 0.97), (800, 1, 1.0, 1.0)])
    assert found.n_needed == 400
    assert str(found).startswith("About 400 rows are enough to find these 3 factors")
    short = make_power([(100, 0, 0.5, 0.6)])
    assert short.n_needed is None
    assert "100 rows are not enough" in short.summary()


def test_a_design_has_the_correlations_that_it_describes():
    draw = design(2, 3, loading=0.6, correlation=0.5, cross_links=1, n_noise=2)
    X, factors, support = draw(20_000, 0)
    assert X.shape == (20_000, 9)
    assert support.sum(1).tolist() == [1] * 6 + [2, 0, 0]
    correlation = np.corrcoef(X.T)
    assert correlation[0, 1] == pytest.approx(0.36, abs=0.02)
    assert correlation[0, 3] == pytest.approx(0.36 * 0.5, abs=0.02)
    assert correlation[0, 8] == pytest.approx(0.0, abs=0.02)
    assert factors.shape == (20_000, 2)
    # Regression scores have the variance that the features explain of a factor, which is below one.
    assert (factors.var(0) < 0.9).all()
    np.testing.assert_allclose(X.var(0), 1.0, atol=0.05)


def test_what_cannot_be_simulated_is_refused():
    with pytest.raises(ParameterError, match="at least 10 rows"):
        power(design(1, 2), [5])
    with pytest.raises(ParameterError, match="loading"):
        design(1, 2, loading=1.2)


def test_a_pilot_without_a_factor_is_refused_before_anything_is_fitted(linear_model):
    rng = np.random.default_rng(0)
    noise, z = rng.standard_normal((60, 4)), rng.standard_normal((60, 2))
    with pytest.raises(
        ParameterError, match=r"pilot fit with at least one factor.*sample_size\.design\(3, 5\)"
    ):
        power(linear_model(noise, z, np.zeros((4, 2))), [100], 1, estimator=SparseVAE(max_epochs=0))


def test_the_command_answers_in_one_sentence(tmp_path):
    typed = ("power", "--factors", 1, "--features", 4, "--loading", 0.8, "--rows", "60,30", "--tables", 1)
    files = ("-o", tmp_path / "p.csv", "--plot", tmp_path / "p.png", "--max-epochs", 6)
    result = invoke(*typed, *files)
    assert result.exit_code == 0, result.stderr
    assert "rows are" in result.stdout.splitlines()[-1]
    assert pd.read_csv(tmp_path / "p.csv")["n_samples"].tolist() == [30, 60]
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    assert "exists. Add --force" in refusal(*typed, *files)
    (tmp_path / "file").write_text("")
    under = refusal("power", "-k", 1, "--rows", "9999999", "--plot", tmp_path / "file" / "p.png")
    assert str(tmp_path / "file") in under  # before the simulation
    again = invoke(*typed, "--max-epochs", 6, "--json")
    assert json.loads(again.stdout)["table"][0]["n_samples"] == 30
    assert "either a run or a design" in refusal("power")
    assert "commas between them" in refusal("power", "-k", 2, "--rows", "many")


def test_what_cannot_be_written_is_refused_before_the_fits(tmp_path):
    typed = ("power", "--factors", 1, "--features", 4, "--rows", "30", "--tables", 1, "--max-epochs", 6)
    for wrong, said in (
        (("--rows", "30,5"), "Expected --rows of at least 10; got 5."),
        (("--goal", 2), "Expected --goal to be a share"),
        (("-o", tmp_path / "p.txt"), "Expected --output to end in .csv; got p.txt."),
        (("--plot", tmp_path / "p.doc"), "Expected --plot to end in .png, .svg, .pdf; got p.doc."),
        (("-o", tmp_path), "Expected --output to end in .csv"),
    ):
        result = invoke(*typed, *wrong)
        assert result.exit_code == 1
        assert said in result.stderr
        assert "Fitting" not in result.stderr
    result = invoke(*typed, "-o", tmp_path / "new" / "deep" / "p.csv")
    assert result.exit_code == 0, result.stderr
    assert "Fitting 1 simulated table of 30 rows" in result.stderr
    assert (tmp_path / "new" / "deep" / "p.csv").exists()
