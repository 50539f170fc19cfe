"""Exit codes of many short fits in two processes: an interpreter that has used gloo may abort at its end."""

from __future__ import annotations

import os
import socket
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["count_exits"]


def count_exits(n_runs: int, number: int) -> dict[str, Any]:
    """Run ``sparsevae fit`` so often in so many processes; how many runs ended with exit code 0 in each.

    Processes are forked from this one, which has imported all they need: a run then takes a second of their
    time instead of ten. From there on they are what torchrun starts.
    """
    from sparsevae.cli import fit, main  # noqa: F401 - imported before the processes are forked

    good, aborted = 0, 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        rng = np.random.default_rng(0)
        X = rng.normal(size=(200, 2)) @ rng.normal(size=(2, 6)) + rng.normal(size=(200, 6))
        np.save(folder / "table.npy", X.astype(np.float32))
        (folder / "settings.toml").write_text(
            "n_factors = 2\nmax_epochs = 2\nn_init = 1\nhidden_sizes = [4]\n"
        )
        for run in range(n_runs):
            port = _free_port()
            children = [_start(folder, run, rank, number, port) for rank in range(number)]
            codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
            complete = (folder / f"run-{run}" / "run.json").exists()
            good += complete and not any(codes)
            aborted += any(code < 0 for code in codes)
            if any(codes):
                print(f"run {run}: {codes} {(folder / f'log-{run}-0').read_text()[-500:]}", flush=True)
    return {"runs": n_runs, "processes": number, "all with exit code 0": good, "aborted": aborted}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _start(folder: Path, run: int, rank: int, number: int, port: int) -> int:
    child = os.fork()
    if child:
        return child
    try:
        os.environ.update(
            RANK=str(rank),
            WORLD_SIZE=str(number),
            MASTER_ADDR="127.0.0.1",
            MASTER_PORT=str(port),
            GLOO_SOCKET_IFNAME="lo",
        )
        log = os.open(folder / f"log-{run}-{rank}", os.O_WRONLY | os.O_CREAT)
        os.dup2(log, 1)
        os.dup2(log, 2)
        options = ["--config", str(folder / "settings.toml"), "--seed", str(run)]
        sys.argv = ["sparsevae", "fit", str(folder / "table.npy"), "-o", str(folder / f"run-{run}"), *options]
        from sparsevae.cli import main

        main()
    except BaseException:
        traceback.print_exc()
    os._exit(99)  # main ends one of several processes itself


if __name__ == "__main__":
    print(count_exits(int(sys.argv[1]), int(sys.argv[2])))
