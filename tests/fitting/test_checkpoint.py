"""Fits that are cut off anywhere and go on from their checkpoint, to the last bit."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import warnings

import numpy as np
import pytest
from scipy import sparse

from sparsevae import OIVAE, VAE, VSC, SparseVAE
from sparsevae.exceptions import ConvergenceWarning, DataError, DataWarning, ParameterError
from sparsevae.persistence.checkpoints import sign
from sparsevae.training import stop_on_interrupt

from ..tables import make_table
from .cutting import assert_equal_models, cut_off, fit, middles
from .resuming import CASES

QUICK = {"n_factors": 2, "hidden_sizes": (5,), "max_epochs": 8, "random_state": 0}
KINDS = [
    "small",
    "spine or network",
    "spine",
    "spine, counts",
    "large, anchors",
    "a looser rate",
    "no factor",
    "paper",
]
ESTIMATORS = {
    "SparseVAE": (SparseVAE, {"n_init": 2}),
    "VAE": (VAE, {"n_init": 2}),
    "VSC": (VSC, {}),
    "OIVAE": (OIVAE, {"groups": list("aabbccc")}),
}


def cut_in_each_phase(make, X, folder, **options):
    """A fit that is never cut off, and one that is in the middle of each of its phases."""
    phases = []
    expected = fit(make(), X, callbacks=[lambda record: phases.append(record["phase"])], **options)
    for step in middles(phases):
        seen = cut_off(make(), X, folder, step, **options)
        assert seen[-1] == step
    steps = []
    model = fit(
        make(), X, checkpoint=folder, callbacks=[lambda record: steps.append(record["step"])], **options
    )
    assert steps == list(
        range(middles(phases)[-1], len(phases) + 1)
    )  # nothing is trained twice but one epoch
    return model, expected


@pytest.mark.parametrize("case", KINDS)
def test_a_fit_that_is_cut_off_in_each_of_its_phases_ends_as_if_nothing_had_happened(case, tmp_path):
    table, parameters = CASES[case]
    X = table()
    assert_equal_models(*cut_in_each_phase(lambda: SparseVAE(**parameters), X, tmp_path), X)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_goes_on(name, tmp_path):
    kind, parameters = ESTIMATORS[name]
    X = make_table()
    assert_equal_models(*cut_in_each_phase(lambda: kind(**QUICK, **parameters), X, tmp_path), X)


@pytest.mark.parametrize("what", ["groups", "weights", "holes", "exposure", "sparse"])
def test_fits_of_annotated_tables_go_on(what, tmp_path):
    counts = what in ("exposure", "sparse")
    X = make_table("poisson" if counts else "gaussian")
    rng, more = np.random.default_rng(0), {}
    if what == "groups":
        more["groups"] = np.arange(len(X)) % 2
    elif what == "weights":
        more["sample_weight"] = rng.uniform(0.5, 1.5, len(X))
    elif what == "holes":
        X[rng.random(X.shape) < 0.1] = np.nan
    elif what == "exposure":
        more["exposure"] = rng.uniform(1.0, 2.0, len(X))
    else:
        X = sparse.csr_matrix(X)
    likelihood = "poisson" if counts else "gaussian"

    def make():
        return VAE(**QUICK, likelihood=likelihood)

    model, expected = cut_in_each_phase(make, X, tmp_path, **more)
    np.testing.assert_array_equal(model.history_["objective"], expected.history_["objective"])
    for name, value in expected.module_.state_dict().items():
        np.testing.assert_array_equal(model.module_.state_dict()[name], value)


@pytest.mark.parametrize("random_state", [None, "RandomState"])
def test_a_fit_without_a_seed_goes_on_with_its_own_randomness(random_state, tmp_path):
    X = make_table()
    given = {**QUICK, "random_state": None if random_state is None else np.random.RandomState(3)}
    parts = []
    for _ in range(2):  # twice from the same checkpoint
        folder = tmp_path / "kept"
        if not parts:
            cut_off(VAE(**given), X, folder, 4)
        other = {**given, "random_state": None if random_state is None else np.random.RandomState(8)}
        parts.append(_copy_and_fit(VAE(**other), X, folder, tmp_path / f"copy{len(parts)}"))
    assert_equal_models(*parts, X)


def _copy_and_fit(model, X, folder, copy):
    shutil.copytree(folder, copy)
    return fit(model, X, checkpoint=copy)


def test_a_fit_that_is_complete_is_not_trained_again(tmp_path):
    X, seen = make_table(), []
    for kind in (SparseVAE, VAE):
        folder = tmp_path / kind.__name__
        expected = fit(kind(**QUICK), X, checkpoint=folder)
        model = fit(kind(**QUICK), X, checkpoint=folder, callbacks=[seen.append])
        assert not seen
        assert_equal_models(model, expected, X)
        assert_equal_models(fit(kind(**QUICK), X), expected, X)


def test_a_stop_writes_what_there_was_before_it(tmp_path):
    X = make_table()
    with warnings.catch_warnings(), stop_on_interrupt() as stop:
        warnings.simplefilter("ignore", ConvergenceWarning)

        def press(record):
            stop.asked = record["step"] == 5  # as the signal does

        cut = VAE(**QUICK).fit(X, checkpoint=tmp_path, callbacks=[press])
    assert stop.heeded
    assert cut.n_iter_ == 5
    steps = []
    model = fit(VAE(**QUICK), X, checkpoint=tmp_path, callbacks=[lambda r: steps.append(r["step"])])
    assert 1 < steps[0] <= 5
    assert_equal_models(model, fit(VAE(**QUICK), X), X)


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_ctrl_c_without_a_handler_writes_too(error, tmp_path):
    X = make_table()
    cut_off(VAE(**QUICK), X, tmp_path, 5, every="1h", error=error)
    steps = []
    model = fit(VAE(**QUICK), X, checkpoint=tmp_path, callbacks=[lambda r: steps.append(r["step"])])
    assert 1 < steps[0] <= 5
    assert_equal_models(model, fit(VAE(**QUICK), X), X)


def test_a_callback_that_ends_a_fit_leaves_it_to_be_resumed(tmp_path):
    X = make_table()
    with pytest.warns(ConvergenceWarning, match="Stopped by a callback after 3 epochs"):
        VAE(**QUICK).fit(X, checkpoint=tmp_path, callbacks=[lambda record: record["step"] == 3])
    assert_equal_models(fit(VAE(**QUICK), X, checkpoint=tmp_path), fit(VAE(**QUICK), X), X)


def test_a_fit_inside_a_callback_leaves_the_checkpoint_alone(tmp_path):
    X = make_table()

    def other(record):
        if record["step"] == 2:
            fit(VAE(**QUICK), X[:30])

    model = fit(VAE(**QUICK), X, checkpoint=tmp_path, checkpoint_every=0, callbacks=[other])
    assert_equal_models(model, fit(VAE(**QUICK), X), X)


# -- what is refused ----------------------------------------------------------------------------------------


@pytest.fixture
def cut(tmp_path):
    X = make_table()
    cut_off(VAE(**QUICK), X, tmp_path, 4)
    return tmp_path, X


@pytest.mark.parametrize(
    "model, change, words",
    [
        (VAE(**QUICK), {"X": 1.0}, "same table.*one of another table"),
        (VAE(**QUICK), {"sample_weight": np.linspace(0.5, 1.5, 60)}, "same table"),
        (VAE(**{**QUICK, "learning_rate": 0.1}), {}, "same settings.*one with learning_rate=0.003, not 0.1"),
        (VAE(**{**QUICK, "random_state": 1}), {}, "random_state=0, not 1"),
        (VSC(**QUICK), {}, "estimator='?VAE'?, not '?VSC'?"),
    ],
)
def test_another_fit_is_refused_in_a_sentence(cut, model, change, words):
    folder, X = cut
    X = X + change.pop("X", 0.0)
    with pytest.raises(DataError, match=words):
        model.fit(X, checkpoint=folder, **change)
    assert sorted(path.name for path in folder.iterdir()) == ["checkpoint-2", "checkpoint-3"]


def test_what_makes_no_difference_is_not_compared(cut, capsys):
    folder, X = cut
    model = fit(VAE(**QUICK, verbose=1), X, checkpoint=folder)
    assert_equal_models(model, fit(VAE(**QUICK), X), X)


def test_another_version_is_refused(cut):
    folder, X = cut
    file = folder / "checkpoint-3" / "checkpoint.json"
    document = json.loads(file.read_text())
    document["header"]["version"] = "sparsevae 0.0.1 with torch 9"
    tensors = (folder / "checkpoint-3" / "checkpoint.safetensors").read_bytes()
    file.write_bytes(sign(json.dumps(document).encode(), tensors))
    with pytest.raises(DataError, match=r"got one of sparsevae 0.0.1 with torch 9\. Go on as it began"):
        VAE(**QUICK).fit(X, checkpoint=folder)


def test_a_damaged_checkpoint_falls_back_to_the_one_before(cut):
    folder, X = cut
    file = folder / "checkpoint-3" / "checkpoint.safetensors"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.warns(DataWarning, match="checkpoint-3 is damaged"):
        model = fit(VAE(**QUICK), X, checkpoint=folder)
    assert_equal_models(model, fit(VAE(**QUICK), X), X)


@pytest.mark.parametrize("every", ["soon", "", "-1s", -1, float("nan"), None, True, "5 weeks"])
def test_what_is_no_duration_is_refused(every, tmp_path):
    with pytest.raises(ParameterError, match="Expected checkpoint_every to be a duration such as 30s"):
        VAE(**QUICK).fit(make_table(), checkpoint=tmp_path, checkpoint_every=every)


def test_a_place_that_cannot_be_written_is_found_before_the_fit(tmp_path):
    (tmp_path / "file").write_text("")
    seen = []
    for place, error, words in (
        (tmp_path / "file", DataError, "is a file"),
        (tmp_path / "file" / "inside", OSError, "Not a directory"),
        (7, ParameterError, "path of a directory"),
    ):
        with pytest.raises(error, match=words):
            VAE(**QUICK).fit(make_table(), checkpoint=place, callbacks=[seen.append])
    assert not seen


# -- killed -------------------------------------------------------------------------------------------------

KILLED = """
import os, signal, sys
from tests.fitting.cutting import fit
from tests.fitting.resuming import CASES
from sparsevae import SparseVAE

