"""Runs and descriptions of results that several tests use."""

from __future__ import annotations

from typing import Any

from sparsevae.reproduction.spec import Run, Spec, parse_spec


def make_run(**changes: Any) -> Run:
    """A quick run on generated data."""
    plain: dict[str, Any] = {
        "result": "r",
        "scale": "smoke",
        "method": "PCA",
        "recipe": "any",
        "data_set": "A",
        "seed": 0,
        "split": 0,
        "estimator": "PCA",
        "parameters": {"n_factors": 2},
        "source": "synthetic",
        "source_parameters": {},
        "data_parameters": {"n_samples": 60},
        "splitting": "half",
        "n_splits": 1,
        "metrics": ("mse", "dci"),
    }
    return Run(**{**plain, **changes})


def make_spec(**changes: Any) -> Spec:
    """A result of six runs that take a moment each: two linear methods on three data sets."""
    plain: dict[str, Any] = {
        "title": "Linear methods",
        "label": "fig:linear",
        "alias": "figure-9",
        "splitting": "half",
        "metrics": ["mse", "dci", "support_f1"],
        "figure": "curves",
        "figure_metrics": ["mse", "dci"],
        "data_sets": [
            {"name": name, "source": "synthetic", "parameters": {"n_samples": 60, "correlation": float(name)}}
            for name in ("0.0", "0.4", "0.8")
        ],
        "methods": [
            {"name": "PCA", "estimator": "PCA", "in_paper": {"mse": {"0.0": "7.25 (0.5)"}}},
            {"name": "Factor analysis", "estimator": "FactorAnalysis", "parameters": {"standardise": True}},
        ],
        "claims": [{"text": "PCA is best.", "metric": "mse", "method": "PCA"}],
        "settings": {"n_factors": 2},
    }
    return parse_spec("linear", {**plain, **changes})
