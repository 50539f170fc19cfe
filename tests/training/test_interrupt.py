"""Ctrl-C as a wish to stop: when it is heard, what it leaves, and who is not affected."""

from __future__ import annotations

import signal
import threading

import numpy as np
import pytest
import torch

from sparsevae import VAE, SparseVAE
from sparsevae.exceptions import ConvergenceWarning
from sparsevae.modules import LatentModule, Statistics
from sparsevae.training import Phase, stop_on_interrupt, train
from sparsevae.training.interrupt import stop_requested, training_begins

from ..models import LADDER


@pytest.fixture(autouse=True)
def usual_handler():
    """Python's own handler, also where the tests run in the background and Ctrl-C is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield signal.default_int_handler
    signal.signal(signal.SIGINT, before)


def press(*_: object) -> None:
    signal.raise_signal(signal.SIGINT)


def interrupt_at_epoch(monkeypatch, n_epochs: int) -> None:
    """Press Ctrl-C in the closed-form update of an epoch, wherever in a fit that is."""
    update, count = LatentModule.update, iter(range(1, 10_000))

    def update_and_press(module: LatentModule, statistics: Statistics, n_samples: int) -> None:
        update(module, statistics, n_samples)
        if next(count) == n_epochs:
            press()

    monkeypatch.setattr(LatentModule, "update", update_and_press)


def run(module, batches, n_phases=2, **options):
    phases = [Phase("final", 5, (0.01, 0.01), **options) for _ in range(n_phases)]
    return train(module, batches, phases, generator=torch.Generator().manual_seed(0), progress=press)


def test_training_ends_with_the_epoch_in_which_ctrl_c_was_pressed(make_module, make_batches):
    module = make_module()
    with stop_on_interrupt() as stop:
        log = run(module, make_batches(module))
    assert len(log.epochs) == 1
    assert stop.heeded
    assert module.mask.zeros_may_return


@pytest.mark.parametrize("full_batch", [False, True])
def test_an_epoch_ends_at_the_end_of_a_batch(make_module, make_batches, monkeypatch, full_batch):
    module = make_module()
    step, seen = LatentModule.step, []

    def step_and_press(self, batch, *others):
        seen.append(batch.n_rows)
        press()
        return step(self, batch, *others)

    before = module.decoder.heads.detach().clone()
    monkeypatch.setattr(LatentModule, "step", step_and_press)
    phases = [Phase("final", 5, (0.01, 0.01), full_batch=full_batch)]
    with stop_on_interrupt():
        log = train(module, make_batches(module), phases, generator=torch.Generator().manual_seed(0))
    assert seen == [16]
    # The gradient of some rows is a step in batches, but not in place of the gradient of all.
    assert torch.equal(before, module.decoder.heads) == full_batch
    monkeypatch.undo()
    whole = train(make_module(), make_batches(module), phases, generator=torch.Generator().manual_seed(0))
    ratio = float(log.epochs[0]["reconstruction"]) / float(whole.epochs[0]["reconstruction"])
    assert 0.5 < ratio < 2.0  # per sample, though a third of them was seen


def test_later_training_in_the_context_does_nothing(make_module, make_batches):
    module = make_module()
    with stop_on_interrupt():
        run(module, make_batches(module))
        state = {name: value.clone() for name, value in module.state_dict().items()}
        assert not len(run(module, make_batches(module)).epochs)
    assert all(torch.equal(value, state[name]) for name, value in module.state_dict().items())


def test_the_second_ctrl_c_raises(make_module, make_batches):
    module = make_module()
    with stop_on_interrupt():
        run(module, make_batches(module))
        with pytest.raises(KeyboardInterrupt):
            press()


def test_before_training_ctrl_c_raises():
    with pytest.raises(KeyboardInterrupt), stop_on_interrupt():
        press()


def test_without_the_context_ctrl_c_raises(make_module, make_batches):
    module = make_module()
    with pytest.raises(KeyboardInterrupt):
        run(module, make_batches(module))


def test_the_handler_is_restored_whatever_happens(usual_handler):
    def fail() -> None:
        assert signal.getsignal(signal.SIGINT) is not usual_handler
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), stop_on_interrupt():
        fail()
    assert signal.getsignal(signal.SIGINT) is usual_handler
    assert not stop_requested()


def test_a_process_that_ignores_ctrl_c_goes_on_ignoring_it():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with stop_on_interrupt() as stop:
        training_begins()
        press()
        assert not stop_requested()
    assert not stop.asked
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_in_another_thread_nothing_changes(usual_handler):
    def enter() -> None:
        with stop_on_interrupt():
            handlers.append(signal.getsignal(signal.SIGINT))

    handlers: list[object] = []
    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert handlers == [usual_handler]


def test_the_stop_is_announced_once_and_not_by_the_handler():
    said = []
    with stop_on_interrupt(lambda: said.append("stopping")):
        training_begins()
        press()
        assert said == []
        assert stop_requested()
        assert stop_requested()
    assert said == ["stopping"]


@pytest.mark.parametrize("n_epochs", [1, 5, 9, 12, 18, 20])  # dense, the ladder's rungs, refine, polish
def test_a_stopped_fit_is_a_fit(make_table, monkeypatch, n_epochs):
    interrupt_at_epoch(monkeypatch, n_epochs)
    X = make_table(80)
    model = SparseVAE(n_factors=2, n_init=1, max_epochs=20, recipe=LADDER, random_state=0)
    with stop_on_interrupt(), pytest.warns(ConvergenceWarning, match="Stopped by the user after") as caught:
        model.fit(X)
    assert len(caught) == 1
    assert model.n_iter_ == len(model.history_) <= n_epochs
    assert f"after {model.n_iter_} epoch{'s' if model.n_iter_ > 1 else ''}: this" in str(caught[0].message)
    assert np.isfinite(model.transform(X)).all()
    assert np.isfinite(model.score(X))
    assert len(model.active_factors_) > 0
    assert model.starts_["chosen"].sum() == 1


@pytest.mark.parametrize("options", [{"recipe": "paper"}, {"init": "rotation"}])
def test_fits_from_a_mask_can_be_stopped_too(make_table, monkeypatch, options):
    interrupt_at_epoch(monkeypatch, 3)
    model = SparseVAE(n_factors=2, max_epochs=20, random_state=0, **options)
    with stop_on_interrupt(), pytest.warns(ConvergenceWarning, match="Stopped by the user after 3 epochs"):
        model.fit(make_table(80))
    assert model.n_iter_ == 3


def test_the_other_estimators_can_be_stopped_too(make_table, monkeypatch):
    interrupt_at_epoch(monkeypatch, 3)
    model = VAE(n_factors=2, n_init=3, max_epochs=20, random_state=0)
    with stop_on_interrupt(), pytest.warns(ConvergenceWarning, match="Stopped by the user after 3 epochs"):
        model.fit(make_table(80))
    assert model.n_iter_ == 3


def test_the_next_fit_is_not_begun(make_table, monkeypatch):
    interrupt_at_epoch(monkeypatch, 1)
    model = VAE(n_factors=2, max_epochs=20, random_state=0)
    with stop_on_interrupt():
        with pytest.warns(ConvergenceWarning, match="Stopped"):
            model.fit(make_table(80))
        with pytest.raises(KeyboardInterrupt):
            model.fit(make_table(80))
