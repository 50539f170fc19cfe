"""What users of questionnaires ask of a fit: thin methods over `sparsevae.inspection.survey`."""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from sparsevae.aliases import TableLike
from sparsevae.estimators.fitted import SparseFit
from sparsevae.inspection.survey import (
    correlation_of,
    cronbach_alpha,
    omega,
    residual_size,
    survey_rows,
)
from sparsevae.inspection.variance import order_features
from sparsevae.summaries import dense_table
from sparsevae.validation import check_fraction, check_positive

__all__ = ["SurveyMixin"]


class SurveyMixin(SparseFit):
    """Reading a fit as factor analysis does."""

    def survey_table(self, cut: float = 0.3, *, sort: bool = True) -> pd.DataFrame:
        """Loadings as papers print them: with communality, uniqueness, complexity and sums of squares.

        Parameters
        ----------
        cut : float
            Loadings of a smaller size are left empty (NaN); 0 shows all of them, with exact zeros.
        sort : bool
            Whether features stand by their strongest factor, or as in the table.

        Returns
        -------
        DataFrame
            A row per feature; a column per active factor with standardised loadings: the root of the fraction
            of variance that the factor explains, with the sign of the average slope. Then ``communality``,
            ``uniqueness`` and ``complexity`` (Hofmann's number of factors that a feature uses). The last
            rows are the ``sum of squares`` of each factor's loadings, the small ones too, and their
            ``proportion of variance``.
        """
        check_is_fitted(self, "module_")
        check_fraction("cut", cut)
        loadings = self._standardised_loadings()
        order = order_features(self.mask_, self.link_strength()) if sort else np.arange(len(loadings))
        return survey_rows(loadings, self.communalities_, order, float(cut))

    def factor_correlation(self) -> pd.DataFrame:
        """Correlations of the active factors, with names.

        Of a real-valued table in which every factor has two anchors they are estimated by maximum likelihood
        with the links given, as in a confirmatory factor analysis; else they are those of the prior that the
        fit has learned, as they are for models of earlier versions.
        """
        check_is_fitted(self, "module_")
        names = list(self.active_names().values())
        values = getattr(self, "factor_correlation_", None)
        values = self._factor_correlation() if values is None else values
        return pd.DataFrame(values, index=names, columns=names)

    def reliability(self, X: TableLike | None = None) -> pd.DataFrame:
        """McDonald's ω of the scale that each active factor suggests.

        A scale is the sum of the standardised features whose strongest factor it is, those that fall with it
        turned round.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features), optional
            Answers, from which Cronbach's α of the same scales is computed too.

        Returns
        -------
        DataFrame
            A row per active factor: ``n_features``, ``omega``, and ``alpha`` if a table is given. NaN for
            an α of fewer than two features.

        Notes
        -----
        ω takes features to be linear in the factors. Of features with curves it is what the standardised
        loadings of `survey_table` say.
        """
        check_is_fitted(self, "module_")
        strength, correlation = self._standardised_loadings().to_numpy(), self._factor_correlation()
        size = np.abs(strength)
        items = None if X is None else dense_table(self.check_table(X))
        rows = []
        for a in range(strength.shape[1]):
            own = np.flatnonzero((size[:, a] > 0) & (size.argmax(1) == a))
            row = {
                "n_features": len(own),
                "omega": omega(strength[own], correlation, 1.0 - self.communalities_[own], a),
            }
            if items is not None:
                signs = np.where(strength[own, a] < 0, -1.0, 1.0)
                row["alpha"] = cronbach_alpha(items[:, own] * signs)
            rows.append(row)
        columns = ["n_features", "omega", *([] if items is None else ["alpha"])]
        names = pd.Index(list(self.active_names().values()), name="factor")
        return pd.DataFrame(rows, index=names, columns=columns)

    def residual_correlations(
        self, X: TableLike, *, n_draws: int = 20_000, random_state: int = 0
    ) -> pd.DataFrame:
        """Correlations of the table less those that the model implies.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features)
            Where values are missing, correlations are those of the rows that have both.
        n_draws : int
            Rows that are drawn from the model to find its correlations: curves have no formula for them.
        random_state : int

        Returns
        -------
        DataFrame of shape (n_features, n_features)
        """
        check_is_fitted(self, "module_")
        check_positive("n_draws", n_draws, integer=True)
        observed = correlation_of(dense_table(self.check_table(X)))
        implied = correlation_of(self.sample(n_draws, random_state=random_state))
        names = self.feature_names()
        return pd.DataFrame(observed - implied, index=names, columns=names)

    def srmr(self, X: TableLike, *, n_draws: int = 20_000, random_state: int = 0) -> float:
        """Standardised root mean square residual: the size of the residual correlations; below 0.08 is good.

        Parameters
        ----------
        X, n_draws, random_state
            As for `residual_correlations`.
        """
        residuals = self.residual_correlations(X, n_draws=n_draws, random_state=random_state)
        return residual_size(residuals.to_numpy())

    def _standardised_loadings(self) -> pd.DataFrame:
        names = list(self.active_names().values())
        return pd.DataFrame(
            self.link_strength()[:, self.active_factors_], index=self.feature_names(), columns=names
        )

    def _factor_correlation(self) -> np.ndarray:
        covariance = self.factor_covariance_[np.ix_(self.active_factors_, self.active_factors_)]
        scale = np.sqrt(np.diag(covariance))
        return covariance / np.outer(scale, scale)
