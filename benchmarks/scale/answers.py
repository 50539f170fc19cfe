"""Peak memory of everything that goes over all rows, for two numbers of rows: what a further row costs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.scale.tables import write_normal

__all__ = ["measure_answers"]

_FEATURES = 20
_HOLES = 0.01
_DONE = "peak kilobytes:"
_BEGIN = """
import sys, warnings
from pathlib import Path
warnings.simplefilter("ignore")
table, folder = Path(sys.argv[1]), Path(sys.argv[2])
"""
_END = f"""
line = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print("{_DONE}", line.split()[1])
"""
_MODEL = "from sparsevae import Run, open_rows; model = Run.open(folder / 'run').model(); X = open_rows(table)\n"
_COMMAND = "from sparsevae.cli import app; app([{}], standalone_mode=False)\n"
ACTIONS = {
    "sparsevae fit": _COMMAND.format(
        "'fit', str(table), '-o', str(folder / f'run-{table.name}'), '--config', str(folder / 'settings.toml')"
    ),
    "sparsevae transform": _COMMAND.format(
        "'transform', str(folder / 'run'), str(table), '-o', str(folder / 'z.csv'), '--force'"
    ),
    "sparsevae report": _COMMAND.format(
        "'report', str(folder / 'run'), '-o', str(folder / 'p.html'), '--table', str(table), '--force'"
    ),
    "transform": _MODEL + "model.transform(X, out=folder / 'z.npy')\n",
    "score": _MODEL + "model.score(X)\n",
    "impute": _MODEL + "model.impute(X, out=folder / 'full.npy')\n",
    "choice of the likelihood": "from sparsevae import open_rows\nfrom sparsevae.io import suggest_likelihood\n"
    "suggest_likelihood(open_rows(table))\n",
}
"""Code that is run in a process of its own."""


def measure_answers(folder: Path, n_rows: list[int]) -> list[dict[str, Any]]:
    """Peak resident memory of each action for each number of rows, from folders of Parquet files."""
    (folder / "settings.toml").write_text(
        "hidden_sizes = []\nmax_epochs = 1\nn_factors = 5\nlikelihood = 'gaussian'\n"
    )
    tables = [_write(folder / f"rows-{n}", n) for n in (2000, *n_rows)]
    command = [sys.executable, "-m", "sparsevae", "fit", str(tables[0]), "-o", str(folder / "run")]
    subprocess.run([*command, "--config", str(folder / "settings.toml")], check=True, stderr=subprocess.DEVNULL)
    rows = []
    for action, code in ACTIONS.items():
        peaks = [_peak(code, table, folder) for table in tables[1:]]
        growth = (peaks[-1] - peaks[0]) / (n_rows[-1] - n_rows[0])
        rows.append(
            {
                "what": action,
                **{f"MB at {n} rows": round(peak / 1e6, 1) for n, peak in zip(n_rows, peaks, strict=True)},
                "bytes a further row": round(growth, 1),
            }
        )
        print(", ".join(f"{name} {value}" for name, value in rows[-1].items()), flush=True)
    return rows


def _write(folder: Path, n_rows: int) -> Path:
    """A folder of Parquet files, with some holes."""
    import pandas as pd

    folder.mkdir(exist_ok=True)
    X = np.load(write_normal(folder / "all.npy", n_rows, _FEATURES, n_factors=4))
    X[np.random.default_rng(0).random(X.shape) < _HOLES] = np.nan
    names = [f"x{j}" for j in range(_FEATURES)]
    for part, begin in enumerate(range(0, n_rows, 50_000)):
        frame = pd.DataFrame(X[begin : begin + 50_000], columns=names)
        frame.to_parquet(folder / f"{part:03d}.parquet", row_group_size=5000)
    (folder / "all.npy").unlink()
    return folder


def _peak(code: str, table: Path, folder: Path) -> int:
    """Bytes at most in a process that runs this code."""
    command = [sys.executable, "-c", _BEGIN + code + _END, str(table), str(folder)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    line = next(line for line in done.stdout.splitlines() if line.startswith(_DONE))
    return 1024 * int(line.removeprefix(_DONE))
