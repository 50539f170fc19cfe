"""An epoch of the output-interpretable VAE, a generator per word, beside an epoch of the sparse VAE."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

from benchmarks.real import Problem
from benchmarks.speed.timing import interleaved_medians
from sparsevae.likelihoods import get_likelihood
from sparsevae.modules import LatentModule, Observation, OIVAEModule, SparseVAEModule
from sparsevae.training import Batches, Phase, RowSource, train

__all__ = ["WANTED", "epochs"]

WANTED = 3.0  # epochs of the sparse VAE that one of the OI-VAE may cost


def epochs(
    problem: Problem, X: Any, *, repeats: int, clock: str = "wall", n_rows: int | None = None
) -> list[dict[str, Any]]:
    """Time epochs of both in turn, at the paper's sizes.

    Parameters
    ----------
    problem : Problem
    X : CSR array of shape (n_samples, n_features)
    repeats : int
        Rounds behind each median.
    clock : {"wall", "cpu"}
        "cpu" counts the seconds of this process alone, which mean something on a machine with other work too.
    n_rows : int, optional
        Of the table, in place of all; an epoch has fewer batches then, and the ratio is the same.
    """
    X = X if n_rows is None else X[:n_rows]
    candidates = {
        "SparseVAE": _epochs(problem, X, SparseVAEModule, covariance="identity"),
        "OIVAE": _epochs(problem, X, OIVAEModule, samples_per_penalty=1.0),
    }
    if clock == "wall":
        seconds = interleaved_medians(candidates, repeats).seconds
    else:
        seconds = _cpu_medians(candidates, repeats)
    return [
        {
            "method": name,
            "n_rows": X.shape[0],
            "n_features": X.shape[1],
            "clock": clock,
            "seconds_per_epoch": seconds[name],
            "ratio": seconds[name] / seconds["SparseVAE"],
            "rounds": repeats,
        }
        for name in candidates
    ]


def _epochs(
    problem: Problem, X: Any, module_class: type[LatentModule], **options: Any
) -> Callable[[int], None]:
    n_features, settings = X.shape[1], problem.options
    observation = Observation.blank(get_likelihood(problem.likelihood, n_features), n_features)
    generator = torch.Generator().manual_seed(0)
    sizes = {name: settings[name] for name in ("n_factors", "hidden_sizes")}
    module = module_class(observation, module_class.config_class(**sizes, **options), generator=generator)
    batches = Batches(RowSource(X, observation), torch.arange(X.shape[0]), settings["batch_size"], generator)
    rate = problem.literal["learning_rate"]
    rates = {name: problem.literal[name] for name in ("spike_rate", "slab_rate")}

    def run(n_epochs: int) -> None:
        train(module, batches, [Phase("final", n_epochs, (rate, rate), **rates)], generator=generator)

    return run


def _cpu_medians(candidates: dict[str, Callable[[int], None]], repeats: int) -> dict[str, float]:
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(repeats + 1):
        for name, run in candidates.items():
            started = time.process_time()
            run(1)
            seconds[name].append(time.process_time() - started)
    return {name: statistics.median(values[1:]) for name, values in seconds.items()}  # the first warms up
