from __future__ import annotations

import copy
import errno
import json
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from sparsevae import NMF, Run, SparseVAE, read_table, stability
from sparsevae.exceptions import DataError, DataWarning, ParameterError
from sparsevae.persistence import place, take_place
from sparsevae.report import build_content
from sparsevae.runs.files import FIT_FILES, STABILITY_FILES

pytestmark = pytest.mark.filterwarnings("ignore:The model in .* was saved by sparsevae 0.1")  # its note

SAVED = Path(__file__).parents[1] / "saved" / "0.1"


def test_a_run_of_version_0_1_opens_and_gives_its_factors():
    run = Run.open(SAVED / "run")
    assert run.record["versions"]["sparsevae"] == "0.1.0"
    assert isinstance(run.model(), SparseVAE)
    assert run.model() is run.model()
    expected = pd.read_csv(SAVED / "run" / "factors.csv", index_col=0)
    factors = run.factors(SAVED / "table.csv")
    assert list(factors.columns) == list(expected.columns)
    assert list(factors.index) == list(expected.index)
    np.testing.assert_allclose(factors, expected, rtol=1e-5)
    assert run.stability() is None
    assert build_content(run.model(), evidence=run.evidence())["source"]["seen_in_fit"] is True


def test_a_run_from_python_has_the_files_of_a_run_from_the_command_line(written, model, table):
    assert {path.name for path in written.iterdir()} == set(FIT_FILES)
    run = Run.open(str(written))
    assert run.record["data"]["n_samples"] == 40
    assert run.record["seed"] == 0
    np.testing.assert_array_equal(run.model().mask_, model.mask_)
    pd.testing.assert_frame_equal(run.factors(table), Run.open(written).factors(table.path))
    assert repr(run) == f"Run({str(written)!r})"


def test_what_is_known_of_the_fit_is_kept(model, table, tmp_path):
    run = Run.create(
        tmp_path / "run", model, table, notes=["As asked."], warnings=["Few rows."], seconds=2.04, log=["Hm."]
    )
    assert run.record == json.loads((run.path / "run.json").read_text("utf-8"))
    assert run.record["assumptions"] == [*table.assumptions, "As asked."]
    assert run.record["warnings"] == ["Few rows."]
    assert run.record["result"]["seconds"] == 2.0
    assert run.record["interrupted"] is False
    assert (run.path / "log.txt").read_text("utf-8") == "Hm.\n"


def test_a_sparse_table_gives_its_names_to_the_model(tmp_path, rng):
    sparse.save_npz(tmp_path / "counts.npz", sparse.csr_matrix(rng.poisson(3.0, size=(40, 3))))
    (tmp_path / "genes.txt").write_text("G0\nG1\nG2\n")
    table = read_table(tmp_path / "counts.npz", feature_names=tmp_path / "genes.txt")
    model = SparseVAE(2, likelihood="poisson", n_init=1, max_epochs=2, random_state=0)
    run = Run.create(tmp_path / "run", model.fit(table.for_estimator()), table)
    assert list(Run.open(run.path).model().loadings().index) == ["G0", "G1", "G2"]
    with pytest.warns(DataWarning, match="has no names"):
        assert len(run.factors(tmp_path / "counts.npz")) == 40


def test_a_model_that_gives_data_frames_makes_the_same_run(model, table, written, tmp_path):
    other = copy.deepcopy(model).set_output(transform="pandas")
    run = Run.create(tmp_path / "run", other, table)
    for name in ("factors.csv", "evidence.json"):
        assert (run.path / name).read_bytes() == (written / name).read_bytes()


def test_other_things_than_a_model_and_its_table_are_refused(model, table, tmp_path):
    with pytest.raises(ParameterError, match="Expected a fitted SparseVAE; got NMF"):
        Run.create(tmp_path / "run", NMF(), table)
    with pytest.raises(ParameterError, match=r"Expected a table from sparsevae.read_table; got ndarray"):
        Run.create(tmp_path / "run", model, table.X)
    assert list(tmp_path.iterdir()) == []


def test_the_table_of_the_fit_is_recognised(run, table, tmp_path):
    assert run.examine(table)["source"]["seen_in_fit"] is True
    assert run.read_fitted_table(table.path).shape == table.shape
    frame = pd.read_csv(table.path, index_col=0)
    frame.iloc[::-1].to_csv(tmp_path / "turned.csv")
    assert run.examine(tmp_path / "turned.csv")["source"]["seen_in_fit"] is False
    with pytest.warns(DataWarning, match="is not the file that was fitted"):
        run.read_fitted_table(tmp_path / "turned.csv")
    frame.iloc[:20].to_csv(tmp_path / "half.csv")
    with pytest.raises(DataError, match="with 40 samples"):
        run.read_fitted_table(tmp_path / "half.csv")