def kill(record):
    if record["step"] == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)

table, parameters = CASES["spine, counts"]
fit(SparseVAE(**parameters), table(), checkpoint=sys.argv[1], checkpoint_every=0, callbacks=[kill])
"""


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL")
def test_a_process_that_was_killed_is_continued_by_another(tmp_path):
    table, parameters = CASES["spine, counts"]
    ran = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), "17"], check=False, timeout=120)
    assert ran.returncode == -9
    assert (tmp_path / ".lock").exists()
    X = table()
    model = fit(SparseVAE(**parameters), X, checkpoint=tmp_path)
    assert_equal_models(model, fit(SparseVAE(**parameters), X), X)
    assert not (tmp_path / ".lock").exists()


def test_a_disk_that_fills_up_during_the_fit_costs_neither_the_fit_nor_the_last_checkpoint(tmp_path):
    resource = pytest.importorskip("resource", reason="limits on the size of files are those of POSIX")
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    X, seen = make_table(), []

    def fill(record):
        if record["step"] == 4:
            seen.extend(path.name for path in sorted(tmp_path.glob("checkpoint-*")))
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, usual[1]))

    try:
        with pytest.warns(DataWarning, match=r"No checkpoint could be written to .* \(File too large\)"):
            full = fit(VAE(**QUICK), X, checkpoint=tmp_path, checkpoint_every=0, callbacks=[fill])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)
    assert sorted(path.name for path in tmp_path.iterdir()) == seen == ["checkpoint-2", "checkpoint-3"]
    assert_equal_models(full, fit(VAE(**QUICK), X), X)
    assert_equal_models(fit(VAE(**QUICK), X, checkpoint=tmp_path), full, X)
