"""Settings of the documentation: `make docs` builds it in docs/_build/html."""

from importlib.metadata import version as installed_version
from pathlib import Path

project = "sparsevae"
author = "the sparsevae developers"
copyright = author
release = version = installed_version("sparsevae")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
]
exclude_patterns = ["_build"]
myst_enable_extensions = ["amsmath", "colon_fence", "dollarmath"]
myst_heading_anchors = 3

# A name in single backticks is a link where there is something to link to.
default_role = "py:obj"
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_default_options = {"members": True}
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False

html_theme = "furo"
html_title = f"sparsevae {release}"
html_theme_options = {"source_repository": "", "navigation_with_keys": True}


def setup(app):
    app.connect("source-read", leave_out_empty_folders)


def leave_out_empty_folders(app, docname, source):
    """Sphinx warns of a folder in a table of contents that has no pages (yet)."""
    for folder in ("notes", "results"):
        if docname == "index" and not any((Path(app.srcdir) / folder).glob("*.md")):
            source[0] = source[0].replace(f"{folder}/*\n", "")
