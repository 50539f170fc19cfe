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
    "what, result, data_set, metric, digits",
    [
        (
            "factors recovered at correlation 0.8, synthetic (DCI, higher is better)",
            *("synthetic", "0.8", "dci", 2),
        ),
        (
            "cell types told by the factors, Zeisel (accuracy, higher is better)",
            *("zeisel", "Zeisel", "accuracy", 3),
        ),
        ("held-out abstracts, PeerRead (NLL, lower is better)", "peerread", "PeerRead", "nll", 1),
        ("held-out users, MovieLens 1M (NLL, lower is better)", "movielens", "MovieLens", "nll", 1),
        (
            "movies that were hidden, MovieLens 1M (perplexity, lower is better)",
            *("movielens", "MovieLens", "completion", 1),
        ),
        (
            "abstracts whose topics correlate otherwise, semi-synthetic (NLL, lower is better)",
            *("shift", "high", "nll", 1),
        ),
        (
            "words of these that were hidden (perplexity, lower is better)",
            *("shift", "high", "completion", 1),
        ),
    ],
)
def test_a_line_of_the_table_of_results_is_what_the_rows_say(what, result, data_set, metric, digits):
    """Beside ours, every method of the table by its defaults, the best one first."""
    spec = load_spec(result)
    rows = current_rows(spec, "paper", Results(RESULTS / result / "paper"))
    table = summarise(rows[(rows["data_set"] == data_set) & (rows["metric"] == metric)])
    table = table[table["recipe"].isin(["default", "any"])].set_index("method")
    n_runs = {run[3:] for run in (run.key for run in spec.runs("paper")) if run[2] == data_set}
    of = f"{table.loc[OURS, 'n_runs']} of {len(n_runs)}"
    means = table["mean"].sort_values(ascending=MEASURES[metric].better == "lower")
    beside = ", ".join(f"{name} {mean:.{digits}f}" for name, mean in means.drop(OURS).items())
    ours = f"{means[OURS]:.{digits}f}"
    line = f"| [{what}](docs/results/{result}/paper/table.md) | {of} | {ours} | {beside} |"
    assert line in (ROOT / "README.md").read_text("utf-8")
