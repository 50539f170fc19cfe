"""Pages, claims and the README say what the committed rows say."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparsevae.experiments.measures import MEASURES
from sparsevae.experiments.overview import overview
from sparsevae.experiments.results import Results
from sparsevae.experiments.spec import load_spec, load_specs
from sparsevae.experiments.tables import current_rows, render, summarise

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results"
OURS = "Sparse VAE"


@pytest.mark.parametrize("name", load_specs())
def test_a_page_is_what_the_rows_say(name):
    folder, spec = RESULTS / name / "paper", load_spec(name)
    results = Results(folder)
    figures = [folder / f"{name}.png"] if spec.figure else []
    page = render(spec, "paper", current_rows(spec, "paper", results), results.about(), figures)
    assert (folder / "table.md").read_text("utf-8") == page, "draw it anew: sparsevae reproduce NAME --draw"


def test_the_page_of_claims_is_what_the_rows_say():
    assert (RESULTS / "claims-paper.md").read_text("utf-8") == overview(RESULTS, "paper")


@pytest.mark.parametrize(
    "result, data_set, metric, digits",
    [
        ("synthetic", "0.8", "dci", 2),
        ("zeisel", "Zeisel", "accuracy", 3),
        ("peerread", "PeerRead", "nll", 1),
        ("movielens", "MovieLens", "nll", 1),
        ("movielens", "MovieLens", "completion", 1),
        ("shift", "high", "nll", 1),
        ("shift", "high", "completion", 1),
    ],
)
def test_the_readme_has_the_numbers_of_the_rows(result, data_set, metric, digits):
    """One of its lines on the result has ours and those of all other methods by default, the best first."""
    spec = load_spec(result)
    rows = current_rows(spec, "paper", Results(RESULTS / result / "paper"))
    table = summarise(rows[(rows["data_set"] == data_set) & (rows["metric"] == metric)])
    table = table[table["recipe"].isin(["default", "any"])].set_index("method")
    means = table["mean"].sort_values(ascending=MEASURES[metric].better == "lower").round(digits)
    n_runs = {run.key[3:] for run in spec.runs("paper") if run.data_set == data_set}
    expected = (int(table.loc[OURS, "n_runs"]), len(n_runs)), means[OURS], [*means.drop(OURS).items()]
    assert expected in readme_lines(result)


def readme_lines(result):
    """Lines of the README's table on a result: runs done and in all, our number, the others by method."""
    found = []
    for line in (ROOT / "README.md").read_text("utf-8").splitlines():
        if f"](docs/results/{result}/paper/table.md) |" in line:
            _, runs, ours, others = line.strip("| ").split(" | ")
            pairs = [pair.rpartition(" ") for pair in others.split(", ")]
            done, in_all = map(int, runs.split(" of "))
            found.append(((done, in_all), float(ours), [(name, float(value)) for name, _, value in pairs]))
    return found
