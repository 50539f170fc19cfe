"""A process that ends before its n-th change of the file system, for every n.

``crashing.py SCENARIO exchange|renames FOLDER``: for each n a child process does the work of the scenario and
is ended, without any clean-up, just before its n-th change under the folder (a file opened for writing, a
rename, a removal, a new or removed directory; an audit hook sees them all). The parent then looks at what is
left, as the next command would, and prints a line of JSON.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from sparsevae import Run, SparseVAE, open_rows, read_table, stability
from sparsevae.cli.report import _check_output
from sparsevae.persistence import finish_replacement, last_checkpoint, place, take_place
from sparsevae.report import build_content, output_files, write_report
from sparsevae.report.drift_page import drift_files, write_drift
from sparsevae.reproduction.results import Results
from sparsevae.runs.files import FIT_FILES, STABILITY_FILES

CHANGES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.link", "os.symlink")
CRASHED = 77
SETTINGS = {"n_init": 1, "hidden_sizes": (4,), "max_epochs": 2}


class Scenario:
    """A folder with something old in it, work that replaces it, and a look at what is there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        rng = np.random.default_rng(3)
        values = rng.standard_normal((40, 1)) * [1.0, 2.0, -1.0, 0.5, 1.5] + 0.3 * rng.standard_normal(
            (40, 5)
        )
        pd.DataFrame(values, columns=list("abcde")).to_csv(folder / "table.csv", index=False)
        self.table = read_table(folder / "table.csv")
        self.models = [
            SparseVAE(k, random_state=0, **SETTINGS).fit(self.table.for_estimator()) for k in (2, 3)
        ]
        self.at = folder / "work"

    def reset(self) -> None:
        """Put the old things there, and nothing else."""
        shutil.rmtree(self.at, ignore_errors=True)
        self.at.mkdir()

    def work(self) -> None:
        """Replace the old things."""

    def look(self) -> str:
        """Return which of old and new is there, having checked that it is whole."""
        raise NotImplementedError

    def create(self, which: int) -> Run:
        with take_place(self.at / "run", "run") as taken:
            taken.reserve(100_000)
            return Run.create(
                self.at / "run", self.models[which], self.table, force=True, notes=[str(which)], place=taken
            )


class Fit(Scenario):
    """``fit --force`` over a run."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.reset()
        self.create(0)
        shutil.move(self.at / "run", folder / "old")

    def reset(self) -> None:
        super().reset()
        if (self.folder / "old").exists():
            shutil.copytree(self.folder / "old", self.at / "run")

    def work(self) -> None:
        self.create(1)

    def look(self) -> str:
        run = Run.open(self.at / "run")
        which = int(run.record["assumptions"][-1])
        assert {path.name for path in run.path.iterdir()} == set(FIT_FILES)
        np.testing.assert_array_equal(run.model().mask_, self.models[which].mask_)
        loadings = pd.read_csv(run.path / "loadings.csv", index_col=0)
        np.testing.assert_allclose(loadings, self.models[which].loadings(), rtol=1e-6)
        assert len(pd.read_csv(run.path / "factors.csv")) == 40
        assert run.evidence() is not None
        others = {path.name for path in self.at.iterdir()} - {"run"}
        assert others <= {"run-2"}, others
        if others:  # finished work that did not get its name
            assert self.is_new(Run.open(self.at / "run-2"))
        return "new" if which or others else "old"

    def is_new(self, run: Run) -> bool:
        """Whether a run is what `work` writes."""
        return run.model().n_factors == 3


class Save(Scenario):
    """`save` over a saved model."""

    def reset(self) -> None:
        super().reset()
        self.models[0].save(self.at / "model")

    def work(self) -> None:
        self.models[1].save(self.at / "model")

    def look(self) -> str:
        model = SparseVAE.load(self.at / "model")
        which = model.n_factors - 2
        np.testing.assert_array_equal(model.mask_, self.models[which].mask_)
        assert {path.name for path in self.at.iterdir()} <= {"model", "model-2"}
        return ("old", "new")[which]


class Report(Scenario):
    """``report --force`` over a report: a page with five files beside it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.contents = [
            build_content(model, title=title) for model, title in zip(self.models, ("A", "B"), strict=True)
        ]

    def reset(self) -> None:
        super().reset()
        write_report(self.contents[0], self.at / "report.html")

    def work(self) -> None:
        _check_output(self.at / "report.html", force=True)
        write_report(self.contents[1], self.at / "report.html")

    def look(self) -> str:
        files = list(output_files(self.at / "report.html").values())
        before = {path.name: path.read_bytes() for path in files}
        _check_output(self.at / "report.html", force=True)  # as the next command does
        for name, content in before.items():
            assert content, f"{name} is empty"
        titles = {json.loads(files[1].read_text("utf-8"))["title"]}
        titles.add("A" if "<title>A" in files[0].read_text("utf-8") else "B")
        links = len(pd.read_csv(output_files(files[0])["links"]))
        (title,) = titles
        assert links == int((self.models["AB".index(title)].mask_ != 0).sum())
        assert {path.name for path in self.at.iterdir()} == {path.name for path in files}
        return {"A": "old", "B": "new"}[title]


