"""The output-interpretable VAE as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np
import pandas as pd
import torch
from sklearn.utils.validation import check_is_fitted

from sparsevae.estimators.neural import NeuralEstimator
from sparsevae.exceptions import ParameterError
from sparsevae.fitting import FitData, Recipe, get_recipe
from sparsevae.fitting.initial import start_at_means_
from sparsevae.inspection.codes import Codes
from sparsevae.modules import LatentModule, OIVAEConfig, OIVAEModule
from sparsevae.principal import RandomState
from sparsevae.validation import check_positive

__all__ = ["OIVAE"]


@dataclass(frozen=True)
class _OIVAERecipe:
    """What a recipe means for OI-VAE.

    Attributes
    ----------
    warm_up : int
        One part in so many of the epochs, in which generators may grow before the penalty empties their
        columns; 0 for none.
    samples_per_penalty, samples_per_weight_prior : float, optional
        See `OIVAEConfig`.
    """

    warm_up: int = 0
    samples_per_penalty: float | None = 1.0
    samples_per_weight_prior: float | None = None


_RECIPES = {
    "default": _OIVAERecipe(warm_up=2),
    "paper": _OIVAERecipe(samples_per_penalty=None),
    "authors": _OIVAERecipe(samples_per_weight_prior=1.0),
}


Groups = Sequence[object] | Mapping[object, str | Iterable[object]]
"""A label per feature, or the features of each label."""


class OIVAE(NeuralEstimator):
    r"""Output-interpretable VAE (Ainsworth, Foti, Lee & Fox 2018): each *group* of features uses few factors.

    .. math::
        z_i \sim N(0, I_K), \qquad x_i^{(g)} \sim \text{likelihood}\left(f_{\theta_g}(W^{(g)} z_i)\right),
        \qquad p(W^{(g)}_{\cdot k}) \propto e^{-\lambda \|W^{(g)}_{\cdot k}\|_2}, \qquad \theta_g \sim N(0, I)

    A generator network per group, a group lasso on what enters it: where a column of :math:`W^{(g)}` is zero,
    and it is exactly zero or not at all, group g does not depend on that factor.

    Parameters
    ----------
    n_factors : int
    likelihood : str or dict
        As for `SparseVAE`.
    recipe : {"default", "paper", "authors"}
        What λ and the prior on the generators' weights are charged against. "authors": each sample, as in the
        code of Ainsworth et al., where λ = 1 is what their experiments and the sparse VAE's paper have.
        "paper": the whole data set, as priors are; then λ = 1 is next to nothing. "default": λ each sample,
        the weights' prior the data set, which gives zeros without shrinking the generators; and the schedule
        of `VAE`.
    groups : sequence or dict, optional
        A label for each feature, or a dict from group to features (names or positions). Each feature is its
        own group by default.
    penalty : float
        λ.
    group_width : int
        p, how many inputs a generator has.
    n_init, hidden_sizes, batch_size, max_epochs, learning_rate
        As for `VAE`; ``hidden_sizes`` of the encoder and of each generator.
    validation_fraction, missing, size_factors, device, random_state, verbose
        As for `VAE`.

    Attributes
    ----------
    group_loadings_ : ndarray of shape (n_groups, n_factors)
        Norms of the columns of :math:`W^{(g)}`, with exact zeros.
    group_names_ : ndarray of shape (n_groups,)
    mask_ : ndarray of shape (n_features, n_factors)
        The loadings of each feature's group.
    components_ : ndarray of shape (n_factors, n_features)
        The same transposed.
    noise_variance_ : ndarray of shape (n_features,)
    active_factors_ : ndarray of int
        Factors that at least one group uses.
    history_ : DataFrame
    n_features_in_, feature_names_in_, n_iter_
    """

    module_: OIVAEModule
    _module_class: ClassVar[type[LatentModule]] = OIVAEModule

    def __init__(
        self,
        n_factors: int = 10,
        *,
        likelihood: str | Mapping[str, object] = "gaussian",
        recipe: str = "default",
        groups: Groups | None = None,
        penalty: float = 1.0,
        group_width: int = 5,
        n_init: int = 1,
        hidden_sizes: tuple[int, ...] = (64, 64),
        batch_size: int | str = "auto",
        max_epochs: int | None = None,
        learning_rate: float = 3e-3,
        validation_fraction: float = 0.1,
        missing: str = "ignorable",
        size_factors: bool = True,
        device: str = "auto",
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.n_factors = n_factors
        self.likelihood = likelihood
        self.recipe = recipe
        self.groups = groups
        self.penalty = penalty
        self.group_width = group_width
        self.n_init = n_init
        self.hidden_sizes = hidden_sizes
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.learning_rate = learning_rate
        self.validation_fraction = validation_fraction
        self.missing = missing
        self.size_factors = size_factors
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    # -- fitting -----------------------------------------------------------------------------------------

    def check_parameters(self) -> None:
        """Refuse parameters of the constructor that make no sense."""
        super().check_parameters()
        check_positive("penalty", self.penalty)
        check_positive("group_width", self.group_width, integer=True)

    def _n_warm(self, epochs: int) -> int:
        part = self._own_recipe().warm_up
        return epochs // part if part else 0

    def _own_recipe(self) -> _OIVAERecipe:
        return _RECIPES.get(get_recipe(self.recipe).name, _RECIPES["default"])

    def _config(self, recipe: Recipe, data: FitData, n_warm: int) -> OIVAEConfig:
        own = self._own_recipe()
        labels, self.group_names_ = number_groups(self.groups, self.feature_names())
        return OIVAEConfig(
            n_factors=self.n_factors,
            hidden_sizes=tuple(self.hidden_sizes),
            linear_path=recipe.linear_path,
            input_dropout=data.input_dropout if recipe.input_dropout else 0.0,
            holes=data.source.has_missing,
            groups=tuple(labels),
            group_width=self.group_width,
            penalty=float(self.penalty),
            samples_per_penalty=own.samples_per_penalty,
            samples_per_weight_prior=own.samples_per_weight_prior,
        )

    def _new_module(self, data: FitData, n_warm: int) -> LatentModule:
        module = cast(OIVAEModule, super()._new_module(data, n_warm))
        labels = np.asarray(module.groups)
        constant = np.array([data.constant[labels == g].all() for g in range(labels.max() + 1)])
        with torch.no_grad():
            module.mask.frozen[torch.as_tensor(constant)] = True
            module.mask.weight[torch.as_tensor(constant)] = 0.0
        return module

    def _start_(self, module: LatentModule, data: FitData) -> None:
        # In every recipe: its weights under a penalty, a generator cannot make up for a far-off intercept.
        start_at_means_(cast(OIVAEModule, module), data.feature_mean)

    def _finish(self, codes: Codes, data: FitData) -> None:
        super()._finish(codes, data)
        self.group_loadings_ = self.module_.mask.norms().numpy().astype(np.float64)
        self.mask_ = self.group_loadings_[list(self.module_.groups)]
        self.components_ = self.mask_.T

    def _in_use(self, codes: np.ndarray) -> np.ndarray:
        return self.module_.active().numpy().astype(bool)

    # -- reading a fit -----------------------------------------------------------------------------------

    def loadings(self) -> pd.DataFrame:
        """How strongly each group depends on each active factor: a row per group, exact zeros."""
        check_is_fitted(self, "module_")
        names = self.get_feature_names_out()[self.active_factors_]
        return pd.DataFrame(
            self.group_loadings_[:, self.active_factors_], index=self.group_names_, columns=names
        )


def number_groups(groups: Groups | None, feature_names: np.ndarray) -> tuple[list[int], np.ndarray]:
    """Turn what a user typed into a number per feature, groups in order of their size.

    Parameters
    ----------
    groups : sequence, dict or None
        A label per feature, a dict from group to features, or None for each feature by itself.
    feature_names : array of shape (n_features,)

    Returns
    -------
    labels : list of int
        One per feature.
    names : ndarray of shape (n_groups,)
    """
    n_features = len(feature_names)
    if groups is None:
        return list(range(n_features)), np.asarray(feature_names, dtype=object)
    labels = _labels_of(groups, feature_names) if isinstance(groups, Mapping) else list(groups)
    if len(labels) != n_features:
        raise ParameterError(
            f"Expected groups to have a label for each of the {n_features} features; got {len(labels)}. Pass "
            "one per column, or a dict from group to columns."
        )
    sizes: dict[object, int] = {}
    for label in labels:
        sizes[label] = sizes.get(label, 0) + 1
    names = sorted(sizes, key=sizes.__getitem__)  # stable: groups of one size as they first appear
    number = {name: g for g, name in enumerate(names)}
    return [number[label] for label in labels], np.array([str(name) for name in names], dtype=object)


def _labels_of(groups: Mapping[object, str | Iterable[object]], feature_names: np.ndarray) -> list[object]:
    position = {name: j for j, name in enumerate(feature_names)}
    labels: dict[int, object] = {}
    for name, members in groups.items():
        for member in [members] if isinstance(members, str) else members:
            j = position.get(member, member)
            if not isinstance(j, int | np.integer) or not 0 <= j < len(feature_names):
                raise ParameterError(
                    f"Expected groups to name features of the table; got {member!r} in group {name!r}. Use "
                    "names or positions."
                )
            j = int(j)
            if j in labels:
                raise ParameterError(
                    f"Expected each feature in one group; got {member!r} in {labels[j]!r} and in {name!r}."
                )
            labels[j] = name
    absent = [str(feature_names[j]) for j in range(len(feature_names)) if j not in labels]
    if absent:
        raise ParameterError(
            f"Expected every feature in a group; got none for {', '.join(absent[:5])}"
            f"{' ...' if len(absent) > 5 else ''}. Add them, by themselves or together."
        )
    return [labels[j] for j in range(len(feature_names))]
