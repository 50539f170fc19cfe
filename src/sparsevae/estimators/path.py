"""A path of fits along the spike rate: what stays when zeros get dearer or cheaper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from sklearn.base import clone

from sparsevae.aliases import TableLike
from sparsevae.estimators.sparse_vae import SparseVAE
from sparsevae.exceptions import ParameterError
from sparsevae.fitting.choice import held_out_scores, null_module
from sparsevae.fitting.data import FitData
from sparsevae.fitting.ladder import ladder_phases
from sparsevae.fitting.procedure import climb, find_starts
from sparsevae.fitting.recipes import Ladder, get_recipe
from sparsevae.fitting.state import FitState
from sparsevae.modules import SparseVAEModule
from sparsevae.training import Phase, train
from sparsevae.training.progress import progress_bar
from sparsevae.validation import check_positive

__all__ = ["SparsityPath", "sparsity_path"]

_STEP = 0.5  # epochs of a step relative to those of the ladder
_LADDER = Ladder(n_rungs=3)  # of a step


@dataclass(frozen=True)
class SparsityPath:
    """Fits along the spike rate λ0, sparsest last.

    Attributes
    ----------
    table : DataFrame
        A row per step: ``multiple`` of the default rate, ``spike_rate`` (mean over features), ``n_nonzero``,
        ``n_active``, held-out ``bound`` per sample, ``gain_kept`` (fraction of the best step's gain in
        bound over no factors), ``score`` (bound of all rows less the charge per
        non-zero), ``standard_error`` of its distance from the best, ``chosen``.
    masks : ndarray of shape (n_steps, n_features, n_factors)
        Columns are the same factors at every step, those with most features at the chosen step first.
    feature_names : ndarray of shape (n_features,)
    chosen : int
        The step of the rule.
    reason : str
        Why, in a sentence.
    """

    table: pd.DataFrame
    masks: np.ndarray
    feature_names: np.ndarray
    chosen: int
    reason: str

    @property
    def supports(self) -> np.ndarray:
        """Non-zero patterns: boolean, of the shape of the masks."""
        return np.asarray(self.masks != 0)

    @property
    def persistence(self) -> pd.DataFrame:
        """Share of the steps at which each feature uses each factor that is active at the chosen step."""
        active = np.flatnonzero(self.supports[self.chosen].any(0))
        share = self.supports[:, :, active].mean(0)
        return pd.DataFrame(share, index=self.feature_names, columns=[f"factor{k}" for k in active])


def sparsity_path(
    X: TableLike,
    model: SparseVAE | None = None,
    *,
    multiples: Sequence[float] | np.ndarray | None = None,
    n_steps: int = 13,
    span: float = 16.0,
) -> SparsityPath:
    """Refit along λ0 with warm starts, up and down from where the default would stop.

    Parameters
    ----------
    X : array, data frame or sparse matrix of shape (n_samples, n_features)
    model : SparseVAE, optional
        Its parameters are used, not its fit; one with the default recipe. By default ``SparseVAE()``.
    multiples : sequence of float, optional
        Rates to visit, in multiples of the default's; by default ``n_steps`` of them, evenly spaced on a log
        scale from ``1 / span`` to ``span``.
    n_steps : int
    span : float

    Returns
    -------
    SparsityPath

    Examples
    --------
    >>> from sparsevae import SparseVAE, sparsity_path
    >>> from sparsevae.datasets import make_sparse_factors
    >>> X = make_sparse_factors(300, random_state=0).X
    >>> path = sparsity_path(X, SparseVAE(3, n_init=2, max_epochs=40, random_state=0), n_steps=5)
    >>> len(path.table), path.masks.shape
    (5, (5, 7, 3))
    """
    model = SparseVAE() if model is None else clone(model)
    _check(model)
    wanted = _multiples(multiples, n_steps, span)
    settings, data = model.prepare_fit(X)
    budget = settings.budget(data)
    epochs = max(1, round(_STEP * budget.ladder))
    total = budget.dense + 2 * budget.ladder + len(wanted) * epochs
    with progress_bar(model.verbose, total) as progress, torch.random.fork_rng(devices=[]):
        state = find_starts(settings, data, FitState(), progress)
        state = climb(settings, data, state, progress)
        modules = [candidate.module for candidate in state.candidates]
        first = modules[held_out_scores(modules, data)[0]]
        steps: dict[float, SparseVAEModule] = {}
        # From the default's rate outwards: each step begins where its neighbour ended.
        for side in (wanted[wanted >= 1.0], wanted[wanted < 1.0][::-1]):
            module = first
            for multiple in side:
                module = module.clone()
                phases = _phases(first, float(multiple), epochs, model.learning_rate)
                train(module, data.training, phases, generator=data.generator, progress=progress)
                steps[float(multiple)] = module
    return _path(model, data, [steps[float(multiple)] for multiple in wanted], wanted)


def _check(model: SparseVAE) -> None:
    if (
        get_recipe(model.recipe).rates is not None
        or not isinstance(model.init, str)
        or model.anchors
        or not model.hidden_sizes
    ):
        raise ParameterError(
            "Expected a model with recipe='default', init='auto', hidden layers and no anchors; got "
            f"{model!r}. The path begins at the starts that the default finds: leave these parameters out."
        )


def _multiples(multiples: Sequence[float] | np.ndarray | None, n_steps: int, span: float) -> np.ndarray:
    if multiples is None:
        check_positive("n_steps", n_steps, integer=True)
        if not span > 1.0:
            raise ParameterError(f"Expected span above 1; got {span!r}. Pass 16 for rates from 1/16 to 16.")
        return np.geomspace(1.0 / span, span, n_steps) if n_steps > 1 else np.ones(1)
    values = np.unique(np.asarray(multiples, dtype=float))
    if values.size == 0 or not np.isfinite(values).all() or values.min() <= 0:
        raise ParameterError(
            f"Expected multiples to be positive numbers; got {multiples!r}. Pass for example [0.5, 1, 2]."
        )
    return values


def _phases(first: SparseVAEModule, multiple: float, epochs: int, learning_rate: float) -> list[Phase]:
    """A short ladder of its own for each step: entries in the slab do not feel the spike, a lasso they do."""
    spike = torch.as_tensor(first.mask.spike_rate) * multiple
    slab = torch.minimum(torch.as_tensor(first.mask.slab_rate), spike)
    return ladder_phases(_LADDER, epochs, learning_rate, spike_rate=spike, slab_rate=slab)


def _path(
    model: SparseVAE, data: FitData, modules: list[SparseVAEModule], multiples: np.ndarray
) -> SparsityPath:
    chosen, table = held_out_scores(modules, data)
    none = held_out_scores([null_module(modules[0], data)], data)[1]["bound"][0]
    gain = table["bound"] - none
    table.insert(3, "gain_kept", gain / gain.max() if gain.max() > 0 else np.nan)
    masks = np.stack([module.mask.weight.detach().cpu().numpy().astype(np.float64) for module in modules])
    same = ((masks != 0) == (masks[chosen] != 0)).all((1, 2))
    within = table["score"] >= table["score"].max() - table["standard_error"]
    distance = np.where(same & within, np.abs(np.log(multiples)), np.inf)
    if np.isfinite(distance).any():  # of steps that say the same, the one nearest the default
        chosen = int(distance.argmin())
    table["chosen"] = np.arange(len(table)) == chosen
    table.insert(0, "multiple", multiples)
    rates = [float(torch.as_tensor(module.mask.spike_rate).mean()) for module in modules]
    table.insert(1, "spike_rate", rates)
    order = np.argsort(-(masks[chosen] != 0).sum(0), kind="stable")
    reason = _reason(table, chosen, same)
    return SparsityPath(table, masks[:, :, order], model.feature_names(), chosen, reason)


def _reason(table: pd.DataFrame, chosen: int, same: np.ndarray) -> str:
    row, best = table.iloc[chosen], table.iloc[int(table["score"].argmax())]
    alike = table["multiple"][same]
    return (
        f"{int(row.n_nonzero)} non-zeros on {int(row.n_active)} factors, at {row.multiple:.3g} times the "
        "default rate: no sparser step is within one standard error of the best held-out score "
        f"({best.score:.6g} nats, {int(best.n_nonzero)} non-zeros). The same support is found at "
        f"{int(same.sum())} of {len(same)} rates, {alike.min():.3g} to {alike.max():.3g} times the default."
    )