class Refits(Fit):
    """``stability --force``: three files in a run."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        X = self.table.for_estimator()
        self.results = [stability(self.models[0], X, n, random_state=0, n_jobs=1) for n in (1, 2)]
        Run.open(folder / "old").add_stability(self.results[0])

    def work(self) -> None:
        run = Run.open(self.at / "run")
        run.check_stability(force=True)
        run.add_stability(self.results[1], force=True)

    def look(self) -> str:
        run = Run.open(self.at / "run")
        found = run.stability()
        assert found is not None
        expected = self.results[len(found.refits) - 1]
        table = pd.read_csv(run.path / "stability.csv", index_col=0)
        np.testing.assert_allclose(table["reproducibility"], expected.table["reproducibility"], rtol=1e-6)
        selection = pd.read_csv(run.path / "selection.csv", index_col=0)
        np.testing.assert_allclose(selection, expected.selection_probability, rtol=1e-6)
        assert {path.name for path in run.path.iterdir()} == {*FIT_FILES, *STABILITY_FILES}
        return ("old", "new")[len(found.refits) - 1]


class Rows(Scenario):
    """``reproduce``: rows of a run that has ended."""

    def _row(self, seed: int) -> dict[str, Any]:
        return {
            "method": "VAE",
            "recipe": "paper",
            "data_set": "d",
            "seed": seed,
            "metric": "m",
            "value": seed,
        }

    def reset(self) -> None:
        super().reset()
        Results(self.at).describe({"d": "described"})
        Results(self.at).add([self._row(0)])

    def work(self) -> None:
        Results(self.at).add([self._row(1)])

    def look(self) -> str:
        rows = Results(self.at).rows()
        assert [row["value"] for row in rows] in (["0"], ["0", "1"])
        Results(self.at).add([self._row(2)])  # the next command works, and takes the crumbs away
        assert {path.name for path in self.at.iterdir()} == {"rows.csv", "about.json", ".lock"}
        return ("old", "new")[len(rows) - 1]


class Checkpoints(Scenario):
    """``fit --resume``: a fit that keeps itself, which the next one goes on with to the same bits."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.whole = self._fit(None)

    def _fit(self, checkpoint: Path | None) -> SparseVAE:
        model = SparseVAE(
            2, recipe="paper", random_state=0, **SETTINGS
        )  # few stages: a checkpoint after each
        return model.fit(self.table.for_estimator(), checkpoint=checkpoint)

    def work(self) -> None:
        self._fit(self.at / "kept")

    def look(self) -> str:
        there = last_checkpoint(self.at / "kept") is not None
        again = self._fit(self.at / "kept")
        np.testing.assert_array_equal(again.mask_, self.whole.mask_)
        assert again.history_.equals(self.whole.history_)
        left = [path.name for path in (self.at / "kept").iterdir()]
        assert all(name.startswith("checkpoint-") for name in left), left
        return "new" if there else "old"


