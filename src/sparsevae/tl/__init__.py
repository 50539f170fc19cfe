"""Tools for AnnData and MuData, in the manner of scanpy: ``sparsevae.tl.sparse_vae(adata)``."""

from sparsevae.tl.annotations import load_model
from sparsevae.tl.cells import project, report, sparse_vae

__all__ = ["load_model", "project", "report", "sparse_vae"]
