r"""How long a fit will take: before it begins, and what part of it each stage is.

Most of a fit is arithmetic on the cells of the table: a stage takes a constant and so much per million cells,
in seconds of one core, read off default fits of the nine smaller tables of ``benchmarks.speed fits``. The bar
divides by how fast the stages before went, so that only their proportions matter there.
"""

from __future__ import annotations

from typing import NamedTuple

from sparsevae.fitting.data import FitData
from sparsevae.fitting.settings import FitSettings
from sparsevae.fitting.state import FitState

__all__ = ["Plan", "expected_seconds", "plan_fit"]

_AXES = (2.5, 9.5)  # seconds, and seconds per million cells: linear model, networks on halves of the rows
_SPINE = (0.45, 4.0)  # of that the linear model, which comes before the first epoch
_AGREED = (2.0, 4.0)  # times as long where networks agree, and on small tables, where they are many more
_NETWORK = (0.1, 7.0)  # on the linear axes
_LAST = (0.1, 1.0)  # epochs on all rows
_READING = (0.4, 4.0)  # effects, shares, what halves show
_MASKED_EPOCH = 1.0  # seconds per million cells behind a mask that moves
_STEP = 0.004  # seconds of a step whatever its size


class Plan(NamedTuple):
    """What is expected of each stage.

    Attributes
    ----------
    seconds : dict from str to float
    epochs : dict from str to int
    before : dict from str to float
        Of the seconds those before the first epoch.
    afterwards : float
        Seconds after the last stage.
    """

    seconds: dict[str, float]
    epochs: dict[str, int]
    before: dict[str, float]
    afterwards: float

    @property
    def total(self) -> float:
        """Seconds of all stages and of what comes after them."""
        return sum(self.seconds.values()) + self.afterwards

    def until(self, stage: str) -> float:
        """Seconds of the stages up to this one, with it."""
        names = list(self.seconds)
        return sum(self.seconds[name] for name in names[: names.index(stage) + 1])


def expected_seconds(n_samples: int, n_features: int) -> float:
    """Seconds of a default fit on one core of a laptop, to within a factor of two or three."""
    cells = n_samples * n_features / 1e6
    return sum(constant + slope * cells for constant, slope in (_AXES, _NETWORK, _LAST, _READING))


def plan_fit(settings: FitSettings, data: FitData, stages: list[str], state: FitState) -> Plan:
    """What is expected of each stage, with what is known by now of the way that the fit takes."""
    budget = settings.budget(data)
    cells = data.everything.n_rows * data.source.n_features / 1e6

    def of(part: tuple[float, float]) -> float:
        return part[0] + part[1] * cells

    def masked(epochs: int) -> float:
        return epochs * (_MASKED_EPOCH * cells + _STEP * data.n_steps)

    recipe = settings.recipe.spine
    epochs = {
        "find_axes": 0,
        "find_starts": budget.dense,
        "climb": budget.ladder,
        "refine": budget.refine,
        "polish": budget.polish,
        "train_once": budget.total,
    }
    simple = settings.spine_first and not settings.most_predictive
    if simple and recipe is not None:
        epochs |= {"find_axes": 2 * round(recipe.check * budget.dense), "find_starts": 0}
        if not state.networks_agree:  # nor before it is known: on most tables they do not
            lengths = recipe.hidden if data.source.observation.real_columns.all() else recipe.network
            epochs |= {"climb": lengths.epochs(data.n_steps), "refine": recipe.refine, "polish": 0}
        if settings.linear:  # the axes are the fit
            epochs |= {"find_axes": 1, "climb": 0}
    seconds = {stage: masked(epochs.get(stage, 0)) for stage in stages}
    if simple:
        seconds["find_axes"] = of(_AXES) * (_AGREED[settings.small] if state.networks_agree else 1.0)
        if not state.networks_agree:
            seconds |= {"climb": of(_NETWORK), "refine": of(_LAST)}
        if settings.linear:
            seconds |= {"find_axes": of(_SPINE), "climb": 0.0}
    before = {stage: of(_SPINE) if stage == "find_axes" else 0.0 for stage in stages}
    return Plan(seconds, {stage: epochs.get(stage, 0) for stage in stages}, before, of(_READING))
