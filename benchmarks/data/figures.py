"""The figures: each function makes its input ready and returns the task to be timed."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import sparse


def run(sender: Connection, prepare: Callable[..., Callable[[], str]], inputs: tuple) -> None:
    """Time the task in this process, and send what it took."""
    try:
        task = prepare(*inputs)
    except FileNotFoundError as reason:
        sender.send({"skipped": str(reason)})
        return
    start = time.perf_counter()
    answer = task()
    seconds = time.perf_counter() - start
    unit = 1e9 if sys.platform == "darwin" else 1e6  # bytes there, kilobytes elsewhere
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    sender.send({"seconds": round(seconds, 2), "peak_gigabytes": round(peak, 2), "answer": answer})


def load_peerread(path: Path) -> Callable[[], str]:
    from sparsevae.datasets import load_peerread

    if not path.exists():
        raise FileNotFoundError(f"{path} not found: pass --data")
    return lambda: repr(load_peerread(path))


def load_movielens(path: Path) -> Callable[[], str]:
    from sparsevae.datasets import load_movielens

    return lambda: repr(load_movielens(path))


def rank(n_users: int) -> Callable[[], str]:
    from sparsevae.metrics import ndcg_at_k, recall_at_k

    scores, liked = _scores(n_users)
    return lambda: f"recall {recall_at_k(scores, liked, 5):.4f}, ndcg {ndcg_at_k(scores, liked, 10):.4f}"


def rank_fold_in(n_users: int) -> Callable[[], str]:
    from sparsevae.metrics import ndcg_at_k, recall_at_k, split_items

    scores, liked = _scores(n_users)
    seen, held_out = split_items(liked)
    options = {"protocol": "fold_in", "seen": seen}
    return lambda: (
        f"recall {recall_at_k(scores, held_out, 20, **options):.4f}, "
        f"ndcg {ndcg_at_k(scores, held_out, 100, **options):.4f}"
    )


def score_dci() -> Callable[[], str]:
    from sparsevae.metrics import dci

    generator = np.random.default_rng(0)
    factors = generator.standard_normal((500, 2))
    codes = np.hstack([factors, generator.standard_normal((500, 3))])
    return lambda: f"disentanglement {dci(codes, factors).disentanglement:.3f}"


def write_ratings(folder: Path, *, n_ratings: int, n_users: int, n_movies: int) -> None:
    """Write ratings.csv and movies.csv in the official layout; some users and movies have most ratings."""
    folder.mkdir()
    generator = np.random.default_rng(0)
    popularity = 1 / np.arange(10, n_movies + 10)
    edges = np.cumsum(popularity / popularity.sum())
    activity = generator.lognormal(0.0, 1.0, size=n_users)
    users = np.repeat(np.arange(1, n_users + 1), generator.multinomial(n_ratings, activity / activity.sum()))
    with (folder / "ratings.csv").open("w") as file:
        for start in range(0, n_ratings, 1_000_000):
            user = users[start : start + 1_000_000]
            table = {
                "userId": user,
                "movieId": np.searchsorted(edges, generator.random(len(user))).clip(max=n_movies - 1) + 1,
                "rating": generator.integers(1, 11, size=len(user)) / 2,
                "timestamp": generator.integers(10**9, 1_574_000_000, size=len(user)),
            }
            pd.DataFrame(table).to_csv(file, index=False, header=start == 0)
    movies = {
        "movieId": range(1, n_movies + 1),
        "title": [f"Movie {m} (2000)" for m in range(1, n_movies + 1)],
    }
    pd.DataFrame(movies | {"genres": "Drama"}).to_csv(folder / "movies.csv", index=False)


def _scores(n_users: int) -> tuple[np.ndarray, sparse.csr_array]:
    generator = np.random.default_rng(0)
    scores = generator.random((n_users, 300), dtype=np.float32)
    liked = sparse.csr_array((generator.random((n_users, 300), dtype=np.float32) < 0.1).astype(np.int32))
    return scores, liked
