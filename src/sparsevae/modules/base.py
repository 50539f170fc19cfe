"""The record of loss terms that every module returns.

Reduction is the same everywhere: sum over features and factors, mean over samples. Terms have the shape of
the replicates, ``()`` for one model.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from torch import Tensor

__all__ = ["Loss", "is_replicated"]


@dataclass(frozen=True)
class Loss:
    """Terms of the objective that gradients lower, per sample.

    The priors of mask and noise act through proximal steps and closed forms: see `FactorModule.penalties`.

    Attributes
    ----------
    reconstruction : Tensor
        Minus the expected log likelihood.
    kl : Tensor
        Divergence of the posterior of the factors from their prior.
    weight_penalty : Tensor
        Minus the log prior of the network's weights, divided by the number of samples: a prior enters once
        per data set.
    """

    reconstruction: Tensor
    kl: Tensor
    weight_penalty: Tensor

    @property
    def objective(self) -> Tensor:
        """Sum of all terms."""
        return self.reconstruction + self.kl + self.weight_penalty

    def items(self) -> list[tuple[str, Tensor]]:
        """Names and values in the order of the fields."""
        return [(field.name, getattr(self, field.name)) for field in fields(self)]


def is_replicated(name: str) -> bool:
    """Whether an entry of a module's state differs between replicates and has their dimension in front."""
    return name not in ("frozen", "known", "noise_scale", "real") and not name.startswith("observation.")
