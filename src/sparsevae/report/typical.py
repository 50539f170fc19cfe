"""Typical features of each factor, as the page lists them before its script takes over, and on paper."""

from __future__ import annotations

import numpy as np

from sparsevae.aliases import JSON
from sparsevae.inspection.words import relevance
from sparsevae.report.schema import Content

__all__ = ["word_lists"]

_WEIGHT = 0.6  # of frequency against specificity: what readers of topics found best (Sievert and Shirley)
_SHOWN = 12


def word_lists(content: Content) -> list[list[JSON]]:
    """The most typical features of each factor with their bars; empty where features have no frequencies.

    Parameters
    ----------
    content : dict
        From `build_content`.

    Returns
    -------
    list of list of dict
        For each factor: name, and ``high`` and ``overall`` as fractions of the longest bar.
    """
    if not content["overall"] or any(factor["words"] is None for factor in content["factors"]):
        return []
    overall = np.array(content["overall"], dtype=float)
    lists = []
    for factor in content["factors"]:
        words = factor["words"]
        assert words is not None
        features, high = np.array(words["features"], dtype=int), np.array(words["high"], dtype=float)
        order = np.argsort(-relevance(high, overall[features], _WEIGHT), kind="stable")[:_SHOWN]
        longest = max([1e-12, *high[order], *overall[features[order]]])
        lists.append(
            [
                {
                    "name": content["features"][features[i]]["name"],
                    "high": f"{high[i] / longest:.3f}",
                    "overall": f"{overall[features[i]] / longest:.3f}",
                }
                for i in order
            ]
        )
    return lists
