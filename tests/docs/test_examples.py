from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.slow
def test_the_picture_of_the_readme_can_be_drawn(tmp_path, capsys):
    example = runpy.run_path(str(EXAMPLES / "recovered_mask.py"))
    example["main"](str(tmp_path / "mask.png"))
    assert (tmp_path / "mask.png").read_bytes().startswith(b"\x89PNG")
    assert "factors found" in capsys.readouterr().out


@pytest.mark.slow
def test_the_pictures_of_the_explanation_can_be_drawn(tmp_path, capsys):
    example = runpy.run_path(str(EXAMPLES / "explain_pictures.py"))
    example["main"](str(tmp_path))
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"model.svg", "ladder.svg", "simplicity.svg"}
    assert "epochs of the ladder" in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore::sparsevae.exceptions.ConvergenceWarning")  # five epochs settle nothing
def test_the_factor_cards_of_the_ability_tests_can_be_made(tmp_path, capsys):
    example = runpy.run_path(str(EXAMPLES / "factor_cards.py"))
    example["main"](str(tmp_path / "cards.html"), max_epochs=5, n_init=1)
    assert "Ability tests of 301 pupils" in (tmp_path / "cards.html").read_text("utf-8")
    assert "9 features" in capsys.readouterr().out


def test_films_are_recommended_and_explained(real_data, capsys):
    example = runpy.run_path(str(EXAMPLES / "recommend_films.py"))
    folder = str(real_data("ml-latest-small"))
    quick = {"n_factors": 4, "hidden_sizes": (), "n_init": 1, "max_epochs": 60, "gain_kept": 1.0}
    results = example["main"](folder, n_features=60, **quick)
    assert results["EASE"] > results["popularity"]
    assert results["SparseVAE"] > results["popularity"]
    assert results["deletion"] >= 0.95
    assert results["explained"] > 0.5
    assert results["evidence"] > 0.8
    assert "NDCG@100" in capsys.readouterr().out
