"""What the readers of a sparse fit know of it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sparsevae.aliases import JSON, TableLike
from sparsevae.estimators.factor_estimator import FactorEstimator
from sparsevae.inspection.codes import Codes
from sparsevae.inspection.variance import signed_strength
from sparsevae.modules import SparseVAEModule

__all__ = ["SparseFit"]


class SparseFit(FactorEstimator):
    """Base of the mixins that read a fitted `SparseVAE`: its attributes, as `fit` sets them."""

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
    def strongest_features(self, k: int | np.integer) -> np.ndarray:
        """Positions of the features of a factor, the one of whose variance it explains most first."""

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
