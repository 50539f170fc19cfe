"""The journal of a fit: what it answers, how often it copies, and when it stops to listen."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sparsevae.training import Phase, stop_on_interrupt, train
from sparsevae.training.interrupt import is_stopping
from sparsevae.training.journal import Journal, current_journal, keeping

from .helpers import assert_equal_states, make_batches, make_module

PHASES = [
    Phase("lasso", 3, (0.02, 0.02), spike_rate=5.0, slab_rate=2.0, zeros_may_return=True, penalty_warmup=2),
    Phase("final", 30, (0.02, 0.01), spike_rate=5.0, slab_rate=1.0, patience=2),
]


def run(journal, *, until=None, replicates=()):
    """Two calls of `train`, the second of which has its held-out rows; cut off after some epochs if asked."""
    generator = torch.Generator().manual_seed(0)
    module = make_module(replicates=replicates)
    batches, held_out = make_batches(module), make_batches(module)
    seen = []

    def see(record):
        seen.append(record["epoch"])
        if len(seen) == until:
            raise InterruptedError

    with keeping(journal):
        first = train(module, batches, PHASES[:1], generator=generator, progress=see)
        noise = torch.rand(1, generator=generator)  # what lies between two calls is done again
        log = train(
            module, batches, PHASES, generator=generator, validation=held_out, progress=see, log=first
        )
    return module, log, noise, torch.rand(1, generator=generator), seen


@pytest.mark.parametrize("replicates", [(), (3,)], ids=["one", "replicates"])
def test_calls_go_on_from_the_end_of_every_epoch(replicates):
    expected = run(None, replicates=replicates)
    n_epochs = len(expected[-1])
    assert 6 < n_epochs < 36 or replicates  # early stopping has ended it
    for until in range(1, n_epochs + 1, 7 if replicates else 1):
        kept = []
        with pytest.raises(InterruptedError):
            run(Journal(kept.append, 0.0), until=until, replicates=replicates)
        journal = Journal(kept.append, 0.0, kept[-1] if kept else None)
        assert journal.n_epochs == until - 1
        module, log, *draws, seen = run(journal, replicates=replicates)
        assert len(seen) == n_epochs - until + 1
        assert_equal_states(module, expected[0])
        assert draws == list(expected[2:4])
        for found, wanted in zip(log.epochs, expected[1].epochs, strict=True):
            assert all(
                np.array_equal(found[name], wanted[name], equal_nan=name != "phase") for name in wanted
            )


def test_a_call_that_had_run_out_of_patience_does_not_go_on():
    kept = []
    *_, seen = run(Journal(kept.append, 0.0))
    last = next(record for record in reversed(kept) if record["running"] is not None)
    assert last["n_epochs"] == len(seen)
    *_, after = run(Journal(kept.append, 0.0, last))
    assert after == []


def test_between_two_writes_there_are_few_copies(monkeypatch):
    copies, written = [], []
    journal = Journal(written.append, 3600.0)
    monkeypatch.setattr(journal, "_keep", lambda keep=journal._keep: (copies.append(1), keep()))
    *_, seen = run(journal)
    assert (
        len(copies) < len(seen) / 2
    )  # the first epoch, and the end of each call; the rest is within a second
    assert len(written) == 1  # at the end
    assert len(written[0]["done"]) == 2


def test_a_stop_ends_the_journal_and_is_not_heeded_by_it():
    written = []
    journal = Journal(written.append, 3600.0)
    with stop_on_interrupt() as stop, keeping(journal):
        assert not is_stopping()
        module = make_module()
        generator = torch.Generator().manual_seed(0)
        train(module, make_batches(module), PHASES[:1], generator=generator)
        stop.asked = True
        assert is_stopping()
        assert not stop.heeded
        journal.end_stage({"stage": "never"})
        assert [record["stage"] for record in written] == [None]
        assert len(written[0]["done"]) == 1
        assert journal.begin(None) is None
    assert len(written) == 1


def test_a_journal_is_of_its_own_fit():
    journal = Journal(lambda record: None, 0.0)
    assert current_journal() is None
    with keeping(journal):
        assert current_journal() is journal
        with keeping(None):
            assert current_journal() is None
    assert current_journal() is None
