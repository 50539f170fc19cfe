"""From the content of a report to its files: one page without any other file or address, JSON and CSV."""

from __future__ import annotations

import base64
import hashlib
import json
from importlib.resources import files
from pathlib import Path

import pandas as pd
from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup

from sparsevae.aliases import JSON
from sparsevae.io.spreadsheet import neutralise_frame
from sparsevae.persistence import replacing_together
from sparsevae.report.figures import (
    correlation_figure,
    curve_figure,
    history_figure,
    history_terms,
    path_figure,
)
from sparsevae.report.mask_figure import draw_mask
from sparsevae.report.numbers import are_whole, observed, percent, signed, significant
from sparsevae.report.schema import Content, Factor, Links
from sparsevae.report.text import shorten, spell_value
from sparsevae.report.trade import describe_point, draw_trade, trade_steps
from sparsevae.report.typical import word_lists
from sparsevae.report.words import direction_word
from sparsevae.validation import visible

__all__ = ["output_files", "read_template", "render_html", "tables", "write_report"]

_VERDICTS = ("identified", "weak", "not identified")
_SHOWN_LINKS = 10  # of a factor on its card
_LINK_COLUMNS = ("feature", "factor", "weight", "effect", "strength", "share", "direction", "inclusion")


def render_html(content: Content) -> str:
    """The page, with its style, script and pictures in it; names are escaped wherever they stand.

    Parameters
    ----------
    content : dict
        From `build_content`.
    """
    script = read_template("report.js")
    environment = Environment(
        loader=DictLoader({"report.html": read_template("report.html")}),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: visible(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(_FILTERS)
    factors: list[Factor] = [{**factor, "id": f"F{factor['index']}"} for factor in content["factors"]]
    history = content["history"]
    links = content["links"]
    return environment.get_template("report.html").render(
        content={**content, "run": {key: content["run"].get(key) for key in _RUN_KEYS}},
        factors=factors,
        features=content["features"],
        links=links,
        thresholds=(content["certificate"] or {}).get("thresholds", {}),
        verdict_counts=_verdict_counts(factors),
        largest_share=max([factor["variance_explained"] or 0.0 for factor in factors], default=1.0) or 1.0,
        shown_links=_SHOWN_LINKS,
        mask_figure=draw_mask(content, factors),
        trade=content["trade"],
        steps=trade_steps(content["trade"]),
        trade_figure=draw_trade(content["trade"]),
        curve_figure=curve_figure,
        history_figure=history_figure(history),
        history_terms=history_terms(history),
        path_figure=path_figure(history),
        correlation_figure=correlation_figure(content["correlation"], [f["name"] for f in factors]),
        views=content["views"],
        word_lists=word_lists(content),
        word_heading="Words"
        if content["settings"].get("likelihood") == "multinomial"
        else "Typical features",
        page_data=_page_data(content, factors),
        css=Markup(read_template("report.css")),
        script=Markup(script),
        script_hash=_hash(script),
    )


def tables(content: Content) -> dict[str, pd.DataFrame]:
    """The content as tables: factors, features, links and samples."""
    features, factors, links = content["features"], content["factors"], content["links"]
    link_table = pd.DataFrame(dict(links))
    link_table["feature"] = [features[j]["name"] for j in links["feature"]]
    link_table["factor"] = [factors[a]["name"] for a in links["factor"]]
    feature_table = pd.DataFrame(
        {
            "feature": [feature["name"] for feature in features],
            "communality": [feature["communality"] for feature in features],
            "n_factors": [len(feature["links"]) for feature in features],
            "strongest_factor": [
                factors[links["factor"][feature["links"][0]]]["name"] if feature["links"] else ""
                for feature in features
            ],
        }
    )
    if content["views"] is not None:
        feature_table["view"] = [feature["view"] for feature in features]
    samples = [
        (factor["name"], end, rank, sample["sample"], sample["value"])
        for factor in factors
        if factor["samples"]
        for end in ("strongest", "weakest")
        for rank, sample in enumerate(factor["samples"][end], start=1)
    ]
    return {
        "factors": pd.DataFrame([_factor_row(factor) for factor in factors], columns=_FACTOR_COLUMNS),
        "features": feature_table,
        "links": link_table[[*_LINK_COLUMNS, *sorted(set(links) - set(_LINK_COLUMNS))]],
        "samples": pd.DataFrame(samples, columns=["factor", "end", "rank", "sample", "value"]),
    }


def output_files(path: Path) -> dict[str, Path]:
    """The files of a report by what they hold, given the name of the page."""
    named = {
        name: path.with_name(f"{path.stem}.{name}.csv")
        for name in ("factors", "features", "links", "samples")
    }
    return {"page": path, "json": path.with_suffix(".json"), **named}


def write_report(content: Content, path: str | Path) -> dict[str, Path]:
    """Write the page, and its content as JSON and CSV beside it, as one set.

    Parameters
    ----------
    content : dict
        From `build_content`.
    path : str or Path
        Of the page. ``report.html`` comes with ``report.json`` and ``report.factors.csv``,
        ``report.features.csv``, ``report.links.csv`` and ``report.samples.csv``. Files of these names are
        replaced. In the CSV files a name that a spreadsheet would take for a formula has an apostrophe in
        front.

    Returns
    -------
    dict
        The files by what they hold.
    """
    named = output_files(Path(path))
    text = {
        "page": render_html(content),
        "json": json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n",
        **{
            name: neutralise_frame(frame).to_csv(index=False, lineterminator="\n")
            for name, frame in tables(content).items()
        },
    }
    named["page"].parent.mkdir(parents=True, exist_ok=True)
    with replacing_together(list(named.values())) as partials:
        for name, partial in zip(named, partials, strict=True):
            partial.write_text(text[name], "utf-8", newline="\n")
    return named


def _page_data(content: Content, factors: list[Factor]) -> JSON:
    """What the page's script works with."""
    kept = ("feature", "factor", "weight", "effect", "strength", "share", "direction", "selected")
    return {
        "names": [visible(feature["name"]) for feature in content["features"]],
        "order": content["feature_order"],
        "steps": [
            {"point": i, "words": describe_point(point), "gone": point["gone"], "more": point["more"]}
            for i in trade_steps(content["trade"])
            for point in [content["trade"][i]]
        ],
        "links": {name: column for name, column in content["links"].items() if name in kept},
        "words": [factor["words"] for factor in factors] if content["overall"] else None,
        "overall": content["overall"],
        "factors": [{key: visible(factor[key]) for key in ("id", "name", "label")} for factor in factors],
    }


def _verdict_counts(factors: list[Factor]) -> list[tuple[str, int]]:
    verdicts = [factor["certificate"]["verdict"] for factor in factors if factor["certificate"]]
    return [(verdict, verdicts.count(verdict)) for verdict in _VERDICTS if verdict in verdicts]


_FACTOR_COLUMNS = [
    "factor",
    "label",
    "variance_explained",
    "n_features",
    "n_anchors",
    "verdict",
    "reason",
    "reproducibility",
    "ablation_cost",
    "ablation_standard_error",
]
_RUN_KEYS = ("created", "versions", "data", "seed", "assumptions", "warnings")


def _factor_row(factor: Factor) -> dict[str, object]:
    certificate, ablation = factor["certificate"] or {}, factor["ablation"]
    return {
        "factor": factor["name"],
        "label": factor["label"],
        "variance_explained": factor["variance_explained"],
        "n_features": len(factor["links"]),
        "n_anchors": len(factor["anchors"]),
        "verdict": certificate.get("verdict", ""),
        "reason": certificate.get("reason", ""),
        "reproducibility": (factor["stability"] or {}).get("reproducibility"),
        "ablation_cost": ablation and ablation["cost"],
        "ablation_standard_error": ablation and ablation["standard_error"],
    }


def _role(links: list[int]) -> str:
    return "no factor" if not links else "anchor" if len(links) == 1 else f"{len(links)} factors"


def _whole_columns(samples: JSON) -> list[bool]:
    """Which features of a card's samples have whole numbers alone."""
    rows = [sample["values"] for end in ("strongest", "weakest") for sample in samples[end]]
    return [are_whole(column) for column in zip(*rows, strict=True)]


def _whisker(link: int, links: Links, end: str) -> str:
    """An end of the interval of an effect, on the scale of the bar of its strength."""
    strength, effect, bound = links["strength"][link], links["effect"][link], links[end][link]  # type: ignore[literal-required]
    return f"{max(-1.0, min(1.0, (strength or 0.0) * bound / effect)):.3f}"


_FILTERS = {
    "whisker": _whisker,
    "pct": percent,
    "num": lambda value, digits=3: significant(value, digits),
    "observed": observed,
    "whole_columns": _whole_columns,
    "sgn": lambda value, digits=3: signed(value, digits),
    "thousands": lambda value: f"{value:,}",
    "cut": shorten,
    "plain": spell_value,
    "role": _role,
    "ratio": lambda value, largest: f"{value / largest:.3f}",
    "kind": lambda direction: {1: "pos", -1: "neg"}.get(direction, "bent"),
    "arrow": lambda direction: {1: "▲", -1: "▼"}.get(direction, "◆"),
    "direction": direction_word,
    "rank": lambda certificate: _VERDICTS.index(certificate["verdict"]) if certificate else len(_VERDICTS),
}


def read_template(name: str) -> str:
    """The text of a file of the folder of templates."""
    return files("sparsevae.report").joinpath("templates", name).read_text("utf-8")


def _hash(script: str) -> str:
    """By which the page's own script, and no other, is let run."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
