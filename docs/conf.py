"""Settings of the documentation: `make docs` builds it in docs/_build/html."""

import os
import re
import shutil
from importlib.metadata import version as installed_version
from pathlib import Path

from docutils import nodes
from docutils.utils.math import pick_math_environment
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx import addnodes

project = "sparsevae"
author = "the sparsevae developers"
copyright = author
release = version = installed_version("sparsevae")

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "gallery/*.ipynb"]
html_math_renderer = "mathml"
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

# Scripts that run when the pages are built; one that fails ends the build.
sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 3600,
}

# The tutorials run as notebooks when the pages are built; one that fails ends the build.
nb_execution_mode = "auto"
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = -1
nb_merge_streams = True

html_theme = "furo"
html_static_path = ["_static"]
html_extra_path = ["llms.txt"]
html_css_files = ["pages.css"]
html_title = f"sparsevae {release}"
html_theme_options = {"source_repository": "", "navigation_with_keys": True}


DOCS = Path(__file__).parent
RESULTS = DOCS.parent / "results"
NOTEBOOK = """\
---
file_format: mystnb
kernelspec:
  name: python3
---

"""


def setup(app):
    app.connect("builder-inited", copy_pages_of_results)
    app.connect("source-read", follow_links_between_docs_and_results)
    app.connect("source-read", make_tutorials_notebooks)
    app.connect("doctree-read", offer_the_notebook, priority=400)  # before Sphinx collects what is offered
    app.connect("doctree-read", leave_results_out_of_the_sidebar)
    app.connect("autodoc-skip-member", leave_out_metadata_requests)
    # Formulas as MathML, which browsers draw by themselves: pages need no script from elsewhere.
    app.add_html_math_renderer("mathml", (inline_formula, None), (displayed_formula, None))


def inline_formula(translator, node):
    translator.body.append(mathml(node.astext()))
    raise nodes.SkipNode


def displayed_formula(translator, node):
    formula = mathml(node.astext(), as_block=True)
    translator.body.append(f'<div style="overflow: auto hidden; padding: 0.6rem 0">{formula}</div>')
    raise nodes.SkipNode


def mathml(code, as_block=False):
    """A formula as MathML, without what docutils does not know; MathML chooses sizes of delimiters itself."""
    code = re.sub(r"\\[bB]igg?[lrm]?(?![a-z])", "", code)
    code = code.replace(r"\dots", r"\ldots").replace(r"\iff", r"\Leftrightarrow")
    if as_block and pick_math_environment(code).startswith("align") and r"\begin{" not in code:
        code = rf"\begin{{aligned}}{code}\end{{aligned}}"
    return tex2mathml(code, as_block=as_block)


def copy_pages_of_results(app):
    """Pages and pictures that commands wrote live beside their rows, outside of what Sphinx reads."""
    copies = DOCS / "results"
    shutil.rmtree(copies, ignore_errors=True)
    for source in (*RESULTS.rglob("*.md"), *RESULTS.rglob("*.png")):
        copy = copies / source.relative_to(RESULTS)
        copy.parent.mkdir(parents=True, exist_ok=True)
        # With its time, so that what did not change is not built again.
        shutil.copy2(source, copy)


def follow_links_between_docs_and_results(app, docname, source):
    """Links are written as they hold in the repository; here the results are inside of the docs."""
    up = "../" * docname.count("/")
    if docname.startswith("results/"):
        source[0] = source[0].replace(f"]({up}docs/", f"]({up}")
    else:
        source[0] = source[0].replace(f"](../{up}results/", f"]({up}results/")


def make_tutorials_notebooks(app, docname, source):
    """Tutorials show their output, to be read in the repository; here they run, and it is made anew."""
    if docname.startswith("tutorials/") and "\n```python\n" in source[0]:
        text = re.sub(r"^(```python\n.*?^```\n)\n```text\n.*?^```\n", r"\1", source[0], flags=re.M | re.S)
        source[0] = NOTEBOOK + text.replace("\n```python\n", "\n```{code-cell}\n")


def offer_the_notebook(app, doctree):
    """A link to the notebook that was run, below the title of its page and not inside of it."""
    folder, _, name = app.env.docname.partition("/")
    notebook = Path(app.env.mystnb_config.output_folder) / folder / f"{name}.ipynb"
    if folder == "tutorials" and notebook.exists():
        target = f"/{os.path.relpath(notebook, app.srcdir)}"
        link = addnodes.download_reference("", "This page as a notebook", reftarget=target)
        title = doctree.next_node(nodes.title)
        title.parent.insert(1, nodes.paragraph("", "", link))


def leave_results_out_of_the_sidebar(app, doctree):
    """Pages that commands write are linked from the page of results, and in no table of contents."""
    if app.env.docname.startswith("results/"):
        app.env.metadata[app.env.docname]["orphan"] = True


def leave_out_metadata_requests(app, what, name, member, skip, options):
    """Scikit-learn adds these to every estimator, and their docstrings link to pages of its own."""
    return True if re.fullmatch(r"set_\w+_request|get_metadata_routing|set_output", name) else None