def test_other_features_are_refused_with_a_remedy_for_both_worlds(run, table, tmp_path):
    pd.read_csv(table.path, index_col=0).assign(age=3).to_csv(tmp_path / "more.csv")
    with pytest.raises(DataError, match=r"drop='age', on the command line --drop 'age'"):
        run.read_table(tmp_path / "more.csv")
    assert run.read_table(tmp_path / "more.csv", drop="age").shape == (40, 5)


@pytest.mark.filterwarnings("ignore::sparsevae.exceptions.ConvergenceWarning")  # few epochs settle nothing
def test_refits_are_kept_and_found_again(run, table):
    assert run.stability() is None
    result = stability(run.model(), table.for_estimator(), 1, random_state=0, n_jobs=1)
    run.add_stability(result)
    assert set(FIT_FILES) | set(STABILITY_FILES) == {path.name for path in run.path.iterdir()}
    pd.testing.assert_series_equal(
        run.stability().reproducibility, result.reproducibility, check_names=False, check_index_type=False
    )
    with pytest.raises(DataError, match=r"has one. Add --force"):
        run.add_stability(result)
    run.add_stability(result, force=True)


def test_an_unfinished_replacement_leaves_the_old_run_and_names_the_new_one(run, model, table, monkeypatch):
    before = (run.path / "run.json").read_bytes()

    def stuck(folder, path):
        if path == run.path.resolve():
            raise OSError(errno.EIO, "the file system has gone away")
        move(folder, path)

    move = place._move
    monkeypatch.setattr(place, "_move", stuck)
    with pytest.raises(OSError, match=r"gone away; the finished work is in .*\.run\.partial"):
        Run.create(run.path, model, table, force=True, notes=["new"])
    monkeypatch.undo()
    assert (run.path / "run.json").read_bytes() == before
    with pytest.warns(DataWarning, match=r"Finished work .* is now in .*run-2"):
        Run.open(run.path).model()
    assert Run.open(run.path.with_name("run-2")).record["assumptions"][-1] == "new"
    assert {path.name for path in run.path.parent.iterdir()} == {"run", "run-2"}


def test_a_place_that_was_filled_during_the_fit_is_left_alone(model, table, tmp_path):
    with take_place(tmp_path / "run", "run") as taken:
        (tmp_path / "run").mkdir()
        (tmp_path / "run" / "thesis.tex").write_text("mine")
        with pytest.warns(DataWarning, match=r"The finished run is in .*run-2"):
            run = Run.create(tmp_path / "run-", model, table, place=taken)
    assert run.path == tmp_path.resolve() / "run-2"
    assert Run.open(run.path).model().n_factors == model.n_factors
    assert (tmp_path / "run" / "thesis.tex").read_text() == "mine"


def test_finished_work_is_kept_elsewhere_where_the_disk_is_full(model, table, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "spare"))
    (tmp_path / "spare").mkdir()

    def full(self, path):
        if "spare" not in str(path):
            raise OSError(errno.ENOSPC, "No space left on device")
        return save(self, path)

    save = SparseVAE.save
    monkeypatch.setattr(SparseVAE, "save", full)
    with pytest.warns(DataWarning, match=r"No space left|The finished run is in .*spare"):
        run = Run.create(tmp_path / "run", model, table)
    assert run.path.parent == tmp_path / "spare"
    assert Run.open(run.path).evidence() is not None
    assert not (tmp_path / "run").exists()


def test_a_run_is_replaced_when_asked(run, model, table):
    with pytest.raises(DataError, match=r"already holds a run. Add --force"):
        Run.create(run.path, model, table)
    assert Run.create(run.path, model, table, force=True, notes=["new"]).record["assumptions"][-1] == "new"
    assert [path.name for path in run.path.parent.iterdir()] == ["run"]


def test_what_is_not_a_run_does_not_open(run, tmp_path):
    with pytest.raises(DataError, match="there is none"):
        Run.open(tmp_path / "nowhere")
    with pytest.raises(DataError, match=r"has no run.json"):
        Run.open(tmp_path)
    shutil.rmtree(run.path / "model")
    with pytest.raises(DataError, match="Expected a saved model"):
        run.model()
