"""Do the factors come back? Fits of parts of the rows, or of two studies, and what their factors share."""

from sparsevae.replication.refits import replicate
from sparsevae.replication.returns import Replication

__all__ = ["Replication", "replicate"]
