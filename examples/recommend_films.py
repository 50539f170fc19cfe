"""Recommend films and say why: NDCG@100 of new users beside EASE and popularity, and the deletion test.

Usage: python examples/recommend_films.py FOLDER, with the ratings.csv and movies.csv of a MovieLens release.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pandas as pd
from scipy import sparse

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

    ids, _, why = model.recommend(seen, 10, explain=True)
    reasons = why[why["factor"] != ""]
    items = ["row", "rank"]
    holds = reasons.assign(holds=falls(model, seen, ids, reasons)).groupby(items)["holds"].all()
    with_evidence = (reasons["because"] != "").groupby([reasons[name] for name in items]).any()
    results["deletion"] = float(holds.mean())
    results["explained"] = len(holds) / len(why.drop_duplicates(items))
    results["evidence"] = float(with_evidence.mean())
    print(
        f"{len(model.active_factors_)} factors; {results['explained']:.1%} of recommendations have a "
        f"factor behind them, {results['evidence']:.1%} of these a film of the user's own"
    )
    print(f"deletion test: {results['deletion']:.1%} of these fall when any of their factors is taken away")
    print(why[["row", "item", "factor", "contribution", "because"]].head(5).round(2).to_string(index=False))
    return results


def falls(model: SparseVAE, seen: sparse.csr_matrix, ids: np.ndarray, reasons: pd.DataFrame) -> np.ndarray:
    """Whether each item that has a reason falls in rank when this factor is taken away.

    Ranked anew from the chances of the model, without what `recommend` says of ranks.
    """
    rows, ranks = reasons["row"].to_numpy(), reasons["rank"].to_numpy()
    position = {name: k for k, name in enumerate(model.get_feature_names_out())}
    Z = model.transform(seen)[rows]
    Z[np.arange(len(Z)), [position[name] for name in reasons["factor"]]] = 0.0
    chances = np.where(seen[rows].toarray() == 0, model.inverse_transform(Z), -1.0)
    own = chances[np.arange(len(Z)), ids[rows, ranks - 1]]
    return 1 + (chances > own[:, None]).sum(1) > ranks


if __name__ == "__main__":
    main(*sys.argv[1:2])
