"""Run directories: a fit on disk that can be opened, applied to new tables and added to."""

from sparsevae.runs.files import check_place
from sparsevae.runs.run import Run

__all__ = ["Run", "check_place"]
