"""Plots of a fit: one function each, which draws on given axes, or on new ones, and returns them."""

from sparsevae.plotting.factors import plot_variance, plot_weights
from sparsevae.plotting.groups import plot_groups, plot_map, plot_structure
from sparsevae.plotting.masks import plot_factor_correlation, plot_mask
from sparsevae.plotting.paths import plot_paths
from sparsevae.plotting.recovery import plot_power
from sparsevae.plotting.refits import plot_stability
from sparsevae.plotting.replication import plot_replication
from sparsevae.plotting.samples import plot_embedding, plot_response
from sparsevae.plotting.training import plot_history, plot_sparsity_path

__all__ = [
    "plot_embedding",
    "plot_factor_correlation",
    "plot_groups",
    "plot_history",
    "plot_map",
    "plot_mask",
    "plot_paths",
    "plot_power",
    "plot_replication",
    "plot_response",
    "plot_sparsity_path",
    "plot_stability",
    "plot_structure",
    "plot_variance",
    "plot_weights",
]
