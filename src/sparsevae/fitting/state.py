"""Where a fit is: candidates with their histories, and what the next stage needs of the randomness."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from torch import Tensor

from sparsevae.aliases import State
from sparsevae.fitting.data import FitData
from sparsevae.fitting.spine import Spine
from sparsevae.modules import SparseVAEModule
from sparsevae.training import ProximalAdam, RowSource, TrainingLog
from sparsevae.training.records import Records

__all__ = ["Candidate", "FitState", "Fitted"]


@dataclass
class Fitted:
    """A fitted module with its history, the candidates compared, and whether its support had settled.

    ``n_linear`` is the number of factors that a linear analysis shows, where the fit has made one; ``spine``
    the linear axes, where they were kept.
    """

    module: SparseVAEModule
    history: pd.DataFrame
    starts: pd.DataFrame
    dropped: dict[int, str]
    converged: bool
    n_linear: int | None = None
    spine: Spine | None = None


@dataclass
class Candidate:
    """A module on its way, its history, and what it began with.

    Attributes
    ----------
    module : SparseVAEModule
    log : TrainingLog
    n_factors : int
        That it began with; 0 for the empty mask.
    rate : float
        Of its ladder, relative to the default rate.
    kind : str
        What it is beside its number of factors, for the table of starts.
    n_lone : int
        Factors dropped at the top of the ladder because one feature alone used them.
    foot : Candidate, optional
        What it was before the ladder.
    bounds : ndarray of shape (n_rows,), optional
        Of held-out rows, once it has been scored.
    """

    module: SparseVAEModule
    log: TrainingLog
    n_factors: int
    rate: float = 1.0
    kind: str = ""
    n_lone: int = 0
    foot: Candidate | None = None
    bounds: np.ndarray | None = None

    @property
    def label(self) -> str:
        """What the table of starts calls it."""
        if not self.n_factors:
            return "none"
        parts = [str(self.n_factors), self.kind, f"{self.rate:g} of the rate" if self.rate != 1.0 else ""]
        return ", ".join(part for part in parts if part)

    def to_dict(self) -> State:
        """Plain values, arrays and tensors."""
        return {
            "module": self.module.to_dict(),
            "log": self.log.epochs.packed(),
            "n_factors": self.n_factors,
            "rate": self.rate,
            "kind": self.kind,
            "n_lone": self.n_lone,
            "foot": None if self.foot is None else self.foot.to_dict(),
            "bounds": self.bounds,
        }

    @classmethod
    def from_dict(cls, values: State, source: RowSource) -> Candidate:
        """What `to_dict` described, on the device of these rows."""
        foot = values["foot"]
        return cls(
            SparseVAEModule.from_dict(values["module"], source.observation, source.device, finite=False),
            TrainingLog(Records().unpack_(values["log"])),
            values["n_factors"],
            values["rate"],
            values["kind"],
            values["n_lone"],
            None if foot is None else cls.from_dict(foot, source),
            values["bounds"],
        )


@dataclass
class FitState:
    """What one stage of a fit leaves to the next.

    Attributes
    ----------
    stage : str
        The last stage that is complete; empty before the first.
    candidates : list of Candidate
    chosen : int
        Position of the candidate to go on with.
    starts : DataFrame, optional
        The table behind the choice.
    spine : Spine, optional
        The linear axes that the fit keeps; None where networks settle the axes.
    networks_agree : bool
        Whether networks settle the axes: the candidates are those that agree.
    n_linear : int, optional
        Number of factors that a linear analysis shows, whatever is allowed.
    optimizer : ProximalAdam, optional
        Of the winner, where the next stage goes on with it.
    generator, random_state
        State of the fit's randomness when the stage was complete.
    """

    stage: str = ""
    candidates: list[Candidate] = field(default_factory=list)
    chosen: int = 0
    starts: pd.DataFrame | None = None
    spine: Spine | None = None
    networks_agree: bool = False
    n_linear: int | None = None
    optimizer: ProximalAdam | None = None
    generator: Tensor | None = None
    random_state: np.random.RandomState | None = None

    @property
    def winner(self) -> Candidate:
        """The candidate to go on with."""
        return self.candidates[self.chosen]

    def completed(self, stage: str, data: FitData) -> FitState:
        """The state at the end of a stage, with the randomness that the next one begins with."""
        self.stage, self.generator = stage, data.generator.get_state()
        self.random_state = np.random.RandomState()
        self.random_state.set_state(data.random_state.get_state(legacy=True))
        return self

    def restore_randomness_(self, data: FitData) -> None:
        """Put the randomness of a fit back to where this state was completed."""
        if self.generator is not None and self.random_state is not None:
            data.generator.set_state(self.generator)
            data.random_state.set_state(self.random_state.get_state(legacy=True))

    def to_dict(self) -> State:
        """Plain values, arrays, tensors and data frames, as `persistence.encode` takes them."""
        return {
            "stage": self.stage,
            "candidates": [candidate.to_dict() for candidate in self.candidates],
            "chosen": self.chosen,
            "starts": self.starts,
            "spine": None if self.spine is None else self.spine.to_dict(),
            "networks_agree": self.networks_agree,
            "n_linear": self.n_linear,
            "optimizer": None if self.optimizer is None else self.optimizer.state_dict(),
            "generator": self.generator,
            "random_state": self.random_state,
        }

    @classmethod
    def from_dict(cls, values: State, data: FitData) -> FitState:
        """What `to_dict` described, on the rows of the same fit."""
        candidates = [Candidate.from_dict(item, data.source) for item in values["candidates"]]
        spine = None if values["spine"] is None else Spine.from_dict(values["spine"])
        state = cls(**{**values, "candidates": candidates, "spine": spine, "optimizer": None})
        if values["optimizer"] is not None:
            state.optimizer = ProximalAdam(state.winner.module, data.everything.n_samples)
            state.optimizer.load_state_dict(values["optimizer"])
        return state
