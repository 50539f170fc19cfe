"""Odd tables for every estimator and likelihood."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st
from scipy import sparse

import sparsevae

__all__ = ["TableCase", "attack_table", "table_cases"]

ESTIMATORS = ("SparseVAE", "VAE", "VSC", "OIVAE", "NMF")
LIKELIHOODS = (
    "gaussian",
    "bernoulli",
    "poisson",
    "negative_binomial",
    "multinomial",
    "ordinal",
    "categorical",
)
DTYPES = ("float64", "float32", "float16", "int64", "int8", "uint8", "bool", "object", "<U8", "complex128")
STORES = (
    "array",
    "fortran",
    "readonly",
    "frame",
    "list",
    "csr",
    "csc",
    "coo",
    "bsr",
    "lil",
    "masked",
    "strided",
)
ODD = (np.nan, np.inf, -np.inf, 1e30, -1e30, 1e300, 1e-300, 1e15, 2.0**24 + 1, -0.0, -1.0, 0.5)
SCALES = (1.0, 1e-9, 1e9, 1e-30, 1e30, 1e-3, 0.0)
QUICK = {"n_factors": 2, "max_epochs": 2, "hidden_sizes": (3,), "random_state": 0}


@dataclass(frozen=True)
class TableCase:
    """A table and who is to fit it; small numbers from which it is made again."""

    estimator: str
    likelihood: str
    recipe: str
    n_samples: int
    n_features: int
    seed: int
    dtype: str
    store: str
    scale: float
    one_scale: float
    odd: tuple[tuple[int, int, float], ...]
    constant: bool
    duplicate: bool


@st.composite
def table_cases(draw: Callable[..., Any]) -> TableCase:
    """Tables that are mostly usable, each with something odd about it."""
    n_samples, n_features = draw(st.integers(0, 25)), draw(st.integers(0, 6))
    cells = st.tuples(st.integers(0, 24), st.integers(0, 5), st.sampled_from(ODD))
    usual = draw(st.booleans())
    return TableCase(
        draw(st.sampled_from(ESTIMATORS)),
        draw(st.sampled_from(LIKELIHOODS)),
        draw(st.sampled_from(("paper", "default", "authors"))),
        max(n_samples, 8) if usual else n_samples,
        max(n_features, 2) if usual else n_features,
        draw(st.integers(0, 2**16)),
        "float64" if usual else draw(st.sampled_from(DTYPES)),
        draw(st.sampled_from(STORES)),
        1.0 if usual else draw(st.sampled_from(SCALES)),
        draw(st.sampled_from(SCALES)),
        tuple(draw(st.lists(cells, max_size=0 if usual else 2))),
        draw(st.booleans()),
        draw(st.booleans()),
    )


def attack_table(case: TableCase) -> None:
    """Fit, and look whether what comes out is usable and what went in is unchanged."""
    X = make_table(case)
    before = _snapshot(X)
    options = (
        {"n_factors": 2, "random_state": 0} if case.estimator == "NMF" else {**QUICK, "recipe": case.recipe}
    )
    if case.estimator == "SparseVAE":
        options["n_init"] = 1
    model = getattr(sparsevae, case.estimator)(likelihood=case.likelihood, **options)
    try:
        model.fit(X)
        codes, scores = model.transform(X), model.score_samples(X)
    finally:
        assert _snapshot(X) == before, "the caller's table was changed"
    shape = X.shape if hasattr(X, "shape") else np.shape(X)
    assert codes.shape == (shape[0], 2), "codes of another shape"
    assert np.isfinite(codes).all(), "codes are not finite"
    assert np.isfinite(scores).all(), "scores are not finite"
    if sparse.issparse(X):
        np.testing.assert_allclose(model.transform(X.toarray()), codes, rtol=1e-3, atol=1e-4)


def make_table(case: TableCase) -> Any:
    """The table of a case."""
    rng = np.random.default_rng(case.seed)
    n, G = case.n_samples, case.n_features
    signal = rng.standard_normal((n, 2)) @ rng.standard_normal((2, G)) + 0.3 * rng.standard_normal((n, G))
    if case.likelihood == "bernoulli":
        values = (signal > 0).astype(float)
    elif case.likelihood == "gaussian" and case.estimator != "NMF":
        values = signal * case.scale
        values[:, :1] *= case.one_scale
    else:
        values = rng.poisson(np.exp(np.clip(signal, -3, 3))).astype(float)
    if case.constant and G:
        values[:, -1] = 1.0
    for i, j, odd in case.odd:
        if i < n and j < G:
            values[i, j] = odd
    with np.errstate(all="ignore"):
        table = values.astype(case.dtype) if case.dtype != "object" else values.astype(object)
    return _store(table, case)


def _store(table: np.ndarray, case: TableCase) -> Any:
    kind = case.store
    if kind == "fortran":
        return np.asfortranarray(table)
    if kind == "readonly":
        table.setflags(write=False)
        return table
    if kind == "strided":
        return np.repeat(table, 2, axis=0)[::2]
    if kind == "frame":
        return pd.DataFrame(table, columns=[f"c{j}" for j in range(table.shape[1])])
    if kind == "list":
        return table.tolist()
    if kind == "masked":
        return np.ma.array(table, mask=np.zeros(table.shape, dtype=bool) | (case.seed % 3 == 0))
    if kind == "array" or table.dtype.kind in "OU":
        return table
    if table.dtype == np.float16:
        table = table.astype(np.float32)
    stored = sparse.csr_matrix(table)
    if case.duplicate and stored.nnz and kind == "csr" and stored.dtype.kind == "f":
        halves = (np.repeat(stored.data / 2, 2), np.repeat(stored.indices, 2), stored.indptr * 2)
        return sparse.csr_matrix(halves, shape=stored.shape)
    return stored if min(stored.shape) == 0 else stored.asformat(kind)


def _snapshot(X: Any) -> bytes:
    if sparse.issparse(X):
        parts = [getattr(X, name) for name in ("data", "indices", "indptr", "row", "col") if hasattr(X, name)]
        return b"".join(repr(p.tolist()).encode() for p in parts)
    return repr(X.to_numpy().tolist() if isinstance(X, pd.DataFrame) else np.ma.getdata(X).tolist()).encode()
