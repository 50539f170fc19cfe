"""Run directories: a fit on disk that can be opened, applied to new tables and added to."""

from sparsevae.runs.run import Run, check_place

__all__ = ["Run", "check_place"]
