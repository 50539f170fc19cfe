"""The loop: what it records, what it restores, what it leaves alone, and how it fails."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from sparsevae import OIVAE
from sparsevae.decoder.threads import n_decoder_threads
from sparsevae.exceptions import DivergenceError
from sparsevae.modules import OIVAEModule, SparseVAEModule
from sparsevae.training import Phase, ProximalAdam, loop, train
from sparsevae.training.loop import held_out_bound

from .helpers import assert_equal_states

TERMS = ["reconstruction", "kl", "mask_penalty", "noise_penalty", "weight_penalty"]


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def short(**options):
    settings = {
        "name": "final",
        "epochs": 3,
        "learning_rate": (0.01, 0.01),
        "spike_rate": 20.0,
        "slab_rate": 1.0,
    }
    return Phase(**{**settings, **options})


# -- phases -------------------------------------------------------------------------------------------------


def test_the_learning_rate_goes_linearly_from_its_first_to_its_last_value():
    phase = Phase("final", 5, (1.0, 0.2))
    assert [phase.rate_at(epoch) for epoch in range(5)] == pytest.approx([1.0, 0.8, 0.6, 0.4, 0.2])
    assert Phase("final", 1, (1.0, 0.2)).rate_at(0) == 1.0


# -- history ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "likelihood", ["gaussian", "bernoulli", "poisson", "negative_binomial", "multinomial"]
)
def test_history_has_a_row_per_epoch_and_a_column_per_term(make_module, make_batches, make_table, likelihood):
    X = make_table() if likelihood == "gaussian" else (make_table() > 0).astype(np.float32) + 0.0
    X[:, 0] = 1.0 if likelihood != "gaussian" else X[:, 0]
    module = make_module(likelihood)
    log = train(
        module, make_batches(module, X), [short(), short(name="polish", full_batch=True)], generator=seeded()
    )
    history = log.frame()
    assert list(history["epoch"]) == [1, 2, 3, 4, 5, 6]
    assert list(history["phase"]) == ["final"] * 3 + ["polish"] * 3
    assert set(TERMS) <= set(history.columns)
    objective = history["objective"].astype(float)
    np.testing.assert_allclose(objective, history[TERMS].astype(float).sum(axis=1), rtol=1e-5)
    assert objective.iloc[-1] < objective.iloc[0]
    assert (history["n_nonzero"] <= 10).all()
    assert (history["n_active"] <= 2).all()


def test_a_log_goes_on_where_it_ended(make_module, make_batches):
    module = make_module()
    batches = make_batches(module)
    log = train(module, batches, [short()], generator=seeded())
    again = train(module, batches, [short()], generator=seeded(), log=log)
    assert again is log
    assert [record["epoch"] for record in log.epochs] == [1, 2, 3, 4, 5, 6]


def test_progress_hears_of_every_epoch(make_module, make_batches):
    module, heard = make_module(), []
    train(module, make_batches(module), [short()], generator=seeded(), progress=heard.append)
    assert [record["epoch"] for record in heard] == [1, 2, 3]


# -- what moves and what does not ---------------------------------------------------------------------------


def test_training_lowers_the_objective_of_held_out_rows(make_module, make_batches, make_table):
    module = make_module()
    held_out = make_batches(module, make_table(seed=9))
    before = held_out_bound(module, held_out)
    train(module, make_batches(module), [short(epochs=30)], generator=seeded())
    assert held_out_bound(module, held_out) > before + 0.5


def test_known_anchors_stay_fixed(make_module, make_batches):
    module = make_module()
    with torch.no_grad():
        module.mask.frozen[:2] = True
        module.mask.weight[:2] = torch.eye(2)
    phases = [
        short(name="lasso", zeros_may_return=True),
        short(epochs=5),
        short(name="polish", full_batch=True),
    ]
    train(module, make_batches(module), phases, generator=seeded())
    assert module.mask.weight[:2].tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert (module.mask.weight[2:] != 1).all()


def test_a_mask_on_hold_does_not_move(make_module, make_batches):
    module = make_module()
    train(module, make_batches(module), [short(hold_mask=True)], generator=seeded())
    # The factors' units still move, and with them whole columns.
    mask = module.mask.weight
    assert_close(mask / mask[:1], torch.ones(5, 2))


def test_a_strong_spike_makes_exact_zeros(make_module, make_batches):
    module = make_module(n_factors=3)
    train(
        module,
        make_batches(module),
        [short(epochs=40, spike_rate=500.0, slab_rate=500.0)],
        generator=seeded(),
    )
    assert (module.mask.weight == 0).any()


def test_a_full_batch_step_does_not_depend_on_the_batches(make_module, make_batches):
    """The same noise in batches of 16 and of 48 rows: one step with the gradient of all rows."""
    results = []
    for batch_size in (16, 48):
        module = make_module(hidden_sizes=(6, 5))
        phase = short(full_batch=True, learning_rate=(1e-3, 1e-3))
        train(module, make_batches(module, batch_size=batch_size), [phase], generator=seeded())
        results.append(module.state_dict())
    for name, value in results[0].items():
        assert_close(value, results[1][name], atol=2e-5, rtol=1e-4, msg=name)


def test_global_generators_are_not_touched(make_module, make_batches):
    torch.manual_seed(1)
    np.random.seed(1)  # noqa: NPY002
    before, before_numpy = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    module = make_module()
    train(module, make_batches(module), [short()], generator=seeded(), validation=make_batches(module))
    assert torch.equal(torch.get_rng_state(), before)
    np.testing.assert_array_equal(np.random.get_state()[1], before_numpy)  # noqa: NPY002


def test_the_same_generators_give_the_same_module_to_the_last_bit(make_module, make_batches):
    results = []
    for _ in range(2):
        module = make_module()
        train(module, make_batches(module), [short()], generator=seeded())
        results.append(module)
    assert_equal_states(*results)


def test_training_may_go_on_with_an_optimizer(make_module, make_batches):
    """Three epochs and three more are six, if optimiser and generators go on too."""
    modules = []
    for parts in ([6], [3, 3]):
        module, generator = make_module(), seeded()
        batches, optimizer = make_batches(module), ProximalAdam(module, 48)
        for epochs in parts:
            phase = short(epochs=epochs, zeros_may_return=True)
            train(module, batches, [phase], generator=generator, optimizer=optimizer)
        modules.append(module)
    assert_equal_states(*modules)


# -- zeros --------------------------------------------------------------------------------------------------


def emptied(module, columns, epoch=1):
    """A callback that empties columns of the mask after an epoch."""

    def empty(record):
        if record["epoch"] == epoch:
            with torch.no_grad():
                module.mask.weight[..., columns] = 0.0

    return empty


@pytest.mark.parametrize("kind", ["sparse", "group"])
@pytest.mark.parametrize("name", ["lasso", "final", "train"])
def test_the_phase_says_whether_zeros_may_return_and_its_name_does_not(make_module, make_batches, kind, name):
    """Entries in the middle of a phase; the names are those of phases that once meant something."""
    trained = {}
    for said in (name, "another"):
        for may_return in (False, True):
            module = make_module(kind=kind)
            phase = short(name=said, epochs=5, spike_rate=1.0, zeros_may_return=may_return)
            train(module, make_batches(module), [phase], generator=seeded(), progress=emptied(module, [0]))
            assert bool(module.support()[:, 0].any()) == may_return
            assert module.support()[:, 1].all()
            assert module.mask.zeros_may_return
            trained[said, may_return] = module
    for may_return in (False, True):
        assert_equal_states(trained[name, may_return], trained["another", may_return])


def test_zeros_may_return_in_the_first_epoch_of_each_phase(make_module, make_batches):
    module = make_module()
    phases = [short(epochs=2, spike_rate=1.0), short(epochs=2, spike_rate=1.0)]
    train(module, make_batches(module), phases, generator=seeded(), progress=emptied(module, [0], epoch=2))
    assert module.support()[:, 0].any()


@pytest.mark.parametrize("recipe", ["default", "paper"])
def test_columns_of_an_oi_vae_that_reached_zero_may_return(make_table, monkeypatch, recipe):
    update, seen = OIVAEModule.update, []

    def update_and_empty(module, statistics, n_samples):
        update(module, statistics, n_samples)
        seen.append(module.mask.zeros_may_return)
        if len(seen) == 7:
            with torch.no_grad():
                module.mask.weight[..., 0] = 0.0

    monkeypatch.setattr(OIVAEModule, "update", update_and_empty)
    settings = {"n_factors": 2, "hidden_sizes": (6,), "max_epochs": 12, "penalty": 1e-3}
    model = OIVAE(**settings, recipe=recipe, validation_fraction=0.0, random_state=0).fit(make_table())
    assert model.history_["phase"].iloc[6] == model.history_["phase"].iloc[7] == "train"
    assert model.history_["n_active"].iloc[6] == 1
    assert model.history_["n_active"].iloc[7] == 2
    assert seen[6:9] == [True] * 3


# -- early stopping -----------------------------------------------------------------------------------------


def overfit(module, make_batches, make_table, *, epochs=150, **options):
    """Few rows, many epochs: the held-out bound rises and falls."""
    training, validation = make_batches(module, make_table(12)), make_batches(module, make_table(40, seed=5))
    phase = short(epochs=epochs, learning_rate=(0.05, 0.05), spike_rate=1.0, **options)
    return train(module, training, [phase], generator=seeded(), validation=validation), validation


def test_early_stopping_goes_back_to_the_best_epoch(make_module, make_batches, make_table):
    module = make_module(hidden_sizes=(16, 16))
    log, validation = overfit(module, make_batches, make_table, patience=5)
    seen = log.frame()["validation"].astype(float)
    assert len(seen) < 150
    assert seen.iloc[-1] < seen.max()
    assert float(held_out_bound(module, validation)) == pytest.approx(seen.max(), abs=1e-6)


def test_each_replicate_goes_back_to_its_own_best_epoch(make_module, make_batches, make_table):
    module = make_module(hidden_sizes=(16,), replicates=(2,))
    log, validation = overfit(module, make_batches, make_table, patience=5)
    best = [log.of(r).frame()["validation"].max() for r in range(2)]
    assert best[0] != best[1]
    assert held_out_bound(module, validation).tolist() == pytest.approx(best, abs=1e-6)


def test_without_patience_training_runs_to_the_end(make_module, make_batches, make_table):
    module = make_module()
    log, _ = overfit(module, make_batches, make_table, epochs=20)
    assert len(log.epochs) == 20


# -- divergence ---------------------------------------------------------------------------------------------


def test_divergence_names_the_term_the_epoch_and_a_remedy(make_module, make_batches, make_table):
    X = make_table()
    X[3] = 1e30  # its square is beyond float32
    module = make_module()
    with pytest.raises(
        DivergenceError, match=r"reconstruction term did not in epoch 1 .* smaller learning_rate"
    ):
        train(module, make_batches(module, X), [short()], generator=seeded())


def test_divergence_counts_epochs_over_phases(make_module, make_batches):
    module = make_module()
    batches = make_batches(module)
    log = train(module, batches, [short()], generator=seeded())
    with torch.no_grad():
        module.encoder.mean_weight.fill_(torch.nan)
    with pytest.raises(DivergenceError, match=r"epoch 4 \(phase 'polish', learning rate 0.01\)"):
        train(module, batches, [short(name="polish")], generator=seeded(), log=log)


def test_one_replicate_may_diverge_while_others_go_on(make_module, make_batches):
    module = make_module(replicates=(2,))
    with torch.no_grad():
        module.encoder.mean_weight[0].fill_(torch.nan)
    train(module, make_batches(module), [short()], generator=seeded())
    assert module.select(1).mask.weight.isfinite().all()
    assert held_out_bound(module, make_batches(module))[1].isfinite()


# -- replicates ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hidden_sizes", [(), (6,), (6, 5, 4)])
def test_a_stack_of_one_trains_like_the_module_itself(make_module, make_batches, hidden_sizes):
    alone = make_module(hidden_sizes=hidden_sizes)
    together = SparseVAEModule.stack([make_module(hidden_sizes=hidden_sizes)])
    phases = [short(spike_rate=5.0, slab_rate=5.0, zeros_may_return=True), short(zeros_may_return=True)]
    train(alone, make_batches(alone), phases, generator=seeded())
    train(together, make_batches(together), phases, generator=seeded())
    for name, value in together.select(0).state_dict().items():
        assert_close(value, alone.state_dict()[name], atol=1e-4, rtol=1e-3, msg=name)


# -- bounds -------------------------------------------------------------------------------------------------


def test_bounds_of_replicates_are_those_of_their_modules(make_module, make_batches):
    modules = [make_module(seed=seed) for seed in range(2)]
    batches = make_batches(modules[0])
    together = held_out_bound(SparseVAEModule.stack(modules), batches)
    for r, module in enumerate(modules):
        assert_close(together[r], held_out_bound(module, batches), atol=1e-4, rtol=1e-5)


def test_bounds_leave_the_module_in_its_mode(make_module, make_batches):
    module = make_module().train()
    held_out_bound(module, make_batches(module))
    assert module.training


# -- threads ------------------------------------------------------------------------------------------------


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize(
    "options, enough, kernels, decoder",
    [
        ({}, 0, 1, 2),  # the masked decoder has the threads
        ({"kind": "plain"}, 0, 2, 2),  # a large plain VAE: torch has them
        ({"hidden_sizes": ()}, 0, 2, 2),  # so does the linear model
        ({"kind": "plain"}, 1 << 40, 1, 2),  # a small one needs none
    ],
)
def test_threads_go_where_they_pay(make_module, make_batches, monkeypatch, options, enough, kernels, decoder):
    monkeypatch.setattr(loop, "_WORTH_THREADS", enough)
    module, seen = make_module(**options), set()
    train(
        module,
        make_batches(module),
        [short(epochs=1)],
        generator=seeded(),
        progress=lambda _: seen.add((torch.get_num_threads(), n_decoder_threads())),
    )
    assert seen == {(kernels, decoder)}
    assert torch.get_num_threads() == 2


@pytest.mark.usefixtures("two_threads")
def test_threads_are_given_back_when_training_fails(make_module, make_batches):
    module = make_module()
    with torch.no_grad():
        module.decoder.intercept.fill_(torch.nan)
    with pytest.raises(DivergenceError):
        train(module, make_batches(module), [short()], generator=seeded())
    assert torch.get_num_threads() == 2
