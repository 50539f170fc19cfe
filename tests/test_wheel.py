"""What a user installs is what works: the wheel, alone in an environment of its own, runs the demo."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

import sparsevae

for tool in ("build", "hatchling", "pip"):
    pytest.importorskip(tool)

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "sparsevae"
SHORT_DEMO = ("demo", "--rows", "60", "--max-epochs", "2")
PROGRAMS = "Scripts" if os.name == "nt" else "bin"


def run(*command, cwd):
    """Run a command without this session's paths, so that only what is installed can be found."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COV_"))}
    return subprocess.run(
        [str(part) for part in command], cwd=cwd, env=kept, check=True, capture_output=True, text=True
    ).stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built from the source tree."""
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, ROOT, cwd=out)
    (path,) = out.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def programs(wheel, tmp_path_factory):
    """Programs of a new environment with the wheel; its dependencies are read from where they are already."""
    home = tmp_path_factory.mktemp("home") / "environment"
    venv.create(home, symlinks=os.name != "nt")
    python = home / PROGRAMS / "python"
    run(
        *(sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check"),
        *("install", "--quiet", "--no-deps", "--no-index", wheel),
        cwd=home,
    )
    own = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=home).strip())
    # A line in a .pth file adds a directory at the end of the path, without the .pth files in it: an editable
    # installation of this very package stays out of sight.
    (own / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return home / PROGRAMS


def test_the_wheel_has_every_file_of_the_package_and_nothing_else(wheel):
    inside = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    source = {
        path.relative_to(PACKAGE.parent).as_posix()
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and not path.name.startswith(".")
    }
    assert inside == source
    assert "sparsevae/py.typed" in inside
    assert "sparsevae/datasets/data/holzinger_swineford1939.csv" in inside


def test_the_wheel_says_what_it_is(wheel):
    assert wheel.name == f"sparsevae-{sparsevae.__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        information = next(name for name in archive.namelist() if name.endswith("METADATA"))
        metadata = archive.read(information).decode()
        assert any(name.endswith("licenses/LICENSE") for name in archive.namelist())
    for line in ("License-Expression: BSD-3-Clause", "Requires-Python: >=3.11", "Requires-Dist: torch>="):
        assert line in metadata


def test_the_installed_package_is_the_one_that_is_imported(programs, tmp_path):
    script = (
        "import sparsevae, sparsevae.datasets as d; print(sparsevae.__file__, len(d.load_ability_tests().X))"
    )
    file, n_rows = run(programs / "python", "-c", script, cwd=tmp_path).split()
    assert Path(file).is_relative_to(programs.parent)
    assert int(n_rows) > 100


def test_the_demo_runs_from_the_installed_package(programs, tmp_path):
    result = run(programs / "sparsevae", *SHORT_DEMO, "--json", cwd=tmp_path)
    assert len(json.loads(result)["true_mask"]) == 7
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("command", [("sparsevae", "demo"), ("python", "-m", "sparsevae", *SHORT_DEMO)])
def test_the_demo_speaks_in_words_however_it_is_called(programs, tmp_path, command):
    program, *arguments = command
    words = run(programs / program, *arguments, cwd=tmp_path)
    for word in ("DCI", "MSE", "factor"):
        assert word in words
