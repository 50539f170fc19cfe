"""The page about a drift: which features have broken, which factors have moved."""

from __future__ import annotations

import json
from pathlib import Path

from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup

from sparsevae.inspection.drift import Drift
from sparsevae.persistence import replacing_together
from sparsevae.report.render import read_template
from sparsevae.validation import visible

__all__ = ["drift_files", "render_drift", "write_drift"]

_SHOWN = 50  # features on the page, the clearest first; all that have broken are


def render_drift(drift: Drift, title: str) -> str:
    """The page, with its style in it; names are escaped.

    Parameters
    ----------
    drift : Drift
    title : str
    """
    content = drift.to_dict()
    environment = Environment(
        loader=DictLoader({"drift.html": read_template("drift.html")}),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: visible(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    n_shown = max(_SHOWN, len(content["broken"]))
    return environment.get_template("drift.html").render(
        title=title,
        drift=content,
        shown=content["features"][:n_shown],
        css=Markup(read_template("report.css")),
    )


def drift_files(path: Path) -> list[Path]:
    """What `write_drift` writes for a page of this name: the page, and its content as JSON beside it."""
    return [path, path.with_suffix(".json")]


def write_drift(drift: Drift, path: Path, title: str) -> list[Path]:
    """Write the page, and its content as JSON beside it: both, or neither.

    Parameters
    ----------
    drift : Drift
    path : Path
        Of the page.
    title : str

    Returns
    -------
    list of Path
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"title": title, **drift.to_dict()}, indent=1, ensure_ascii=False, default=_plain)
    with replacing_together(drift_files(path)) as (page, beside):
        page.write_text(render_drift(drift, title), "utf-8")
        beside.write_text(text + "\n", "utf-8")
    return drift_files(path)


def _plain(value: object) -> object:
    return value.item() if hasattr(value, "item") else str(value)
