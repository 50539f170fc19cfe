"""Methods beside each other: adapters of other methods, measures of a fit, and `compare` for one table."""

from sparsevae.comparison.held_out import compare

__all__ = ["compare"]
