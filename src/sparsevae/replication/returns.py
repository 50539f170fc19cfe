"""Which factors of a fit returned in fits to parts of the rows: counted, told and drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from sparsevae.aliases import JSON
from sparsevae.metrics.replication import (
    RETURNED,
    FactorMatches,
    FactorSet,
    compare_factors,
    counted_factors,
    match_sets,
    n_strongest,
    rank_correlation,
    strongest,
)
from sparsevae.plotting import plot_replication
from sparsevae.validation import shown

__all__ = ["VARIMAX", "Replication", "compare_parts", "find_returns"]

VARIMAX = "varimax"
"""The method beside the model, in the tables."""

_SHOWN = 5  # features of a factor in the summary


@dataclass(frozen=True)
class Replication:
    """What comes back of the factors of a fit, and of a varimax factor analysis beside it.

    Attributes
    ----------
    factors : DataFrame
        A row per active factor of the fit to all rows: factor, correlation (absolute rank correlation with
        its match, mean over the fits to parts of the rows), returned (splits in which it came back: the
        factor and its matches in both parts have rank correlations of at least 0.9 with each other),
        n_splits, overlap (Jaccard index of the strongest features, mean over these fits), counts (whether it
        explains at least 5 % of the variance of three features and copies no other), features (the strongest,
        most explained first).
    splits : DataFrame
        A row per split and method: split, method, factors_a, factors_b (that count, in either part), back,
        match (mean matched correlation over the larger number of factors), overlap.
    matches : DataFrame
        A row per fit to a part and factor: part, factor, correlation, overlap.
    n_samples : int
    studies : tuple of str
        Values of ``by``; empty where rows were halved at random.
    notes : tuple of str
        What was left out and what failed, a sentence each.
    """

    factors: pd.DataFrame
    splits: pd.DataFrame
    matches: pd.DataFrame
    n_samples: int
    studies: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def returned(self) -> list[str]:
        """Factors that came back in every split."""
        always = self.factors["returned"] == self.factors["n_splits"]
        return [str(name) for name in self.factors.loc[always, "factor"]]

    @property
    def means(self) -> pd.DataFrame:
        """A row per method: means of factors_a, factors_b, back, match and overlap over the splits."""
        columns = ["factors_a", "factors_b", "back", "match", "overlap"]
        return self.splits.groupby("method", sort=False)[columns].mean()

    def summary(self) -> str:
        """The result in words: a line per factor, the counts, and varimax in one line."""
        n_splits = self.splits["split"].nunique()
        if self.studies:
            how = f"{len(self.studies)} studies ({shown(self.studies)}), {_plural(n_splits, 'pair')}"
        else:
            how = f"{_plural(n_splits, 'split')} into random halves"
        lines = [f"{self.n_samples} rows, {how}; {_plural(len(self.factors), 'factor')} in all rows."]
        width = max((len(name) for name in self.factors["factor"]), default=0)
        for row in self.factors.to_dict("records"):
            features = ", ".join(row["features"][:_SHOWN])
            little = "" if row["counts"] else "  (explains too little to count)"
            lines.append(
                f"  {row['factor']:<{width}}  back in {row['returned']} of {row['n_splits']}  r "
                f"{row['correlation']:.2f}  overlap {row['overlap']:.2f}  {features}{little}"
            )
        lines.append(f"{len(self.returned)} of {len(self.factors)} come back in every split.")
        between = "studies" if self.studies else "halves"
        lines.append(f"Between {between}: {'; '.join(self._counts())}.")
        lines += self._other_number()
        return "\n".join([*lines, *self.notes])

    def _counts(self) -> list[str]:
        """How many factors of each method come back."""
        texts = []
        for row in self.means.reset_index().to_dict("records"):
            a, b = f"{row['factors_a']:.3g}", f"{row['factors_b']:.3g}"
            name = f"a varimax rotation of {len(self.factors)}" if row["method"] == VARIMAX else row["method"]
            texts.append(
                f"{row['back']:.3g} of {a if a == b else f'{a} and {b}'} factors of {name} come back (match "
                f"{row['match']:.2f}, overlap {row['overlap']:.2f})"
            )
        return texts

    def _other_number(self) -> list[str]:
        """A warning where the parts have more or fewer factors than all rows have."""
        n_factors, found = int(self.factors["counts"].sum()), self.means.iloc[0]
        parts = (found["factors_a"] + found["factors_b"]) / 2
        if abs(parts - n_factors) < 1:  # on average
            return []
        return [
            f"Parts of the rows have {parts:.3g} factors that count on average, all rows {n_factors}: one "
            "may be split or merged there."
        ]

    def __str__(self) -> str:
        return self.summary()

    def to_dict(self) -> JSON:
        """Plain values that JSON can hold."""
        return {
            "n_samples": self.n_samples,
            "studies": list(self.studies),
            "returned": self.returned,
            "factors": self.factors.to_dict("records"),
            "splits": self.splits.to_dict("records"),
            "matches": self.matches.to_dict("records"),
            "means": self.means.to_dict("index"),
            "notes": list(self.notes),
        }

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Draw how well each part of the rows shows each factor, as `plotting.plot_replication` does."""
        return plot_replication(self, ax=ax)


