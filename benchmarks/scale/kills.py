"""Fits that are killed in every stage and resumed: whether they end with the bits of an undisturbed one.

SIGKILL comes from a thread of the process itself, at a random moment of the stage that is named, so that
stages of a few milliseconds are hit too. Processes are forked from one that has imported all they need, and
share nothing else. The next process goes on from the checkpoint, until it is killed in the next stage; the
last one of a chain comes to the end.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from sparsevae import OIVAE, VAE, VSC, SparseVAE
from sparsevae.fitting import procedure
from sparsevae.persistence import CheckpointFolder

__all__ = ["CHAINS", "measure_kills"]

_FEATURES, _EPOCHS = 12, 40
_WRITE = "write"  # of a checkpoint: may be hit in any stage
CHAINS: dict[str, tuple[str, ...]] = {
    "default": ("find_axes", _WRITE, "climb", "choose", "refine", "polish"),
    "ladder": ("find_starts", "choose", "loosen", "refine"),
    "paper": ("train_once", _WRITE),
    "VAE": ("fit", _WRITE),
    "VSC": ("fit", _WRITE),
    "OIVAE": ("fit", _WRITE),
}
"""Stages of each kind of fit that take time there, in their order."""


def measure_kills(kind: str, n_chains: int, seed: int, folder: Path, n_rows: int) -> Iterator[dict[str, Any]]:
    """Kill a fit in each of its stages, one after the other, as often as there are chains.

    Yields
    ------
    dict
        A row per kill: the stage that was meant and the one that was hit, whether a checkpoint was being
        written, the moment, and whether the chain ended with the bits of the fit that nobody disturbed.
    """
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        begun = time.perf_counter()
        whole = _run(kind, n_rows, Path(scratch) / "whole", None, 0.0)
        seconds = time.perf_counter() - begun
        for chain in range(n_chains):
            kept, own = Path(scratch) / f"chain-{chain}", []
            for stage in CHAINS[kind]:
                delay = float(rng.uniform(0.0, 0.5 * whole["seconds"].get(stage, 0.0)))
                hit = _run(kind, n_rows, kept, stage, delay)
                if hit.get("killed"):  # else the stage was over: nothing was disturbed
                    own.append(
                        {
                            "kind": kind,
                            "chain": chain,
                            "meant": stage,
                            "hit": hit["stage"],
                            "in a write": hit["writing"],
                            "after": delay,
                        }
                    )
            end = _run(kind, n_rows, kept, None, 0.0)
            same = end["digest"] == whole["digest"]
            for row in own:
                yield {
                    **row,
                    "after": round(row["after"], 3),
                    "seconds of the fit": round(seconds, 1),
                    "CPU seconds": round(whole["cpu"], 1),
                    "same bits": same,
                }


def _run(kind: str, n_rows: int, kept: Path, stage: str | None, delay: float) -> dict[str, Any]:
    """Fit in a process that is killed in a stage, or comes to its end; what it said last."""
    said = kept.with_name(f"{kept.name}.json")
    said.unlink(missing_ok=True)
    child = os.fork()
    if not child:
        try:
            _child(kind, n_rows, kept, said, stage, delay)
        except BaseException:
            traceback.print_exc()
        os._exit(1)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    found: dict[str, Any] = json.loads(said.read_text())
    assert code == (0 if "digest" in found else -signal.SIGKILL), code
    return found


def _model(kind: str) -> Any:
    if kind in ("VAE", "VSC", "OIVAE"):
        more = {"groups": [f"g{j // 4}" for j in range(_FEATURES)]} if kind == "OIVAE" else {}
        return {"VAE": VAE, "VSC": VSC, "OIVAE": OIVAE}[kind](3, random_state=0, max_epochs=_EPOCHS, **more)
    if kind == "paper":
        return SparseVAE(3, recipe="paper", random_state=0, max_epochs=_EPOCHS)
    # Without a simpler model that does nearly as well, networks climb the ladder.
    kept = 1.0 if kind == "ladder" else 0.95
    return SparseVAE(4, n_init=2, random_state=0, max_epochs=_EPOCHS, gain_kept=kept)


def _table(n_rows: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    loadings = np.kron(np.eye(3), np.ones((1, 4))) + 0.5 * (rng.random((3, _FEATURES)) < 0.1)
    Z = rng.normal(size=(n_rows, 3))
    noise = rng.normal(size=(n_rows, _FEATURES))
    return np.asarray(np.sinh(0.7 * Z) @ loadings + 0.7 * noise, dtype=np.float32)


def _child(kind: str, n_rows: int, kept: Path, said: Path, target: str | None, delay: float) -> None:
    torch.set_num_threads(1)
    seconds: dict[str, float] = {}
    stages: list[str] = []
    reached = threading.Event()

    def kill() -> None:
        reached.wait()
        time.sleep(delay)
        stage = next((name for name in reversed(stages) if name != _WRITE), "between")
        said.write_text(json.dumps({"killed": True, "stage": stage, "writing": _WRITE in stages}))
        os.kill(os.getpid(), signal.SIGKILL)

    if target is not None:
        threading.Thread(target=kill, daemon=True).start()

    @contextmanager
    def within(name: str) -> Iterator[None]:
        stages.append(name)
        if name == target:
            reached.set()
        begun = time.perf_counter()
        try:
            yield
        finally:
            stages.pop()
            seconds[name] = seconds.get(name, 0.0) + time.perf_counter() - begun
            if name == _WRITE:
                seconds[name] = time.perf_counter() - begun  # of one of them

    _watch(within)
    begun, X = time.process_time(), _table(n_rows)
    model = _model(kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with within("fit"):
            model.fit(X, checkpoint=kept, checkpoint_every=1)
    digest = hashlib.sha256()
    for name, value in sorted(model.module_.state_dict().items()):
        digest.update(name.encode() + value.numpy().tobytes())
    digest.update(model.history_.to_csv().encode() + model.transform(X[:500]).tobytes())
    said.write_text(
        json.dumps({"digest": digest.hexdigest(), "seconds": seconds, "cpu": time.process_time() - begun})
    )
    os._exit(0)  # the thread may be waiting


def _watch(within: Callable[[str], Any]) -> None:
    """Have the stages of a fit and the writes of its checkpoints announced."""

    def announced(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any) -> Any:
            with within(name):
                return function(*arguments)

        run.__name__ = function.__name__  # by which a checkpoint knows a stage
        return run

    for stages in ("STAGES", "SINGLE_RATE_STAGES"):
        named = tuple(announced(stage.__name__, stage) for stage in getattr(procedure, stages))
        setattr(procedure, stages, named)
    plain = CheckpointFolder.write
    CheckpointFolder.write = announced(_WRITE, plain)  # type: ignore[method-assign]
