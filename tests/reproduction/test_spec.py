from __future__ import annotations

import json

import pytest

from sparsevae.comparison.methods import METHODS
from sparsevae.exceptions import ParameterError
from sparsevae.reproduction.spec import RECIPES, SCALES, load_spec, load_specs, parse_spec

SPECS = load_specs()
every_spec = pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS.keys())


def content(**changes):
    """A small description of a result."""
    plain = {
        "title": "A result",
        "label": "tb:result",
        "alias": "table-9",
        "metrics": ["mse"],
        "data_sets": [{"name": "A", "source": "synthetic", "parameters": {"n_samples": 40}}],
        "methods": [{"name": "Sparse VAE", "estimator": "SparseVAE"}, {"name": "PCA", "estimator": "PCA"}],
        "settings": {"n_factors": 2},
        "recipes": {"paper": {"max_epochs": 3, "data": {"noise_variance": 0.25}}},
    }
    return {**plain, **changes}


def test_every_result_of_the_paper_has_a_name():
    wanted = {"example", "synthetic", "movielens", "peerread", "shift", "topics", "zeisel"}
    assert set(SPECS) == {*wanted, "ablation", "nmf-topics"}
    aliases = [spec.alias for spec in SPECS.values()]
    assert aliases[:7] == ["figure-2", "figure-3", "table-1a", "table-1b", "table-2", "table-3", "table-4"]


@every_spec
def test_a_result_is_found_by_its_name_and_by_its_number(spec):
    assert load_spec(spec.name) == load_spec(spec.alias) == spec


@every_spec
@pytest.mark.parametrize("scale", SCALES)
def test_every_run_can_be_made_and_is_named_once(spec, scale):
    runs = spec.runs(scale)
    assert len({run.key for run in runs}) == len(runs) > 0
    assert not any("," in run.method or "," in run.data_set for run in runs)  # --only lists with commas
    for run in runs:
        METHODS[run.estimator](**run.parameters, random_state=run.seed)
        json.dumps([dict(run.parameters), dict(run.source_parameters), dict(run.data_parameters)])


@every_spec
def test_methods_with_recipes_are_read_in_all_ways_that_the_table_needs(spec):
    sparse = next((method for method in spec.methods if method.estimator == "SparseVAE"), None)
    if sparse is not None:
        assert sparse.recipes == RECIPES
    for run in spec.runs("paper"):
        assert run.parameters.get("recipe", run.recipe) == run.recipe


def test_the_paper_scale_has_the_sizes_of_the_paper():
    counts = {
        name: len({(run.data_set, run.seed, run.split) for run in SPECS[name].runs("paper")})
        for name in SPECS
    }
    assert counts == {
        "example": 1,
        "synthetic": 125,
        "movielens": 5,
        "peerread": 5,
        "shift": 15,
        "topics": 2,
        "zeisel": 5,
        "ablation": 125,
        "nmf-topics": 2,
    }


@pytest.mark.parametrize(
    "name, factors, width, rate, epochs, batch, spike, slab",
    [
        ("synthetic", 5, 50, 0.01, 200, 100, 10.0, 1.0),
        ("movielens", 30, 300, 0.0001, 100, 100, 10.0, 1.0),
        ("peerread", 20, 100, 0.01, 40, 128, 5.0, 0.001),
        ("shift", 20, 50, 0.01, 50, 128, 5.0, 0.01),
        ("zeisel", 15, 100, 0.01, 100, 512, 10.0, 1.0),
    ],
)
def test_published_recipes_have_the_settings_of_the_paper(
    name, factors, width, rate, epochs, batch, spike, slab
):
    for run in SPECS[name].runs("paper"):
        if run.method == "Sparse VAE" and run.recipe != "default":
            assert run.parameters["n_factors"] == factors
            assert run.parameters["hidden_sizes"] == [width, width]
            assert run.parameters["learning_rate"] == rate
            assert run.parameters["max_epochs"] == epochs
            assert run.parameters["batch_size"] == batch
            assert (run.parameters["spike_rate"], run.parameters["slab_rate"]) == (spike, slab)


@pytest.mark.parametrize(
    "name, other, data_set",
    [
        ("topics", "movielens", "MovieLens"),
        ("topics", "peerread", "PeerRead"),
        ("ablation", "synthetic", "0.6"),
        ("example", "synthetic", "0.6"),
    ],
)
@pytest.mark.parametrize("recipe", ["paper", "authors"])
def test_results_on_the_same_data_have_the_same_published_settings(name, other, data_set, recipe):
    here, there = (
        next(
            dict(run.parameters)
            for run in SPECS[result].runs("paper")
            if (run.method, run.recipe, run.data_set) == ("Sparse VAE", recipe, data_set)
        )
        for result in (name, other)
    )
    assert here == there


def test_the_default_recipe_has_no_setting_of_the_paper_but_the_number_of_factors():
    for run in SPECS["peerread"].runs("paper"):
        if run.method == "Sparse VAE" and run.recipe == "default":
            assert set(run.parameters) == {"n_factors", "likelihood", "n_init", "recipe"}


def test_published_numbers_are_those_of_the_paper():
    table = {method.name: method.in_paper for method in SPECS["movielens"].methods}
    assert table["Sparse VAE"]["nll"]["MovieLens"] == "170.9 (2.1)"
    assert table["NMF"]["ndcg_10"]["MovieLens"] == "0.85 (0.004)"
    shift = {method.name: method.in_paper for method in SPECS["shift"].methods}
    assert shift["OI-VAE"]["nll"] == {"high": "65.7 (0.3)", "medium": "64.4 (0.3)", "low": "64.6 (0.2)"}


