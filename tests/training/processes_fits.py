"""Small fits of several estimators, run as one of several processes: ``python FILE RESULT``.

The first process writes histories and parameters to RESULT; all of them say by their exit code how it went.
Each writes the epochs that a callback has seen in it to a file calls-RANK.
"""

from __future__ import annotations

import os
import sys
import warnings

import numpy as np
import torch

import sparsevae
from sparsevae import OIVAE, VAE, VSC, SparseVAE
from sparsevae.exceptions import ConvergenceWarning
from sparsevae.training.processes import join_processes

CALLS: list[int] = []


def stop_after_three(record: dict) -> bool:
    CALLS.append(record["step"])
    return record["step"] == 3


def tables() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    z = rng.normal(size=(203, 2))
    weights = np.kron(np.eye(2), np.ones(4))
    real = z @ weights + 0.5 * rng.normal(size=(203, 8))
    holed = real.copy()
    holed[rng.random(real.shape) < 0.1] = np.nan
    counts = rng.poisson(np.exp(0.5 * z @ weights + 1.0)).astype(np.float32)
    return {"real": real, "holed": holed, "counts": counts}


def fits(folder: str):
    data = tables()
    short = {"max_epochs": 6, "random_state": 0, "batch_size": 50}
    sparse = {**short, "n_factors": 3}
    yield "spine", SparseVAE(**sparse), data["real"], {}
    yield "ladder", SparseVAE(**sparse, slab_rate=1.0), data["real"], {}
    yield "paper", SparseVAE(**sparse, recipe="paper"), data["real"], {}
    yield "holes", SparseVAE(**sparse), data["holed"], {}
    yield "poisson", SparseVAE(**sparse, likelihood="poisson"), data["counts"], {}
    weight = np.tile([0.0, 1.0, 2.5], 68)[:203]
    yield "weights", VAE(**short, n_factors=2), data["real"], {"sample_weight": weight}
    yield "groups", VAE(**short, n_factors=2), data["real"], {"groups": np.arange(203) % 3}
    yield "few", VAE(**{**short, "batch_size": 2}, n_factors=2), data["real"][:9], {}
    yield "vsc", VSC(**short, n_factors=2), data["real"], {}
    yield "oivae", OIVAE(**short, n_factors=2), data["real"], {}
    yield "stopped", VAE(**short, n_factors=2), data["real"], {"callbacks": [stop_after_three]}
    path = os.path.join(folder, f"rows-{os.environ.get('RANK', '0')}.npy")
    np.save(path, data["real"].astype(np.float32))
    yield "stored", SparseVAE(**sparse), sparsevae.open_rows(path), {}
    yield "stored weights", VAE(**short, n_factors=2), sparsevae.open_rows(path), {"sample_weight": weight}


def main(result: str) -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", ConvergenceWarning)  # six epochs are few
    found = {}
    with join_processes(60.0) as rank:
        for name, model, X, sides in fits(os.path.dirname(result)):
            model.fit(X, **sides)
            found[f"{name}: objective"] = model.history_["objective"].to_numpy()
            found[f"{name}: validation"] = model.history_["validation"].to_numpy()
            for key, value in model.module_.state_dict().items():
                found[f"{name}: {key}"] = value.double().numpy()
    with open(os.path.join(os.path.dirname(result), f"calls-{rank}"), "w") as file:
        file.write(" ".join(map(str, CALLS)))
    if rank == 0:
        np.savez(result, **found)
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1])
