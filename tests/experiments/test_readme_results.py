"""The README's figures are those of the committed rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparsevae.experiments.results import Results
from sparsevae.experiments.spec import load_spec
from sparsevae.experiments.tables import current_rows, summarise

ROOT = Path(__file__).parents[2]
OURS = "Sparse VAE"


@pytest.mark.parametrize(
    "what, result, data_set, metric, digits, others",
    [
        (
            "factors recovered at correlation 0.8, synthetic (DCI, higher is better)",
            *("synthetic", "0.8", "dci", 2, ("VAE", "OI-VAE", "VSC", "Factor analysis")),
        ),
        (
            "cell types told by the factors, Zeisel (accuracy, higher is better)",
            *("zeisel", "Zeisel", "accuracy", 3, ("VAE", "PCA", "Factor analysis", "NMF (α=0)")),
        ),
        (
            "held-out abstracts, PeerRead (NLL, lower is better)",
            *("peerread", "PeerRead", "nll", 1, ("VAE", "LDA", "NMF", "OI-VAE")),
        ),
        (
            "held-out users, MovieLens 1M (NLL, lower is better)",
            *("movielens", "MovieLens", "nll", 1, ("VAE", "LDA", "NMF", "OI-VAE")),
        ),
        (
            "movies that were hidden, MovieLens 1M (perplexity, lower is better)",
            *("movielens", "MovieLens", "completion", 1, ("VAE", "LDA", "NMF", "OI-VAE")),
        ),
    ],
)
def test_a_line_of_the_table_of_results_is_what_the_rows_say(what, result, data_set, metric, digits, others):
    spec = load_spec(result)
    rows = current_rows(spec, "paper", Results(ROOT / "docs" / "results" / result / "paper"))
    table = summarise(rows[(rows["data_set"] == data_set) & (rows["metric"] == metric)])
    table = table[table["reading"].isin(["default", "any"])].set_index("method")
    n_runs = {run[3:] for run in (run.key for run in spec.runs("paper")) if run[2] == data_set}
    of = f"{table.loc[OURS, 'n_runs']} of {len(n_runs)}"
    ours, *theirs = (f"{table.loc[name, 'mean']:.{digits}f}" for name in (OURS, *others))
    beside = ", ".join(f"{name} {value}" for name, value in zip(others, theirs, strict=True))
    line = f"| [{what}](docs/results/{result}/paper/table.md) | {of} | {ours} | {beside} |"
    assert line in (ROOT / "README.md").read_text("utf-8")
