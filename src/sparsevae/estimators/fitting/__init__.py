"""How the sparse VAE is fitted: starts, ladder, choice among candidates, and the last steps on all rows."""

from sparsevae.estimators.fitting.budget import Budget
from sparsevae.estimators.fitting.literal import fit_literally
from sparsevae.estimators.fitting.procedure import Fitted, fit_default, fit_from_mask
from sparsevae.estimators.fitting.settings import Ingredients

__all__ = ["Budget", "Fitted", "Ingredients", "fit_default", "fit_from_mask", "fit_literally"]
