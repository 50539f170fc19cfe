"""Recipes: every number of a fit in one value, each with its reason.

``"default"`` is built to find the factors from any seed. ``"paper"`` is the paper as printed. ``"authors"``
repeats the arithmetic of the authors' published code. An ablation is ``replace(RECIPES["default"],
ladder=None)``, which `SparseVAE` takes in place of a name.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sparsevae.exceptions import ParameterError

__all__ = [
    "RECIPES",
    "Budget",
    "Effort",
    "Ladder",
    "Lengths",
    "Looser",
    "NetworkSchedule",
    "Recipe",
    "SpineFirst",
    "get_recipe",
]


@dataclass(frozen=True)
class Lengths:
    """Epochs of one part of a fit: enough for so many gradient steps, within limits."""

    steps: int
    least: int
    most: int

    def epochs(self, n_steps: int) -> int:
        """Epochs, given the gradient steps in each."""
        return int(np.clip(math.ceil(self.steps / n_steps), self.least, self.most))


@dataclass(frozen=True)
class Effort:
    """What a table of one size gets of each part.

    Attributes
    ----------
    n_starts : int
        Plain VAEs for each number of factors.
    speed : float
        Their learning rate relative to the ladder's.
    dense, refine : Lengths
        Of the starts, and of the last batches on all rows.
    polish : int
        Epochs with the gradient of all rows at once.
    """

    n_starts: int
    speed: float
    dense: Lengths
    refine: Lengths
    polish: int


@dataclass(frozen=True)
class Ladder:
    """From a lasso to the spike and slab (docs/research/recovery.md).

    Attributes
    ----------
    lengths : Lengths
    least_steps : int
        Gradient steps that it takes at least, which binds where a batch holds all rows: after fewer, entries
        are still on their way to zero at the top.
    lasso, climb : float
        Fractions of the epochs at the lasso and on the rungs; the last rung has the rest.
    n_rungs : int
        At most; fewer where epochs are few.
    penalty_warmup : int
        Epochs in which the lasso's penalty grows to its strength.
    """

    lengths: Lengths = Lengths(900, 40, 200)
    least_steps: int = 400
    lasso: float = 0.35
    climb: float = 0.35
    n_rungs: int = 8
    penalty_warmup: int = 10


@dataclass(frozen=True)
class Looser:
    """A second ladder at a lower rate, kept if held-out rows pay for its loadings.

    Measured in docs/research/held-out-fit.md.

    Attributes
    ----------
    rate : float
        Relative to the default; below it, entries without effect would stay in numbers.
    epochs : int
        Of that ladder; half of the first one's where that is more.
    price : float
        Nats of held-out rows for a further loading where the factors are the same: what AIC asks for.
    clearly : float
        Standard errors by which the gain must exceed the price.
    """

    rate: float = 0.3
    epochs: int = 40
    price: float = 1.0
    clearly: float = 2.0


@dataclass(frozen=True)
class SpineFirst:
    """Linear axes first; networks settle the axes only where they agree (docs/research/replication.md).

    Attributes
    ----------
    check : float
        Epochs of the networks that are fitted to halves of the rows, relative to those of a start.
    small_starts, large_starts : int
        Networks in each half for each number of factors, by the size of the table.
    ladder, settle : Lengths
        Of networks that agree, at most: their ladder, and their last epochs on all rows.
    polish : int
        Epochs of networks that agree on a large table with the gradient of all rows at once, at most.
    network : Lengths
        Of the network on top of a spine, and of the spine's loadings, where neither has a closed form.
    hidden : Lengths
        Of a network whose heads have one: they are fitted before and after.
    patience : int
        Epochs without a better held-out bound after which either stops.
    refine : int
        Last epochs on all rows; one after heads that have a closed form.
    """

    check: float = 0.7
    small_starts: int = 8
    large_starts: int = 1
    ladder: Lengths = Lengths(600, 40, 130)
    settle: Lengths = Lengths(250, 10, 100)
    polish: int = 10
    network: Lengths = Lengths(400, 10, 20)
    hidden: Lengths = Lengths(40, 4, 20)
    patience: int = 4
    refine: int = 4

    def n_starts(self, small: bool, n_init: int | None) -> int:
        """Networks in each half for each number of factors; not more than the user asks for."""
        most = self.small_starts if small else self.large_starts
        return most if n_init is None else min(most, n_init)


@dataclass(frozen=True)
class NetworkSchedule:
    """How VAE, VSC and OI-VAE are trained.

    Attributes
    ----------
    lengths : Lengths
        Of the whole fit.
    kl_warmup : int
        One part in so many of the epochs warms up the KL term; 0 for none.
    refine : int
        One part in so many of the epochs comes last, on all rows; 0 for none.
    last_rate : float
        Learning rate at the end of the main phase, relative to that at its beginning.
    """

    lengths: Lengths = Lengths(3000, 60, 300)
    kl_warmup: int = 0
    refine: int = 0
    last_rate: float = 1.0


@dataclass(frozen=True)
class Recipe:
    """How a fit proceeds.

    Attributes
    ----------
    name : str
    gauge : bool
        Fixed norms of the decoder, which give the mask its scale.
    correlated_factors : bool
        Whether Σ_z may differ from the identity, which fights correlated factors.
    linear_path : bool
        A linear path beside the encoder's MLP, so that a fit begins at a linear solution.
    input_dropout : bool
        Leave out some of the encoder's inputs where they are many and rows are few.
    start_at_means : bool
        Begin with outputs at the features' means; else with the weights that PyTorch's layers begin with.
    standard_normal_mask : bool
        Begin with a mask of standard normal draws instead of ones, where none is given or found.
    proximal : bool
        Proximal steps, which make zeros exact, instead of Adam on the penalised loss.
    keep_rate_ratio : bool
        The factor λ1/λ0 of the E-step.
    kl_per_factor : bool
        Divide the KL term by the number of factors.
    penalty_per_batch : bool
        Charge the mask's penalty for every batch instead of once per data set.
    read_threshold : float
        Size up to which entries of the mask are read as zero; the authors' scripts have 0.01.
    raw_noise_scale : bool
        Calibrate the noise prior on the variances of the features as they are, as the paper does: columns in
        other units then get another prior. Else on standardised features, where units do not matter.
    rates : (float, float), optional
        λ0 and λ1 from the first step to the last; None sets them from the table and climbs a ladder.
    shrinkage : float
        How much the lasso takes off a typical feature's loading, in units of the mask.
    slab_rate : float
        λ1 at the end of the ladder: it selects without shrinking.
    small, large : Effort
        Small tables get many starts, and last steps until nothing moves. In large ones a plain VAE costs
        little compared with the ladder, and last steps, which no held-out row watches, soon overfit.
    ladder : Ladder or None
        Without it the last rates hold from the first step.
    looser : Looser or None
    spine : SpineFirst or None
        Without it networks always settle the axes.
    polish : bool
        The last steps on all rows, in batches and then with all rows at once.
    network : NetworkSchedule
    """

    name: str
    gauge: bool = True
    correlated_factors: bool = True
    linear_path: bool = True
    input_dropout: bool = True
    start_at_means: bool = True
    standard_normal_mask: bool = False
    proximal: bool = True
    keep_rate_ratio: bool = True
    kl_per_factor: bool = False
    penalty_per_batch: bool = False
    read_threshold: float = 0.0
    raw_noise_scale: bool = False
    rates: tuple[float, float] | None = None
    shrinkage: float = 0.1
    slab_rate: float = 1.0
    small: Effort = Effort(40, 3.0, Lengths(900, 30, 150), Lengths(1350, 20, 300), 30)
    large: Effort = Effort(4, 1.0, Lengths(3000, 60, 150), Lengths(300, 10, 100), 20)
    ladder: Ladder | None = Ladder()
    looser: Looser | None = Looser()
    spine: SpineFirst | None = SpineFirst()
    polish: bool = True
    network: NetworkSchedule = NetworkSchedule(kl_warmup=16, refine=6, last_rate=0.1)


_PAPER = Recipe(
    "paper",
    gauge=False,
    correlated_factors=False,
    linear_path=False,
    input_dropout=False,
    start_at_means=False,
    raw_noise_scale=True,
    rates=(10.0, 1.0),
    spine=None,
    network=NetworkSchedule(),
)

RECIPES: dict[str, Recipe] = {
    "default": Recipe("default"),
    "paper": _PAPER,
    "authors": Recipe(
        **{
            **vars(_PAPER),
            "name": "authors",
            "standard_normal_mask": True,
            "proximal": False,
            "keep_rate_ratio": False,
            "kl_per_factor": True,
            "penalty_per_batch": True,
            "read_threshold": 0.01,
        }
    ),
}
"""By the names that estimators take."""


def get_recipe(recipe: str | Recipe) -> Recipe:
    """The recipe of that name, or the value itself."""
    if isinstance(recipe, Recipe):
        return recipe
    if isinstance(recipe, str) and recipe in RECIPES:
        return RECIPES[recipe]
    names = ", ".join(map(repr, RECIPES))
    raise ParameterError(f"Expected recipe to be one of {names}; got {recipe!r}. Pass recipe='default'.")


_FRACTIONS = {"dense": 0.35, "refine": 0.15, "polish": 0.1}  # of the user's epochs; the ladder has the rest


@dataclass(frozen=True)
class Budget:
    """Epochs of a fit from first to last.

    Attributes
    ----------
    dense : int
        Plain VAEs, or the network alone while a given mask is held.
    ladder : int
        From the lasso to the spike and slab.
    refine, polish : int
        On all rows after the choice: in batches, then with the gradient of all rows at once.
    """

    dense: int
    ladder: int
    refine: int
    polish: int

    @classmethod
    def of(
        cls,
        recipe: Recipe,
        max_epochs: int | None,
        n_steps: int,
        *,
        small: bool = True,
        from_vae: bool = True,
    ) -> Budget:
        """Enough epochs of ``n_steps`` gradient steps each, or exactly as many as the user allows.

        Parameters
        ----------
        recipe : Recipe
        max_epochs : int, optional
        n_steps : int
        small : bool
            Whether the table is small, see `FitSettings`.
        from_vae : bool
            Whether the fit starts from plain VAEs.
        """
        effort = recipe.small if small else recipe.large
        if max_epochs is None:
            ladder = recipe.ladder or Ladder()
            dense = (effort if from_vae else recipe.small).dense
            climb = max(ladder.lengths.epochs(n_steps), math.ceil(ladder.least_steps / n_steps))
            return cls(dense.epochs(n_steps), climb, effort.refine.epochs(n_steps), effort.polish)
        dense_epochs, refine, polish = (int(fraction * max_epochs) for fraction in _FRACTIONS.values())
        polish = min(polish, recipe.small.polish)
        return cls(dense_epochs, max_epochs - dense_epochs - refine - polish, refine, polish)

    def at_most(self, other: Budget) -> Budget:
        """The smaller number of epochs of each part."""
        return Budget(
            min(self.dense, other.dense),
            min(self.ladder, other.ladder),
            min(self.refine, other.refine),
            min(self.polish, other.polish),
        )

    @property
    def total(self) -> int:
        """Epochs of one candidate from its start to the end of the fit."""
        return self.dense + self.ladder + self.refine + self.polish
