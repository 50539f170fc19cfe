"""Training: batches of rows, Adam with a proximal step on the mask, phases of a schedule, and the loop."""

from sparsevae.training.batches import Batches, Table
from sparsevae.training.interrupt import stop_on_interrupt
from sparsevae.training.loop import TrainingLog, train
from sparsevae.training.optimizer import ProximalAdam
from sparsevae.training.schedule import Phase

__all__ = ["Batches", "Phase", "ProximalAdam", "Table", "TrainingLog", "stop_on_interrupt", "train"]
