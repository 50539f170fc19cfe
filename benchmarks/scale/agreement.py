"""Whole fits in 1, 2 and 4 processes: the same factors, links and values over seeds."""

from __future__ import annotations

import multiprocessing
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["compare_numbers"]


def compare_numbers(
    table: str,
    seeds: list[int],
    numbers: list[int],
    folder: Path,
    epochs: int = 30,
    n_factors: int = 5,
) -> list[dict[str, Any]]:
    """Fit a table with each seed in each number of processes, and compare with one process.

    Parameters
    ----------
    table : str
        "anchored", with known factors; the path of a CSV file, of which the columns of whole numbers from 1
        to 6 are taken; or that of an NPZ file of counts, of which the 500 that vary most are taken.
    seeds, numbers : list of int
        The first number should be 1.
    folder : Path
        For what the processes leave.
    epochs : int
        ``max_epochs`` of the fits.
    n_factors : int
        At most.

    Returns
    -------
    list of dict
        A row per seed and number: factors, links, whether the support is that of one process, the largest
        difference of a loading over the largest loading, and the least correlation of a factor's values
        with those of its counterpart.
    """
    found = {number: _fit_in(number, table, seeds, folder, epochs, n_factors) for number in numbers}
    return [
        {
            "table": Path(table).stem,
            "seed": seed,
            "processes": number,
            **_compare(found[number][i], found[1][i]),
        }
        for i, seed in enumerate(seeds)
        for number in numbers
    ]


def _compare(own: dict[str, np.ndarray], one: dict[str, np.ndarray]) -> dict[str, Any]:
    from sparsevae.fitting.axes import matched_correlations

    mask, other = own["mask"], one["mask"]
    used, used_of_one = (m.any(0) for m in (mask, other))
    size = float(np.abs(other).max())
    matches = matched_correlations(own["codes"][:, used], one["codes"][:, used_of_one])
    return {
        "factors": int(used.sum()),
        "links": int((mask != 0).sum()),
        "same support": bool(((mask != 0) == (other != 0)).all()),
        "largest difference": f"{np.abs(mask - other).max() / size:.1e}" if mask.shape == other.shape else "",
        "least correlation": round(float(matches.min(initial=1.0)), 5),
    }


def _fit_in(
    number: int, table: str, seeds: list[int], folder: Path, epochs: int, n_factors: int
) -> list[dict[str, np.ndarray]]:
    """Fits of all seeds by the same processes: they start once."""
    context = multiprocessing.get_context("spawn")
    results = [folder / f"fitted-{number}-{seed}.npz" for seed in seeds]
    meeting = folder / f"meeting-{os.getpid()}-{number}"
    arguments = (number, table, seeds, epochs, n_factors, meeting, results)
    processes = [context.Process(target=_fit, args=(rank, *arguments)) for rank in range(number)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * number
    meeting.unlink(missing_ok=True)
    found = []
    for result in results:
        with np.load(result) as fitted:
            found.append(dict(fitted))
        result.unlink()
    return found


def _fit(
    rank: int,
    number: int,
    table: str,
    seeds: list[int],
    epochs: int,
    n_factors: int,
    meeting: Path,
    results: list[Path],
) -> None:
    import torch

    from sparsevae import SparseVAE

    torch.set_num_threads(1)
    if number > 1:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        store = torch.distributed.FileStore(str(meeting), number)
        torch.distributed.init_process_group("gloo", store=store, rank=rank, world_size=number)
    for seed, result in zip(seeds, results, strict=True):
        X = _load(table, seed)
        kind = "negative_binomial" if table.endswith(".npz") else "gaussian"
        model = SparseVAE(
            n_factors, likelihood=kind, max_epochs=epochs, n_init=2, batch_size=512, random_state=seed
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X)
        if rank == 0:
            np.savez(result, mask=model.mask_, codes=model.transform(X))
    if number > 1:
        torch.distributed.barrier()
    os._exit(0)  # threads of gloo may abort an interpreter that ends as usual


def _load(table: str, seed: int) -> np.ndarray:
    if table == "anchored":
        from sparsevae.datasets import make_anchored_factors

        return np.asarray(make_anchored_factors(500, 12, 3, random_state=seed).X, dtype=np.float32)
    if table.endswith(".npz"):
        from scipy import sparse

        counts = sparse.load_npz(table).toarray().astype(np.float32)
        spread = np.log1p(1e4 * counts / counts.sum(1, keepdims=True)).var(0)
        return np.asarray(counts[:, np.sort(np.argsort(spread)[-500:])])
    import pandas as pd

    frame = pd.read_csv(table).select_dtypes("number")
    items = [name for name, column in frame.items() if set(column.dropna()) == set(range(1, 7))]
    return np.asarray(frame[items], dtype=np.float32)