class Transform(Scenario):
    """`transform` of a table on disk over an earlier file, block by block."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        np.save(folder / "table.npy", np.tile(self.table.X, (500, 1)))
        self.rows = open_rows(folder / "table.npy")
        self.expected = [model.transform(self.rows) for model in self.models]

    def reset(self) -> None:
        super().reset()
        self.models[0].transform(self.rows, out=self.at / "z.npy")

    def work(self) -> None:
        self.models[1].transform(self.rows, out=self.at / "z.npy")

    def look(self) -> str:
        found = np.load(self.at / "z.npy")
        which = found.shape[1] - 2
        np.testing.assert_array_equal(found, self.expected[which])
        replacing_left = {path.name for path in self.at.iterdir()} - {"z.npy"}
        assert all(name.endswith(".partial.npy") for name in replacing_left), replacing_left
        return ("old", "new")[which]


class Names(Fit):
    """`name`: a run written again with another name of a factor, in every file that has it."""

    def work(self) -> None:
        run = Run.open(self.at / "run")
        run.name_factors({self.names(run)[0]: "renamed"})

    def look(self) -> str:
        found = super().look()
        run = Run.open(self.at / "run")
        names = self.names(run)
        header = (run.path / "loadings.csv").read_text("utf-8").splitlines()[0]
        assert all(name in header for name in names)
        assert [factor["name"] for factor in run.record["result"]["factors"]] == names
        return "new" if self.is_new(run) else found

    def is_new(self, run: Run) -> bool:
        return "renamed" in self.names(run)

    def names(self, run: Run) -> list[str]:
        model = run.model()
        return [str(name) for name in model.get_feature_names_out()[model.active_factors_]]


class DriftPages(Scenario):
    """``drift --force`` over a page with its content beside it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        found = self.models[0].drift(self.table.for_estimator())
        self.write = lambda title: write_drift(found, self.at / "drift.html", title)

    def reset(self) -> None:
        super().reset()
        self.write("A")

    def work(self) -> None:
        self.write("B")

    def look(self) -> str:
        page, beside = drift_files(self.at / "drift.html")
        finish_replacement([page, beside])  # as the next command does
        title = json.loads(beside.read_text("utf-8"))["title"]
        assert f"<title>{title}" in page.read_text("utf-8")
        assert {path.name for path in self.at.iterdir()} == {page.name, beside.name}
        return {"A": "old", "B": "new"}[title]


SCENARIOS: dict[str, type[Scenario]] = {
    "fit": Fit,
    "save": Save,
    "report": Report,
    "stability": Refits,
    "reproduce": Rows,
    "checkpoint": Checkpoints,
    "transform": Transform,
    "name": Names,
    "drift": DriftPages,
}


def crash_before(n: int, folder: Path, work: Callable[[], None]) -> bool:
    """Do some work in a child process that ends before its n-th change; whether it came so far."""
    process = os.fork()
    if not process:
        _end_before(n, folder)
        try:
            work()
        except BaseException as error:
            print(f"before the crash: {error!r}", file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(process, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code in (0, CRASHED), code
    return code == CRASHED


def _end_before(n: int, folder: Path) -> None:
    seen = 0

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal seen
        if not _is_change(event, arguments, str(folder)):
            return
        seen += 1
        if seen == n:
            os._exit(CRASHED)

    sys.addaudithook(watch)


def _is_change(event: str, arguments: tuple[Any, ...], folder: str) -> bool:
    if event == "open":
        path, _, flags = arguments
        writes = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        return (
            bool(writes)
            and isinstance(path, str | bytes | os.PathLike)
            and os.fsdecode(path).startswith(folder)
        )
    if event not in CHANGES:
        return False
    by_descriptor = any(isinstance(value, int) and value >= 0 for value in arguments[1:])
    return by_descriptor or os.fsdecode(arguments[0]).startswith(folder)


def main(name: str, way: str, folder: Path) -> None:
    """Crash at every point of a scenario and print what was left."""
    warnings.simplefilter("ignore")
    if way == "renames":
        place.exchange = lambda first, second: False
    scenario = SCENARIOS[name](folder)
    n = 0
    crashed = True
    while crashed:
        n += 1
        scenario.reset()
        crashed = crash_before(n, scenario.at, scenario.work)
        before = sorted(path.name for path in scenario.at.iterdir())
        try:
            found = scenario.look()
        except Exception as error:
            found = f"broken: {type(error).__name__}: {error} {before}"
        print(json.dumps({"point": n, "crashed": crashed, "found": found}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]).resolve())
