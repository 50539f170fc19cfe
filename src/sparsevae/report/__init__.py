"""Factor cards: one self-contained HTML page about a fit, with the same content as JSON and CSV beside it."""

from sparsevae.report.content import build_content
from sparsevae.report.evidence import gather_evidence
from sparsevae.report.render import output_files, render_html, write_report

__all__ = ["build_content", "gather_evidence", "output_files", "render_html", "write_report"]
