"""Ctrl-C in a real process, at a real terminal: once for the best model so far, twice for nothing."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sparsevae import SparseVAE

from .helpers import files_under, invoke

pty = pytest.importorskip("pty", reason="this system has no pseudo-terminals")
termios = pytest.importorskip("termios", reason="this system has no pseudo-terminals")

# The usual handlers, also where the tests run in the background or under nohup, which ignore these signals.
MAIN = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "signal.signal(signal.SIGHUP, signal.SIG_DFL); "
    "from sparsevae.cli import main; main()"
)
LONG = "n_init = 1\nmax_epochs = 100000\nn_factors = 2\n"
PATIENCE = 120.0  # seconds until a process that says nothing is given up


class Terminal:
    """A command whose messages go to a terminal, with Ctrl-C."""

    def __init__(self, process: subprocess.Popen[bytes], screen: int) -> None:
        self.process, self.screen, self.text = process, screen, ""

    def wait_for(self, words: str) -> None:
        until = time.monotonic() + PATIENCE
        while words not in self.text:
            assert time.monotonic() < until, self.text
            assert self._read(), self.text

    def press_ctrl_c(self) -> None:
        self.process.send_signal(signal.SIGINT)

    def wait_for_end(self) -> int:
        while self._read():
            pass
        return self.process.wait(PATIENCE)

    def _read(self) -> bool:
        ready, _, _ = select.select([self.screen], [], [], PATIENCE)
        assert ready, self.text
        try:
            part = os.read(self.screen, 4096)
        except OSError:  # what Linux says when the other end is closed
            return False
        self.text += part.decode()
        return bool(part)


@contextmanager
def fitting(folder: Path, shared: Path, *options: str) -> Iterator[Terminal]:
    (folder / "long.toml").write_text(LONG)
    table = str(shared / "table.csv")
    command = [sys.executable, "-c", MAIN, "fit", table, "--out", "run", "--config", "long.toml", *options]
    screen, end = pty.openpty()
    termios.tcsetwinsize(end, (24, 100))  # a progress bar has no room in a window without a size
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=end)
    os.close(end)
    try:
        yield Terminal(process, screen)
    finally:
        process.kill()
        process.communicate()
        os.close(screen)


def test_ctrl_c_leaves_a_complete_run(tmp_path, shared, frame):
    with fitting(tmp_path, shared) as terminal:
        terminal.wait_for("dense:")  # the progress bar after the first epoch
        terminal.press_ctrl_c()
        assert terminal.wait_for_end() == 130
        said = terminal.text
    assert "Stopping: the best model so far will be written." in said
    assert "Note: Stopped by the user after" in said
    assert "Traceback" not in said
    assert files_under(tmp_path / "run") == files_under(shared / "run")
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["interrupted"] is True
    assert record["result"]["n_epochs"] < 100_000
    model = SparseVAE.load(tmp_path / "run" / "model")
    assert np.isfinite(model.transform(frame)).all()
    applied = invoke("transform", tmp_path / "run", shared / "table.csv", "-o", tmp_path / "factors.csv")
    assert applied.exit_code == 0, applied.stderr
    assert len(pd.read_csv(tmp_path / "factors.csv")) == len(frame)
    reported = invoke("report", tmp_path / "run", "-o", tmp_path / "report.html")
    assert reported.exit_code == 0, reported.stderr


@pytest.mark.parametrize("name,code", [("SIGTERM", 143), ("SIGHUP", 129)])
def test_what_schedulers_and_closed_terminals_send_is_treated_as_ctrl_c(tmp_path, shared, name, code):
    with fitting(tmp_path, shared) as terminal:
        terminal.wait_for("dense:")
        terminal.process.send_signal(getattr(signal, name))
        assert terminal.wait_for_end() == code
        assert "Stopping: the best model so far will be written." in terminal.text
    assert files_under(tmp_path / "run") == files_under(shared / "run")
    assert json.loads((tmp_path / "run" / "run.json").read_text())["interrupted"] is True


def test_a_signal_before_there_is_anything_to_keep_leaves_nothing(tmp_path, shared):
    (tmp_path / "kept").mkdir()
    with fitting(tmp_path, shared, "--out", "deep/run") as terminal:
        terminal.wait_for("Read ")
        terminal.process.send_signal(signal.SIGTERM)
        code = terminal.wait_for_end()
    # On a fast machine training may have begun.
    assert code == 143
    if "nothing was written" in terminal.text:
        assert sorted(path.name for path in tmp_path.iterdir()) == ["kept", "long.toml"]


def test_a_second_ctrl_c_writes_nothing(tmp_path, shared):
    with fitting(tmp_path, shared) as terminal:
        terminal.wait_for("dense:")
        terminal.press_ctrl_c()
        terminal.wait_for("Stopping:")
        terminal.press_ctrl_c()
        code = terminal.wait_for_end()
        said = terminal.text
    assert code == 130
    # On a fast machine the run may have been written between the two.
    assert ("nothing was written" in said) != (tmp_path / "run" / "run.json").exists()
    assert not list(tmp_path.glob(".run*"))


def test_a_run_that_was_not_interrupted_says_so(shared):
    assert json.loads((shared / "run" / "run.json").read_text())["interrupted"] is False
