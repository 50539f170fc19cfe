from __future__ import annotations

import os
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest
import torch
from sklearn.exceptions import ConvergenceWarning

from sparsevae.decoder.threads import (
    mind_fork,
    n_decoder_threads,
    run_tasks,
    side_by_side,
    single_threaded_kernels,
)

CPU = torch.device("cpu")


@pytest.fixture
def three_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("three_threads")
def test_every_task_runs_once_and_kernels_in_it_have_one_thread():
    done, kernels = [], set()

    def work(todo):
        for task in todo:
            kernels.add(torch.get_num_threads())
            done.append(task)

    run_tasks(work, range(20), CPU)
    assert sorted(done) == list(range(20))
    assert kernels == {1}
    assert torch.get_num_threads() == 3


@pytest.mark.usefixtures("three_threads")
def test_an_error_in_a_task_reaches_the_caller_and_leaves_the_threads_as_they_were():
    def work(todo):
        for task in todo:
            if task == 3:
                raise ValueError("task 3")

    with pytest.raises(ValueError, match="task 3"):
        run_tasks(work, range(20), CPU)
    assert torch.get_num_threads() == 3


@pytest.mark.usefixtures("three_threads")
def test_kernels_give_their_threads_to_the_decoder_inside_the_context():
    with single_threaded_kernels():
        assert torch.get_num_threads() == 1
        assert n_decoder_threads() == 3
        with single_threaded_kernels():
            assert n_decoder_threads() == 3
        assert torch.get_num_threads() == 1
        names = set()
        barrier = threading.Barrier(3)

        def work(todo):
            for _ in todo:
                names.add(threading.current_thread().name)
                barrier.wait(timeout=30)

        run_tasks(work, range(3), CPU)
        assert len(names) == 3
    assert torch.get_num_threads() == n_decoder_threads() == 3


def test_one_task_stays_in_the_callers_thread():
    threads = []
    run_tasks(lambda todo: threads.extend(threading.current_thread() for _ in todo), [0], CPU)
    assert threads == [threading.current_thread()]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
@pytest.mark.usefixtures("three_threads")
def test_a_forked_process_gets_threads_of_its_own():
    def run():
        done = []
        run_tasks(lambda todo: done.extend(todo), range(5), CPU)
        return sorted(done) == list(range(5))

    assert run()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of forking with threads
        child = os.fork()
    if child == 0:
        os._exit(0 if run() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


FORKING = """
import multiprocessing
import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from sparsevae import VAE

X = np.random.default_rng(0).standard_normal((600, 200))

def fit():
    VAE(5, max_epochs=1, random_state=0, hidden_sizes=(256, 256), batch_size=512).fit(X)

torch.set_num_threads(2)
torch.randn(1000, 1000) @ torch.randn(1000, 1000)
fit()
child = multiprocessing.get_context("fork").Process(target=fit)
child.start()
child.join()
print(child.exitcode)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_child_of_a_process_with_threads_comes_to_an_end():
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    command = [sys.executable, "-W", "ignore", "-c", FORKING]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment)
    assert done.stdout == "0\n", done.stderr


@pytest.mark.usefixtures("three_threads")
def test_only_a_forked_process_is_set_to_one_thread(monkeypatch):
    mind_fork()
    mind_fork()
    assert torch.get_num_threads() == 3
    monkeypatch.setattr(os, "getpid", lambda: -1)
    mind_fork()
    assert torch.get_num_threads() == 1


@pytest.mark.usefixtures("three_threads")
def test_jobs_side_by_side_come_back_in_order_with_the_bits_of_one_thread():
    rng = np.random.default_rng(0)
    tables = [rng.standard_normal((200, 60)) for _ in range(7)]

    def analyse(X):
        kernels.add(torch.get_num_threads())
        return np.linalg.eigh(X.T @ X)[0]

    kernels = set()
    many = side_by_side(analyse, tables)
    assert kernels == {1}
    assert torch.get_num_threads() == 3
    torch.set_num_threads(1)
    np.testing.assert_array_equal(many, side_by_side(analyse, tables))
    assert [len(values) for values in many] == [60] * 7


@pytest.mark.usefixtures("three_threads")
def test_jobs_side_by_side_that_ignore_warnings_leave_the_filters_as_they_were():
    def fit(_):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            threading.Event().wait(0.001)
            warnings.warn("directions", ConvergenceWarning, stacklevel=1)
        return 1

    before = list(warnings.filters)
    assert side_by_side(fit, range(30)) == [1] * 30
    assert warnings.filters == before


@pytest.mark.usefixtures("three_threads")
def test_an_error_in_one_job_reaches_the_caller():
    with pytest.raises(ZeroDivisionError):
        side_by_side(lambda job: 1 / job, [2, 1, 0])


@pytest.mark.usefixtures("three_threads")
def test_jobs_that_take_much_memory_go_one_by_one():
    running, most, lock = 0, 0, threading.Lock()

    def job(_):
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        threading.Event().wait(0.01)
        with lock:
            running -= 1

    side_by_side(job, range(6), bytes_each=1 << 40)
    assert most == 1
    side_by_side(job, range(6), bytes_each=1 << 10)
    assert most > 1
