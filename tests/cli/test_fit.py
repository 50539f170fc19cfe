from __future__ import annotations

import importlib
import json
import shutil

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from sparsevae import SparseVAE
from sparsevae.inspection import codes

from .helpers import files_under, invoke, refusal

CSVS = {"loadings.csv", "effects.csv", "factors.csv", "history.csv"}


def test_a_run_holds_what_is_needed_to_read_and_repeat_it(shared, frame):
    run = shared / "run"
    assert {path.name for path in run.iterdir()} == CSVS | {"run.json", "model", "evidence.json", "log.txt"}
    record = json.loads((run / "run.json").read_text())
    assert record["format"] == 1
    assert record["seed"] == record["settings"]["random_state"] == 0
    assert record["settings"]["n_init"] == 1
    assert record["settings"]["likelihood"] == "gaussian"
    assert set(record["versions"]) >= {"python", "sparsevae", "torch", "numpy", "scikit-learn"}
    assert record["data"] == {
        "file": "table.csv",
        "bytes": (shared / "table.csv").stat().st_size,
        "sha256": record["data"]["sha256"],
        "n_samples": 40,
        "n_features": 5,
    }
    assert len(record["data"]["sha256"]) == 64


def test_the_csv_files_say_what_the_saved_model_says(shared, frame):
    run = shared / "run"
    model = SparseVAE.load(run / "model")
    loadings = pd.read_csv(run / "loadings.csv", index_col="feature")
    assert list(loadings.index) == list(frame.columns)
    np.testing.assert_allclose(loadings, model.loadings(), rtol=1e-6)
    effects = pd.read_csv(run / "effects.csv", index_col="feature")
    np.testing.assert_allclose(effects, model.effects(), rtol=1e-6)
    factors = pd.read_csv(run / "factors.csv", index_col="person")
    assert list(factors.index) == list(frame.index)
    assert list(factors.columns) == list(loadings.columns)
    np.testing.assert_allclose(
        factors, model.transform(frame)[:, model.active_factors_], rtol=1e-5, atol=1e-6
    )
    assert len(pd.read_csv(run / "history.csv")) == model.n_iter_


def test_the_zeros_of_the_mask_are_exact_in_the_file(shared):
    mask = SparseVAE.load(shared / "run" / "model").mask_
    loadings = pd.read_csv(shared / "run" / "loadings.csv", index_col=0)
    assert (loadings.to_numpy() != 0).sum() == (mask != 0).sum()


def test_the_log_has_what_was_said_with_the_time(shared):
    lines = (shared / "run" / "log.txt").read_text("utf-8").splitlines()
    assert any("Fitting up to 3 factors" in line for line in lines)
    assert all(line.startswith("20") for line in lines)


def test_results_go_to_stdout_and_the_rest_to_stderr(shared, quick, tmp_path):
    result = invoke("fit", shared / "table.csv", "--out", tmp_path / "run", "--config", quick)
    assert result.exit_code == 0
    assert "found" in result.stdout
    assert "40 samples x 5 features" in result.stderr
    assert "Sample names are in column 'person'" in result.stderr
    assert "The likelihood is gaussian, because some values are negative" in result.stderr


def test_json_is_the_record_and_nothing_else(shared, quick, tmp_path):
    out = tmp_path / "run"
    result = invoke("fit", shared / "table.csv", "--out", out, "--config", quick, "--json")
    printed = json.loads(result.stdout)
    assert printed.pop("run") == str(out)
    assert printed == json.loads((out / "run.json").read_text())


def test_options_typed_win_over_the_settings_file(shared, quick, tmp_path):
    out = tmp_path / "run"
    typed = ("-k", 2, "--seed", 7, "--max-epochs", 3, "--likelihood", "gaussian")
    assert invoke("fit", shared / "table.csv", "--out", out, "--config", quick, *typed).exit_code == 0
    settings = json.loads((out / "run.json").read_text())["settings"]
    assert {name: settings[name] for name in ("n_factors", "random_state", "max_epochs", "n_init")} == {
        "n_factors": 2,
        "random_state": 7,
        "max_epochs": 3,
        "n_init": 1,
    }


def test_the_same_seed_gives_the_same_files(shared, quick, tmp_path):
    out = tmp_path / "again"
    assert invoke("fit", shared / "table.csv", "--out", out, "--config", quick).exit_code == 0
    for name in CSVS:
        assert (out / name).read_bytes() == (shared / "run" / name).read_bytes()


def test_an_existing_run_is_kept_without_force_and_replaced_with_it(shared, quick, tmp_path):
    out = tmp_path / "run"
    command = ("fit", shared / "table.csv", "--out", out, "--config", quick)
    assert invoke(*command).exit_code == 0
    before = (out / "run.json").read_bytes()
    assert "already holds a run. Add --force" in refusal(*command)
    assert (out / "run.json").read_bytes() == before
    assert invoke(*command, "--force", "--seed", 5).exit_code == 0
    assert json.loads((out / "run.json").read_text())["seed"] == 5
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_force_replaces_runs_only(shared, quick, tmp_path):
    out = tmp_path / "thesis"
    out.mkdir()
    (out / "chapter1.txt").write_text("years of work")
    message = refusal("fit", shared / "table.csv", "--out", out, "--config", quick, "--force")
    assert "holds something else than a run" in message
    assert files_under(tmp_path) == {"thesis/chapter1.txt"}


