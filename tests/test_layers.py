"""The package is built in layers, and a module imports from the layers below its own only."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

import sparsevae

ROOT = Path(sparsevae.__file__).parent

REPOSITORY = ROOT.parents[1]

# Lowest first. A part may import from itself and from the lines above its own. A folder inside a part that
# has modules must be listed by its dotted name.
LAYERS = [
    {"exceptions", "aliases", "_version"},
    {"stored"},
    {"summaries"},
    {"validation", "principal"},
    {"priors", "divergences", "rotation", "datasets", "metrics", "io", "annotations"},
    {"likelihoods", "decoder", "factor_analysis"},
    {"modules"},
    {"training", "persistence"},
    {"fitting", "inspection"},
    {"identifiability"},
    {"estimators"},
    {"plotting", "runs", "tl"},
    {"comparison", "replication", "sample_size", "report"},
    {"reproduction"},
    {"cli", "experiments"},
    {"__main__"},
]
LAYER_OF = {part: layer for layer, parts in enumerate(LAYERS) for part in parts}
WITHOUT_TORCH = {
    "aliases",
    "exceptions",
    "stored",
    "summaries",
    "datasets",
    "metrics",
    "io",
    "annotations",
    "principal",
    "rotation",
}
MODULES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")

every_module = pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))


def _part(path: Path) -> str:
    """The package that a file lives in, by its dotted name; a file of the top folder is a part by itself."""
    folders = path.relative_to(ROOT).parent.parts
    return ".".join(folders) if folders else path.stem


def _imports(path: Path) -> set[str]:
    """Absolute names of all that a file imports, inside functions too; not what only type checkers see."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    package = ["sparsevae", *path.relative_to(ROOT).parent.parts]
    skipped = {
        child
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for statement in node.body
        for child in ast.walk(statement)
    }
    names = set()
    for node in ast.walk(tree):
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            names |= {f"{module}.{alias.name}" for alias in node.names}
    return names


def _imported_parts(path: Path) -> set[str]:
    """Parts of the package that a file imports; a name of the package itself has none."""
    names = (name.split(".")[1:] for name in _imports(path) if name.split(".")[0] == "sparsevae")
    return {part for parts in names for part in [_longest(parts)] if part}


def _longest(names: list[str]) -> str:
    """The innermost listed part that a dotted name goes through."""
    prefixes = [".".join(names[:n]) for n in range(len(names), 0, -1)]
    return next((prefix for prefix in prefixes if prefix in LAYER_OF), "")


@every_module
def test_every_module_belongs_to_a_layer(path):
    assert _part(path) in LAYER_OF, f"{_part(path)} is in no layer: add it to LAYERS"


@every_module
def test_imports_go_downwards_only(path):
    layer = LAYER_OF[_part(path)]
    wrong = {part for part in _imported_parts(path) - {_part(path)} if LAYER_OF[part] >= layer}
    assert not wrong, f"{path.relative_to(ROOT)} imports {sorted(wrong)}, which is not below it"


@every_module
def test_public_names_of_the_package_are_for_the_outermost_layers(path):
    """Inside, `from sparsevae import SparseVAE` would tie a low layer to all others."""
    from_package = {
        name
        for name in _imports(path)
        if name.startswith("sparsevae.") and name.count(".") == 1 and name.split(".")[1] not in LAYER_OF
    }
    if LAYER_OF[_part(path)] < LAYER_OF["comparison"]:
        assert from_package <= {"sparsevae.__version__"}


def test_types_are_strict_below_the_estimators():
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mypy"]
    strict = next(part for part in settings["overrides"] if part.get("disallow_untyped_defs"))
    below = {part for part, layer in LAYER_OF.items() if layer < LAYER_OF["estimators"]}
    assert {name.removeprefix("sparsevae.").removesuffix(".*") for name in strict["module"]} == below


@pytest.mark.parametrize("part", sorted(WITHOUT_TORCH))
def test_the_numpy_side_never_imports_torch(part):
    reached, waiting = set(), {part}
    while waiting:
        current = waiting.pop()
        reached.add(current)
        for path in (path for path in MODULES if _part(path) == current):
            assert not {name for name in _imports(path) if name.split(".")[0] == "torch"}, path
            waiting |= _imported_parts(path) - reached


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/explanation/architecture.md"])
def test_the_pages_show_these_layers(page):
    """The table of the layers, top first, names exactly the parts of each in its first column."""
    if not (REPOSITORY / page).exists():
        pytest.skip("the documents are not here: an installed package")
    lines = (REPOSITORY / page).read_text("utf-8").splitlines()
    start = lines.index("|---|---|", lines.index("| layer | what is there |")) + 1
    rows = [line for line in lines[start:] if line.startswith("|")][: len(LAYERS) - 1]
    shown = [set(re.findall(r"`(\w+)`", row.split("|")[1])) for row in rows]
    assert shown == [parts for parts in reversed(LAYERS) if parts != {"__main__"}]


@every_module
def test_no_public_name_hides_its_module(path):
    """`import sparsevae.a.b` would give the function b. Commands are named after their file on purpose."""
    if _part(path) == "cli":
        return
    tree = ast.parse(path.read_text(encoding="utf-8"))
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    assert path.stem.startswith("_") or path.stem not in defined
