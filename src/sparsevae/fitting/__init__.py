"""How the sparse VAE is fitted: `procedure` has the stages in their order, `recipes` the numbers."""

from sparsevae.fitting.data import FitData, prepare
from sparsevae.fitting.procedure import fit_module
from sparsevae.fitting.recipes import RECIPES, Recipe, get_recipe
from sparsevae.fitting.settings import FitSettings
from sparsevae.fitting.state import FitState, Fitted

__all__ = [
    "RECIPES",
    "FitData",
    "FitSettings",
    "FitState",
    "Fitted",
    "Recipe",
    "fit_module",
    "get_recipe",
    "prepare",
]
