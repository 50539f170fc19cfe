"""Training: batches of rows, Adam with a proximal step on the mask, and the loop; any module, no model."""

from sparsevae.training.batches import Batches, RowSource
from sparsevae.training.interrupt import stop_on_interrupt
from sparsevae.training.loop import Phase, TrainingLog, train
from sparsevae.training.optimizer import ProximalAdam
from sparsevae.training.processes import join_processes
from sparsevae.training.streams import StoredBatches

__all__ = [
    "Batches",
    "Phase",
    "ProximalAdam",
    "RowSource",
    "StoredBatches",
    "TrainingLog",
    "join_processes",
    "stop_on_interrupt",
    "train",
]
