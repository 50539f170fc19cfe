"""What users of ratings ask of a fit: thin methods over `sparsevae.inspection.recommendation`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from sparsevae.aliases import TableLike
from sparsevae.estimators.fitted import SparseFit
from sparsevae.exceptions import ParameterError
from sparsevae.inspection.recommendation import explain_ranking, rank_features, similarity
from sparsevae.validation import check_positive, shown

__all__ = ["RatingsMixin"]


class RatingsMixin(SparseFit):
    """Recommending features to rows."""

    def recommend(
        self,
        X: TableLike,
        n: int = 10,
        *,
        filter_seen: bool = True,
        items: Sequence[int | str] | np.ndarray | None = None,
        explain: bool = False,
    ) -> tuple[Any, ...]:
        """The best features for each row, and why.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features)
            Rows, new ones too. A sparse table stays sparse: a block of rows is dense at a time.
        n : int
        filter_seen : bool
            Whether what a row has (is not zero) is left out.
        items : sequence of int or str, optional
            Features to choose from, by position or name: at least one.
        explain : bool
            Whether to say why.

        Returns
        -------
        ids : ndarray of int of shape (n_samples, n)
            Positions of features, best first; -1 where there are fewer candidates.
        scores : ndarray of shape (n_samples, n)
            On the scale on which factors add up: log odds of yes and no, log rates of counts, else the units
            of the table.
        explanations : DataFrame, with ``explain=True``
            At most three rows for each row and item, one per factor without which it would fall: ``row``,
            ``rank``, ``item``, ``score``, ``factor``, its ``contribution``, the ``rank_without`` that the
            item would have if this factor were at its mean, and ``because``, what the row has of this
            factor, empty where what it lacks has settled the factor. The score is ``base`` (what everybody
            gets), the contributions and ``rest``. A row without a factor is an item that keeps its rank
            whichever factor is taken away: by popularity, or because others fall with it.
        """
        codes = self.codes(X)
        check_positive("n", n, integer=True)
        candidates = self._candidates(items)
        ranking = rank_features(codes, n, filter_seen=filter_seen, candidates=candidates)
        if not explain:
            return ranking.ids, ranking.scores
        explanations = explain_ranking(
            codes,
            ranking,
            filter_seen=filter_seen,
            candidates=candidates,
            factors=self.active_names(),
            features=self.feature_names(),
            strength=self.link_strength(),
        )
        return ranking.ids, ranking.scores, explanations

    def similar_features(self, feature: int | str, n: int = 10) -> pd.DataFrame:
        """Features that use the same factors in the same way.

        Parameters
        ----------
        feature : int or str
            By position or name.
        n : int

        Returns
        -------
        DataFrame
            The most similar first: ``feature``, ``similarity``, the cosine of the signed strengths of their
            links, and ``shared``, the factors of both. Features that share no factor are left out.
        """
        check_is_fitted(self, "module_")
        check_positive("n", n, integer=True)
        j = self._feature_position(feature)
        strength, names, features = self.link_strength(), self.active_names(), self.feature_names()
        values = similarity(strength, j)
        shared = (strength != 0) & (strength[j] != 0)
        order = [i for i in np.argsort(-values, kind="stable") if i != j and shared[i].any()][:n]
        rows = [
            (features[i], values[i], ", ".join(names[int(k)] for k in np.flatnonzero(shared[i])))
            for i in order
        ]
        return pd.DataFrame(rows, columns=["feature", "similarity", "shared"])

    def _candidates(self, items: Sequence[int | str] | np.ndarray | None) -> np.ndarray:
        chosen = np.full(len(self.mask_), items is None)
        if items is not None:
            if isinstance(items, str) or not len(items):
                raise ParameterError(
                    f"Expected items to be features to choose from, at least one; got {items!r}. Pass for "
                    "example items=[0, 1], or leave it out for all."
                )
            chosen[[self._feature_position(item) for item in items]] = True
        return chosen

    def _feature_position(self, feature: int | str) -> int:
        names = self.feature_names()
        if isinstance(feature, (int, np.integer)) and 0 <= feature < len(names):
            return int(feature)
        found = np.flatnonzero(names == feature)
        if not len(found):
            raise ParameterError(
                f"Expected a feature by its name or a position below {len(names)}; got {feature!r}. Names "
                "are "
                f"{shown(names.tolist())}."
            )
        return int(found[0])
