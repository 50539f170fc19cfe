"""A fitted module at the rows of a table: a row gets the same value whichever rows stand beside it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sparsevae.decoder import MaskedDecoder
from sparsevae.modules import FactorModule
from sparsevae.training import Table

__all__ = ["block_size", "fixed_draws", "in_blocks", "map_rows"]

_DRAWS = 8
_CELLS_AT_ONCE = 1 << 20
_ROWS_AT_ONCE = (16, 512)


def map_rows(
    module: FactorModule, X: Any, function: Callable[..., Tensor], *beside: np.ndarray
) -> np.ndarray:
    """Apply a function of the module and some rows to all rows of a table.

    Parameters
    ----------
    module : FactorModule
        Without replicates.
    X : ndarray or CSR matrix of shape (n_samples, n_features)
    function : callable
        Gets the module in float64, rows in model units, and the same rows of each array ``beside`` in
        float64; returns a tensor with a row for each.
    *beside : ndarray of shape (n_samples, ...)
        What is known of the rows, as their codes.

    Returns
    -------
    ndarray of shape (n_samples, ...), in float32

    Notes
    -----
    Matrix products round by the shape of the matrix and by the place of a row in it. Blocks of one size take
    care of the first; float64, rounded to float32 at the end, of the second.
    """
    exact = copy.deepcopy(module).double()
    for part in exact.modules():
        if isinstance(part, MaskedDecoder):
            part.precision = "float32"  # no rounding to bfloat16 on the way
    table = Table(X, exact.observation)
    known = [torch.as_tensor(values, dtype=torch.float64) for values in beside]

    def of_rows(rows: Tensor) -> Tensor:
        return function(exact, table.rows(rows), *(values[rows] for values in known))

    with torch.inference_mode():
        return in_blocks(of_rows, X.shape[0], block_size(module)).float().numpy()


def in_blocks(function: Callable[[Tensor], Tensor], n_rows: int, size: int) -> Tensor:
    """Apply a function of row positions to blocks of one size, the last filled up with its last row."""
    results = []
    for rows in torch.arange(n_rows).split(size):
        full = torch.cat([rows, rows[-1:].expand(size - len(rows))])
        results.append(function(full)[: len(rows)])
    return torch.cat(results)


def block_size(module: FactorModule) -> int:
    """Rows in one pass through the network: a property of the model, not of the table."""
    return int(np.clip(_CELLS_AT_ONCE // module.n_features, *_ROWS_AT_ONCE))


def fixed_draws(n_noise: int) -> Tensor:
    """Standard normal draws in pairs of opposite sign, with second moments of one: (n_draws, n_noise).

    The parts of an integrand that are linear, or quadratic in one factor, are then exact.
    """
    generator = torch.Generator().manual_seed(0)
    half = torch.randn(_DRAWS // 2, n_noise, generator=generator, dtype=torch.float64)
    half = half / half.square().mean(0).sqrt()
    return torch.cat([half, -half])