def test_the_ablation_shares_its_runs_of_the_sparse_vae_with_the_synthetic_figure():
    ablation, synthetic = SPECS["ablation"], SPECS[SPECS["ablation"].shares_with]
    assert set(ablation.metrics) <= set(synthetic.metrics)
    there = {(run.key, run.settings) for run in synthetic.runs("paper")}
    shared = [run for run in ablation.runs("paper") if (run.key, run.settings) in there]
    assert {run.method for run in shared} == {"Sparse VAE"}
    assert len(shared) == 375


def test_runs_go_through_one_split_before_the_next():
    splits = [run.split for run in SPECS["peerread"].runs("paper")]
    assert splits == sorted(splits)


def test_a_costly_recipe_may_have_fewer_splits():
    methods = [{"name": "Sparse VAE", "estimator": "SparseVAE", "splits": {"paper": 1}}]
    spec = parse_spec("a", content(methods=methods, n_splits=3))
    splits = {(run.recipe, run.split) for run in spec.runs("paper")}
    assert splits == {("paper", 0), *((recipe, k) for recipe in ("default", "authors") for k in range(3))}
    nowhere = [{"name": "VAE", "estimator": "VAE", "recipes": ["default"], "splits": {"paper": 1}}]
    with pytest.raises(ParameterError, match="splits of the recipe 'paper' of 'VAE'"):
        parse_spec("a", content(methods=nowhere))


def test_a_recipe_may_change_the_data():
    spec = parse_spec("a", content())
    runs = {run.recipe: run for run in spec.runs("paper")}
    assert runs["default"].data_parameters == {"n_samples": 40}
    assert runs["paper"].data_parameters == {"n_samples": 40, "noise_variance": 0.25}
    assert spec.world("default") == spec.world("any") != spec.world("paper")


def test_settings_of_a_data_set_come_between_those_of_the_result_and_those_of_the_method():
    data_set = {
        "name": "A",
        "source": "synthetic",
        "settings": {"n_factors": 7},
        "published": {"max_epochs": 5},
    }
    methods = [{"name": "V", "estimator": "VAE", "published": {"batch_size": 9}}]
    spec = parse_spec("a", content(data_sets=[data_set], methods=methods))
    runs = {run.recipe: run.parameters for run in spec.runs("paper")}
    assert runs["default"] == {"n_factors": 7, "recipe": "default"}
    assert runs["paper"] == {"n_factors": 7, "max_epochs": 5, "batch_size": 9, "recipe": "paper"}


def test_settings_have_a_fingerprint_that_moves_with_them():
    first = parse_spec("a", content()).runs("paper")
    again = parse_spec("a", content(title="Another title")).runs("paper")
    other = parse_spec("a", content(settings={"n_factors": 3})).runs("paper")
    assert [run.settings for run in first] == [run.settings for run in again]
    assert not {run.settings for run in first} & {run.settings for run in other}


@pytest.mark.parametrize(
    "changes, word",
    [
        ({"metrics": ["beauty"]}, "beauty"),
        ({"methods": [{"name": "A", "estimator": "Oracle"}]}, "Oracle"),
        ({"methods": [{"name": "A", "estimator": "VAE", "parameters": {"gamma": 1}}]}, "gamma"),
        ({"methods": [{"name": "A", "estimator": "VAE", "recipes": ["mine"]}]}, "mine"),
        ({"methods": [{"name": "A", "estimator": "VAE", "in_paper": {"mse": {"B": "1 (2)"}}}]}, "numbers"),
        ({"scales": {"smoke": {"data_sets": ["B"]}}}, "smoke"),
        ({"scales": {"smoke": {"n_splits": 1}}}, "'n_splits' of the scale 'smoke'"),
        ({"scales": {"smoke": {"sources": {"peerraed": {}}}}}, "'peerraed' of the scale"),
        ({"scales": {"smoke": {"settings": {"max_epoch": 1}}}}, "'max_epoch' in settings of smoke"),
        ({"settings": {"n_factor": 1}}, "'n_factor' in settings"),
        ({"published": {"max_epoch": 1}}, "'max_epoch' in published"),
        ({"recipes": {"paper": {"max_epoch": 1}}}, r"'max_epoch' in recipes\.paper"),
        ({"recipes": {"author": {}}}, "the recipe 'author'"),
        ({"comparable": ["autors"]}, "the recipe 'autors'"),
        ({"data_sets": [{"name": "A", "source": "nowhere"}]}, "the source 'nowhere'"),
        ({"data_sets": [{"name": "A", "source": "synthetic", "settings": {"k": 1}}]}, "'k' in settings of A"),
        ({"splitting": "thirds"}, "the splitting 'thirds'"),
        ({"examples": {"B": ["agent"]}}, "the data set 'B'"),
        ({"claims": [{"text": "Good.", "metric": "mse", "method": "Spars VAE"}]}, "claim 'Spars VAE'"),
    ],
)
def test_a_description_that_names_what_there_is_not_is_refused(changes, word):
    with pytest.raises(ParameterError, match=word):
        parse_spec("a", content(**changes))


def test_unknown_names_are_refused_with_those_there_are():
    with pytest.raises(ParameterError, match="one of example, synthetic, movielens"):
        load_spec("table-9")
    with pytest.raises(ParameterError, match="one of smoke, quick, paper"):
        SPECS["zeisel"].runs("huge")
