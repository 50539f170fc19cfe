"""Models as ``nn.Module``: encode, decode, loss, closed-form updates; no training loop, no data handling."""

from sparsevae.modules.base import Loss
from sparsevae.modules.factor import FactorModule
from sparsevae.modules.observation import Observation

__all__ = ["FactorModule", "Loss", "Observation"]
