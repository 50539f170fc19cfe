"""What turns one fitted module into another: pick replicates, add a mask, change the factors' basis."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from sparsevae.modules.base import is_replicated
from sparsevae.modules.factor import FactorModule
from sparsevae.modules.gauge import first_layer_norm

__all__ = ["change_basis_", "masked_copy", "permute_factors_", "select", "stack"]


def select(module: FactorModule, index: int | list[int], **overrides: Any) -> FactorModule:
    """A copy with some replicates only.

    Parameters
    ----------
    module : FactorModule
    index : int or list of int
        One replicate gives a module without replicate dimensions; a list keeps the dimension.
    **overrides
        Configuration to change on the way, such as ``learned_mask=True``.
    """
    replicates = () if isinstance(index, int) else (len(index),)
    copy = FactorModule(
        module.observation,
        noise_scale=module.noise_scale,
        replicates=replicates,
        generator=torch.Generator().manual_seed(0),
        **{**module.config, **overrides},
    ).to(module.mask)
    source = module.state_dict()
    chosen = {}
    for name in copy.state_dict():
        value = source[name]
        chosen[name] = value[index] if module.replicates and is_replicated(name) else value
    copy.load_state_dict(chosen)
    copy.spike_rate, copy.slab_rate = (
        rate[index] if module.replicates and isinstance(rate, Tensor) and rate.ndim == 3 else rate
        for rate in (module.spike_rate, module.slab_rate)
    )
    return copy


def stack(modules: list[FactorModule]) -> FactorModule:
    """Modules of one shape as the replicates of one module."""
    first = modules[0]
    joined = FactorModule(
        first.observation,
        noise_scale=first.noise_scale,
        replicates=(len(modules),),
        generator=torch.Generator().manual_seed(0),
        **first.config,
    ).to(first.mask)
    states = [module.state_dict() for module in modules]
    joined.load_state_dict(
        {n: torch.stack([s[n] for s in states]) if is_replicated(n) else states[0][n] for n in states[0]}
    )
    joined.spike_rate, joined.slab_rate = first.spike_rate, first.slab_rate
    return joined


def masked_copy(
    module: FactorModule, index: int | list[int], mask: Tensor, covariance: str = "learned"
) -> FactorModule:
    """The same network with a mask to be learned, beginning at ``mask``."""
    copy = select(module, index, learned_mask=True, covariance=covariance)
    with torch.no_grad():
        copy.mask.copy_(mask)
    return copy


@torch.no_grad()
def change_basis_(module: FactorModule, basis: Tensor) -> Tensor:
    r"""Make :math:`T^\top z` the factors of a module whose mask is all ones; the model stays the same.

    Parameters
    ----------
    module : FactorModule
        With replicate dimensions ``...`` matching the basis.
    basis : Tensor of shape (..., n_factors, n_factors)
        T with unit columns, so that whitened factors keep unit variance and have the correlation
        :math:`T^\top T`.

    Returns
    -------
    Tensor of shape (..., n_factors)
        Norms that the new first-layer columns had; the gauge takes them out, a mask has to put them in.
    """
    inverse = torch.linalg.inv(basis)
    first = module.decoder.first
    assert first is not None, "the linear model has no shared first layer to rotate"
    module.encoder.transform_factors_(basis.mT)
    first.copy_(first @ inverse.mT)
    norm = torch.linalg.vector_norm(first, dim=-2) / first_layer_norm(module.decoder)
    first.div_(norm.unsqueeze(-2))
    module.factor_covariance.copy_(basis.mT @ module.factor_covariance @ basis)
    return norm


@torch.no_grad()
def permute_factors_(module: FactorModule, order: Tensor, sign: Tensor) -> None:
    """Reorder the factors and flip the signs of some; the model stays the same.

    Parameters
    ----------
    module : FactorModule
        Without replicates.
    order : integer Tensor of shape (n_factors,)
        New factor k is old factor ``order[k]``.
    sign : Tensor of shape (n_factors,)
        +1 or -1 for each new factor.
    """
    order, sign = order.to(module.mask.device), sign.to(module.mask)
    signed = torch.diag(sign)[:, order.argsort()]
    module.encoder.transform_factors_(signed)
    module.mask.copy_(module.mask[:, order])
    if module.decoder.first is not None:
        module.decoder.first.copy_(module.decoder.first[:, order] * sign)
    else:
        module.decoder.heads.copy_(module.decoder.heads[:, order])
        module.mask.mul_(sign)
    module.factor_covariance.copy_(signed @ module.factor_covariance @ signed.mT)
    for buffer in (module.inclusion_rate, module.used):
        buffer.copy_(buffer[order])
    for buffer in (module.frozen, module.known):
        buffer.copy_(buffer[:, order])
