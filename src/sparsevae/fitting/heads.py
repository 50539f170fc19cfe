r"""Heads of a Gaussian network on a spine in closed form: given the last hidden layer they are a regression.

With hidden values :math:`h_{ij} = h(w_j \odot z_i)`, what the linear part leaves over of feature j, r, its
noise ψ and the prior :math:`N(0, 1/D)` of the D entries of a head,

.. math:: v_j = \Bigl(\sum_i h_{ij} h_{ij}^\top + \psi_j D\,\mathrm{Id}\Bigr)^{-1} \sum_i r_{ij} h_{ij}.

The intercept is one more column, next to free; rows count as often as their weight says, cells that are not
seen not at all. Even of random hidden layers these heads have what many epochs of gradient steps would gain
(docs/research/replication.md, item 20).
"""

from __future__ import annotations

import torch

from sparsevae.decoder.weights import relu_layers
from sparsevae.modules import SparseVAEModule
from sparsevae.training import Batches
from sparsevae.training.loop import held_out_bound

__all__ = ["solve_heads_"]

_ROWS = (500, 4000)  # that heads are fitted to: fewer of wide tables
_CELLS = 1 << 21
_AT_ONCE = 1 << 22  # hidden values held at once
_INTERCEPT_RIDGE = 1e-3


@torch.no_grad()
def solve_heads_(module: SparseVAEModule, batches: Batches, held_out: Batches | None = None) -> None:
    """Fit heads and intercepts in place; they stay as they were where held-out rows are the worse for it.

    Parameters
    ----------
    module : SparseVAEModule
        Of Gaussian features, with a spine and hidden layers, without replicates.
    batches : Batches
        Rows, of which some are taken.
    held_out : Batches, optional
    """
    decoder = module.decoder
    before = decoder.heads.clone(), decoder.intercept.clone()
    bound = torch.tensor(-torch.inf) if held_out is None else held_out_bound(module, held_out)
    batch = batches.spread(min(max(_CELLS // module.n_features, _ROWS[0]), _ROWS[1]))
    mean, log_variance = module.encode(batch)
    # Draws, as in training: heads that are fitted to the means would be too sure of them.
    noise = torch.randn(mean.shape, generator=torch.Generator().manual_seed(0)).to(mean.device)
    z = mean + torch.exp(0.5 * log_variance) * noise
    left = batch.x - module.config.spine * (z @ module.mask.weight.mT)
    counted = torch.ones_like(left) if batch.observed is None else batch.observed.to(left)
    if batch.weight is not None:
        counted = counted * batch.weight.unsqueeze(-1)
    left = left.nan_to_num() * counted
    weights, width = decoder.weights(), decoder.heads.shape[-1]
    for own in torch.nonzero(module.support().any(-1)).ravel().split(max(1, _AT_ONCE // (len(z) * width))):
        h = relu_layers(z * module.mask.weight[own].unsqueeze(-2), weights)  # feature × sample × hidden
        h = torch.cat([h, torch.ones_like(h[..., :1])], -1)
        ridge = width * module.noise_variance[own].unsqueeze(-1).repeat(1, width + 1)
        ridge[:, -1] = _INTERCEPT_RIDGE
        gram = (h * counted[:, own].T.unsqueeze(-1)).mT @ h + torch.diag_embed(ridge)
        products = h.mT @ left[:, own].T.unsqueeze(-1)
        solved = torch.linalg.solve(gram.double(), products.double()).squeeze(-1).to(z)
        decoder.heads[own], decoder.intercept[own] = solved[:, :-1], solved[:, -1]
    module.project_()
    if held_out is not None and not bool(held_out_bound(module, held_out) > bound):
        decoder.heads.copy_(before[0])
        decoder.intercept.copy_(before[1])
