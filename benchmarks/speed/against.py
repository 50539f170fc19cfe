"""Whole default fits of this checkout and of another revision, in turn, and simple rivals beside them.

``python -m benchmarks.speed fits --against REV --data FOLDER`` fits every table in fresh processes, one
thread each, first by one source tree and then by the other; both score the same held-out rows.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from benchmarks.memory import megabytes
from benchmarks.speed.fits_page import write_page
from benchmarks.trees import ROOT, cpu_seconds, other_tree, run_worker

HELD_OUT = 0.1  # of the rows, which no fit sees
SPARSE = 0.15  # filled entries up to which a table is passed as a sparse one
SOURCES = ("ours", "theirs")
PREDICTIVE = "ours, gain_kept=1.0"
Case = tuple[Callable[[Path], np.ndarray], str, int]


def cases() -> dict[str, Case]:
    """Table, likelihood and number of factors of every fit; of real tables half of the rows."""
    # Workers import this module with the package of another revision, which may lack some of these.
    from benchmarks.replication.tables import TABLES, pbmc_counts
    from sparsevae.datasets import make_anchored_factors, make_sparse_factors
    from sparsevae.metrics.replication import halves

    def half(name: str) -> Callable[[Path], np.ndarray]:
        def load(folder: Path) -> np.ndarray:
            X = TABLES[name].load(folder)
            return X[halves(len(X), 0)[0]]

        return load

    found: dict[str, Case] = {
        "500 x 7": (
            lambda _: make_sparse_factors(500, correlation=0.4, random_state=0).X,
            "gaussian",
            5,
        ),
        "abilities": (TABLES["abilities"].load, "gaussian", 10),
        "2,000 x 60": (
            lambda _: make_anchored_factors(2000, 60, 6, correlation=0.3, random_state=0).X,
            "gaussian",
            10,
        ),
        "bfi": (TABLES["bfi"].load, "gaussian", 10),
    }
    for name in ("zeisel", "pbmc", "peerread", "movielens"):
        found[name] = (half(name), TABLES[name].likelihood, TABLES[name].n_factors)
    found["pbmc, 2,000 genes"] = (lambda f: pbmc_counts(f, 2000), "negative_binomial", 20)
    found["pbmc, all genes"] = (lambda f: pbmc_counts(f, None), "negative_binomial", 20)
    return found


def compare(arguments: argparse.Namespace) -> None:
    """Fit what has no row yet, each table by both trees in turn, and print the ratios."""
    out = arguments.out / "against.csv"
    out.parent.mkdir(parents=True, exist_ok=True)
    rows = pd.read_csv(out).to_dict("records") if out.exists() and not arguments.fresh else []
    done = {(row["table"], row["source"], row["repeat"]) for row in rows}
    names = arguments.tables.split(";") if arguments.tables else list(cases())
    with other_tree(arguments.against) as theirs, tempfile.TemporaryDirectory() as folder:
        trees = {"ours": ROOT, "theirs": theirs}
        for name in names:
            load, likelihood, n_factors = cases()[name]
            table = Path(folder) / "table.npz"
            sparse.save_npz(table, sparse.csr_array(load(Path(arguments.data))))
            job = {"table": str(table), "likelihood": likelihood, "n_factors": n_factors}
            for repeat in range(arguments.pairs):
                turns = SOURCES if repeat % 2 == 0 else SOURCES[::-1]
                for source in (*turns, *([PREDICTIVE] if arguments.predictive else [])):
                    if (name, source, repeat) in done:
                        continue
                    wanted = {**job, "seed": repeat, "rivals": source == "ours"}
                    if source == PREDICTIVE:
                        wanted["options"] = {"gain_kept": 1.0}
                    found = run_worker(
                        trees["theirs" if source == "theirs" else "ours"],
                        "benchmarks.speed.against",
                        wanted,
                        Path(folder) / "found.json",
                    )
                    rows.append({"table": name, "source": source, "repeat": repeat, **found})
                    pd.DataFrame(rows).to_csv(out, index=False)
                    print(rows[-1], flush=True)
    found = summary(pd.DataFrame(rows))
    print(found.to_string(index=False))
    if arguments.publish:
        write_page(found, pd.DataFrame(rows), arguments.publish / "fits", arguments.against)


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Medians of each table, theirs over ours."""
    lines = []
    for name, group in rows.groupby("table", sort=False):
        ours, theirs, predictive = (group[group["source"] == source] for source in (*SOURCES, PREDICTIVE))
        lines.append(
            {
                "table": name,
                "CPU s": ours["cpu"].median(),
                "CPU s, other": theirs["cpu"].median(),
                "ratio": theirs["cpu"].median() / ours["cpu"].median(),
                "wall s": ours["wall"].median(),
                "held out": ours["score"].median(),
                "held out, gain_kept=1.0": predictive["score"].median(),
                "held out, other": theirs["score"].median(),
                "factors": ours["factors"].median(),
                "factors, other": theirs["factors"].median(),
                "links": ours["links"].median(),
                "links, other": theirs["links"].median(),
                "FA s": ours["fa"].median(),
                "NMF s": ours["nmf"].median(),
                "MB": ours["megabytes"].median(),
            }
        )
    return pd.DataFrame(lines).round(3)


def work(job: dict[str, Any]) -> dict[str, Any]:
    """Fit one table with the package that is importable; a plain record of what came of it."""
    warnings.simplefilter("ignore")
    from sparsevae import SparseVAE

    X, likelihood = sparse.load_npz(job["table"]), job["likelihood"]
    if X.nnz > SPARSE * X.shape[0] * X.shape[1]:
        X = X.toarray()
    order = np.random.default_rng(0).permutation(X.shape[0])
    held_out, rows = np.split(order, [int(HELD_OUT * len(order))])
    options = job.get("options", {})
    model = SparseVAE(job["n_factors"], likelihood=likelihood, random_state=job["seed"], **options)
    cpu, wall = _timed(lambda: model.fit(X[rows]))
    found = {
        "cpu": cpu,
        "wall": wall,
        "score": float(model.score(X[held_out])),
        "factors": len(model.active_factors_),
        "links": float((model.mask_ != 0)[:, model.active_factors_].mean()),
        "megabytes": megabytes(peak=True),
        "fa": float("nan"),
        "nmf": float("nan"),
    }
    if job["rivals"]:
        found |= _rivals(X[rows], likelihood, max(1, found["factors"]))
    return found


def _rivals(X: np.ndarray, likelihood: str, n_factors: int) -> dict[str, float]:
    """CPU seconds of scikit-learn's factor analysis and non-negative factorisation."""
    from sklearn.decomposition import NMF, FactorAnalysis

    X = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
    logs = X if likelihood == "gaussian" else np.log1p(X)
    logs = (logs - logs.mean(0)) / np.maximum(logs.std(0), 1e-6)
    fa, _ = _timed(lambda: FactorAnalysis(n_factors, rotation="varimax").fit(logs))
    nmf, _ = _timed(lambda: NMF(n_factors, init="nndsvda", max_iter=400).fit(X - X.min(0)))
    return {"fa": fa, "nmf": nmf}


def _timed(run: Callable[[], object]) -> tuple[float, float]:
    cpu, wall = cpu_seconds(), time.perf_counter()
    run()
    return cpu_seconds() - cpu, time.perf_counter() - wall


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    Path(given["out"]).write_text(json.dumps(work(given)))
