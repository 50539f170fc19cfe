"""Several real processes that share a fit: the same result as one."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from sparsevae.training.interrupt import Agreement
from sparsevae.training.processes import Group, alone, current_group, is_helper, join_processes, joined_fit

FITS = Path(__file__).with_name("processes_fits.py")


def run(number: int, folder: Path) -> dict[str, np.ndarray]:
    result = folder / f"{number}.npz"
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(number)]
    command = [sys.executable, *(launcher if number > 1 else []), str(FITS), str(result)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    with np.load(result) as found:
        return dict(found)


def assert_alike(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    assert list(found) == list(expected)
    for name, value in expected.items():
        largest = np.nanmax(np.abs(value), initial=1e-3)
        np.testing.assert_allclose(found[name], value, rtol=0, atol=1e-5 * largest, err_msg=name)


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    return run(1, tmp_path_factory.mktemp("one"))


@pytest.mark.parametrize("number", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_several_processes_train_what_one_trains(one, number, tmp_path):
    # Every estimator makes more than 20 steps: sums of floats in another order are all that differs.
    found = run(number, tmp_path)
    assert_alike(found, one)
    # A callback runs in the first process, and all of them end the fit that it ends.
    assert len(found["stopped: objective"]) == 3
    calls = [(tmp_path / f"calls-{rank}").read_text() for rank in range(number)]
    assert calls == ["1 2 3", *[""] * (number - 1)]


@pytest.mark.slow
def test_a_number_of_processes_gives_the_same_bits(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir(), second.mkdir()
    found, again = run(2, first), run(2, second)
    for name, value in found.items():
        np.testing.assert_array_equal(again[name], value, err_msg=name)


@pytest.mark.parametrize("n_rows", [0, 1, 7, 128])
def test_every_row_is_taken_once(n_rows):
    groups = [Group(rank, 3, Agreement()) for rank in range(3)]
    taken = [row for group in groups for row in range(n_rows)[group.rows(n_rows)]]
    assert taken == list(range(n_rows))
    sizes = [len(range(n_rows)[group.rows(n_rows)]) for group in groups]
    assert max(sizes) - min(sizes) <= 1


@pytest.fixture
def only_process(tmp_path):
    """A group of one process, which is initialised all the same."""
    store = torch.distributed.FileStore(str(tmp_path / "store"), 1)
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    yield Group(0, 1, Agreement())
    torch.distributed.destroy_process_group()


def test_gradients_come_back_as_they_were_from_one_process(only_process):
    parameters = [torch.ones(2, 3, requires_grad=True), torch.ones(4, requires_grad=True)]
    parameters[0].grad = torch.arange(6.0).reshape(2, 3)
    only_process.sum_gradients_(parameters)
    assert torch.equal(parameters[0].grad, torch.arange(6.0).reshape(2, 3))
    assert parameters[1].grad is None
    assert only_process.n_sent == 6 + 4 + 2 + 1
    assert not only_process.agreement.stop


def test_one_process_fits_alone(only_process):
    with joined_fit() as group:
        assert group is None
    with alone(), joined_fit() as group:
        assert group is None
    assert current_group() is None


def test_there_is_nobody_to_join_without_a_launcher(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with join_processes() as rank:
        assert rank == 0
        assert not torch.distributed.is_initialized()
    assert not is_helper()
