"""Zeros of the mask are made use of wherever a fitted or a training model decodes."""

from __future__ import annotations

import os
import warnings

import numpy as np
import pytest
import torch
from joblib import Parallel, delayed
from scipy import sparse

from sparsevae import SparseVAE
from sparsevae.decoder import decode_literal
from sparsevae.decoder.threads import n_decoder_threads
from sparsevae.exceptions import ConvergenceWarning
from sparsevae.likelihoods import get_likelihood
from sparsevae.modules import Observation, SparseVAEConfig, SparseVAEModule
from sparsevae.training import Batches, Phase, RowSource, train

N_FEATURES, WIDTH = 40, 16  # with blocks of 512 rows more than the decoder calls small


def anchors_and_empty_rows(mask):
    """Two anchors of each of the first four factors, all else empty; factors from the fifth on not in use."""
    mask.zero_()
    for j in range(8):
        mask[j, j % 4] = 1.0 + 0.1 * j


@pytest.fixture(scope="module")
def model():
    X = np.random.default_rng(0).normal(size=(30, N_FEATURES))
    options = {"recipe": "paper", "max_epochs": 1, "validation_fraction": 0.0, "random_state": 0}
    fitted = SparseVAE(n_factors=6, hidden_sizes=(WIDTH, WIDTH), **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # an epoch does not settle
        fitted.fit(X)
    anchors_and_empty_rows(fitted.module_.mask.weight)
    return fitted


def test_scores_means_and_samples_decode_by_the_zeros_of_the_mask(model, paths):
    X = np.random.default_rng(1).normal(size=(600, N_FEATURES))
    model.score(X)
    means = model.inverse_transform(model.transform(X))
    model.sample(512, random_state=0)
    assert set(paths) == {"decode_sparse"}
    module = model.module_
    z = torch.as_tensor(model.transform(X)).float()
    literal = decode_literal(module.mask.weight, z, module.decoder.weights())
    expected = module.observation.to_user_units(literal)
    np.testing.assert_allclose(means, expected.numpy(), rtol=1e-4, atol=1e-5)


def test_training_takes_the_sparse_path_from_the_second_epoch_of_a_rung(paths):
    generator = torch.Generator().manual_seed(0)
    observation = Observation.blank(get_likelihood("gaussian", N_FEATURES), N_FEATURES)
    config = SparseVAEConfig(n_factors=6, hidden_sizes=(WIDTH, WIDTH))
    module = SparseVAEModule(observation, config, generator=generator)
    mask = module.mask
    with torch.no_grad():
        mask.weight[:, 4:] = 0.0
        mask.weight[:30] = torch.eye(6)[torch.arange(30) % 4]
        mask.frozen.copy_(mask.weight == 0)
        mask.frozen[39, 4:] = False  # so that the last factors may come back
    source = RowSource(torch.randn(1024, N_FEATURES, generator=generator).numpy(), observation)
    batches = Batches(source, torch.arange(1024), 512, generator)
    phase = Phase("ladder", 2, (1e-6, 1e-6), spike_rate=1.0, slab_rate=1.0)
    train(module, batches, [phase], generator=generator)
    # In the first epoch zeros might come back: their gradients are needed.
    assert paths == ["decode_blocked"] * 2 + ["decode_sparse"] * 2


@pytest.mark.parametrize("kind", ["rows on disk", "CSR"])
def test_a_batch_is_one_request_however_many_rows_it_has(monkeypatch, tmp_path, kind):
    X = np.random.default_rng(0).poisson(1.0, size=(64, 5)).astype(np.float32)
    observation = Observation.blank(get_likelihood("poisson", 5), 5)
    asked = []
    if kind == "CSR":
        source = RowSource(sparse.csr_array(X), observation)
        getitem = sparse.csr_array.__getitem__
        monkeypatch.setattr(
            sparse.csr_array, "__getitem__", lambda self, key: (asked.append(1), getitem(self, key))[1]
        )
    else:
        np.save(tmp_path / "X.npy", X)
        source = RowSource(np.load(tmp_path / "X.npy", mmap_mode="r"), observation)
        getitem = np.memmap.__getitem__
        monkeypatch.setattr(
            np.memmap, "__getitem__", lambda self, key: (asked.append(1), getitem(self, key))[1]
        )
    batches = Batches(source, torch.arange(64), 16, torch.Generator())
    rows = torch.cat([batch.x for batch in batches.sequential()])
    np.testing.assert_array_equal(rows.numpy(), X)
    assert len(asked) == batches.n_batches == 4


def test_workers_of_joblib_share_the_cores_instead_of_fighting_for_them():
    n_jobs = max(2, os.cpu_count() or 1)
    threads = Parallel(n_jobs=n_jobs)(delayed(n_decoder_threads)() for _ in range(n_jobs))
    assert set(threads) == {1}
