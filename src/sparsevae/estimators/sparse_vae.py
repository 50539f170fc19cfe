"""The sparse VAE as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike

from sparsevae.aliases import JSON, TableLike
from sparsevae.decoder.dispatch import PRECISIONS
from sparsevae.estimators.base import FeatureNames
from sparsevae.estimators.display import DisplayMixin
from sparsevae.estimators.grouped import GROUP_EFFECTS, GroupMixin
from sparsevae.estimators.ratings import RatingsMixin
from sparsevae.estimators.results import ResultsMixin
from sparsevae.estimators.survey import SurveyMixin
from sparsevae.exceptions import ConvergenceWarning, ParameterError
from sparsevae.factor_analysis import analyse_factors
from sparsevae.fitting import FitData, FitSettings, Recipe, get_recipe
from sparsevae.fitting.checkpoint import fit_or_resume
from sparsevae.fitting.constraints import anchor_entries, count_linear_factors
from sparsevae.fitting.data import linear_inputs
from sparsevae.fitting.procedure import counts_around
from sparsevae.fitting.state import Fitted
from sparsevae.fitting.trade import linear_supports, simplicity_path
from sparsevae.identifiability.confirmatory import settle_links
from sparsevae.identifiability.records import certificate_record
from sparsevae.identifiability.resamples import resample_factors
from sparsevae.inspection.codes import Codes
from sparsevae.inspection.drift import reference_of
from sparsevae.inspection.evidence import EVIDENCE_FORMAT, gather_evidence
from sparsevae.inspection.outputs import Outputs, average_slopes, expected_rows, order_factors_
from sparsevae.inspection.variance import (
    communalities,
    left_shares,
    variance_shares,
)
from sparsevae.modules import Batch, LatentModule, SparseVAEConfig, SparseVAEModule
from sparsevae.modules.base import check_features_per_step
from sparsevae.principal import RandomState, pairwise_correlation
from sparsevae.training.interrupt import stop_requested
from sparsevae.validation import check_choice, check_positive

__all__ = ["MOST_FACTORS", "SparseVAE"]

_INITS = ("auto", "rotation", "random")
_LARGEST_RATE = 1e30  # beyond which squares overflow
MOST_FACTORS = 50
"""Largest number of factors that is found where none is given."""
_MOST_CONFIRMED, _FEWEST_CONFIRMED = 300, 50  # features and rows of fits with the links given
_ROWS_READ = 1000  # at which slopes and variance explained are taken
_ROWS_ORDERED = 300  # at which the order and the sign of factors are


class SparseVAE(GroupMixin, DisplayMixin, ResultsMixin, SurveyMixin, RatingsMixin):
    r"""Deep factor model in which each feature depends on a few factors.

    .. math::
        w_{jk} \sim \text{Spike-and-Slab Lasso}(\lambda_0, \lambda_1, a, b), \quad
        z_i \sim N_K(0, \Sigma_z), \quad
        x_{ij} \sim \text{likelihood}\left(f_\theta(w_j \odot z_i)_j\right)

    Parameters
    ----------
    n_factors : int or "auto"
        Largest number of factors; those that the data do not support end with an empty column of the mask.
        "auto" allows as many as a linear analysis of the table shows, and one more where they are few.
    likelihood : str or dict
        "gaussian", "multinomial" (the paper's softmax), "bernoulli", "poisson", "negative_binomial",
        "ordinal", "categorical", a dict from likelihood to columns, or "auto": a look at the values decides,
        and the reason is kept in ``likelihood_reason_``.
    recipe : {"default", "paper", "authors"} or Recipe
        "default" is built to find the factors from any seed. "paper" is the paper as printed: identity
        prior covariance, given rates, random networks, no ladder. "authors" repeats the arithmetic of the
        authors' published code, whose mask has no zeros but by a threshold.
    spike_rate, slab_rate : float, optional
        Exact Laplace rates λ0 and λ1. By default they are set from the number of samples, the size of the
        mask and the information that a sample carries about each feature, so that they mean the same for any
        table.
    expected_features_per_factor : float, optional
        About how many features a factor should have, instead of a spike rate: the rate is then the one at
        which so many loadings of the start would stay. Data that say otherwise prevail.
    inclusion_prior : (float, float), optional
        a and b of the Beta prior on the share of features per factor; (1, n_features) by default. ``(c / K,
        1)`` is the finite Indian buffet process.
    factor_covariance : {"learned", "identity"} or array of shape (n_factors, n_factors)
        Prior covariance of the factors.
    init : {"auto", "rotation", "random"} or array of shape (n_features, n_factors)
        Where the mask starts: plain VAEs turned to sparse slopes; sparse rotation of linear loadings; at
        random; given.
    anchors : dict, optional
        Known anchor features, ``{feature: factor}``: their rows of the mask are fixed at one factor (Theorem
        1).
    n_init : int or "auto"
        Starts for each number of factors tried; "auto" takes forty for a table of few features, four else.
    hidden_sizes : tuple of int
        Widths of the hidden layers of encoder and decoder; ``()`` is the sparse linear factor model.
    batch_size : int or "auto"
        Rows of a gradient step. "auto" takes 128 of up to 12,800 rows, and a hundredth of more, up to 1,024.
    max_epochs : int, optional
        Epochs of the whole fit; by default enough for a fixed number of gradient steps.
    learning_rate : float
    gain_kept : float
        Fraction of the best held-out gain over no factors that the simplest fit must keep, above 0 and up to
        1. The default keeps axes that come back in other rows and drops links that gain little; 1 is the most
        predictive fit, whose factors may be others in another sample.
    validation_fraction : float
        Share of the rows held out for early stopping and for the choice among starts; the fit ends on all
        rows.
    precision : {"float32", "bfloat16"}
        Of the decoder's matrix products.
    features_per_step : int, optional
        Features in the reconstruction of a gradient step, drawn anew at each and scaled up: unbiased, noisier
        and cheaper, for tables with tens of thousands of features. All by default; not for a multinomial.
    group_effects : {"shifts", "means"}
        What differs in level between the groups of rows that `fit` is given: each feature by a shift of its
        own, so that batch effects stay out of the factors, or the means of the factors, with features that
        are measured alike. Variances of the factors, and which groups have them, may differ in both.
    missing : {"ignorable", "informative"}
        Whether absence tells something. "informative" models, for each column with missing values, whether a
        value is there, as one more feature of zeros and ones under the same factors; these features come
        after those of the table.
    size_factors : bool
        Whether counts of "poisson" and "negative_binomial" are relative to the size of their row (its total,
        or the ``exposure`` given to `fit`). False where totals carry meaning.
    device : str
        "auto", "cpu", "cuda" or "mps".
    random_state : int, RandomState or None
    verbose : int
        1 shows a progress bar.

    Attributes
    ----------
    n_factors_ : int
        Largest number of factors of this fit.
    n_linear_factors_ : int
        Number of factors that a linear analysis shows (parallel analysis), where the fit has made one. More
        than are active: `number_note` says why.
    n_returning_factors_ : int
        Number of factors that return in halves of the rows, where linear axes were kept.
    mask_ : ndarray of shape (n_features, n_factors)
        W with exact zeros; columns in order of the variance their factors explain at the encoder's means.
    components_ : ndarray of shape (n_factors, n_features)
        The mask transposed.
    inclusion_ : ndarray of shape (n_features, n_factors)
        E[γ], posterior probability of the slab.
    inclusion_rate_ : ndarray of shape (n_factors,)
    noise_variance_ : ndarray of shape (n_features,)
        σ² in the units of the table; NaN for features that are not real-valued.
    factor_covariance_ : ndarray of shape (n_factors, n_factors)
    active_factors_ : ndarray of int
        Factors that at least one feature uses.
    dropped_factors_ : dict
        Why each factor that was allowed for is not active.
    variance_explained_ : ndarray of shape (n_factors,)
        Mean over features of the share of variance that is lost when a factor is held at its mean.
    variance_shares_ : ndarray of shape (n_features, n_factors)
        The same share for each feature: the size of a link, whatever its shape.
    communalities_ : ndarray of shape (n_features,)
        Share of each feature's variance that the factors explain together.
    factor_correlation_ : ndarray of shape (n_active, n_active)
        Correlations of the active factors, see `factor_correlation`.
    left_shares_ : ndarray of shape (n_features, n_factors)
        What changes of each feature, in fractions of its fitted variance, when all factors but one are held.
    resamples_ : dict of arrays
        What halves of the rows showed of the factors (`identifiability.resamples.Resamples`); empty where a
        linear analysis does not suit the table.
    history_ : DataFrame
        A row per epoch, a column per term of the objective.
    starts_ : DataFrame
        The starts compared at the end: factors, non-zeros, held-out bound and the score that chose among
        them.
    simplicity_path_ : DataFrame
        What simpler and richer fits gain, a row per point: ``model``, ``shrinkage`` (of linear models on the
        axes of the fit, sparser from row to row), ``n_active`` factors, ``n_nonzero`` links, held-out
        ``gain`` over no factors in nats per row, ``gain_kept`` relative to the best, ``chosen``. Absent where
        no fit without factors was compared.
    path_supports_ : boolean ndarray of shape (n_points, n_features, n_factors)
        Links at the linear points of ``simplicity_path_``; absent where networks settled the axes.
    n_features_in_, feature_names_in_, n_iter_

    Examples
    --------
    >>> from sparsevae import SparseVAE
    >>> from sparsevae.datasets import make_sparse_factors
    >>> data = make_sparse_factors(500, correlation=0.4, random_state=0)
    >>> model = SparseVAE(n_factors=5, random_state=0).fit(data.X)
    >>> len(model.active_factors_)
    2
    """

    _module_class: ClassVar[type[LatentModule]] = SparseVAEModule

    _finds_n_factors: ClassVar[bool] = True

    def __init__(
        self,
        n_factors: int | str = 10,
        *,
        likelihood: str | Mapping[str, object] = "gaussian",
        recipe: str | Recipe = "default",
        spike_rate: float | None = None,
        slab_rate: float | None = None,
        expected_features_per_factor: float | None = None,
        inclusion_prior: tuple[float, float] | None = None,
        factor_covariance: Any = "learned",
        init: Any = "auto",
        anchors: Mapping[Any, int] | None = None,
        n_init: int | str = "auto",
        hidden_sizes: tuple[int, ...] = (64, 64),
        batch_size: int | str = "auto",
        max_epochs: int | None = None,
        learning_rate: float = 3e-3,
        gain_kept: float = 0.95,
        validation_fraction: float = 0.2,
        precision: str = "float32",
        features_per_step: int | None = None,
        group_effects: str = "shifts",
        missing: str = "ignorable",
        size_factors: bool = True,
        device: str = "auto",
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.n_factors = n_factors
        self.likelihood = likelihood
        self.recipe = recipe
        self.spike_rate = spike_rate
        self.slab_rate = slab_rate
        self.expected_features_per_factor = expected_features_per_factor
        self.inclusion_prior = inclusion_prior
        self.factor_covariance = factor_covariance
        self.init = init
        self.anchors = anchors
        self.n_init = n_init
        self.hidden_sizes = hidden_sizes
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.learning_rate = learning_rate
        self.gain_kept = gain_kept
        self.validation_fraction = validation_fraction
        self.precision = precision
        self.features_per_step = features_per_step
        self.group_effects = group_effects
        self.missing = missing
        self.size_factors = size_factors
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def check_parameters(self) -> None:
        """Refuse parameters of the constructor that make no sense."""
        super().check_parameters()
        if isinstance(self.n_factors, str):
            self._check_automatic()
        if self.n_init != "auto":
            check_positive("n_init", self.n_init, integer=True)
        check_positive("gain_kept", self.gain_kept)
        if self.gain_kept > 1:
            raise ParameterError(
                f"Expected gain_kept above 0 and at most 1; got {self.gain_kept!r}. Pass 0.95, or 1.0 for "
                "the most predictive fit."
            )
        get_recipe(self.recipe)
        check_choice("precision", self.precision, PRECISIONS)
        check_choice("group_effects", self.group_effects, GROUP_EFFECTS)
        if self.features_per_step is not None:
            check_positive("features_per_step", self.features_per_step, integer=True)
        if isinstance(self.init, str):
            check_choice("init", self.init, _INITS)
        else:
            _check_init(self.init)
        if isinstance(self.factor_covariance, str):
            check_choice("factor_covariance", self.factor_covariance, ("learned", "identity"))
        else:
            _check_covariance(self.factor_covariance, int(self.n_factors))
        for name in ("spike_rate", "slab_rate", "expected_features_per_factor"):
            if getattr(self, name) is not None:
                check_positive(name, getattr(self, name))
                if float(getattr(self, name)) > _LARGEST_RATE:
                    raise ParameterError(
                        f"Expected {name} of at most {_LARGEST_RATE:g}; got {getattr(self, name):g}. Leave "
                        "it out to have it set from the table."
                    )
        if self.spike_rate is not None and self.slab_rate is not None and self.spike_rate < self.slab_rate:
            raise ParameterError(
                f'Expected spike_rate >= slab_rate (section "The Spike-and-Slab Lasso"); got '
                f"spike_rate={self.spike_rate}, slab_rate={self.slab_rate}. Swap the two, or pass equal "
                "rates to fit without a spike."
            )
        if self.spike_rate is not None and self.expected_features_per_factor is not None:
            raise ParameterError(
                "Expected spike_rate or expected_features_per_factor; got both. The second sets the first: "
                "leave one of them None."
            )
        if self.inclusion_prior is not None:
            _check_inclusion_prior(self.inclusion_prior)
        if self.anchors is not None and not isinstance(self.anchors, Mapping):
            raise ParameterError(
                f"Expected anchors to be a dict from feature to factor; got {self.anchors!r}. Pass for "
                "example anchors={'CD3D': 0, 'CD79A': 1}."
            )

    def _check_automatic(self) -> None:
        """Refuse a number of factors to be found beside parameters that number the factors."""
        if self.n_factors != "auto":
            raise ParameterError(
                f"Expected n_factors to be a whole number of 1 or more, or 'auto'; got {self.n_factors!r}. "
                "Pass for example n_factors=10."
            )
        given = {
            "anchors": self.anchors is not None,
            "init": not isinstance(self.init, str),
            "factor_covariance": not isinstance(self.factor_covariance, str),
            "recipe": get_recipe(self.recipe).rates is not None,
        }
        for name in (name for name, is_given in given.items() if is_given):
            raise ParameterError(
                f"Expected a number for n_factors beside {name}, which numbers the factors; got 'auto'. Pass "
                "the largest number of factors."
            )

    def _find_n_factors(self, data: FitData) -> int:
        """The largest number of factors: as given, or by the table."""
        if not isinstance(self.n_factors, str):
            return int(self.n_factors)
        n_linear = count_linear_factors(data, data.everything)
        return max(counts_around(n_linear, MOST_FACTORS))

    def _settings(self, data: FitData) -> FitSettings:
        """What the fit is asked for, resolved for a table."""
        n_factors = self.n_factors_ = self._find_n_factors(data)
        recipe, sizes, prior = get_recipe(self.recipe), tuple(self.hidden_sizes), self.inclusion_prior
        given = None if isinstance(self.factor_covariance, str) else np.asarray(self.factor_covariance)
        covariance = self.factor_covariance if given is None else "fixed"
        config = SparseVAEConfig(
            n_factors=n_factors,
            hidden_sizes=sizes,
            beta=1.0 / n_factors if recipe.kl_per_factor else 1.0,
            linear_path=recipe.linear_path,
            features_per_step=self.features_per_step,
            input_dropout=data.input_dropout if recipe.input_dropout else 0.0,
            gauge=recipe.gauge,
            precision=self.precision,
            holes=data.source.has_missing,
            n_groups=len(getattr(self, "groups_", ())),
            group_shifts=self.group_effects == "shifts",
            covariance=covariance if recipe.correlated_factors else "identity",
            inclusion_prior=None if prior is None else (float(prior[0]), float(prior[1])),
            keep_rate_ratio=recipe.keep_rate_ratio,
        )
        check_features_per_step(config.features_per_step, data.source.observation.likelihood)
        automatic = isinstance(self.init, str) and self.init == "auto"
        return FitSettings(
            recipe=recipe,
            config=config,
            small=FitSettings.is_small(data, sizes),
            from_vae=recipe.rates is None and automatic and len(sizes) > 0,
            init=self.init,
            anchors=anchor_entries(self.anchors, self.feature_names(), n_factors),
            factor_covariance=given,
            spike_rate=self.spike_rate,
            slab_rate=self.slab_rate,
            expected_features_per_factor=self.expected_features_per_factor,
            n_init=None if self.n_init == "auto" else int(self.n_init),
            max_epochs=self.max_epochs,
            learning_rate=self.learning_rate,
            gain_kept=float(self.gain_kept),
            verbose=self.verbose,
        )

    def prepare_fit(
        self,
        X: TableLike,
        *,
        feature_names: FeatureNames | None = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        observed: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
    ) -> tuple[FitSettings, FitData]:
        """Settings and rows of a fit that is not begun, for those who take its stages one by one."""
        data = self._prepare(
            X,
            feature_names=feature_names,
            sample_weight=sample_weight,
            groups=groups,
            observed=observed,
            exposure=exposure,
        )
        return self._settings(data), data

    def _fit_module(self, data: FitData) -> tuple[LatentModule, pd.DataFrame]:
        fitted = fit_or_resume(self._settings(data), data)
        self.starts_ = fitted.starts
        self._remember_path(fitted)
        self.dropped_factors_ = fitted.dropped
        for name in ("n_linear_factors_", "n_returning_factors_"):
            self.__dict__.pop(name, None)
        if fitted.spine is not None and self.gain_kept < 1.0:
            self.n_returning_factors_ = fitted.spine.factors.n_factors
        if fitted.n_linear is not None:
            self.n_linear_factors_ = fitted.n_linear
        if not fitted.converged and not stop_requested():
            warnings.warn(
                f"The mask was still changing when training stopped after {len(fitted.history)} epochs. "
                "Raise max_epochs, or lower learning_rate.",
                ConvergenceWarning,
                stacklevel=4,
            )
        return fitted.module, fitted.history

    def _remember_path(self, fitted: Fitted) -> None:
        """Keep what simpler and richer fits would have gained, and their links where axes were held."""
        for name in ("simplicity_path_", "path_supports_"):
            self.__dict__.pop(name, None)
        path = simplicity_path(fitted.starts, fitted.spine)
        if path is None:
            return
        self.simplicity_path_ = path
        supports = linear_supports(fitted.spine, fitted.module.n_factors)
        if supports is not None:
            self.path_supports_ = supports

    def _finish(self, codes: Codes, data: FitData) -> None:
        module, observation = self.module_, self.module_.observation
        rows = data.rows_to_read(_ROWS_READ)
        batch = codes.batch(rows)
        self._order_factors(batch)
        outputs = Outputs(module, torch.as_tensor(codes.means(rows)), batch.weight)
        self._remember_samples(codes, rows)
        self.variance_shares_ = variance_shares(outputs, batch)
        self.variance_explained_ = self.variance_shares_.mean(0)
        self.communalities_ = communalities(outputs, batch)
        self.left_shares_ = left_shares(outputs, batch)
        [effects] = average_slopes(outputs, partial(expected_rows, module))
        self.effects_ = effects + 0.0  # no negative zeros
        self.mask_ = module.mask.weight.numpy().astype(np.float64)
        self.components_ = self.mask_.T
        self.inclusion_ = module.mask.inclusion().numpy().astype(np.float64)
        self.inclusion_rate_ = module.mask.inclusion_rate.numpy().astype(np.float64)
        noise = module.noise_variance.double() * observation.scale.double().square()
        self.noise_variance_ = np.where(observation.real_columns, noise.numpy(), np.nan)
        self.factor_covariance_ = module.factor_covariance.numpy().astype(np.float64)
        self.active_factors_ = np.flatnonzero((self.mask_ != 0).any(0))
        self.reference_ = reference_of(codes)
        inputs = linear_inputs(data.everything)
        links = self._settle(inputs, float(data.everything.n_samples))
        self.resamples_ = self._resample(codes, data, rows, inputs, links)

    def _settle(self, inputs: np.ndarray, n_samples: float) -> np.ndarray:
        """Links on which intervals rest; sets the correlations of the factors, the prior's or better ones."""
        active, self.factor_correlation_ = self.active_factors_, self._factor_correlation()
        support = self.mask_[:, active] != 0
        own = np.flatnonzero(support.any(1))
        plain = bool(self.module_.observation.real_columns.all()) and self.module_.row_groups is None
        if self.module_.config.covariance != "learned" or not plain or len(own) > _MOST_CONFIRMED:
            return support
        if len(active) < 2 or len(own) < 2 * len(active) + 1 or len(inputs) < _FEWEST_CONFIRMED:
            return support
        strength = np.where(self.effects_[:, active] < 0, -1.0, 1.0) * np.sqrt(
            self.variance_shares_[:, active]
        )
        x = inputs[:, own].astype(np.float64)
        free = analyse_factors(x, len(active))
        settled = settle_links(pairwise_correlation(x), strength[own], n_samples, free)
        if settled is None:
            return support
        self.factor_correlation_ = settled[1].correlation
        links = np.zeros_like(support)
        links[own] = settled[0]
        return links

    def _resample(
        self, codes: Codes, data: FitData, rows: np.ndarray, inputs: np.ndarray, links: np.ndarray
    ) -> dict[str, np.ndarray]:
        """What halves of the rows show of the factors; empty where a linear analysis does not suit."""
        observation = self.module_.observation
        parts = observation.likelihood.split(data.source.n_features)
        if self.module_.row_groups is not None or not all(part.ordered for part, _ in parts):
            return {}
        found = resample_factors(
            inputs,
            codes.inputs(rows),
            codes.means(rows)[:, self.active_factors_],
            self.mask_[:, self.active_factors_] != 0,
            n_samples=float(data.everything.n_samples),
            counts=bool(observation.count_columns.all()),
            links=links,
        )
        return {} if found is None else found.to_dict()

    def _order_factors(self, batch: Batch) -> None:
        """Put the factors in order and sign, as the encoder's means of these rows have it.

        Newton steps end elsewhere when factors have other signs or places: codes are found after this, so
        that they are those of `transform`.
        """
        module = self.module_
        batch = batch.rows(torch.arange(min(batch.n_rows, _ROWS_ORDERED)))
        outputs = Outputs(module, module.encode(batch)[0], batch.weight)
        explained = variance_shares(outputs, batch).mean(0)
        effects, strength = average_slopes(outputs, partial(expected_rows, module), torch.Tensor.detach)
        named = sorted(set((self.anchors or {}).values()))
        order, _ = order_factors_(module, explained, effects, strength, named)
        if hasattr(self, "path_supports_"):
            self.path_supports_ = self.path_supports_[:, :, order]
        position = {int(old): new for new, old in enumerate(order)}
        self.dropped_factors_ = {position[k]: why for k, why in sorted(self.dropped_factors_.items())}

    def evidence(
        self,
        X: TableLike | Codes,
        *,
        samples: Sequence[object] | np.ndarray | None = None,
        table_name: str = "",
        seen_in_fit: bool = True,
    ) -> JSON:
        """What a report needs of a table: certificate, ablation, points behind the curves, extreme samples.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features), or Codes
            A table, or its `codes`.
        samples : sequence of length n_samples, optional
            Names of the rows; by default their numbers from 0.
        table_name : str
            What to call the table.
        seen_in_fit : bool
            Whether it is the table of the fit; costs on another one are held-out costs.

        Returns
        -------
        dict
            Plain values that JSON can hold: format, source, certificate, directions, ablation, curves,
            samples.
        """
        whole = X if isinstance(X, Codes) else self.codes(X)
        codes = whole.in_memory
        if samples is not None and codes is not whole:
            samples = np.asarray(samples, dtype=object)[codes.positions]
        names = self.get_feature_names_out()
        factors = {int(k): str(names[k]) for k in self.active_factors_}
        strongest = {k: self.strongest_features(k) for k in factors}
        return {
            "format": EVIDENCE_FORMAT,
            "source": {
                "table": table_name,
                "n_samples": int(whole.X.shape[0]),
                "seen_in_fit": bool(seen_in_fit),
            },
            "certificate": certificate_record(self.identifiability(codes)),
            "directions": self.link_directions()[:, list(factors)].tolist(),
            **gather_evidence(self.module_, codes, factors, strongest, samples),
            **self._word_evidence(codes, factors, strongest),
        }


def _check_init(init: object) -> None:
    mask = np.asarray(init)
    if mask.ndim != 2 or mask.dtype.kind not in "biuf" or not np.isfinite(mask).all():
        raise ParameterError(
            f"Expected init to be one of {', '.join(map(repr, _INITS))}, or an array of finite numbers of "
            f"shape (n_features, n_factors); got {init!r}. Pass 'auto' to have the start found."
        )


def _check_inclusion_prior(prior: object) -> None:
    if not isinstance(prior, Sequence | np.ndarray) or len(prior) != 2:
        raise ParameterError(
            f"Expected inclusion_prior to be a pair (a, b); got {prior!r}. Pass for example (1, n_features)."
        )
    for name, value in zip(("a", "b"), prior, strict=True):
        check_positive(f"inclusion_prior's {name}", value)


def _check_covariance(covariance: object, n_factors: int) -> None:
    matrix = np.asarray(covariance)
    square = matrix.shape == (n_factors, n_factors) and matrix.dtype.kind in "iuf"
    if not square or not np.allclose(matrix, matrix.T) or np.linalg.eigvalsh(matrix).min() <= 0:
        raise ParameterError(
            "Expected factor_covariance to be 'learned', 'identity', or a symmetric positive definite "
            f"array of shape ({n_factors}, {n_factors}); got {covariance!r}. Pass 'learned' to have it "
            "estimated."
        )
