"""Identifiable deep generative models via sparse decoding: the sparse VAE as a scikit-learn estimator."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sparsevae._version import __version__

if TYPE_CHECKING:
    from sparsevae.comparison.held_out import compare
    from sparsevae.estimators import NMF, OIVAE, VAE, VSC, SparseVAE, name_features, sparsity_path
    from sparsevae.identifiability import stability
    from sparsevae.inspection import parallel_analysis
    from sparsevae.io import read_table
    from sparsevae.replication.refits import replicate
    from sparsevae.runs import Run
    from sparsevae.sample_size import power
    from sparsevae.stored import open_rows

__all__ = [
    "NMF",
    "OIVAE",
    "VAE",
    "VSC",
    "Run",
    "SparseVAE",
    "__version__",
    "compare",
    "name_features",
    "open_rows",
    "parallel_analysis",
    "power",
    "read_table",
    "replicate",
    "sparsity_path",
    "stability",
]

# PyTorch, scikit-learn and pandas take seconds to import: a name brings them in when it is first used, and
# `sparsevae --help` answers at once.
_HOMES = {
    "NMF": "estimators",
    "OIVAE": "estimators",
    "VAE": "estimators",
    "VSC": "estimators",
    "SparseVAE": "estimators",
    "name_features": "estimators",
    "sparsity_path": "estimators",
    "compare": "comparison",
    "power": "sample_size",
    "replicate": "replication",
    "stability": "identifiability",
    "open_rows": "stored",
    "parallel_analysis": "inspection",
    "read_table": "io",
    "Run": "runs",
}
_PACKAGES = (
    "comparison",
    "datasets",
    "estimators",
    "exceptions",
    "experiments",
    "identifiability",
    "io",
    "likelihoods",
    "metrics",
    "plotting",
    "priors",
    "replication",
    "report",
    "reproduction",
    "runs",
    "sample_size",
    "tl",
    "training",
)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(import_module(f"sparsevae.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    if name in _PACKAGES:
        return import_module(f"sparsevae.{name}")
    raise AttributeError(f"module 'sparsevae' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_PACKAGES})
