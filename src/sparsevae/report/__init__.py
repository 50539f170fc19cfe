"""Factor cards: one self-contained HTML page about a fit, with the same content as JSON and CSV beside it."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from sparsevae.aliases import JSON, TableLike
from sparsevae.report.content import build_content
from sparsevae.report.render import output_files, render_html, write_report

if TYPE_CHECKING:
    from sparsevae.estimators import SparseVAE

__all__ = ["build_content", "gather_evidence", "output_files", "render_html", "write_report"]


def gather_evidence(model: SparseVAE, X: TableLike, **options: object) -> JSON:
    """Deprecated: use ``model.evidence(X)``."""
    warnings.warn(
        "sparsevae.report.gather_evidence is deprecated: call model.evidence(X, ...) instead.",
        DeprecationWarning,
        stacklevel=2,
    )
    return model.evidence(X, **options)  # type: ignore[arg-type]
