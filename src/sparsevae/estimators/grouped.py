"""Reading a fit with groups: which factors are shared, what differs between groups."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from sparsevae.exceptions import ParameterError
from sparsevae.modules.groups import Groups

__all__ = ["GROUP_EFFECTS", "GroupMixin"]

GROUP_EFFECTS = ("shifts", "means")
"""What may differ in level between groups: features, or factors."""


class GroupMixin:
    """Methods of the estimators that take groups of rows.

    Attributes
    ----------
    groups_ : ndarray of shape (n_groups,)
        Labels of the groups, where `fit` was given some.
    """

    _takes_groups: ClassVar[bool] = True
    active_factors_: np.ndarray

    def group_factors(self) -> pd.DataFrame:
        """Which factors are shared, and which belong to some groups.

        Returns
        -------
        DataFrame
            A row per active factor. ``role`` is "shared", or the names of the groups that have the factor;
            then a column per group, the standard deviation of the factor in it relative to its average, 0 in
            groups that lack it.
        """
        groups = self._row_groups()
        deviations = (groups.scale * groups.used).numpy()[:, self.active_factors_].T
        names = np.array([str(label) for label in self.groups_])  # type: ignore[attr-defined]
        roles = ["shared" if row.all() else ", ".join(names[row > 0]) for row in deviations]
        factors = self.get_feature_names_out()[self.active_factors_]  # type: ignore[attr-defined]
        table = pd.DataFrame(deviations.astype(np.float64), index=factors, columns=names)
        table.insert(0, "role", roles)
        return table

    def group_means(self) -> pd.DataFrame:
        """Mean of each active factor in each group, in standard deviations; zero if features are shifted."""
        groups = self._row_groups()
        names = [str(label) for label in self.groups_]  # type: ignore[attr-defined]
        factors = self.get_feature_names_out()[self.active_factors_]  # type: ignore[attr-defined]
        means = groups.mean.numpy()[:, self.active_factors_].T.astype(np.float64)
        return pd.DataFrame(means, index=factors, columns=names)

    def group_shifts(self) -> pd.DataFrame:
        """Shift of each feature in each group: a row per feature, a column per group.

        In units of a real-valued feature; of log means for counts, and of log odds for yes/no answers and
        levels. Relative to the average over groups.
        """
        groups = self._row_groups()
        shift = groups.shift.detach().double().numpy()
        shift = shift - shift.mean(0)
        observation = self.module_.observation  # type: ignore[attr-defined]
        scale = np.where(observation.real_columns, observation.scale.double().numpy(), 1.0)
        names = [str(label) for label in self.groups_]  # type: ignore[attr-defined]
        return pd.DataFrame((shift * scale).T, index=self.feature_names(), columns=names)  # type: ignore[attr-defined]

    def _row_groups(self) -> Groups:
        check_is_fitted(self, "module_")
        groups = self.module_.row_groups  # type: ignore[attr-defined]
        if groups is None:
            raise ParameterError(
                "Expected a model fitted with groups; this one was fitted without. Pass groups= to fit."
            )
        assert isinstance(groups, Groups)
        return groups
