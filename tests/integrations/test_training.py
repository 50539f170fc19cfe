"""The recipes of docs/how-to/training.md run, and what they write can be read back."""

from __future__ import annotations

from pathlib import Path

import mlflow
import optuna
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from sparsevae import SparseVAE

from ..docs.helpers import blocks, run

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "training.md"

# A few epochs settle nothing, and these libraries warn of their own future.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def recipes(tmp_path, monkeypatch):
    """Run the block of a recipe, after the first one, in a folder of its own; the names that it leaves."""
    monkeypatch.chdir(tmp_path)
    first, *others = blocks(PAGE.read_text("utf-8"), "python")

    def of(library):
        names: dict[str, object] = {"__name__": "recipe"}
        (code,) = [code for code in others if library in code.split("\n")[0]]
        for part in (first, code):
            run(part, names)
        return names, code

    return of


def test_tensorboard_has_the_epochs(recipes):
    names, _ = recipes("tensorboard")
    events = EventAccumulator("runs/first")
    events.Reload()
    assert {"objective", "kl", "n_nonzero"} <= set(events.Tags()["scalars"])
    written = events.Scalars("objective")
    assert [event.step for event in written] == list(range(1, len(written) + 1))
    assert written[-1].value == pytest.approx(names["model"].history_["objective"].iloc[-1], rel=1e-4)


def test_mlflow_has_parameters_metrics_and_a_model_that_loads(recipes):
    names, _ = recipes("mlflow")
    client = mlflow.MlflowClient("sqlite:///mlflow.db")
    (found,) = client.search_runs(["0"])
    assert found.data.params["n_factors"] == "3"
    history = client.get_metric_history(found.info.run_id, "objective")
    assert len(history) >= names["model"].n_iter_
    assert found.data.metrics["score"] == pytest.approx(names["model"].score(names["data"].X))
    folder = client.download_artifacts(found.info.run_id, "model")
    assert SparseVAE.load(folder).mask_.shape == (7, 3)


def test_a_study_is_pruned_and_resumed(recipes):
    names, code = recipes("optuna")
    assert len(names["study"].trials) == 4
    run(code, names)  # the same lines again
    study = optuna.load_study(study_name="width", storage="sqlite:///study.db")
    assert len(study.trials) == 8
    states = {trial.state for trial in study.trials}
    assert optuna.trial.TrialState.COMPLETE in states
    assert all(trial.intermediate_values for trial in study.trials)


def test_a_pruned_trial_leaves_through_fit(recipes):
    names, _ = recipes("optuna")

    def prune(record):
        raise optuna.TrialPruned

    model = SparseVAE(**names["options"])
    with pytest.raises(optuna.TrialPruned):
        model.fit(names["data"].X, callbacks=[prune])
    assert model.n_iter_ >= 1