def find_returns(
    reference: FactorSet,
    parts: Mapping[str, FactorSet],
    splits: Sequence[tuple[str, str, str]],
    factor_names: Sequence[str],
    feature_names: Sequence[str],
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Look for the factors of a reference in fits to parts of the rows.

    Parameters
    ----------
    reference : FactorSet
    parts : mapping
        From the name of a part to the factors of its fit.
    splits : sequence of (name of the split, part, part)
    factor_names : sequence of length n_factors
    feature_names : sequence of length n_features

    Returns
    -------
    factors, matches : DataFrame
        As `Replication` has them.
    """
    found = {name: match_sets(reference, factors) for name, factors in parts.items()}
    names = [str(name) for name in factor_names]
    n_factors, counted = len(names), counted_factors(reference)
    rows = [
        (part, name, *_shown(matches, k)) for part, matches in found.items() for k, name in enumerate(names)
    ]
    matches = pd.DataFrame(rows, columns=["part", "factor", "correlation", "overlap"])
    means = matches.groupby("factor", sort=False)[["correlation", "overlap"]].mean()
    returned = np.zeros(n_factors, dtype=int)
    for _, a, b in splits:
        both = [_is_in_both(k, parts[a], found[a], parts[b], found[b]) for k in range(n_factors)]
        returned += np.array(both, dtype=int)
    n_top = n_strongest(len(feature_names))
    top = [
        [str(feature_names[j]) for j in strongest(shares, n_top) if shares[j] > 0]
        for shares in reference.shares.T
    ]
    factors = pd.DataFrame(
        {
            "factor": names,
            "correlation": means["correlation"].reindex(names).to_numpy(),
            "returned": returned,
            "n_splits": len(splits),
            "overlap": means["overlap"].reindex(names).to_numpy(),
            "counts": np.isin(np.arange(n_factors), counted),
            "features": top,
        }
    )
    return factors, matches


def compare_parts(
    method: str, parts: Mapping[str, FactorSet], splits: Sequence[tuple[str, str, str]]
) -> list[JSON]:
    """The numbers of each split of one method, as `Replication.splits` has them."""
    return [{"split": name, "method": method, **compare_factors(parts[a], parts[b])} for name, a, b in splits]


def _shown(matches: FactorMatches, k: int) -> tuple[float, float]:
    """Correlation and overlap of a factor with its match; 0 without one."""
    at = np.flatnonzero(matches.first == k)
    return (float(matches.correlation[at[0]]), float(matches.overlap[at[0]])) if len(at) else (0.0, 0.0)


def _is_in_both(
    k: int, first: FactorSet, in_first: FactorMatches, second: FactorSet, in_second: FactorMatches
) -> bool:
    """Whether both parts show a factor, and show the same."""
    codes = []
    for part, matches in ((first, in_first), (second, in_second)):
        at = np.flatnonzero((matches.first == k) & (matches.correlation >= RETURNED))
        if not len(at):
            return False
        codes.append(part.codes[:, matches.second[at[0]]])
    return rank_correlation(*codes) >= RETURNED


def _plural(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
