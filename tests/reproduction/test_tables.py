from __future__ import annotations

import pandas as pd
import pytest

from sparsevae.reproduction.results import FAILED, KEY, Results
from sparsevae.reproduction.runner import run_spec
from sparsevae.reproduction.tables import current_rows, render, summarise

from .helpers import make_spec

VALUES = {("PCA", "0.0"): [1.0, 3.0], ("PCA", "0.4"): [5.0, 5.0], ("Factor analysis", "0.0"): [2.5, 3.5]}


def fill(results, spec, values=VALUES, metric="mse", **more):
    """Rows with numbers of our own."""
    for run in spec.runs("paper"):
        for own in values.get((run.method, run.data_set), [])[run.seed : run.seed + 1]:
            row = dict(zip(KEY, run.key, strict=True))
            row |= {"metric": metric, "value": own, "settings": run.settings, "seconds": 1.0, **more}
            results.add([row])


@pytest.fixture
def results(tmp_path):
    return Results(tmp_path)


def page(spec, results, about=None, figures=()):
    return render(spec, "paper", current_rows(spec, "paper", results), about or {}, figures)


def line(text, *beginning):
    (found,) = [row for row in text.splitlines() if row.startswith("| " + " | ".join(beginning) + " |")]
    return [cell.strip() for cell in found.strip("|").split("|")]


def test_mean_and_deviation_are_over_runs_and_the_deviation_divides_by_their_number(results):
    spec = make_spec(n_seeds=2)
    fill(results, spec)
    table = summarise(current_rows(spec, "paper", results)).set_index(["method", "data_set"])
    assert table.loc[("PCA", "0.0"), "mean"] == 2.0
    assert table.loc[("PCA", "0.0"), "sd"] == 1.0
    assert table.loc[("PCA", "0.0"), "n_runs"] == 2


def test_a_single_run_has_no_deviation(results):
    spec = make_spec()
    fill(results, spec)
    assert summarise(current_rows(spec, "paper", results))["sd"].isna().all()
    assert line(page(spec, results), "PCA", "any")[3] == "**1.000**"


def test_who_is_alone_in_a_column_is_not_its_best_and_runs_of_several_columns_may_differ(results):
    spec = make_spec(n_seeds=2)
    fill(results, spec, {("PCA", "0.0"): [1.0, 3.0], ("PCA", "0.4"): [2.0]})
    assert line(page(spec, results), "PCA", "any")[2:4] == ["1–2", "2.000 (1.000)"]


def test_a_reference_is_never_the_best(results):
    methods = [
        {"name": "PCA", "estimator": "PCA"},
        {"name": "NMF", "estimator": "NMF"},
        {"name": "Factor analysis", "estimator": "FactorAnalysis", "reference": True},
    ]
    spec = make_spec(methods=methods)
    fill(results, spec, {("PCA", "0.0"): [2.0], ("NMF", "0.0"): [3.0], ("Factor analysis", "0.0"): [1.0]})
    text = page(spec, results)
    assert line(text, "PCA", "any")[3] == "**2.000**"
    assert line(text, "Factor analysis", "any")[3] == "1.000"


def test_the_papers_number_stands_beside_ours(results):
    spec = make_spec(n_seeds=2)
    fill(results, spec)
    text = page(spec, results)
    assert "| method | recipe | runs | 0.0 | 0.0, paper | 0.4 |" in text
    assert line(text, "PCA", "any") == [
        "PCA",
        "any",
        "2",
        "**2.000 (1.000)**",
        "7.25 (0.5)",
        "5.000 (0.000)",
    ]
    assert line(text, "Factor analysis", "any")[3:] == ["3.000 (0.500)", "", "–"]


def test_the_papers_number_stands_only_beside_the_recipes_that_it_compares_with(results):
    spec = make_spec(n_seeds=2, comparable=["authors"])
    fill(results, spec)
    text = page(spec, results)  # PCA has no such recipe: the number is shown all the same, marked
    assert line(text, "PCA", "any")[4] == "7.25 (0.5) †"
    assert "† published for other data than those of its row" in text
    methods = [{"name": "VAE", "estimator": "VAE", "in_paper": {"mse": {"0.0": "7.25 (0.5)"}}}]
    spec = make_spec(methods=methods, comparable=["authors"], claims=[])
    for run in spec.runs("paper"):
        row = dict(zip(KEY, run.key, strict=True))
        results.add([{**row, "metric": "mse", "value": 1.0, "settings": run.settings, "seconds": 1.0}])
    text = page(spec, results)
    assert [line(text, "VAE", recipe)[4] for recipe in ("default", "paper", "authors")] == [
        "",
        "",
        "7.25 (0.5)",
    ]
    assert "†" not in text


def test_the_best_is_looked_for_among_those_with_the_most_runs(results):
    spec = make_spec(n_seeds=2)
    fill(results, spec, {("PCA", "0.0"): [1.0, 3.0], ("Factor analysis", "0.0"): [0.5]})
    text = page(spec, results)
    assert line(text, "PCA", "any")[3] == "2.000 (1.000)"  # nobody has as many
    assert line(text, "Factor analysis", "any")[3] == "0.500"
    methods = [{"name": name, "estimator": "PCA"} for name in ("A", "B", "C")]
    spec = make_spec(n_seeds=2, methods=methods, claims=[])
    fill(results, spec, {("A", "0.0"): [1.0, 3.0], ("B", "0.0"): [0.5], ("C", "0.0"): [4.0, 4.0]})
    text = page(spec, results)
    assert [line(text, name, "any")[3] for name in "ABC"] == ["**2.000 (1.000)**", "0.500", "4.000 (0.000)"]


