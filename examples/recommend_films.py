"""Recommend films and say why: NDCG@100 of new users beside EASE and popularity, and the deletion test.

Usage: python examples/recommend_films.py FOLDER, with the ratings.csv and movies.csv of a MovieLens release.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np

from sparsevae import SparseVAE
from sparsevae.comparison.adapters import EASE
from sparsevae.datasets import load_movielens
from sparsevae.exceptions import ConvergenceWarning
from sparsevae.metrics import ndcg_at_k, split_items


def main(folder: str, n_features: int = 300, **parameters: object) -> dict[str, float]:
    data = load_movielens(folder, n_features=n_features)
    liked = data.X
    users = np.random.default_rng(0).permutation(liked.shape[0])
    train, new = liked[users[len(users) // 5 :]], liked[users[: len(users) // 5]]
    seen, hidden = split_items(new, random_state=0)

    model = SparseVAE(likelihood="bernoulli", random_state=0, **{"n_factors": 20, **parameters})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(train, feature_names=data.feature_names)
    popularity = np.broadcast_to(np.asarray(train.sum(axis=0)).ravel(), seen.shape)
    scores = {
        "SparseVAE": model.reconstruct(seen),
        "EASE": EASE(likelihood="bernoulli").fit(train).reconstruct(seen),
        "popularity": popularity,
    }
    results = {}
    for name, values in scores.items():
        results[name] = float(ndcg_at_k(values, hidden, 100, protocol="fold_in", seen=seen))
        print(f"{name:<12} NDCG@100 {results[name]:.3f}")

    _, _, why = model.recommend(seen, 10, explain=True)
    first = why[why["factor"] != ""].drop_duplicates(["row", "rank"])
    results["deletion"] = float((first["rank_without"] > first["rank"]).mean())
    results["explained"] = len(first) / len(why.drop_duplicates(["row", "rank"]))
    print(
        f"{len(model.active_factors_)} factors; {results['explained']:.0%} of recommendations have a "
        "factor behind them"
    )
    print(f"deletion test: {results['deletion']:.1%} of these fall when it is taken away")
    print(why[["row", "item", "factor", "contribution", "because"]].head(5).round(2).to_string(index=False))
    return results


if __name__ == "__main__":
    main(*sys.argv[1:2])
