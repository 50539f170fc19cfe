from __future__ import annotations

from pathlib import Path

import pytest

from sparsevae import Run
from sparsevae.exceptions import DataError
from sparsevae.report import build_content, output_files, write_report
from sparsevae.runs import check_place
from sparsevae.runs.files import FIT_FILES, STABILITY_FILES


def files_under(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_what_our_commands_add_to_a_run_goes_with_it(run, model, table):
    write_report(build_content(model, evidence=run.evidence()), run.path / "report.html")
    write_report(build_content(model, evidence=run.evidence()), run.path / "Second wave.v2.htm")
    for name in STABILITY_FILES:
        (run.path / name).write_text("")
    Run.create(run.path, model, table, force=True)
    assert {path.name for path in run.path.iterdir()} == set(FIT_FILES)


@pytest.mark.parametrize("page", ["report.html", "a.b.htm", "X.HTML"])
def test_the_files_of_a_report_are_those_that_it_writes(run, page):
    for path in output_files(run.path / page).values():
        path.write_text("")
    check_place(run.path, force=True)


@pytest.mark.parametrize(
    "name",
    [
        "notes.txt",
        "thesis.html",
        "report.html",  # without the files that our report has beside it
        "model/notes.txt",
        "figures/mask.png",
        ".hidden",
        "factors-old.csv",
    ],
)
def test_force_never_deletes_a_foreign_file(run, model, table, name):
    foreign = run.path / name
    foreign.parent.mkdir(exist_ok=True)
    foreign.write_text("mine")
    before = files_under(run.path)
    shown = name if name.startswith("model/") else name.split("/")[0]
    with pytest.raises(DataError, match=f"got '{shown}' too. Move it elsewhere"):
        Run.create(run.path, model, table, force=True)
    assert files_under(run.path) == before


@pytest.mark.parametrize("kind", ["link", "folder"])
def test_a_foreign_thing_under_one_of_our_names_stays(run, model, table, tmp_path, kind):
    ours = run.path / "log.txt"
    ours.unlink()
    if kind == "link":
        (tmp_path / "elsewhere.txt").write_text("mine")
        ours.symlink_to(tmp_path / "elsewhere.txt")
    else:
        ours.mkdir()
    with pytest.raises(DataError, match=r"got 'log.txt' too"):
        Run.create(run.path, model, table, force=True)


@pytest.mark.parametrize("content", ["{", '{"format": 99}', '{"name": "an experiment of mine"}'])
def test_force_replaces_only_what_opens_as_a_run(model, table, tmp_path, content):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "run.json").write_text(content)
    with pytest.raises(DataError, match=r"does not open as one. Choose another name"):
        Run.create(tmp_path / "out", model, table, force=True)
    assert (tmp_path / "out" / "run.json").read_text() == content
