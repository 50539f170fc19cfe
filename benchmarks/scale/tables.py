"""Tables on disk to measure on, written block by block."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy import sparse

__all__ = ["write_anchored", "write_counts", "write_normal"]

_ROWS = 100_000  # written at a time


def write_normal(path: Path, n_samples: int, n_features: int, n_factors: int = 8, seed: int = 0) -> Path:
    """A float32 NPY file of factors, each in every feature of its own and of one other, plus noise.

    Parameters
    ----------
    path : Path
        Kept if it is there with this shape.
    n_samples, n_features, n_factors : int
    seed : int

    Returns
    -------
    Path
    """
    shape = (n_samples, n_features)
    if path.exists() and np.load(path, mmap_mode="r").shape == shape:
        return path
    rng = np.random.default_rng(seed)
    own = np.arange(n_features) % n_factors
    loadings = np.zeros((n_features, n_factors), dtype=np.float32)
    loadings[np.arange(n_features), own] = rng.uniform(0.6, 1.2, n_features)
    crossed = rng.random(n_features) < 0.3
    loadings[crossed, (own[crossed] + 1) % n_factors] = 0.5
    table = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=shape)
    for begin in range(0, n_samples, _ROWS):
        n = min(_ROWS, n_samples - begin)
        z = rng.standard_normal((n, n_factors), dtype=np.float32)
        noise = rng.standard_normal((n, n_features), dtype=np.float32)
        table[begin : begin + n] = np.tanh(z) @ loadings.T + 0.7 * noise
    table.flush()
    del table
    return path


def write_anchored(path: Path, n_samples: int, n_features: int = 20, n_factors: int = 4) -> Path:
    """A float32 NPY file of factors with anchors."""
    from sparsevae.datasets import make_anchored_factors

    if not path.exists():
        np.save(
            path, make_anchored_factors(n_samples, n_features, n_factors, random_state=0).X.astype(np.float32)
        )
    return path


def write_counts(path: Path, n_samples: int, n_features: int, density: float = 0.08, seed: int = 0) -> Path:
    """An H5AD file of sparse counts, about ``density`` of them above zero, as anndata writes it."""
    import anndata

    if path.exists():
        return path
    rng = np.random.default_rng(seed)
    # A Poisson count whose rate is drawn so, with mean m, is above zero with probability m / (1 + m).
    rates = rng.gamma(1.0, density / (1 - density), (4, n_features)).astype(np.float32)
    parts = []
    for begin in range(0, n_samples, 10_000):
        n = min(10_000, n_samples - begin)
        parts.append(sparse.csr_matrix(rng.poisson(rates[rng.integers(4, size=n)]).astype(np.float32)))
    anndata.AnnData(sparse.vstack(parts, format="csr")).write_h5ad(path)
    return path