def test_runs_are_counted_metric_by_metric(results):
    spec = make_spec(n_seeds=2)
    fill(results, spec, {("PCA", data_set): [1.0, 3.0] for data_set in ("0.0", "0.4")})
    for data_set in ("0.0", "0.4"):
        rows = [row for row in results.rows() if (row["data_set"], row["seed"]) == (data_set, "0")]
        results.add([*rows, {**rows[0], "metric": "dci", "value": 0.5}])
    of_mse, of_dci = page(spec, results).split("## DCI")
    assert line(of_mse, "PCA", "any")[2] == "2"
    assert line(of_dci, "PCA", "any")[2] == "1"
    assert "0 of 12 runs" in of_mse  # none has all that is measured


def test_methods_are_compared_on_the_same_data_only(results):
    methods = [{"name": "PCA", "estimator": "PCA", "recipes": ["default", "authors"]}]
    recipes = {"authors": {"data": {"noise_variance": 0.25}}}
    claims = [{"text": "Good.", "metric": "mse", "method": "PCA"}]
    spec = make_spec(methods=methods, recipes=recipes, claims=claims)
    for run in spec.runs("paper"):
        if run.data_set == "0.0":
            row = dict(zip(KEY, run.key, strict=True))
            value = {"default": 2.0, "authors": 1.0}[run.recipe]
            results.add([{**row, "metric": "mse", "value": value, "settings": run.settings, "seconds": 1.0}])
    text = page(spec, results)
    assert line(text, "PCA", "default")[3] == "2.000"  # alone, so not the best
    assert line(text, "PCA", "authors")[3] == "1.000"
    assert "Not measured yet" in text  # nothing else was on its data


def test_rows_of_other_settings_are_left_out(results):
    fill(results, make_spec(settings={"n_factors": 3}))
    assert current_rows(make_spec(), "paper", results).empty


def test_failures_are_listed_with_their_reasons(results):
    spec = make_spec()
    fill(results, spec)
    fill(results, spec, {("PCA", "0.8"): [None]}, FAILED, note="ValueError: out of luck")
    text = page(spec, results)
    assert "## Runs that failed" in text
    assert "- PCA (any), 0.8, seed 0, split 0: ValueError: out of luck" in text
    assert "0 of 6 runs" in text  # of those that are there one quantity was measured, of three


def test_the_page_says_how_it_was_made(results, tmp_path):
    spec = make_spec(notes=["A note."])
    run_spec(spec, "paper", results)
    text = page(spec, results, {"zeisel": "3005 cells."}, [tmp_path / "linear.png"])
    for part in (
        "`sparsevae reproduce linear --scale paper --out RESULTS`",
        "- A note.",
        "- Data: 3005 cells.",
        "torch",
        "![Linear methods](linear.png)",
        "are no measure of speed",
    ):
        assert part in text
    assert "scale shows that everything works" in render(
        spec, "smoke", current_rows(spec, "paper", results), {}, []
    )


def test_one_data_set_gets_one_table_with_a_column_per_metric(results):
    spec = make_spec(data_sets=[{"name": "0.0", "source": "synthetic", "parameters": {"n_samples": 60}}])
    run_spec(spec, "paper", results)
    head = "| method | recipe | runs | MSE | MSE, paper | DCI |\n"  # no linear method has a support
    assert head in page(spec, results)


@pytest.mark.parametrize(
    "ends, line",
    [
        (None, "| 1 | a; b\\|c; d; e; f |"),
        ([["a"], ["d", "e"], [], []], "| 1 | a; b\\|c; d; e; f | a | d; e |"),
    ],
)
def test_topics_are_shown_beside_those_of_the_paper(results, ends, line):
    methods = [{"name": "NMF", "estimator": "NMF"}]
    data_sets = [{"name": "Words", "source": "peerread"}]
    spec = make_spec(
        methods=methods,
        data_sets=data_sets,
        claims=[],
        figure="",
        metrics=["topics", "ends", "mse"],
        examples={"Words": ["agent; policy"]},
        figure_metrics=[],
    )
    (run,) = spec.runs("paper")
    row = dict(zip(KEY, run.key, strict=True))
    common = {**row, "settings": run.settings, "seconds": 1.0}
    topics = [["a", "b|c", "d", "e", "f", "g"], []]
    values = {"topics": topics, "ends": ends, "mse": 1.0}
    results.add([{**common, "metric": name, "value": value} for name, value in values.items()])
    text = page(spec, results)
    assert "- agent; policy" in text
    assert "### Words: NMF" in text
    assert line in text
    assert "| 2 |" not in text


def test_no_rows_make_no_summary():
    empty = pd.DataFrame(columns=["method", "recipe", "data_set", "metric", "value"])
    assert summarise(empty).empty
    assert list(summarise(empty).columns) == [
        "method",
        "recipe",
        "data_set",
        "metric",
        "mean",
        "sd",
        "n_runs",
    ]
