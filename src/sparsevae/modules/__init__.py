"""Models as ``nn.Module``: encode, decode, a step, closed-form updates; no training loop, no tables."""

from sparsevae.modules.base import LatentModule, Loss, ModuleConfig, Statistics, Step
from sparsevae.modules.batch import Batch
from sparsevae.modules.mask import GroupMask, Mask, SpikeSlabMask
from sparsevae.modules.observation import Observation
from sparsevae.modules.oi_vae import OIVAEConfig, OIVAEModule
from sparsevae.modules.sparse_vae import SparseVAEConfig, SparseVAEModule
from sparsevae.modules.vae import VAEConfig, VAEModule
from sparsevae.modules.vsc import VSCConfig, VSCModule

__all__ = [
    "Batch",
    "GroupMask",
    "LatentModule",
    "Loss",
    "Mask",
    "ModuleConfig",
    "OIVAEConfig",
    "OIVAEModule",
    "Observation",
    "SparseVAEConfig",
    "SparseVAEModule",
    "SpikeSlabMask",
    "Statistics",
    "Step",
    "VAEConfig",
    "VAEModule",
    "VSCConfig",
    "VSCModule",
]
