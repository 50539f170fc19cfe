"""Groups of rows under a fitted module: which factors each has, and groups that the fit did not see."""

from __future__ import annotations

import copy

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from sparsevae.inspection.newton import expand_likelihood, newton_steps, posterior
from sparsevae.modules import Batch, LatentModule
from sparsevae.training import RowSource

__all__ = ["extend_module", "settle_groups_"]

_ROUNDS = 6  # of codes and shifts in turn; more change little
_ROWS = 2000  # of the new group that are looked at
_LEAST_VARIANCE = 0.01  # of the shifts' prior, in units of the decoder's output
_SETTLE = 10  # rounds of codes and variances in turn
_NEWTON_STEPS = 2
_FEW = 5.0  # rows that the average inputs of the known groups count as


@torch.no_grad()
def settle_groups_(module: LatentModule, batch: Batch) -> None:
    """Find the factors' variances in each group from exact codes of some rows, in place.

    What an encoder says of a row hardly depends on the variance that a factor has in its group, so that the
    variance of a factor which a group lacks stays above zero in training.

    Parameters
    ----------
    module : LatentModule
        Fitted, without replicates, on the CPU.
    batch : Batch
        Rows of all groups.
    """
    groups = module.row_groups
    if groups is None or not groups.variances or not module.gaussian_posterior:
        return
    for _ in range(_SETTLE):
        mean, log_variance = newton_steps(module, batch, *module.encode(batch), _NEWTON_STEPS)
        groups.update_(groups.statistics(batch, mean, log_variance))


def extend_module(module: LatentModule, X: np.ndarray | sparse.csr_matrix) -> LatentModule:
    r"""A copy of a fitted module with one more group, that of these rows.

    .. math:: b_j \leftarrow b_j + \frac{\sum_i s_{ij} - b_j / \tau^2}{\sum_i I_{ij} + 1/\tau^2}

    s is the slope of the log likelihood on the output, I its Fisher information, and :math:`\tau^2` the
    variance of the shifts of the groups that are known. Codes of the rows and shifts are found in turn.

    Parameters
    ----------
    module : LatentModule
        Fitted, with groups, without replicates, on the CPU.
    X : ndarray or CSR matrix of shape (n_rows, n_features)
        Checked, in the user's units.

    Returns
    -------
    LatentModule
        Whose last group is the new one.
    """
    groups, observation = module.row_groups, module.observation
    assert groups is not None
    rows = np.linspace(0, X.shape[0] - 1, min(X.shape[0], _ROWS)).round().astype(int)
    raw = RowSource(X[rows], observation).batch(torch.arange(len(rows)))
    shift = torch.zeros_like(groups.shift[0])
    inputs = raw.inputs.sum(0) / (len(rows) + _FEW) if groups.shifts else torch.zeros_like(shift)
    batch = raw._replace(group=torch.full((len(rows),), groups.n_groups))
    batch = batch._replace(inputs=_relative(raw, inputs))
    extended = copy.deepcopy(module)
    extended.row_groups = groups.with_group(shift)
    observation = extended.observation
    observation.n_groups = groups.n_groups + 1
    observation.group_inputs = torch.cat(
        [observation.group_inputs, inputs.to(observation.group_inputs)[None]]
    )
    if groups.shifts:
        _find_shift_(extended, batch)
    return extended.eval().requires_grad_(False)


def _relative(batch: Batch, mean: Tensor) -> Tensor:
    inputs = batch.inputs - mean
    return inputs if batch.observed is None else torch.where(batch.observed, inputs, 0.0)


@torch.no_grad()
def _find_shift_(module: LatentModule, batch: Batch) -> None:
    groups = module.row_groups
    assert groups is not None
    own = groups.shift[-1]
    prior = 1.0 / groups.shift[:-1].var(0, unbiased=False).mean().clamp_min(_LEAST_VARIANCE)
    for turn in range(_ROUNDS):
        # Newton steps would first explain the shift by the factors.
        mean, _ = module.encode(batch) if turn < _ROUNDS // 2 else posterior(module, batch)
        score, information = expand_likelihood(module, batch, module.decode(mean))
        own += (score.sum(0) - own * prior) / (information.sum(0) + prior)
