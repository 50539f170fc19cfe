"""Which gene sets, or other sets of features, the features of a factor belong to."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from scipy.stats import false_discovery_control, hypergeom

from sparsevae.exceptions import DataError
from sparsevae.validation import shown

__all__ = ["COLUMNS", "compare_sets"]

logger = logging.getLogger(__name__)

COLUMNS = ("factor", "set", "n_overlap", "n_factor", "n_set", "fold", "p_value", "q_value", "features")
"""Of the table of `compare_sets`."""


def compare_sets(
    supports: Mapping[str, np.ndarray],
    sets: Mapping[str, Sequence[str]],
    features: Sequence[str],
    *,
    min_size: int = 3,
) -> pd.DataFrame:
    r"""Test each factor's features against each set, by the hypergeometric distribution.

    Of N features, K are in the set and n use the factor; by chance the number in both is at least k with

    .. math:: p = \sum_{i \ge k} \binom{K}{i}\binom{N - K}{n - i} \Big/ \binom{N}{n}.

    The mask has exact zeros, so that which features use a factor is a fact of the fit: no cut-off is chosen.

    Parameters
    ----------
    supports : mapping from str to integer array
        Features of each factor, strongest first.
    sets : mapping from str to sequence of str
        Names of features.
    features : sequence of str
        All features of the fit, which are the background.
    min_size : int
        Sets with fewer features of the fit are not tested.

    Returns
    -------
    DataFrame
        A row per factor and set with any overlap, by factor and p-value. ``q_value`` controls the false
        discovery rate over all tests, those without overlap too (Benjamini and Hochberg); ``fold`` is the
        overlap over what chance would give; ``features`` are those in both, strongest first.

    Raises
    ------
    DataError
        If no set has enough features of the fit.
    """
    if not sets:
        raise DataError("Expected at least one set of features; got none. Add one, or name another file.")
    place = {name: j for j, name in enumerate(features)}
    known = {name: {place[gene] for gene in genes if gene in place} for name, genes in sets.items()}
    tested = {name: members for name, members in known.items() if len(members) >= min_size}
    if not tested:
        example = next((gene for genes in sets.values() for gene in genes), "nothing")
        raise DataError(
            f"Expected sets with at least {min_size} features of the fit, such as "
            f"{shown(list(features), 2)}; "
            f"got {len(sets)} with fewer, of names such as '{example}'. Use the names of the fit, or a "
            "smaller min_size."
        )
    if len(tested) < len(sets):
        n_left = len(sets) - len(tested)
        logger.info(
            "%d of %d sets %s not tested: fewer than %d of their features are in the fit.",
            n_left, len(sets), "is" if n_left == 1 else "are", min_size,
        )  # fmt: skip
    rows, p_values = [], []
    for factor, own in supports.items():
        for name, members in tested.items():
            both = [int(j) for j in own if int(j) in members]
            p_values.append(float(hypergeom.sf(len(both) - 1, len(features), len(members), len(own))))
            fold = len(both) * len(features) / max(len(members) * len(own), 1)
            words = ", ".join(features[j] for j in both)
            rows.append((factor, name, len(both), len(own), len(members), fold, p_values[-1], np.nan, words))
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    if len(table):
        table["q_value"] = false_discovery_control(p_values)
    order = {factor: i for i, factor in enumerate(supports)}
    table = table[table["n_overlap"] > 0]
    table = table.sort_values(
        ["factor", "p_value", "set"],
        key=lambda column: column.map(order) if column.name == "factor" else column,
    )
    return table.reset_index(drop=True)
