"""A fit that shows itself: as a page, and in a notebook."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from html import escape
from importlib import import_module
from pathlib import Path

import numpy as np

from sparsevae.aliases import TableLike
from sparsevae.estimators.fitted import SparseFit
from sparsevae.exceptions import ParameterError
from sparsevae.identifiability import Stability
from sparsevae.inspection.codes import Codes

__all__ = ["DisplayMixin"]

_NAMED = 5  # features of a factor in a notebook


class DisplayMixin(SparseFit):
    """Pages, notebooks, and a sentence."""

    n_factors_: int
    verbose: int

    def number_note(self) -> str:
        """Why there are fewer factors than a linear analysis shows, in a sentence; empty if there are not."""
        n_linear, n_active = getattr(self, "n_linear_factors_", 0), len(self.active_factors_)
        if not n_active or n_linear <= n_active:
            return ""
        shows = f"A linear analysis shows {n_linear} factors"
        if n_active == self.n_factors_:
            return f"{shows} and {n_active} were allowed: raise n_factors (--factors) to allow more."
        if getattr(self, "n_returning_factors_", n_linear) < min(n_linear, self.n_factors_):
            kept = f"{n_active} {'is' if n_active == 1 else 'are'} kept"
            return f"{shows}; {kept}, because the others do not return in halves of the rows."
        return ""

    def _announce(self) -> None:
        if self.verbose and (note := self.number_note()):
            sys.stderr.write(f"{note}\n")

    def report(
        self,
        path: str | Path,
        X: TableLike | Codes | None = None,
        *,
        samples: Sequence[object] | np.ndarray | None = None,
        stability: Stability | None = None,
        title: str = "",
    ) -> Path:
        """Write a page about the fit, with a card per factor, and its content as JSON and CSV beside it.

        Parameters
        ----------
        path : str or Path
            File of the page, which ends in ``.html``; files that are there are replaced.
        X : array, data frame or sparse matrix of shape (n_samples, n_features), or Codes, optional
            The table of the fit: without it there are no verdicts, samples and costs.
        samples : sequence of length n_samples, optional
            Names of the rows; by default the index of a data frame, or positions.
        stability : Stability, optional
            From `sparsevae.stability`.
        title : str
            Title of the page.

        Returns
        -------
        Path
            Where the page is.
        """
        if Path(path).suffix.lower() not in (".html", ".htm"):
            raise ParameterError(
                f"Expected path to end in .html; got {Path(path).name!r}. Pass for example 'report.html'."
            )
        if hasattr(X, "obsm"):
            raise ParameterError(
                f"Expected X to be a table; got {type(X).__name__}. Call sparsevae.tl.report(adata, path) "
                "for an object that sparsevae.tl.sparse_vae wrote into."
            )
        # Pages are drawn by a layer above the estimators, which is asked for by its name.
        pages = import_module("sparsevae.report")
        if samples is None and hasattr(X, "columns"):
            samples = getattr(X, "index", None)
        evidence = None if X is None else self.evidence(X, samples=samples)
        content = pages.build_content(self, evidence=evidence, stability=stability, title=title)
        return pages.write_report(content, path)["page"]

    def _html_repr(self) -> str:
        """What a notebook shows: the factors of a fit, above scikit-learn's box of parameters."""
        box = super()._html_repr()
        if not hasattr(self, "module_"):
            return box
        return f"{_summary(self)}{box}"


def _summary(model: DisplayMixin) -> str:
    names, features = model.active_names(), model.feature_names()
    used = model.mask_ != 0
    anchors = used.sum(1) == 1
    head = (
        f"<p><b>{len(names)}</b> of up to {model.n_factors} factors explain "
        f"<b>{model.communalities_.mean():.0%}</b> of the variance of {len(features)} features.</p>"
    )
    rows = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th><td>{model.variance_explained_[k]:.0%}</td>"
        f"<td>{int(used[:, k].sum())}</td><td>{int((anchors & used[:, k]).sum())}</td>"
        f"<td style='text-align:left'>{_strongest(model, k, features)}</td></tr>"
        for k, name in names.items()
    )
    titles = ("factor", "variance", "features", "anchors", "strongest features")
    header = "".join(f"<th style='text-align:left'>{title}</th>" for title in titles)
    table = f"<table><thead><tr>{header}</tr></thead><tbody>{rows}</tbody></table>" if names else ""
    return f"<div class='sparsevae-summary'>{head}{table}</div>"


def _strongest(model: DisplayMixin, k: int, features: np.ndarray) -> str:
    order = model.strongest_features(k)
    more = f" and {len(order) - _NAMED} more" if len(order) > _NAMED else ""
    return escape(", ".join(str(features[j])[:40] for j in order[:_NAMED]) + more)
