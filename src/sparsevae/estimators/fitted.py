"""What a fitted sparse VAE says: its attributes, and the tables that are made of them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.stats import t as t_distribution
from sklearn.utils.validation import check_is_fitted

from sparsevae.aliases import JSON, TableLike
from sparsevae.estimators.factor_estimator import FactorEstimator
from sparsevae.exceptions import DataError
from sparsevae.identifiability import Certificate, Stability, certify
from sparsevae.identifiability.resamples import Resamples
from sparsevae.inspection.codes import Codes, spread_rows
from sparsevae.inspection.curves import Responses, directions, response_curves
from sparsevae.inspection.drift import Drift, find_drift
from sparsevae.inspection.variance import find_practical, order_features, signed_strength
from sparsevae.modules import SparseVAEModule
from sparsevae.validation import check_fraction, check_positive

__all__ = ["SparseFit"]


class SparseFit(FactorEstimator):
    """A fitted `SparseVAE`: its attributes, as `fit` sets them, and what they say of features and factors."""

    module_: SparseVAEModule
    mask_: np.ndarray
    inclusion_: np.ndarray
    effects_: np.ndarray
    variance_shares_: np.ndarray
    variance_explained_: np.ndarray
    communalities_: np.ndarray
    factor_covariance_: np.ndarray
    active_factors_: np.ndarray
    dropped_factors_: dict[int, str]
    extremes_: JSON

    @abstractmethod
    def evidence(
        self,
        X: TableLike | Codes,
        *,
        samples: Sequence[object] | np.ndarray | None = None,
        table_name: str = "",
        seen_in_fit: bool = True,
    ) -> JSON:
        """What a report needs of a table."""

    def link_strength(self) -> np.ndarray:
        """Signed root of the variance explained by each link; for a linear model, standardised loadings."""
        check_is_fitted(self, "module_")
        return signed_strength(self.mask_, self.effects_, self.variance_shares_)

    def active_names(self) -> dict[int, str]:
        """Names of the active factors by their position."""
        names = self.get_feature_names_out()
        return {int(k): str(names[k]) for k in self.active_factors_}

    def loadings(self) -> pd.DataFrame:
        """The mask with names: a row per feature, a column per active factor."""
        check_is_fitted(self, "module_")
        names = self.get_feature_names_out()[self.active_factors_]
        links = self.mask_[:, self.active_factors_] + 0.0  # no zero with a sign
        return pd.DataFrame(links, index=self.feature_names(), columns=names)

    def effects(self, *, ci: float | None = None) -> pd.DataFrame:
        """Average slope of each feature on each active factor, signed, in units of the feature.

        A factor has standard deviation one, so an effect is what changes when the factor rises by one
        standard deviation, averaged over the samples of the fit.

        Parameters
        ----------
        ci : float, optional
            Level of an interval for each effect, such as 0.9.

        Returns
        -------
        DataFrame
            A row per feature, a column per active factor. With ``ci`` a row per feature and factor instead:
            factor, feature, effect, low, high, and ``selection``, the fraction of the halves of the rows in
            which the link is there. NaN where no halves were compared (`resamples_`).

        Notes
        -----
        Intervals are those of linear loadings on the links of the fit, without the penalty that shrinks
        effects, which may lie outside; their standard errors come from differences between halves of the
        rows. An effect of zero has an interval too: how large it may be without being noticed.
        """
        check_is_fitted(self, "module_")
        active, features = self.active_factors_, self.feature_names()
        names = self.get_feature_names_out()[active]
        effects = self.effects_[:, active]
        if ci is None:
            return pd.DataFrame(effects, index=features, columns=names)
        check_fraction("ci", ci, "0.9")
        centre, margin, selection = self._intervals(float(ci))
        return pd.DataFrame(
            {
                "factor": np.repeat(names, len(features)),
                "feature": np.tile(np.asarray(features, dtype=object), len(names)),
                "effect": effects.T.ravel(),
                "low": (centre - margin).T.ravel(),
                "high": (centre + margin).T.ravel(),
                "selection": selection.T.ravel(),
            }
        )

    def _intervals(self, level: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Centre and half width of the interval of each effect, and its selection: (n_features, n_active)."""
        resamples, effects = self._resamples(), self.effects_[:, self.active_factors_]
        if resamples is None:
            unknown = np.full(effects.shape, np.nan)
            return unknown, unknown, unknown
        observation = self.module_.observation
        real = np.asarray(observation.real_columns)[:, None]
        # Loadings are on standardised inputs; of counts and answers, effects are in proportion to them.
        size = np.abs(self.mask_[:, self.active_factors_])
        ratio = np.abs(effects).sum(1) / np.maximum(size.sum(1), 1e-12)
        unit = np.where(real, observation.scale.double().numpy()[:, None], ratio[:, None])
        centre = np.where(real & np.isfinite(resamples.loadings), resamples.loadings * unit, effects)
        quantile = t_distribution.ppf(0.5 + level / 2.0, len(resamples.agreement))
        return centre, quantile * resamples.deviation * unit, resamples.selection

    def top_features(self, n: int = 10) -> pd.DataFrame:
        """The strongest features of each active factor, by the share of their variance that it explains.

        Columns: factor, rank, feature, loading, effect, share, anchor.
        """
        check_is_fitted(self, "module_")
        check_positive("n", n, integer=True)
        factors, features = self.get_feature_names_out(), self.feature_names()
        anchors, shares = (self.mask_ != 0).sum(1) == 1, self.variance_shares_
        rows = [
            (factors[k], rank, features[j], self.mask_[j, k], self.effects_[j, k], shares[j, k], anchors[j])
            for k in self.active_factors_
            for rank, j in enumerate(self.strongest_features(k)[:n], start=1)
        ]
        columns = ["factor", "rank", "feature", "loading", "effect", "share", "anchor"]
        return pd.DataFrame(rows, columns=columns)

    def anchor_features(self, *, practical: bool = False) -> dict[str, list[str]]:
        """Features that depend on one factor only, strongest first, for each active factor.

        Parameters
        ----------
        practical : bool
            Whether features count that depend on others so little that it does not matter: their fitted
            values change by at most 5 % of their variance when every factor but one is held at its mean, and
            the factors explain at least 5 % of the feature. The theorems ask for exact anchors; practical
            ones say how easily a factor is read.
        """
        check_is_fitted(self, "module_")
        names, features = self.get_feature_names_out(), self.feature_names()
        anchors = self.practical_anchors() if practical else (self.mask_ != 0).sum(1) == 1
        result = {}
        for k in self.active_factors_:
            chosen = anchors[:, k] if practical else anchors
            result[str(names[k])] = [str(features[j]) for j in self.strongest_features(k) if chosen[j]]
        return result

    def practical_anchors(self) -> np.ndarray:
        """Whether each feature is a practical anchor of each factor: boolean, (n_features, n_factors)."""
        check_is_fitted(self, "module_")
        if not hasattr(self, "left_shares_"):
            raise DataError(
                "Expected a model that kept what features owe to all factors but one; this one was fitted by "
                "an earlier version. Fit again."
            )
        return find_practical(self.left_shares_, self.communalities_) & (self.mask_ != 0)

    def strongest_features(self, k: int | np.integer) -> np.ndarray:
        """Positions of the features of a factor, the one of whose variance it explains most first."""
        own = np.flatnonzero(self.mask_[:, k])
        return own[np.argsort(-self.variance_shares_[own, k], kind="stable")]

    def communalities(self) -> pd.Series:
        """Fraction of each feature's variance that the factors explain; their mean is that of the table.

        For a real-valued feature, one less the noise variance over the variance of the feature in the table
        fitted. For counts and yes/no answers, the fraction of their squared deviations that expected values
        reproduce, beyond what the size of a row explains. 0 for a feature that uses no factor.
        """
        check_is_fitted(self, "module_")
        return pd.Series(self.communalities_, index=self.feature_names(), name="communality")

    def explained(self) -> pd.DataFrame:
        """What each active factor explains, and all of them together.

        Returns
        -------
        DataFrame
            A row per active factor and a last one for all: ``variance_explained``, the mean over features of
            the fraction of variance that is lost when the factor is held at its mean (all: the mean
            communality; the fractions of correlated or interacting factors overlap and need not sum to it);
            ``n_features`` that use the factor; ``n_anchors`` among them.
        """
        check_is_fitted(self, "module_")
        used = self.mask_[:, self.active_factors_] != 0
        anchors = (self.mask_ != 0).sum(1) == 1
        names = self.get_feature_names_out()[self.active_factors_]
        parts = pd.DataFrame(
            {
                "variance_explained": self.variance_explained_[self.active_factors_],
                "n_features": used.sum(0),
                "n_anchors": (used & anchors[:, None]).sum(0),
            },
            index=pd.Index(names, name="factor", dtype=object),
        )
        parts.loc["all factors"] = [float(self.communalities_.mean()), int(used.any(1).sum()), anchors.sum()]
        return parts.astype({"n_features": int, "n_anchors": int})

    def feature_order(self) -> np.ndarray:
        """Positions of the features by their strongest factor, anchors of it first, without factor last."""
        return order_features(self.mask_, self.link_strength())

    def link_directions(self) -> np.ndarray:
        """Whether a feature rises with a factor (1), falls (-1), or neither (0): (n_features, n_factors)."""
        check_is_fitted(self, "module_")
        return directions(self.module_, self.effects_)

    def responses(
        self, factor: int, features: Sequence[int], X: TableLike | None = None, *, n_points: int = 1000
    ) -> Responses:
        """Response curves of features on a factor, in the units of the table.

        Parameters
        ----------
        factor : int
            Column of the mask.
        features : sequence of int
            Rows of the mask.
        X : array, data frame or sparse matrix of shape (n_samples, n_features), optional
            Data for the points behind the curves.
        n_points : int
            Rows of X that are taken at most, evenly spread.

        Returns
        -------
        Responses
        """
        check_is_fitted(self, "module_")
        if X is None:
            return response_curves(self.module_, {factor: features})[factor]
        codes = self.codes(X).in_memory
        rows = spread_rows(codes.X.shape[0], n_points)
        return response_curves(self.module_, {factor: features}, codes, rows)[factor]

    def drift(
        self,
        X: TableLike,
        *,
        groups: ArrayLike | None = None,
        observed: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
        level: float = 0.05,
    ) -> Drift:
        """Say whether the mix of factors of a new table has moved, or a feature's curve has broken.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features)
            New rows, at least 20.
        groups, observed, exposure : array, optional
            See `codes`.
        level : float
            Of all tests of features together, and of all tests of factors.

        Returns
        -------
        Drift
            Tables ``features`` and ``factors``, names that have ``broken`` and ``moved``, and a
            ``summary()`` in words.
        """
        check_is_fitted(self, "module_")
        check_fraction("level", level, "0.05")
        if not hasattr(self, "reference_"):
            raise DataError(
                "Expected a model that kept what new tables are compared with; this one was fitted by an "
                "earlier version. Fit again."
            )
        codes = self.codes(X, groups=groups, observed=observed, exposure=exposure).in_memory
        factors = self.get_feature_names_out()[self.active_factors_]
        return find_drift(codes, self.reference_, self.feature_names(), factors, level)

    def identifiability(
        self,
        X: TableLike | Codes,
        *,
        stability: Stability | None = None,
        groups: ArrayLike | None = None,
        observed: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Certificate:
        """State for each active factor whether it is identified, and why.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features), or Codes
            The table of the fit, or another of its kind; or its `codes`.
        stability : Stability, optional
            From `sparsevae.stability`: adds how often each factor returns to the evidence.
        groups, observed, exposure, sample_weight : array, optional
            See `codes`.

        Returns
        -------
        Certificate
            Its ``table`` has a row per active factor, its ``summary()`` says the same in words.
        """
        check_is_fitted(self, "module_")
        if not isinstance(X, Codes):
            X = self.codes(
                X, groups=groups, observed=observed, exposure=exposure, sample_weight=sample_weight
            )
        return certify(
            self.module_,
            X.in_memory,
            feature_names=self.feature_names(),
            factor_names=self.get_feature_names_out(),
            stability=stability,
            resamples=self._resamples(),
            practical=self.practical_anchors().sum(0) if hasattr(self, "left_shares_") else None,
            correlation=self.factor_correlation().to_numpy(),
        )

    def _resamples(self) -> Resamples | None:
        """What `_resample` found; None for models of earlier versions too."""
        kept = getattr(self, "resamples_", None)
        return Resamples.from_dict(kept) if kept else None
