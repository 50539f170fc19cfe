"""A fit as a whole: stages, candidates and history, and fits that go on where others were interrupted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsevae import SparseVAE
from sparsevae.datasets import make_anchored_factors
from sparsevae.fitting import get_recipe
from sparsevae.fitting.procedure import (
    SINGLE_RATE_STAGES,
    STAGES,
    candidate_counts,
    counts_around,
    fit_module,
)
from sparsevae.metrics import support_f1

from ..models import LADDER
from .resuming import CASES, assert_equal_fits, linear_table, prepare, read_state, save_stages


@given(st.integers(1, 60), st.integers(1, 60))
def test_candidates_lie_around_the_linear_count_and_within_what_is_allowed(n_linear, n_factors):
    counts = counts_around(n_linear, n_factors)
    assert counts == sorted(set(counts))
    assert min(counts) >= 1
    assert max(counts) <= n_factors
    assert min(n_linear, n_factors) in counts


@pytest.mark.parametrize("kind", ["gaussian", "mixed", "negative_binomial"])
def test_epochs_are_numbered_through(fit, make_model, make_table, kind):
    options = {"recipe": LADDER, "n_init": 1, "max_epochs": 12}
    history = fit(make_model(kind, **options), make_table(kind)).history_
    np.testing.assert_array_equal(history["epoch"], np.arange(1, len(history) + 1))
    phases = list(dict.fromkeys(history["phase"]))
    assert phases == ["dense", "lasso", "ladder", "final", "refine", "polish"]


def test_a_large_table_may_end_without_any_factor(fit):
    noise = np.random.default_rng(0).normal(size=(200, 600))
    settings = {"n_init": 1, "max_epochs": 4, "spike_rate": 1e6, "slab_rate": 1e5, "random_state": 0}
    model = fit(SparseVAE(3, hidden_sizes=(32,), **settings), noise)
    assert len(model.active_factors_) == 0
    assert set(model.dropped_factors_) == {0, 1, 2}
    assert (model.transform(noise) == 0).all()


def test_a_candidate_of_a_large_table_keeps_to_its_number_of_factors(fit):
    """Rare counts: the noise of their gradients exceeds a young penalty, and spare factors would come in."""
    rng = np.random.default_rng(0)
    rates = 0.3 * np.exp(rng.normal(size=(400, 1)) @ rng.choice([0.0, 1.0], size=(1, 80)))
    settings = {"n_init": 1, "max_epochs": 40, "random_state": 0, "likelihood": "poisson"}
    model = fit(SparseVAE(8, **settings), rng.poisson(rates))
    history, tried = model.history_, model.starts_.query("chosen")["start"].item()
    ladder = history[history["phase"].isin(["lasso", "ladder", "final", "refine", "polish"])]
    assert 0 < ladder["n_active"].max() <= int(tried.split(",")[0]) < 8


@pytest.mark.parametrize("weak, n_nonzero", [(0.0, 12), (0.12, 18)])
def test_a_looser_rate_is_taken_where_held_out_rows_are_the_better_for_it(fit, weak, n_nonzero):
    model = fit(SparseVAE(2, recipe=LADDER, hidden_sizes=(), random_state=0), linear_table(weak))
    looser = model.starts_["start"].str.contains("of the rate")
    assert model.starts_.loc[looser, "chosen"].any() == (weak > 0)
    assert (model.mask_ != 0).sum() == n_nonzero


def test_a_looser_rate_that_is_tried_in_vain_leaves_no_trace(fit):
    X = linear_table(0.0, n_samples=300)
    recipes = LADDER, replace(LADDER, looser=None)
    tried, not_tried = (
        fit(SparseVAE(3, recipe=recipe, hidden_sizes=(), random_state=0), X) for recipe in recipes
    )
    np.testing.assert_array_equal(tried.mask_, not_tried.mask_)
    np.testing.assert_array_equal(tried.transform(X), not_tried.transform(X))


def test_the_linear_form_is_the_spine_and_trains_next_to_nothing(fit):
    """Correlated factors: the smooth axes would mix them, and their links would be too many."""
    rng = np.random.default_rng(3)
    z = rng.multivariate_normal(np.zeros(4), 0.4 + 0.6 * np.eye(4), 800)
    loadings = np.zeros((24, 4))
    loadings[np.arange(16), np.arange(16) % 4] = rng.uniform(0.6, 1.2, 16) * rng.choice([-1, 1], 16)
    for j in range(16, 24):
        loadings[j, rng.choice(4, 2, replace=False)] = rng.uniform(0.5, 1.0, 2)
    model = fit(
        SparseVAE(8, hidden_sizes=(), random_state=0), z @ loadings.T + 0.7 * rng.normal(size=(800, 24))
    )
    found = model.mask_[:, model.active_factors_]
    order = np.abs(found.T @ loadings).argmax(0)
    np.testing.assert_array_equal(found[:, order] != 0, loadings != 0)
    assert len(model.history_) < 10
    assert model.simplicity_path_["chosen"].sum() == 1


def test_the_most_predictive_fit_weighs_the_spine_beside_ladders(fit):
    """Twelve dense factors: ladders with fewer links predict less. Two sparse ones: a ladder is as good."""
    rng = np.random.default_rng(0)
    dense = rng.normal(size=(400, 12)) @ rng.normal(size=(12, 60)) + 3.0 * rng.normal(size=(400, 60))
    options = {"n_init": 1, "hidden_sizes": (8,), "gain_kept": 1.0, "random_state": 0}
    model = fit(SparseVAE(12, **options), dense)
    kinds = set(model.starts_["start"].str.split(", ").str[-1])
    assert {"linear", "network", "none", "0.3 of the rate"} < kinds
    assert model.starts_.query("chosen")["start"].item().endswith(("linear", "network"))
    assert len(model.active_factors_) > 8
    assert not hasattr(model, "n_returning_factors_")  # nobody asked which return

    data = make_anchored_factors(600, 24, 2, random_state=0)
    model = fit(SparseVAE(4, **options), data.X)
    assert support_f1(model.mask_, data.mask) == 1.0
    assert not model.starts_.query("chosen")["start"].item().endswith(("linear", "network"))


@pytest.mark.parametrize("options", [{"spike_rate": 50.0}, {"expected_features_per_factor": 4}])
def test_a_rate_that_the_user_has_set_is_kept(fit, options):
    model = fit(SparseVAE(2, hidden_sizes=(), max_epochs=30, random_state=0, **options), linear_table(0.12))
    assert not model.starts_["start"].str.contains("of the rate").any()


@pytest.mark.parametrize("recipe, usual", [("default", False), ("paper", True), ("authors", True)])
def test_a_literal_fit_begins_as_pytorchs_layers_do(fit, make_model, make_table, recipe, usual, monkeypatch):
    """From the features' means, at the paper's learning rate, the penalty may empty the mask at once."""
    begun = []
    where = "sparsevae.fitting.procedure."
    monkeypatch.setattr(where + "pytorch_start_", lambda *_: begun.append("usual"))
    monkeypatch.setattr(where + "start_at_means_", lambda *_: begun.append("means"))
    fit(make_model(recipe=recipe, init="random", n_init=1, max_epochs=2), make_table())
    assert begun == ["usual" if usual else "means"]


# -- stages -------------------------------------------------------------------------------------------------


def names(stages):
    return [stage.__name__ for stage in stages]


def test_a_fit_has_these_stages():
    assert names(STAGES) == ["find_axes", "find_starts", "climb", "choose", "loosen", "refine", "polish"]
    assert names(SINGLE_RATE_STAGES) == ["find_starts", "train_once"]


@pytest.mark.parametrize(
    "case, stages", [("small", STAGES), ("paper", SINGLE_RATE_STAGES), ("authors", SINGLE_RATE_STAGES)]
)
def test_the_end_of_each_stage_is_told(case, stages):
    told = []
    settings, data = prepare(case)
    fit_module(settings, data, on_stage=lambda state: told.append(state.stage))
    assert told == names(stages)


def test_the_stages_one_by_one_are_what_fit_does(fit, make_model, make_table):
    model = make_model(recipe="default", n_init=1)
    fitted = fit_module(*model.prepare_fit(make_table()))
    fit(model, make_table())
    assert fitted.history.astype(model.history_.dtypes).equals(model.history_)
    assert fitted.starts.equals(model.starts_)
    assert int(fitted.module.support().sum()) == (model.mask_ != 0).sum()


def test_named_factors_are_a_candidate_of_their_own(make_model, make_table):
    for anchors, least in (({}, 1), ({"x0": 0}, 1), ({"x0": 0, "x1": 2, "x2": 3}, 3)):
        model = make_model(recipe="default", n_factors=5, anchors=anchors)
        counts = candidate_counts(*model.prepare_fit(make_table()))
        assert counts == sorted(set(counts))
        assert min(counts) == least
        assert max(counts) <= 5


# -- fits that go on ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def saved_fit(tmp_path_factory):
    """A fit of each case with files from the end of each of its stages, made once."""
    made = {}

    def get(case):
        if case not in made:
            folder = tmp_path_factory.mktemp("stages")
            made[case] = folder, save_stages(case, folder)
        return made[case]

    return get


def every_stage():
    for case, (_, parameters) in CASES.items():
        single = get_recipe(parameters.get("recipe", "default")).rates is not None
        for stage in names(SINGLE_RATE_STAGES if single else STAGES):
            yield pytest.param(case, stage, id=f"{case}, after {stage}")


@pytest.mark.parametrize("case, stage", list(every_stage()))
def test_a_fit_goes_on_to_the_same_end_from_every_stage(saved_fit, case, stage):
    folder, undisturbed = saved_fit(case)
    assert bool(undisturbed.module.support().any()) == (case != "no factor")
    settings, data = prepare(case)
    told = []
    state = read_state(folder, stage, data)
    resumed = fit_module(settings, data, state=state, on_stage=lambda state: told.append(state.stage))
    assert_equal_fits(resumed, undisturbed)
    stages = names(STAGES if settings.recipe.rates is None else SINGLE_RATE_STAGES)
    assert told == stages[stages.index(stage) + 1 :]


@pytest.mark.parametrize("case", ["small", "paper"])
def test_to_be_told_of_stages_changes_nothing(saved_fit, case):
    assert_equal_fits(fit_module(*prepare(case)), saved_fit(case)[1])


def test_the_cases_are_what_they_are_called(saved_fit):
    assert prepare("small")[0].small
    assert not prepare("large")[0].small
    starts = saved_fit("a looser rate")[1].starts
    assert starts.loc[starts["chosen"], "start"].item().endswith("0.3 of the rate")
    starts = saved_fit("no factor")[1].starts
    assert starts.loc[starts["chosen"], "start"].item() == "none"


def test_a_fit_that_was_interrupted_goes_on(saved_fit, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        save_stages("small", tmp_path, until="climb")
    assert sorted(path.stem for path in tmp_path.glob("*.json")) == ["climb", "find_axes", "find_starts"]
    settings, data = prepare("small")
    resumed = fit_module(settings, data, state=read_state(tmp_path, "climb", data))
    assert_equal_fits(resumed, saved_fit("small")[1])


def test_a_table_without_factors_has_converged():
    noise = make_anchored_factors(1000, 7, 0, random_state=0).X[:500]
    assert len(SparseVAE(5, random_state=0).fit(noise).active_factors_) == 0  # and warnings are errors
