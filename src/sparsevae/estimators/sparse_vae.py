"""The sparse VAE as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from sparsevae.decoder.precision import PRECISIONS
from sparsevae.estimators.base import FactorEstimator, FitData
from sparsevae.estimators.explained import Explained, communalities, variance_shares
from sparsevae.estimators.fitting import Ingredients, fit_default, fit_from_mask
from sparsevae.estimators.reading import Outputs, average_slopes, order_factors_
from sparsevae.exceptions import ConvergenceWarning, ParameterError
from sparsevae.identifiability import Certificate, Stability, certify
from sparsevae.modules import FactorModule
from sparsevae.modules.subset import check_features_per_step
from sparsevae.training.interrupt import stop_requested
from sparsevae.validation import check_choice, check_positive

__all__ = ["SparseVAE"]

_RECIPES = ("default", "paper", "authors")
_INITS = ("auto", "rotation", "random")
_ROWS_READ = 2000  # at which slopes and variance explained are taken


class SparseVAE(Explained, FactorEstimator):
    r"""Deep factor model in which each feature depends on a few factors.

    .. math::
        w_{jk} \sim \text{Spike-and-Slab Lasso}(\lambda_0, \lambda_1, a, b), \quad
        z_i \sim N_K(0, \Sigma_z), \quad
        x_{ij} \sim \text{likelihood}\left(f_\theta(w_j \odot z_i)_j\right)

    Parameters
    ----------
    n_factors : int
        Largest number of factors; those that the data do not support end with an empty column of the mask.
    likelihood : str or dict
        "gaussian", "multinomial" (the paper's softmax), "bernoulli", "poisson", "negative_binomial", or a
        dict from likelihood to columns.
    recipe : {"default", "paper", "authors"}
        "default" is built to find the factors from any seed. "paper" takes the paper literally: identity
        prior covariance, given rates, random networks, no ladder. "authors" repeats the arithmetic of the
        released code, whose mask has no zeros but by a threshold.
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
    batch_size : int
    max_epochs : int, optional
        Epochs of the whole fit; by default enough for a fixed number of gradient steps.
    learning_rate : float
    validation_fraction : float
        Share of the rows held out for early stopping and for the choice among starts; the fit ends on all
        rows.
    precision : {"float32", "bfloat16"}
        Of the decoder's matrix products.
    features_per_step : int, optional
        Features in the reconstruction of a gradient step, drawn anew at each and scaled up: unbiased, noisier
        and cheaper, for tables with tens of thousands of features. All by default; not for a multinomial.
    device : str
        "auto", "cpu", "cuda" or "mps".
    random_state : int, RandomState or None
    verbose : int
        1 shows a progress bar.

    Attributes
    ----------
    mask_ : ndarray of shape (n_features, n_factors)
        W with exact zeros; columns in order of the variance their factors explain.
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
    history_ : DataFrame
        A row per epoch, a column per term of the objective.
    starts_ : DataFrame
        The starts compared at the end: factors, non-zeros, held-out bound and the score that chose among
        them.
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

    _ingredients: ClassVar[Ingredients] = Ingredients()

    def __init__(
        self,
        n_factors: int = 10,
        *,
        likelihood: str | Mapping[str, Any] = "gaussian",
        recipe: str = "default",
        spike_rate: float | None = None,
        slab_rate: float | None = None,
        expected_features_per_factor: float | None = None,
        inclusion_prior: tuple[float, float] | None = None,
        factor_covariance: Any = "learned",
        init: Any = "auto",
        anchors: Mapping[Any, int] | None = None,
        n_init: int | str = "auto",
        hidden_sizes: tuple[int, ...] = (64, 64),
        batch_size: int = 128,
        max_epochs: int | None = None,
        learning_rate: float = 3e-3,
        validation_fraction: float = 0.2,
        precision: str = "float32",
        features_per_step: int | None = None,
        device: str = "auto",
        random_state: Any = None,
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
        self.validation_fraction = validation_fraction
        self.precision = precision
        self.features_per_step = features_per_step
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.n_init != "auto":
            check_positive("n_init", self.n_init, integer=True)
        check_choice("recipe", self.recipe, _RECIPES)
        check_choice("precision", self.precision, PRECISIONS)
        if self.features_per_step is not None:
            check_positive("features_per_step", self.features_per_step, integer=True)
        if isinstance(self.init, str):
            check_choice("init", self.init, _INITS)
        else:
            _check_init(self.init)
        if isinstance(self.factor_covariance, str):
            check_choice("factor_covariance", self.factor_covariance, ("learned", "identity"))
        else:
            _check_covariance(self.factor_covariance, self.n_factors)
        for name in ("spike_rate", "slab_rate", "expected_features_per_factor"):
            if getattr(self, name) is not None:
                check_positive(name, getattr(self, name))
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

    def _fit_module(self, data: FitData) -> tuple[FactorModule, pd.DataFrame]:
        check_features_per_step(self.features_per_step, data.table.observation.likelihood)
        automatic = self.recipe == "default" and isinstance(self.init, str) and self.init == "auto"
        if automatic and len(self.hidden_sizes) > 0:
            fitted = fit_default(self, data)
        else:
            fitted = fit_from_mask(self, data)
        self.starts_ = fitted.starts
        self.dropped_factors_ = fitted.dropped
        if not fitted.converged and not stop_requested():
            warnings.warn(
                f"The mask was still changing when training stopped after {len(fitted.history)} epochs. "
                "Raise max_epochs, or lower learning_rate.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return fitted.module, fitted.history

    def _finish(self, module: FactorModule, history: pd.DataFrame, data: FitData) -> None:
        super()._finish(module, history, data)
        observation = module.observation
        x = data.table.rows(data.everything.rows[:_ROWS_READ]).cpu()
        outputs = Outputs(module, module.encode(x)[0])
        shares = variance_shares(outputs, x)
        self.communalities_ = communalities(outputs, x)
        effects, strength = average_slopes(outputs, self._expected_of, lambda output: output)
        named = sorted(set((self.anchors or {}).values()))
        order, sign = order_factors_(module, shares.mean(0), effects, strength, named)
        position = {int(old): new for new, old in enumerate(order)}
        self.dropped_factors_ = {position[k]: why for k, why in sorted(self.dropped_factors_.items())}
        self.variance_shares_ = shares[:, order]
        self.variance_explained_ = self.variance_shares_.mean(0)
        self.effects_ = effects[:, order] * sign + 0.0  # no negative zeros
        self.mask_ = module.mask.numpy().astype(np.float64)
        self.components_ = self.mask_.T
        self.inclusion_ = module.inclusion().numpy().astype(np.float64)
        self.inclusion_rate_ = module.inclusion_rate.numpy().astype(np.float64)
        noise = module.noise_variance.double() * observation.scale.double().square()
        self.noise_variance_ = np.where(observation.real_columns, noise.numpy(), np.nan)
        self.factor_covariance_ = module.factor_covariance.numpy().astype(np.float64)
        self.active_factors_ = np.flatnonzero((self.mask_ != 0).any(0))

    # -- reading a fit --------------------------------------------------------------------------------------

    def loadings(self) -> pd.DataFrame:
        """The mask with names: a row per feature, a column per active factor."""
        check_is_fitted(self, "module_")
        names = self.get_feature_names_out()[self.active_factors_]
        return pd.DataFrame(self.mask_[:, self.active_factors_], index=self._feature_names(), columns=names)

    def effects(self) -> pd.DataFrame:
        """Average slope of each feature on each active factor, signed, in units of the feature.

        A factor has standard deviation one, so an effect is what changes when the factor rises by one
        standard deviation, averaged over the samples of the fit.
        """
        check_is_fitted(self, "module_")
        names = self.get_feature_names_out()[self.active_factors_]
        return pd.DataFrame(
            self.effects_[:, self.active_factors_], index=self._feature_names(), columns=names
        )

    def top_features(self, n: int = 10) -> pd.DataFrame:
        """The strongest features of each active factor, by the share of their variance that it explains.

        Columns: factor, rank, feature, loading, effect, share, anchor.
        """
        check_is_fitted(self, "module_")
        check_positive("n", n, integer=True)
        factors, features = self.get_feature_names_out(), self._feature_names()
        anchors, shares = (self.mask_ != 0).sum(1) == 1, self.variance_shares_
        rows = [
            (factors[k], rank, features[j], self.mask_[j, k], self.effects_[j, k], shares[j, k], anchors[j])
            for k in self.active_factors_
            for rank, j in enumerate(self._strongest(k)[:n], start=1)
        ]
        columns = ["factor", "rank", "feature", "loading", "effect", "share", "anchor"]
        return pd.DataFrame(rows, columns=columns)

    def anchor_features(self) -> dict[str, list[str]]:
        """Features that depend on one factor only, strongest first, for each active factor."""
        check_is_fitted(self, "module_")
        names, features = self.get_feature_names_out(), self._feature_names()
        anchors = (self.mask_ != 0).sum(1) == 1
        result = {}
        for k in self.active_factors_:
            result[str(names[k])] = [str(features[j]) for j in self._strongest(k) if anchors[j]]
        return result

    def _strongest(self, k: Any) -> np.ndarray:
        """Features of a factor, the one of whose variance it explains most first."""
        own = np.flatnonzero(self.mask_[:, k])
        return own[np.argsort(-self.variance_shares_[own, k], kind="stable")]

    def identifiability(self, X: Any, *, stability: Stability | None = None) -> Certificate:
        """State for each active factor whether it is identified, and why.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features)
            The table of the fit, or another of its kind.
        stability : Stability, optional
            From `sparsevae.stability`: adds how often each factor returns to the evidence.

        Returns
        -------
        Certificate
            Its ``table`` has a row per active factor, its ``summary()`` says the same in words.
        """
        check_is_fitted(self, "module_")
        return certify(
            self.module_,
            self._check_table(X, reset=False),
            feature_names=self._feature_names(),
            factor_names=self.get_feature_names_out(),
            stability=stability,
        )


def _check_init(init: Any) -> None:
    mask = np.asarray(init)
    if mask.ndim != 2 or mask.dtype.kind not in "biuf" or not np.isfinite(mask).all():
        raise ParameterError(
            f"Expected init to be one of {', '.join(map(repr, _INITS))}, or an array of finite numbers of "
            f"shape (n_features, n_factors); got {init!r}. Pass 'auto' to have the start found."
        )


def _check_inclusion_prior(prior: Any) -> None:
    if not isinstance(prior, Sequence | np.ndarray) or len(prior) != 2:
        raise ParameterError(
            f"Expected inclusion_prior to be a pair (a, b); got {prior!r}. Pass for example (1, n_features)."
        )
    for name, value in zip(("a", "b"), prior, strict=True):
        check_positive(f"inclusion_prior's {name}", value)


def _check_covariance(covariance: Any, n_factors: int) -> None:
    matrix = np.asarray(covariance)
    square = matrix.shape == (n_factors, n_factors) and matrix.dtype.kind in "iuf"
    if not square or not np.allclose(matrix, matrix.T) or np.linalg.eigvalsh(matrix).min() <= 0:
        raise ParameterError(
            "Expected factor_covariance to be 'learned', 'identity', or a symmetric positive definite "
            f"array of shape ({n_factors}, {n_factors}); got {covariance!r}. Pass 'learned' to have it "
            "estimated."
        )
