from __future__ import annotations

import json

from .helpers import invoke, refusal

QUICK = ("-k", 2, "--max-epochs", 3)


def test_a_row_per_method_goes_to_stdout(shared):
    result = invoke("compare", shared / "table.csv", "--methods", "VAE, PCA, VAE(beta=4)", *QUICK)
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["method", "score", "reconstruction", "seconds", "factors", "sparsity"]
    assert [line.split()[0] for line in lines[1:]] == ["VAE", "PCA", "VAE(beta=4)"]
    assert "Fitting VAE(beta=4)" in result.stderr


def test_what_cannot_be_fitted_is_explained_under_the_table(shared):
    result = invoke("compare", shared / "table.csv", "--methods", "NMF,PCA", *QUICK)
    assert result.exit_code == 0, result.stderr
    assert "NMF: Expected no Negative values" in result.stdout.splitlines()[-1]


def test_json_has_the_settings_and_a_record_per_method(shared):
    result = invoke(
        "compare", shared / "table.csv", "-m", "NMF, FactorAnalysis", "--json", *QUICK, "--seed", 4
    )
    record = json.loads(result.stdout)
    assert record["likelihood"] == "gaussian"
    assert record["seed"] == 4
    assert record["test_fraction"] == 0.2
    first, second = record["methods"]
    assert first["method"] == "NMF"
    assert first["score"] is None
    assert second["factors"] == 2
    assert second["note"] == ""


def test_the_likelihood_is_chosen_by_a_look_and_can_be_named(shared):
    result = invoke("compare", shared / "table.csv", "-m", "PCA", *QUICK)
    assert "The likelihood is gaussian, because some values are negative" in result.stderr
    assert "Expected likelihood" in refusal("compare", shared / "table.csv", "-m", "PCA", "--likelihood", "x")


def test_what_is_written_wrongly_is_refused_before_the_table_is_read(tmp_path):
    message = refusal("compare", tmp_path / "absent.csv", "--methods", "VEA")
    assert "Expected methods to be among SparseVAE" in message
    message = refusal("compare", tmp_path / "absent.csv", "--methods", "NMF, VAE(gamma=1)")
    assert "Expected parameters of VAE; got gamma" in message


def test_each_method_says_how_it_did_while_the_others_are_waited_for(shared):
    result = invoke("compare", shared / "table.csv", "-m", "PCA, NMF", *QUICK)
    lines = result.stderr.splitlines()
    assert lines[lines.index("Fitting PCA ...") + 1].startswith("  score ")
    assert lines[lines.index("Fitting NMF ...") + 1].startswith("  not fitted: Expected no Negative values")
