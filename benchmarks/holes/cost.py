"""What a table without holes, weights and groups pays for them: fits by this checkout and by earlier ones.

The default fit has become another since tables with holes came. So whole default fits are compared between
the commit before them (`BEFORE`) and the last of that line of work (`BUILT`); this checkout by a recipe that
has stayed the same, step by step.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.trees import ROOT, other_tree, run_worker

BEFORE, BUILT = "f724601", "43b2de7"
EPOCHS = (20, 100)


def cost(arguments: argparse.Namespace) -> Iterator[dict[str, object]]:
    """CPU seconds of the same fits by source trees in turn, and a checksum of their masks."""
    from sparsevae.datasets import make_anchored_factors, make_sparse_factors

    jobs = {
        "500 x 7, default": (make_sparse_factors(500, correlation=0.4, random_state=0).X, 5, "default"),
        "1,000 x 60, paper": (make_anchored_factors(1000, 60, 6, random_state=0).X, 10, "paper"),
    }
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        trees = {name: stack.enter_context(other_tree(name)) for name in (BEFORE, BUILT)}
        trees["this checkout"] = ROOT
        for name, (X, n_factors, recipe) in jobs.items():
            if arguments.tables is not None and name not in arguments.tables:
                continue
            np.save(folder / "table.npy", X)
            job = {"table": str(folder / "table.npy"), "n_factors": n_factors, "recipe": recipe}
            sources = [s for s in trees if recipe == "paper" or s != "this checkout"]
            for repeat in arguments.seeds:
                for source in sources if repeat % 2 == 0 else sources[::-1]:
                    found = run_worker(trees[source], "benchmarks.holes.cost", job, folder / "found.json")
                    yield {"seed": repeat, "table": name, "source": source, **found}


def work(job: dict[str, Any]) -> dict[str, Any]:
    """Fit with the package that is importable: CPU seconds, and a checksum of the mask.

    A short fit beside the long one tells what the epochs between cost from what surrounds them.
    """
    warnings.simplefilter("ignore")
    from sparsevae import SparseVAE

    X = np.load(job["table"])
    seconds = {}
    for epochs in (2, *EPOCHS):  # the first one pays for imports
        model = SparseVAE(job["n_factors"], random_state=0, recipe=job["recipe"], max_epochs=epochs)
        started = time.process_time()
        model.fit(X)
        seconds[epochs] = time.process_time() - started
    # Up to order and sign of the factors, which are read off a fit after it, today by fewer rows.
    columns = np.abs(model.mask_)
    mask = np.ascontiguousarray(columns[:, np.lexsort(columns)])
    short, long = EPOCHS
    return {
        "cpu_seconds": round(seconds[long], 3),
        "cpu_seconds_of_epochs": round(seconds[long] - seconds[short], 3),
        "mask": hashlib.sha256(mask.tobytes()).hexdigest()[:12],
    }


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    Path(given["out"]).write_text(json.dumps(work(given)))
