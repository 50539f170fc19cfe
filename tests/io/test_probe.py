from __future__ import annotations

import sys

import numpy as np
import pytest

from sparsevae.exceptions import DataError
from sparsevae.io import probe

h5py = pytest.importorskip("h5py")


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "t.h5"
    with h5py.File(path, "w") as content:
        content["numbers"] = np.arange(10)
        content["texts"] = ["a", "bc"]
        content["group/empty"] = np.empty(0)
        content.attrs["kind"] = "test"
    return path


def test_a_sound_file_passes(file):
    probe.check_hdf5(file)


def test_a_file_that_is_cut_off_is_refused(file):
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(DataError, match="cannot be read as one: it is damaged"):
        probe.check_hdf5(file)


@pytest.mark.parametrize(
    "script,phrase",
    [
        ("import time; time.sleep(60)", "does not come to an end"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "the reader crashed, -11"),
    ],
)
def test_a_reader_that_hangs_or_crashes_does_so_in_another_process(file, monkeypatch, script, phrase):
    monkeypatch.setattr(probe, "_VISIT", script)
    monkeypatch.setattr(probe, "_SECONDS", 1.0)
    with pytest.raises(DataError, match=phrase):
        probe.check_hdf5(file)


def test_python_inside_another_program_is_not_started(file, monkeypatch):
    file.write_bytes(b"no HDF5")
    monkeypatch.setattr(sys, "executable", "")
    probe.check_hdf5(file)
