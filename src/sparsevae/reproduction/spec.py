"""What a result of the paper is made of, read from a TOML file: data, methods, settings, published numbers.

A *recipe* is how a method is fitted: with the package's defaults ("default"), as the paper says ("paper"), or
with the arithmetic of the released code ("authors"). A method without recipes has the recipe ``"any"``.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import TypedDict

from sparsevae.aliases import JSON, Parameters
from sparsevae.comparison.measures import MEASURES
from sparsevae.comparison.methods import METHODS
from sparsevae.exceptions import ParameterError
from sparsevae.reproduction.data import SOURCES, SPLITTINGS

__all__ = ["RECIPES", "SCALES", "Claim", "DataSet", "Method", "Run", "Spec", "load_spec", "load_specs"]

RECIPES = ("default", "paper", "authors")
PUBLISHED = RECIPES[1:]
"""Recipes with the settings that the paper states."""
SCALES = ("smoke", "quick", "paper")
ANY = "any"


class Scale(TypedDict, total=False):
    """What is smaller than in the paper."""

    data_sets: list[str]
    n_seeds: int
    splits: int
    sources: dict[str, Parameters]
    data: Parameters
    settings: Parameters


@dataclass(frozen=True)
class Run:
    """One method on one data set with one seed and one split; everything that a worker needs but the data.

    The first seven fields say which run it is, the others how it is done.
    """

    result: str
    scale: str
    method: str
    recipe: str
    data_set: str
    seed: int
    split: int
    estimator: str
    parameters: Parameters
    source: str
    source_parameters: Parameters
    data_parameters: Parameters
    splitting: str
    n_splits: int
    metrics: tuple[str, ...]

    @property
    def key(self) -> tuple[str, str, str, str, str]:
        """What tells this run from the others of its result and scale, as text."""
        return (self.method, self.recipe, self.data_set, str(self.seed), str(self.split))

    @property
    def settings(self) -> str:
        """Fingerprint of how the run is done: a run with other settings has to be done again."""
        how = [
            self.estimator,
            dict(self.parameters),
            self.source,
            dict(self.source_parameters),
            dict(self.data_parameters),
            [self.splitting, self.n_splits],
        ]
        return hashlib.sha256(json.dumps(how, sort_keys=True).encode()).hexdigest()[:10]

    def __str__(self) -> str:
        recipe = "" if self.recipe == ANY else f" ({self.recipe})"
        return f"{self.method}{recipe}, {self.data_set}, seed {self.seed}, split {self.split}"


@dataclass(frozen=True)
class DataSet:
    """A data set under the name that the paper's table has for it."""

    name: str
    source: str
    parameters: Parameters = field(default_factory=dict)
    """How this one is made from its source."""
    settings: Parameters = field(default_factory=dict)
    """Parameters of every method on this data set."""
    published: Parameters = field(default_factory=dict)
    """From the paper's tables of settings for this data set, in the recipes "paper" and "authors"."""


