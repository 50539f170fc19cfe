"""What a fitted module says of a table: codes of its rows, slopes, variance explained, curves.

One set of codes serves everybody: `Codes` finds the posterior of each row once.
"""

from sparsevae.inspection.linear_factors import ParallelAnalysis, parallel_analysis

__all__ = ["ParallelAnalysis", "parallel_analysis"]
