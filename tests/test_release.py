"""What a release consists of agrees: version, recipe, workflow, hosted documentation."""

from __future__ import annotations

import ast
import re
import runpy
import shutil
import sys
import tomllib
from pathlib import Path

import jinja2
import pytest

import sparsevae

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parents[1]
CONDA_NAMES = {"torch": "pytorch", "matplotlib": "matplotlib-base"}
IMPORTED_AS = {"scikit-learn": "sklearn"}
WITH_ANOTHER = {"markupsafe"}  # jinja2 hands out its strings, and cannot be without it

pytestmark = pytest.mark.skipif(
    not (ROOT / "recipe").exists(), reason="the repository is not here: an installed package"
)


@pytest.fixture(scope="module")
def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


@pytest.fixture(scope="module")
def recipe():
    text = (ROOT / "recipe" / "meta.yaml").read_text("utf-8")
    return yaml.safe_load(jinja2.Template(text).render(PYTHON="python"))


def test_the_recipe_asks_for_what_the_package_asks_for(project, recipe):
    split = [
        re.fullmatch(r"([\w-]+)(>=.+)", requirement).groups()
        for requirement in project["project"]["dependencies"]
    ]
    wanted = {f"{CONDA_NAMES.get(name, name)} {bound}" for name, bound in split}
    python = f"python {project['project']['requires-python']}"
    assert set(recipe["requirements"]["run"]) == wanted | {python}
    assert python in recipe["requirements"]["host"]
    (backend,) = project["build-system"]["requires"]
    assert backend.replace("==", " ==") in recipe["requirements"]["host"]


def test_what_modules_import_when_they_are_imported_is_a_dependency(project):
    """Others may be there by chance: in this environment, or with an older version of a dependency."""
    names = {re.match(r"[\w-]+", requirement)[0] for requirement in project["project"]["dependencies"]}
    known = {IMPORTED_AS.get(name, name) for name in names} | WITH_ANOTHER | {"sparsevae"}
    found = {}
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0]: path.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                found[node.module.partition(".")[0]] = path.name
    assert {name: file for name, file in found.items() if name not in known | sys.stdlib_module_names} == {}


def test_recipe_and_citation_have_the_version_of_the_package(recipe):
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert str(recipe["package"]["version"]) == str(citation["version"]) == sparsevae.__version__


def test_a_release_writes_its_version_where_it_belongs(tmp_path):
    tool = runpy.run_path(str(ROOT / "tools" / "release.py"))
    for name in tool["PLACES"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    tool["main"]("12.3.4", tmp_path)
    for name in tool["PLACES"]:
        before, after = ((root / name).read_text("utf-8").splitlines() for root in (ROOT, tmp_path))
        new = [line for line in after if line not in before]
        assert len(new) == 1, name
        assert "12.3.4" in new[0]
    changes = (tmp_path / "CHANGELOG.md").read_text("utf-8")
    assert re.search(r"## \[Unreleased\]\n\n## \[12\.3\.4\] - \d{4}-\d\d-\d\d\n", changes)


def test_a_release_needs_a_version():
    with pytest.raises(SystemExit, match=r"Expected a version such as 0\.2\.0; got 'next'"):
        runpy.run_path(str(ROOT / "tools" / "release.py"))["main"]("next")


def test_the_public_workflow_runs_the_script_and_every_python_that_is_named(project):
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8"))["jobs"]
    assert any(step.get("run") == ".ci/run" for step in jobs["all"]["steps"])
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(project["project"]["classifiers"]))
    assert jobs["wheel"]["strategy"]["matrix"]["python"] == named


def test_the_hosted_documentation_is_built_with_the_locked_versions():
    settings = yaml.safe_load((ROOT / ".readthedocs.yaml").read_text("utf-8"))
    assert settings["sphinx"] == {"configuration": "docs/conf.py", "fail_on_warning": True}
    assert any("requirements.lock" in step for step in settings["build"]["jobs"]["install"])


@pytest.mark.parametrize("name", ["bug", "wish"])
def test_the_forms_for_issues_ask_for_something(name):
    form = yaml.safe_load((ROOT / ".github" / "ISSUE_TEMPLATE" / f"{name}.yml").read_text("utf-8"))
    assert any(field.get("validations", {}).get("required") for field in form["body"])