def test_force_names_a_file_in_the_run_that_it_did_not_write(shared, quick, tmp_path):
    out = shutil.copytree(shared / "run", tmp_path / "run")
    (out / "notes.txt").write_text("years of work")
    before = files_under(out)
    message = refusal("fit", shared / "table.csv", "--out", out, "--config", quick, "--force")
    assert "got 'notes.txt' too. Move it elsewhere, or choose another name." in message
    assert files_under(out) == before


def test_a_fit_checks_its_table_once_and_encodes_each_row_once(shared, quick, frame, tmp_path, monkeypatch):
    checks, encoded = [], []
    check, find = SparseVAE._check_table, codes.posterior

    def checked(self, X, *others, **options):
        checks.append(X.shape)
        return check(self, X, *others, **options)

    def posterior(module, batch):
        encoded.extend(np.unique(batch.x.numpy(), axis=0).tolist())  # the last row also fills its block up
        return find(module, batch)

    monkeypatch.setattr(SparseVAE, "_check_table", checked)
    monkeypatch.setattr(codes, "posterior", posterior)
    result = invoke("fit", shared / "table.csv", "--out", tmp_path / "run", "--config", quick)
    assert result.exit_code == 0, result.stderr
    assert checks == [frame.shape]
    assert len(encoded) == len(frame)


