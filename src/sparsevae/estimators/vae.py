"""The variational autoencoder and the β-VAE as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from sparsevae.estimators.grouped import GROUP_EFFECTS, GroupMixin
from sparsevae.estimators.neural import NeuralEstimator
from sparsevae.fitting import FitData, Recipe
from sparsevae.modules import LatentModule, VAEConfig, VAEModule
from sparsevae.principal import RandomState
from sparsevae.validation import check_choice, check_positive

__all__ = ["VAE"]


class VAE(GroupMixin, NeuralEstimator):
    r"""Variational autoencoder (Kingma & Welling 2014), and β-VAE (Higgins et al. 2017).

    .. math:: z_i \sim N(0, I_K), \qquad x_i \sim \text{likelihood}\left(f_\theta(z_i)\right), \qquad
        \max\; E_q \log p(x_i \mid z_i) - \beta\, D_{KL}[q(z_i \mid x_i) \,\|\, N(0, I)]

    Every feature may depend on every factor, and any rotation of the factors fits as well: they are a
    coordinate system, not causes with names. There is no mask, hence no ``loadings``.

    Parameters
    ----------
    n_factors : int
    likelihood : str or dict
        "gaussian", "multinomial" (the paper's softmax), "bernoulli", "poisson", "negative_binomial",
        "ordinal", "categorical", a dict from likelihood to columns, or "auto": a look at the values decides,
        and the reason is kept in ``likelihood_reason_``.
    recipe : {"default", "paper", "authors"}
        "default" warms up the KL term, lets the learning rate fall, and ends on all rows. "paper" is Adam at
        one learning rate, a plain MLP as encoder, and PyTorch's usual start. "authors" also divides the
        weight of the KL term by ``n_factors``, as the code behind the sparse VAE's published numbers does.
    beta : float
        Weight of the KL term. `score` has the weight 1 whatever beta is.
    n_init : int
        Random starts, of which the best by held-out bound is kept.
    hidden_sizes : tuple of int
        Widths of the hidden layers of encoder and decoder; ``()`` is a linear model.
    batch_size : int or "auto"
        Rows of a gradient step. "auto" takes 128 of up to 12,800 rows, and a hundredth of more, up to 1,024.
    max_epochs : int, optional
        Epochs of the whole fit; by default enough for a fixed number of gradient steps.
    learning_rate : float
    validation_fraction : float
        Share of the rows held out for early stopping; 0 for none.
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
    noise_variance_ : ndarray of shape (n_features,)
        σ² in the units of the table; NaN for features that are not real-valued.
    active_factors_ : ndarray of int
        Factors whose posterior mean varies from sample to sample, by more than 0.01 in variance.
    history_ : DataFrame
        A row per epoch, a column per term of the objective.
    n_features_in_, feature_names_in_, n_iter_

    Examples
    --------
    >>> from sparsevae import VAE
    >>> from sparsevae.datasets import make_sparse_factors
    >>> X = make_sparse_factors(200, random_state=0).X
    >>> VAE(n_factors=2, max_epochs=5, random_state=0).fit_transform(X).shape
    (200, 2)
    """

    module_: VAEModule
    _module_class: ClassVar[type[LatentModule]] = VAEModule

    def __init__(
        self,
        n_factors: int = 10,
        *,
        likelihood: str | Mapping[str, object] = "gaussian",
        recipe: str = "default",
        beta: float = 1.0,
        n_init: int = 1,
        hidden_sizes: tuple[int, ...] = (64, 64),
        batch_size: int | str = "auto",
        max_epochs: int | None = None,
        learning_rate: float = 3e-3,
        validation_fraction: float = 0.1,
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
        self.beta = beta
        self.n_init = n_init
        self.hidden_sizes = hidden_sizes
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.learning_rate = learning_rate
        self.validation_fraction = validation_fraction
        self.group_effects = group_effects
        self.missing = missing
        self.size_factors = size_factors
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def check_parameters(self) -> None:
        """Refuse parameters of the constructor that make no sense."""
        super().check_parameters()
        check_positive("beta", self.beta)
        check_choice("group_effects", self.group_effects, GROUP_EFFECTS)

    def _config(self, recipe: Recipe, data: FitData, n_warm: int) -> VAEConfig:
        return VAEConfig(
            n_factors=self.n_factors,
            hidden_sizes=tuple(self.hidden_sizes),
            beta=float(self.beta / self.n_factors if recipe.kl_per_factor else self.beta),
            linear_path=recipe.linear_path,
            input_dropout=data.input_dropout if recipe.input_dropout else 0.0,
            holes=data.source.has_missing,
            n_groups=len(getattr(self, "groups_", ())),
            group_shifts=self.group_effects == "shifts",
        )
