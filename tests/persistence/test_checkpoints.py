"""Directories of checkpoints: what is kept, what is damaged, and who may write."""

from __future__ import annotations

import shutil
import subprocess
import sys

import numpy as np
import pytest
import torch

from sparsevae.exceptions import DataError, DataWarning
from sparsevae.persistence import last_checkpoint, open_checkpoints, remove_checkpoints

HEADER = {"version": "1", "settings": {"n": "2"}}


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "deep" / "kept"


def write(folder, *numbers):
    with open_checkpoints(folder) as checkpoints:
        for n in numbers:
            checkpoints.write(HEADER, {"n": n, "values": torch.full((3,), float(n)), "rows": [np.arange(n)]})


def read(folder):
    with open_checkpoints(folder) as checkpoints:
        return checkpoints.read()


def test_the_last_two_are_kept_and_the_newest_is_read(folder):
    assert read(folder) is None
    assert not folder.exists()
    write(folder, 1, 2, 3)
    assert names(folder) == ["checkpoint-2", "checkpoint-3"]
    header, values = read(folder)
    assert header == HEADER
    assert values["n"] == 3
    assert torch.equal(values["values"], torch.full((3,), 3.0))
    write(folder, 4)
    assert names(folder) == ["checkpoint-3", "checkpoint-4"]
    assert last_checkpoint(folder) == folder / "checkpoint-4"
    remove_checkpoints(folder)
    assert not folder.exists()
    assert last_checkpoint(folder) is None


@pytest.mark.parametrize("name", ["checkpoint.json", "checkpoint.safetensors"])
@pytest.mark.parametrize("damage", ["cut", "changed", "empty", "gone"])
def test_a_damaged_one_falls_back_to_the_one_before(folder, name, damage):
    write(folder, 1, 2)
    file = folder / "checkpoint-2" / name
    content = bytearray(file.read_bytes())
    if damage == "gone":
        file.unlink()
    else:
        content[len(content) // 2] ^= 1
        file.write_bytes({"cut": content[:-3], "changed": content, "empty": b""}[damage])
    with pytest.warns(DataWarning, match="checkpoint-2 is damaged and is not used"):
        assert read(folder)[1]["n"] == 1


def test_damaged_ones_alone_are_refused(folder):
    write(folder, 1)
    (folder / "checkpoint-1" / "checkpoint.json").write_text("{}")
    with pytest.warns(DataWarning), pytest.raises(DataError, match="got damaged ones"):
        read(folder)
    assert names(folder) == ["checkpoint-1"]


def test_what_a_killed_process_has_left_is_removed_and_other_files_stay(folder):
    write(folder, 1)
    (folder / ".checkpoint-2.partial").mkdir()
    (folder / ".checkpoint-2.partial" / "checkpoint.json").write_text("{")
    (folder / "notes.txt").write_text("mine")
    assert read(folder)[1]["n"] == 1
    remove_checkpoints(folder)
    assert names(folder) == ["notes.txt"]


def test_a_write_that_was_interrupted_is_done_again(folder):
    with open_checkpoints(folder) as checkpoints:
        (folder / ".checkpoint-1.partial").mkdir()
        (folder / ".checkpoint-1.partial" / "checkpoint.safetensors").write_bytes(b"half")
        checkpoints.write(HEADER, {"n": 1})
        assert names(folder) == [".lock", "checkpoint-1"]
    assert read(folder)[1]["n"] == 1


def test_a_disk_that_does_not_take_it_is_a_warning(folder):
    with open_checkpoints(folder) as checkpoints:
        checkpoints.write(HEADER, {"n": 1})
        shutil.move(folder, folder.with_name("away"))
        with pytest.warns(DataWarning, match=r"No checkpoint could be written to .*\(No such file"):
            checkpoints.write(HEADER, {"n": 2})
        checkpoints.write(HEADER, {"n": 3})  # it is said once
        shutil.move(folder.with_name("away"), folder)
        checkpoints.write(HEADER, {"n": 4})
    assert read(folder)[1]["n"] == 4


def test_two_processes_do_not_write_to_one_place(folder):
    code = (
        "import sys\nfrom sparsevae.persistence import open_checkpoints\n"
        "with open_checkpoints(sys.argv[1]):\n    print('taken', flush=True)\n    sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline().strip() == b"taken"
        with pytest.raises(DataError, match="another process is writing to"), open_checkpoints(folder):
            pass
        other.stdin.close()
    write(folder, 1)
    assert names(folder) == ["checkpoint-1"]
