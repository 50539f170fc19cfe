"""From the evidence on a factor to a verdict and one sentence on why."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sparsevae.aliases import JSON
from sparsevae.identifiability.evidence import PairEvidence
from sparsevae.identifiability.slopes import Dominance
from sparsevae.modules import Observation

__all__ = [
    "THRESHOLDS",
    "FactorEvidence",
    "describe_covariance",
    "describe_return",
    "describe_theorem",
    "judge",
    "theory_notes",
]

THRESHOLDS = {
    "curve_difference": 0.02,
    "data_difference": 0.05,
    "p_value": 1e-3,
    "strength": 0.05,
    "a2_margin": -0.02,
    "match_identified": 0.9,
    "match_weak": 0.775,
    "returns_identified": 0.8,
    "returns_weak": 0.5,
}
"""A factor is identified if halves of the rows agree on it to ``match_identified``, weak from
``match_weak`` on: calibrated on real tables and generators, each left out in turn (results/verdicts).
Two curves are the same up to ``curve_difference``. The data contradict that if other features explain more
than ``data_difference`` of the contrast, with a p-value below ``p_value``. An anchor speaks for a factor that
explains at least ``strength`` of its variance. The margin of A2 may be a little negative: a feature with a
crumb of a second loading is as good as an anchor. A factor that returns in fewer refits is weak, or not
identified."""

_UNDECIDED = 0.05  # p-value above which the data do not tell two anchors apart


@dataclass
class FactorEvidence:
    """All that is known of one factor; the fields are columns of the certificate."""

    anchors: list[str] = field(default_factory=list)
    pair: tuple[str, str] | None = None
    n_same_curve: int = 0
    curve_difference: float = np.nan
    data_difference: float = np.nan
    p_value: float = np.nan
    strength: float = np.nan
    a2_margin: float = np.nan
    a2_rival: str | None = None
    a2_ratio: float = np.nan
    a3_margin: float = np.nan
    nearest_factor: str | None = None
    returns: float = np.nan
    confirmed: int = 0
    suggested: list[str] = field(default_factory=list)
    given: list[str] = field(default_factory=list)
    match: float = np.nan
    return_rate: float = np.nan
    n_pairs: int = 0
    group: list[str] = field(default_factory=list)
    group_match: float = np.nan
    n_practical: int = 0
    structure: str = ""
    mixed_with: list[str] = field(default_factory=list)

    def columns(self) -> JSON:
        """Fields in the order of the table."""
        return {"n_anchors": len(self.anchors), **vars(self)}

    @classmethod
    def from_columns(cls, row: JSON) -> FactorEvidence:
        """The evidence behind a row of the table."""
        fresh = vars(cls())
        known = {name: row[name] for name in fresh}
        for name, value in fresh.items():  # what certificates of earlier versions do not have
            if isinstance(value, list) and not isinstance(known[name], list):
                known[name] = []
            elif isinstance(value, str) and not isinstance(known[name], str):
                known[name] = ""
            elif isinstance(value, int):
                known[name] = 0 if known[name] != known[name] else int(known[name])
        for name in ("pair", "a2_rival", "nearest_factor"):
            known[name] = known[name] if isinstance(known[name], str | tuple | list) else None
        if known["pair"] is not None:
            known["pair"] = tuple(known["pair"])
        return cls(**known)

    @classmethod
    def gather(
        cls,
        own: np.ndarray,
        features: np.ndarray,
        strength: np.ndarray,
        evidence: PairEvidence,
        follow: Dominance,
        names: np.ndarray,
    ) -> FactorEvidence:
        """Choose the pair of anchors that speaks best for a factor, and read A1 and A2 off it.

        Parameters
        ----------
        own : integer array
            Positions of the factor's anchors in ``features``.
        features, strength : arrays of shape (n_anchors,)
        evidence : PairEvidence
        follow : Dominance
        names : array of shape (n_features,)
        """
        order = own[np.argsort(-strength[own], kind="stable")]
        item = cls(anchors=[str(name) for name in names[features[order]]])
        mine = np.flatnonzero(np.isin(evidence.first, own))
        if not len(mine):
            return item
        same = evidence.curve_difference[mine] <= THRESHOLDS["curve_difference"]
        doubted = _contradicted(evidence.data_difference[mine], evidence.p_value[mine])
        weaker = np.minimum(strength[evidence.first[mine]], strength[evidence.second[mine]])
        # A pair of one curve first, then one that the data do not doubt, then the strongest, the closest.
        best = mine[
            np.lexsort(
                (evidence.curve_difference[mine], np.where(same, -weaker, 0.0), same & doubted, ~same)
            )[0]
        ]
        a, b = evidence.first[best], evidence.second[best]
        item.pair = (str(names[features[a]]), str(names[features[b]]))
        partners = mine[same]
        item.n_same_curve = len(np.union1d(evidence.first[partners], evidence.second[partners]))
        item.curve_difference = float(evidence.curve_difference[best])
        item.data_difference = float(evidence.data_difference[best])
        item.p_value = float(evidence.p_value[best])
        item.strength = float(min(strength[a], strength[b]))
        others = np.setdiff1d(np.arange(len(names)), features[own])
        similarity = max(follow.similarity[a, features[b]], follow.similarity[b, features[a]])
        if len(others):
            rivals = follow.similarity[[a, b]][:, others].max(0)
            item.a2_margin = float(similarity - rivals.max())
            item.a2_rival = str(names[others[rivals.argmax()]])
            item.a2_ratio = float(follow.ratio[[a, b]][:, others].max(1).min())
        else:
            item.a2_margin = float(similarity)
        return item


def judge(item: FactorEvidence, likelihood: str) -> tuple[str, str]:
    """Verdict and its reason in one sentence: by what came back, where the fit knows; else by the theorem.

    Parameters
    ----------
    item : FactorEvidence
    likelihood : str
        Named where the theory does not cover it.
    """
    limits = THRESHOLDS
    if item.returns < limits["returns_weak"]:
        return "not identified", f"It returned in only {item.returns:.0%} of the refits."
    if len(item.given) >= 2 or np.isnan(item.match):
        verdict, reason = _judge_by_theorem(item, likelihood)
        if np.isnan(item.match) and not len(item.given) >= 2:
            reason = f"{reason[:-1]}; judged by the theorem alone, as halves of the rows were not compared."
    else:
        verdict, reason = _judge_by_halves(item)
    if verdict == "identified" and item.returns < limits["returns_identified"]:
        return "weak", f"Much speaks for it, but it returned in only {item.returns:.0%} of the refits."
    return verdict, reason


def describe_theorem(item: FactorEvidence, likelihood: str) -> str:
    """What the theorem asks for and whether it holds for a factor, with statistics and thresholds."""
    limits = THRESHOLDS
    if len(item.given) >= 2:
        return f"Theorem 1 holds: anchors {item.given[0]} and {item.given[1]} were given."
    if item.pair is None:
        depend = "only 1 feature depends" if item.anchors else "no feature depends"
        return f"A1 fails: {depend} on this factor alone; the theorem needs two."
    same = item.curve_difference <= limits["curve_difference"]
    doubted = bool(_contradicted(item.data_difference, item.p_value))
    strong = item.strength >= limits["strength"]
    first = (
        f"A1 {'holds' if same and strong and not doubted else 'fails'}: curves of {item.pair[0]} and "
        f"{item.pair[1]} differ by {item.curve_difference:.3f} (at most {limits['curve_difference']:g})"
    )
    if doubted:
        first += f", and the data tell them apart (p = {item.p_value:.1g})"
    if not strong:
        first += f", and it explains {item.strength:.1%} of the weaker (at least {limits['strength']:.0%})"
    dominant = not item.a2_margin < limits["a2_margin"]
    second = (
        f"A2 {'holds' if dominant else 'fails'}: margin {item.a2_margin:+.2f} (above {limits['a2_margin']:g})"
    )
    third = f"A3 holds: 1 − |ρ| = {item.a3_margin:.2f} (above 0)"
    proof = "" if likelihood == "gaussian" else f" Not proved for the {likelihood} likelihood."
    return f"{first}. {second}. {third}.{proof}"


def describe_return(item: FactorEvidence) -> str:
    """Whether halves of the rows, and refits, showed the factor again."""
    if np.isnan(item.match):
        words = "Not known: the fit did not compare halves of the rows, or no linear factor is near this one."
    else:
        words = (
            f"Halves of the rows agree on it to {item.match:.2f} (identified from "
            f"{THRESHOLDS['match_identified']:g}, weak from {THRESHOLDS['match_weak']:g}); "
            f"{item.return_rate:.0%} of {item.n_pairs} halvings reach 0.8."
        )
    if item.group:
        words += f" The space of {_set(item.group)} comes back to {item.group_match:.2f}."
    if not np.isnan(item.returns):
        words += f" It returned in {item.returns:.0%} of the refits."
    return words


def describe_covariance(item: FactorEvidence) -> str:
    """What the correlations of the data alone say of its anchors."""
    if len(item.anchors) < 2:
        return f"Correlations put anchors together; it has {'only one' if item.anchors else 'none'}."
    words = f"The correlations confirm {item.confirmed} of {len(item.anchors)} anchors"
    if item.suggested:
        words += f"; they suggest {', '.join(item.suggested[:5])}"
        words += f" and {len(item.suggested) - 5} more" if len(item.suggested) > 5 else ""
    return words + "."


def _judge_by_halves(item: FactorEvidence) -> tuple[str, str]:
    limits, seen = THRESHOLDS, f"{item.match:.2f} over {item.n_pairs} halvings"
    if item.match >= limits["match_identified"]:
        return "identified", f"Halves of the rows agree on it ({seen}): another sample should show it too."
    together = (
        f"; as a group {_set(item.group)} it is identified, the space of these factors comes back to "
        f"{item.group_match:.2f}"
        if item.group
        else ""
    )
    if item.match >= limits["match_weak"]:
        return "weak", f"Halves of the rows agree on it roughly ({seen}){together}."
    return "not identified", f"Halves of the rows do not agree on it ({seen}){together}."


def _judge_by_theorem(item: FactorEvidence, likelihood: str) -> tuple[str, str]:
    limits = THRESHOLDS
    if not item.anchors:
        return "not identified", "No feature depends on this factor alone, so others may be mixed into it."
    if item.pair is None:
        reason = f"Only {item.anchors[0]} depends on this factor alone, and A1 asks for two such features."
        return ("weak" if item.given else "not identified"), reason
    a, b = item.pair
    given = len(item.given) >= 2  # Theorem 1 takes known anchors as they are
    weakness = None
    if item.strength < limits["strength"]:
        weakness = f"It explains only {item.strength:.1%} of the variance of {a} or {b}, its best anchors."
    elif item.curve_difference > limits["curve_difference"] and not given:
        blind = f", though the data alone do not tell them apart (p = {item.p_value:.2g})"
        weakness = (
            f"Its {len(item.anchors)} anchors have different response curves: {a} and {b}, the most alike, "
            f"differ by {item.curve_difference:.2g} where A1 allows {limits['curve_difference']:.2g}"
            f"{blind if item.p_value > _UNDECIDED else ''}."
        )
    elif _contradicted(item.data_difference, item.p_value) and not given:
        weakness = (
            f"The fit gives {a} and {b} one response curve, but other features explain "
            f"{item.data_difference:.0%} of the difference between them."
        )
    elif item.a2_margin < limits["a2_margin"] and not given:
        weakness = (
            f"{item.a2_rival} is no anchor and follows the factor more closely than {a} and {b} do (A2)."
        )
    if weakness is not None:
        return "weak", weakness
    proof = "" if likelihood == "gaussian" else f"; not proved for the {likelihood} likelihood"
    if given:
        return "identified", f"Its anchors {item.given[0]} and {item.given[1]} were given (Theorem 1){proof}."
    return "identified", (
        f"{a} and {b} depend on it alone with one response curve (A1), and no other feature follows it as "
        f"closely (A2){proof}."
    )


def theory_notes(observation: Observation, n_samples: int, least: int) -> list[str]:
    """What is not proved, or could not be checked, for a likelihood and a table."""
    notes = [
        "Theorems 1 and 2 hold in the limit of infinite data, for the best fit; what is said of A1 to A3 is "
        "about this fit, on these samples.",
        "A factor is identified up to an invertible transformation of its own, not in scale or shape.",
    ]
    if not observation.real_columns.all():
        notes.append(
            "The theorems are not proved here: their proofs are for Gaussian noise. For the "
            f"{observation.likelihood.name} likelihood the assumptions are checked on the decoder's outputs, "
            "and correlations on the encoder's inputs."
        )
    if observation.total_columns.any():
        notes.append(
            "Under the multinomial, adding one function of the factors to the outputs of all features "
            "changes no probability: which features depend on a factor, and so its anchors, is identified "
            "only relative to that shift. That is not proved either."
        )
    if n_samples < least:
        notes.append(
            f"{n_samples} samples are too few to compare anchors by their correlations: not checked here."
        )
    return notes


def _set(names: list[str]) -> str:
    return "{" + ", ".join(names) + "}"


def _contradicted(data_difference: Any, p_value: Any) -> Any:
    """Whether the data tell two anchors apart: by more than chance, and by enough to matter."""
    return (data_difference > THRESHOLDS["data_difference"]) & (p_value < THRESHOLDS["p_value"])
