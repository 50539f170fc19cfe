"""The same runs on a real Dask cluster with processes of its own."""

from __future__ import annotations

import os
import signal

import pytest

from sparsevae.reproduction.results import Results, read_value
from sparsevae.reproduction.runner import run_spec

from .helpers import make_spec

distributed = pytest.importorskip("distributed")

# The cluster's own housekeeping: sockets and event loops that close late.
pytestmark = pytest.mark.filterwarnings("default")


def numbers(results):
    return {
        (row["method"], row["data_set"], row["metric"]): read_value(row["value"])
        for row in results.rows()
        if row["value"]
    }


@pytest.fixture(scope="module")
def cluster():
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
    ) as started:
        yield started


def test_a_cluster_finds_what_this_process_finds(cluster, tmp_path):
    here, there = Results(tmp_path / "here"), Results(tmp_path / "there")
    run_spec(make_spec(), "paper", here)
    told = []
    outcome = run_spec(
        make_spec(), "paper", there, backend="dask", scheduler=cluster.scheduler_address, progress=told.append
    )
    assert (outcome.n_done, len(told)) == (6, 6)
    assert numbers(there) == pytest.approx(numbers(here))


def test_the_work_is_done_by_the_workers(cluster, tmp_path):
    """Workers have executed tasks meanwhile, and no worker is this process."""
    with distributed.Client(cluster) as client:
        before = client.run(lambda dask_worker: dask_worker.state.executed_count)
        run_spec(make_spec(), "paper", Results(tmp_path), backend="dask", scheduler=cluster.scheduler_address)
        after = client.run(lambda dask_worker: dask_worker.state.executed_count)
        processes = client.run(os.getpid)
    assert os.getpid() not in processes.values()
    assert len(set(processes.values())) == 2
    n_tasks = sum(after.values()) - sum(before.values())
    assert 1 <= n_tasks <= 6  # joblib puts quick runs together


def test_failures_on_a_worker_come_back_as_rows(cluster, tmp_path):
    spec = make_spec(methods=[{"name": "NMF", "estimator": "NMF"}], claims=[])
    outcome = run_spec(spec, "paper", Results(tmp_path), backend="dask", scheduler=cluster.scheduler_address)
    assert len(outcome.failures) == 3


@pytest.mark.slow
def test_a_killed_worker_costs_nothing(cluster, tmp_path):
    """Its runs are done by others, each once, with the same numbers."""
    here, there = Results(tmp_path / "here"), Results(tmp_path / "there")
    run_spec(make_spec(), "paper", here)
    with distributed.Client(cluster) as client:
        victim = next(iter(client.run(os.getpid).values()))
        told = []

        def kill_once(line):
            if not told:
                os.kill(victim, signal.SIGKILL)
            told.append(line)

        outcome = run_spec(
            make_spec(),
            "paper",
            there,
            backend="dask",
            scheduler=cluster.scheduler_address,
            progress=kill_once,
        )
        assert (outcome.n_done, len(told)) == (6, 6)
        client.wait_for_workers(2, timeout=60)
        assert victim not in client.run(os.getpid).values()
    assert len(there.rows()) == len(here.rows())
    assert numbers(there) == pytest.approx(numbers(here))


def test_without_a_scheduler_processes_are_started_here(tmp_path):
    outcome = run_spec(make_spec(), "paper", Results(tmp_path), backend="dask", jobs=1)
    assert outcome.n_done == 6