def test_of_a_run_that_fails_while_it_is_written_the_fit_is_left(shared, quick, tmp_path, monkeypatch):
    def full(*args: object, **kwargs: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("sparsevae.runs.run.write_csv", full)
    message = refusal("fit", shared / "table.csv", "--out", tmp_path / "run", "--config", quick)
    assert message == "Error: No space left on device."
    assert [path.name for path in tmp_path.iterdir()] == ["run.checkpoint"]
    monkeypatch.undo()
    result = invoke("fit", shared / "table.csv", "--out", tmp_path / "run", "--config", quick, "--resume")
    assert result.exit_code == 0, result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    for name in ("factors.csv", "loadings.csv", "history.csv", "model/model.safetensors"):
        assert (tmp_path / "run" / name).read_bytes() == (shared / "run" / name).read_bytes()


def test_an_interrupted_fit_writes_nothing(shared, quick, tmp_path, monkeypatch):
    def interrupt(*args: object, **kwargs: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(SparseVAE, "fit_codes", interrupt)
    result = invoke("fit", shared / "table.csv", "--out", tmp_path / "run", "--config", quick)
    assert result.exit_code == 130
    assert "Interrupted: nothing was written." in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_sparse_table_keeps_the_names_given_beside_it(quick, tmp_path, rng):
    counts = sparse.csr_matrix(rng.poisson(0.7, size=(40, 5)))
    sparse.save_npz(tmp_path / "counts.npz", counts)
    (tmp_path / "genes.tsv").write_text("gene\tchromosome\n" + "".join(f"G{j}\t1\n" for j in range(5)))
    names = ("--feature-names", tmp_path / "genes.tsv")
    out = tmp_path / "run"
    result = invoke(
        "fit", tmp_path / "counts.npz", "--out", out, "--config", quick, *names, "--max-epochs", 2
    )
    assert result.exit_code == 0, result.stderr
    assert "The likelihood is poisson" in result.stderr
    assert list(pd.read_csv(out / "loadings.csv", index_col=0).index) == [f"G{j}" for j in range(5)]
    again = invoke("transform", out, tmp_path / "counts.npz", "-o", tmp_path / "z.csv")
    assert again.exit_code == 0, again.stderr
    assert (tmp_path / "z.csv").read_bytes() == (out / "factors.csv").read_bytes()


def test_views_in_the_names_of_features_are_kept_for_the_report(quick, frame, tmp_path):
    table = frame.set_axis(["mood:a", "mood:b", "sleep:a", "sleep:b", "age"], axis=1)
    table.to_csv(tmp_path / "t.csv")
    out, options = tmp_path / "run", ("--config", quick, "--max-epochs", 2)
    result = invoke("fit", tmp_path / "t.csv", "--out", out, *options, "--view-separator", ":")
    assert result.exit_code == 0, result.stderr
    assert "Views and their features: mood 2, sleep 2, other 1." in result.stderr
    assert SparseVAE.load(out / "model").views_.tolist() == ["mood", "mood", "sleep", "sleep", "other"]
    page = tmp_path / "page.html"
    assert invoke("report", out, "-o", page).exit_code == 0
    assert "Variance explained by view" in page.read_text("utf-8")
    wrong = ("fit", tmp_path / "t.csv", "--out", tmp_path / "b", *options, "--view-separator", "/")
    assert "got no such name" in refusal(*wrong)


def test_warnings_of_the_fit_are_said_and_recorded(quick, tmp_path, frame):
    frame.assign(constant=1.5).to_csv(tmp_path / "table.csv")
    result = invoke("fit", tmp_path / "table.csv", "--out", tmp_path / "run", "--config", quick)
    assert result.exit_code == 0
    assert "constant" in result.stderr
    warned = json.loads((tmp_path / "run" / "run.json").read_text())["warnings"]
    assert any("constant" in message for message in warned)


BAD_TABLES = {
    "empty.csv": (b"", "the file is empty"),
    "blank.csv": (b"\n\n", "the file is empty"),
    "header.csv": (b"a,b,c\n", "at least one row"),
    "latin.csv": ("größe,b\n1,2\n3,4\n".encode("latin-1"), "UTF-8; got byte 0xf6 in line 1"),
    "late.csv": (b"a,b\n" + b"1,2\n" * 300 + b"1,\xff\n", "got byte 0xff in line 302"),
    "words.csv": (
        b"a,b,c\n1,red,2\n2,blue,3\n",
        "got something else in column 'b', for example 'red' in row 1",
    ),
    "twice.csv": (b"a,b,a\n1,2,3\n4,5,6\n", "got 'a' more than once"),
    "ragged.csv": (b"a,b,c\n1,2,3\n4,5,6,7\n", "as many fields in every line"),
    "gap.csv": (b"a,b,c\n1,,3\n4,,6\n", "got only missing ones in 'b'"),
    "infinite.csv": (b"a,b,c\n1,2,3\n4,inf,6\n", "infinity in column 'b', row 2"),
    "one_row.csv": (b"a,b,c\n1,2,3\n", "minimum of 2"),
    "table.xlsx": (b"PK", "it is damaged"),
    "table.docx": (b"PK", "Expected a file that ends in .csv"),
    "table.npy": (b"\x93NUMPY\x01\x00", "to be a plain array"),
    "table.npz": (b"PK\x03\x04junk", "it is damaged"),
    "table.mtx": (b"not a matrix", "Matrix Market"),
    "table.parquet": (b"PAR1junk", "Parquet"),
    "table.h5ad": (b"\x89HDF junk", "H5AD"),
    "table.npy.gz": (b"\x1f\x8b", "without gzip"),
}


@pytest.mark.parametrize("name", BAD_TABLES)
def test_a_bad_table_gets_one_sentence_and_leaves_nothing(name, quick, tmp_path):
    content, phrase = BAD_TABLES[name]
    (tmp_path / name).write_bytes(content)
    assert phrase in refusal("fit", tmp_path / name, "--out", tmp_path / "run", "--config", quick)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_missing_table_is_named(quick, tmp_path):
    assert "no such file" in refusal("fit", tmp_path / "nowhere.csv", "--out", tmp_path / "run")
    assert "text files" in refusal("fit", tmp_path, "--out", tmp_path / "run")


@pytest.mark.parametrize(
    "arguments,phrase",
    [
        (("--likelihood", "softmax"), "softmax"),
        (("--likelihood", "poisson"), "Negative values"),
        (("--drop", "item 9"), "has no such column"),
        (("--id-column", "name"), "Expected a column 'name'"),
        (("--config", "nowhere.toml"), "Expected a settings file at nowhere.toml"),
    ],
)
def test_a_bad_option_gets_one_sentence(arguments, phrase, shared, tmp_path):
    assert phrase in refusal("fit", shared / "table.csv", "--out", tmp_path / "run", *arguments)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments", [("-k", "0"), ("--seed", "-1"), ("--max-epochs", "many"), ("--colour", "red")]
)
def test_a_misuse_of_options_ends_with_code_2(arguments, shared, tmp_path):
    result = invoke("fit", shared / "table.csv", "--out", tmp_path / "run", *arguments)
    assert result.exit_code == 2
    assert arguments[0] in result.stderr


def test_a_table_with_empty_cells_is_fitted_and_read_again(quick, tmp_path, rng):
    z = rng.standard_normal((80, 1))
    X = pd.DataFrame(z + 0.3 * rng.standard_normal((80, 5)), columns=list("abcde"))
    X.iloc[3, 1] = X.iloc[7, 4] = np.nan
    X.to_csv(tmp_path / "t.csv", index=False)
    result = invoke("fit", tmp_path / "t.csv", "--out", tmp_path / "run", "--config", quick)
    assert result.exit_code == 0, result.stderr
    assert "2 cells are empty or NA (0.5%) and counted as missing" in result.stderr
    assert pd.read_csv(tmp_path / "run" / "factors.csv", index_col=0).notna().all(axis=None)
    assert invoke("report", tmp_path / "run", "-o", tmp_path / "r.html").exit_code == 0


@pytest.mark.parametrize(
    "seconds, max_epochs, announced", [(300.0, None, True), (30.0, None, False), (300.0, 50, False)]
)
def test_a_long_fit_is_announced_unless_its_length_is_given(capsys, seconds, max_epochs, announced):
    importlib.import_module("sparsevae.cli.fit")._say_duration(seconds, max_epochs)
    shown = "".join(capsys.readouterr())
    assert ("about 5 minutes" in shown) == announced
    assert ("--max-epochs" in shown) == announced