@dataclass(frozen=True)
class Method:
    """A row of a table: an estimator, its parameters, and the numbers that the paper has for it."""

    name: str
    estimator: str
    recipes: tuple[str, ...]
    parameters: Parameters = field(default_factory=dict)
    """In every recipe."""
    published: Parameters = field(default_factory=dict)
    """From the paper's tables of settings, in the recipes "paper" and "authors"."""
    in_paper: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By metric and data set, mean and standard deviation as they are printed: "254.5 (3.0)"."""
    added: bool = False
    """Whether the paper does not have it."""
    reference: bool = False
    """Whether it is there to compare with, and no rival: claims are not checked against it."""
    splits: Mapping[str, int] = field(default_factory=dict)
    """By recipe, how many of the splits are run where one run says enough for its cost."""


@dataclass(frozen=True)
class Claim:
    """That a method is the best by a metric, on every data set; checked in every recipe that it has."""

    text: str
    metric: str
    method: str = "Sparse VAE"
    remark: str = ""
    """What to know about the answer, whatever it is."""


@dataclass(frozen=True)
class Spec:
    """A result of the paper."""

    name: str
    title: str
    label: str
    """Of the table or figure in the paper's source."""
    alias: str
    metrics: tuple[str, ...]
    data_sets: tuple[DataSet, ...]
    methods: tuple[Method, ...]
    settings: Parameters
    """Parameters of every method."""
    published: Parameters
    """Of every method, from the paper's tables of settings, in the recipes "paper" and "authors".

    Their "3 hidden layers" are two and an output (docs/research/fidelity.md, number 17); what they do not
    have, such as the number of VSC's pseudo-inputs, is as in the released code.
    """
    recipes: Mapping[str, Parameters]
    """Parameters by recipe; under "data", what the recipe changes about the data."""
    sources: Mapping[str, Parameters]
    """Parameters of the loaders."""
    scales: Mapping[str, Scale]
    splitting: str = "folds"
    n_splits: int = 1
    n_seeds: int = 1
    comparable: tuple[str, ...] = (*RECIPES, ANY)
    """Recipes whose data are those of the published numbers."""
    shares_with: str = ""
    """Another result that has some of the same runs: what was done there is not done again."""
    figure: str = ""
    figure_metrics: tuple[str, ...] = ()
    x_title: str = ""
    claims: tuple[Claim, ...] = ()
    notes: tuple[str, ...] = ()
    examples: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Topics that the paper shows, by data set."""

    def runs(self, scale: str) -> list[Run]:
        """Every run of this result, one seed and one split after the other.

        Parameters
        ----------
        scale : {"smoke", "quick", "paper"}
        """
        if scale not in SCALES:
            raise ParameterError(f"Expected scale to be one of {', '.join(SCALES)}; got {scale!r}.")
        size = self.scales.get(scale, {})
        wanted = size.get("data_sets", [data_set.name for data_set in self.data_sets])
        return [
            self._run(scale, method, recipe, data_set, seed, split)
            for seed in range(size.get("n_seeds", self.n_seeds))
            for split in range(size.get("splits", self.n_splits))
            for data_set in self.data_sets
            if data_set.name in wanted
            for method in self.methods
            for recipe in method.recipes
            if split < method.splits.get(recipe, self.n_splits)
        ]

    def world(self, recipe: str) -> str:
        """What a recipe changes about the data, as text: methods compare where this is equal."""
        return json.dumps(self.recipes.get(recipe, {}).get("data", {}), sort_keys=True)

    def _run(self, scale: str, method: Method, recipe: str, data_set: DataSet, seed: int, split: int) -> Run:
        size = self.scales.get(scale, {})
        of_recipe = dict(self.recipes.get(recipe, {}))
        changed = of_recipe.pop("data", {})
        known = _parameters(method.estimator)
        as_published = recipe in PUBLISHED
        layers = [
            self.settings,
            data_set.settings,
            self.published if as_published else {},
            of_recipe,
            data_set.published if as_published else {},
            method.parameters,
            method.published if as_published else {},
            size.get("settings", {}),
        ]
        parameters = {name: value for layer in layers for name, value in layer.items() if name in known}
        if "recipe" in known:
            parameters["recipe"] = recipe
        return Run(
            result=self.name,
            scale=scale,
            method=method.name,
            recipe=recipe,
            data_set=data_set.name,
            seed=seed,
            split=split,
            estimator=method.estimator,
            parameters=parameters,
            source=data_set.source,
            source_parameters={
                **self.sources.get(data_set.source, {}),
                **size.get("sources", {}).get(data_set.source, {}),
            },
            data_parameters={**data_set.parameters, **changed, **size.get("data", {})},
            splitting=self.splitting,
            n_splits=self.n_splits,
            metrics=self.metrics,
        )


def load_specs() -> dict[str, Spec]:
    """Every result that can be reproduced, by name, in the order of the paper."""
    found = {}
    for file in files("sparsevae.reproduction").joinpath("specs").iterdir():
        if file.name.endswith(".toml"):
            content = tomllib.loads(file.read_text(encoding="utf-8"))
            order = content.pop("order")
            name = file.name.removesuffix(".toml")
            found[name] = (order, parse_spec(name, content))
    for _, spec in found.values():
        if spec.shares_with and spec.shares_with not in found:
            raise ParameterError(
                f"Expected {spec.name!r} to share runs with a result; got {spec.shares_with!r}."
            )
    return {name: spec for name, (_, spec) in sorted(found.items(), key=lambda item: item[1][0])}


def load_spec(name: str) -> Spec:
    """The result of that name, or of that number in the paper ("table-1b").

    Parameters
    ----------
    name : str
    """
    specs = load_specs()
    for spec in specs.values():
        if name in (spec.name, spec.alias):
            return spec
    raise ParameterError(f"Expected the name of a result, one of {', '.join(specs)}; got {name!r}.")


def parse_spec(name: str, content: JSON) -> Spec:
    """Build a result from the content of its TOML file, and check that all it names exists.

    Parameters
    ----------
    name : str
    content : dict
    """
    content = dict(content)
    methods = tuple(_method(entry, name) for entry in content.pop("methods"))
    data_sets = tuple(DataSet(**entry) for entry in content.pop("data_sets"))
    claims = tuple(Claim(**entry) for entry in content.pop("claims", ()))
    for listed in ("metrics", "comparable", "figure_metrics", "notes"):
        if listed in content:
            content[listed] = tuple(content[listed])
    tables = ("settings", "published", "recipes", "sources", "scales")
    defaults: JSON = {table: {} for table in tables}
    spec = Spec(name=name, methods=methods, data_sets=data_sets, claims=claims, **{**defaults, **content})
    for problem in _problems(spec):
        raise ParameterError(f"Expected a sound description of {name!r}; got {problem}.")
    return spec


def _method(entry: JSON, name: str) -> Method:
    if entry["estimator"] not in METHODS:
        raise ParameterError(
            f"Expected estimators among {', '.join(METHODS)} in the description of {name!r}; got "
            f"{entry['estimator']!r}."
        )
    has_recipe = "recipe" in _parameters(entry["estimator"])
    recipes = tuple(entry.get("recipes", RECIPES if has_recipe else (ANY,)))
    return Method(**{**entry, "recipes": recipes})


@cache
def _parameters(estimator: str) -> frozenset[str]:
    """Names of the parameters that an estimator has."""
    return frozenset(METHODS[estimator]().get_params())


def _problems(spec: Spec) -> Iterator[str]:
    """What is named and does not exist: a misspelt parameter would silently leave a default in its place."""
    yield from _unknown_parameters(spec)
    names = {data_set.name for data_set in spec.data_sets}
    for what, given, known in (
        ("source", {*spec.sources, *(data_set.source for data_set in spec.data_sets)}, SOURCES),
        ("splitting", {spec.splitting}, SPLITTINGS),
        ("recipe", {*spec.recipes, *spec.comparable}, (*RECIPES, ANY)),
        (
            "method of a claim",
            {claim.method for claim in spec.claims},
            [method.name for method in spec.methods],
        ),
        ("data set", set(spec.examples), names),
    ):
        for name in sorted(given.difference(known)):
            yield f"the {what} {name!r}"
    for metric in {*spec.metrics, *spec.figure_metrics, *(claim.metric for claim in spec.claims)}:
        if metric not in MEASURES or metric not in spec.metrics:
            yield f"the metric {metric!r}"
    for method in spec.methods:
        for parameter in {*method.parameters, *method.published} - _parameters(method.estimator):
            yield f"the parameter {parameter!r} of {method.name!r}"
        for metric, numbers in method.in_paper.items():
            if metric not in spec.metrics or set(numbers) - names:
                yield f"numbers for {metric!r} of {method.name!r} on {', '.join(numbers)}"
        for recipe in set(method.recipes) - {*RECIPES, ANY}:
            yield f"the recipe {recipe!r} of {method.name!r}"
        for recipe in set(method.splits) - set(method.recipes):
            yield f"splits of the recipe {recipe!r} of {method.name!r}, which it does not have"
    for scale, size in spec.scales.items():
        if scale not in SCALES or set(size.get("data_sets", ())) - names:
            yield f"the scale {scale!r} with data sets {size.get('data_sets')}"
        unknown = size.keys() - Scale.__annotations__.keys()
        for name in sorted(unknown | (size.get("sources", {}).keys() - spec.sources.keys())):
            yield f"{name!r} of the scale {scale!r}"


def _unknown_parameters(spec: Spec) -> Iterator[str]:
    """Of the layers that several methods have in common: what none of them knows."""
    known = frozenset[str]().union(*(_parameters(method.estimator) for method in spec.methods))
    layers = {
        "settings": spec.settings,
        "published": spec.published,
        **{f"recipes.{name}": layer.keys() - {"data"} for name, layer in spec.recipes.items()},
        **{f"settings of {data_set.name}": data_set.settings for data_set in spec.data_sets},
        **{f"published of {data_set.name}": data_set.published for data_set in spec.data_sets},
        **{f"settings of {scale}": size.get("settings", {}) for scale, size in spec.scales.items()},
    }
    for where, layer in layers.items():
        for name in sorted(set(layer) - known):
            yield f"the parameter {name!r} in {where}, which no method has"
