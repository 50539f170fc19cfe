"""The parts of a report's content, as they stand in the JSON beside a page.

Features, factors and links are referred to by their position in the lists of those names. A number that is
not finite is None.
"""

from __future__ import annotations

from typing import NotRequired, TypedDict

from sparsevae.aliases import JSON

__all__ = [
    "Ablation",
    "Content",
    "Factor",
    "Feature",
    "Fit",
    "History",
    "Links",
    "Neighbour",
    "Point",
    "Refits",
    "ResponseCurve",
    "Sample",
    "Samples",
    "Views",
    "Words",
]

Number = float | None
History = dict[str, list]
"""The columns of ``history_``."""


class Links(TypedDict):
    """The non-zero entries of the mask as columns, strongest first within a factor."""

    feature: list[int]
    factor: list[int]
    weight: list[Number]
    effect: list[Number]
    strength: list[Number]
    share: list[Number]
    direction: list[int]
    inclusion: list[Number]
    selected: NotRequired[list[Number]]
    low: NotRequired[list[Number]]
    high: NotRequired[list[Number]]
    selection: NotRequired[list[Number]]
    """Ends of the 90 % interval of the effect, and how many halves of the rows have the link."""


class Feature(TypedDict):
    """A feature, with its links, the strongest first."""

    name: str
    communality: Number
    links: list[int]
    view: NotRequired[str]


class Neighbour(TypedDict):
    """Another factor, by what it shares with this one."""

    factor: int
    correlation: Number
    n_shared: int


class Ablation(TypedDict):
    """Log-likelihood lost per sample, in nats, when a factor is held at its mean."""

    cost: Number
    standard_error: Number
    n_rows: int


class ResponseCurve(TypedDict):
    """A feature as a factor varies: a curve over a grid, and points of samples behind it."""

    feature: int
    grid: list[float]
    curve: list[float]
    at: list[float]
    points: list[Number]


class Sample(TypedDict):
    """A sample at an end of a factor, with its values of the factor's strongest features."""

    sample: str | int | float
    value: Number
    values: list[Number]


class Samples(TypedDict):
    """The samples at both ends of a factor."""

    features: list[int]
    strongest: list[Sample]
    weakest: list[Sample]


class Words(TypedDict):
    """Typical features of a factor: expected values where it is high, and how often they occur together."""

    features: list[int]
    high: list[Number]
    coherence: Number


class Factor(TypedDict):
    """What the card of a factor shows; ``index`` is its column of the mask."""

    name: str
    index: int
    label: str
    variance_explained: Number
    links: list[int]
    anchors: list[int]
    inclusion_rate: Number
    neighbours: list[Neighbour]
    certificate: JSON | None
    stability: dict[str, Number] | None
    ablation: Ablation | None
    curves: list[ResponseCurve]
    samples: Samples | None
    words: Words | None
    id: NotRequired[str]
    """On the page."""


class Views(TypedDict):
    """Variance explained in each view, a group of features: by factor, and by all of them together."""

    names: list[str]
    n_features: list[int]
    explained: list[list[Number]]
    together: list[Number]


class Refits(TypedDict):
    """How stability was measured."""

    how: str
    n_refits: int
    n_failed: int
    n_active: list[int]


class Point(TypedDict):
    """A point of the trade between links and held-out gain.

    ``gone`` are links of the fit that it does without, ``more`` pairs of feature and factor that it has
    beyond them; None where it has other axes.
    """

    model: str
    shrinkage: Number
    n_active: int
    n_nonzero: int
    gain: Number
    gain_kept: Number
    chosen: bool
    gone: list[int] | None
    more: list[list[int]] | None


class Fit(TypedDict):
    """How the fit went."""

    n_epochs: int
    number_note: str
    not_used: list[dict[str, str]]
    starts: list[JSON]


class Content(TypedDict):
    """All that a report says; ``overall`` are the means of features that are counts."""

    format: int
    title: str
    created: str
    package_version: str
    summary: list[str]
    source: JSON | None
    variance_explained: Number
    n_possible_links: int
    overall: list[Number] | None
    features: list[Feature]
    feature_order: list[int]
    factors: list[Factor]
    links: Links
    correlation: list[list[float]]
    stability: Refits | None
    certificate: JSON | None
    history: History
    fit: Fit
    trade: list[Point]
    groups: JSON | None
    views: Views | None
    settings: JSON
    run: JSON
