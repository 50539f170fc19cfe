"""Results on disk, as text and as a picture; what is there already is not measured again."""

from __future__ import annotations

import os
import platform
import shutil
from pathlib import Path
from string import Template
from typing import Any

import pandas as pd
import torch

import sparsevae

__all__ = ["WANTED", "Results", "machine"]

WANTED = {
    ("synthetic", "float32"): 2.0,
    ("peerread", "float32"): 4.0,
    ("zeisel", "float32"): 3.0,
    ("movielens", "float32"): 1.6,
    ("peerread", "bfloat16"): 7.0,
    ("zeisel", "bfloat16"): 7.0,
    ("movielens", "bfloat16"): 3.5,
    ("peerread", "anchors"): 9.0,
    ("zeisel", "anchors"): 9.0,
    ("movielens", "anchors"): 5.0,
    ("peerread", "empty"): 12.0,
    ("zeisel", "empty"): 12.0,
    ("movielens", "empty"): 6.0,
}
"""Ratios to the literal loop that the project has set itself, with two hidden layers on two cores."""

TITLES = {
    "steps": "Training steps",
    "features": "Steps by number of features (batch 128, 30 factors, 2 hidden layers of 128)",
    "rows": "Epochs by number of rows (200 features, 10 factors, 2 hidden layers of 64, Poisson)",
    "fits": "Whole fits: the paper's widths in three hidden layers, stopped on held-out rows",
    "starts": "Default fits of the paper's synthetic data by number of starts",
}


PAGE = Template(Path(__file__).with_name("page.md").read_text())


class Results:
    """Tables of results in a folder, one CSV file each.

    Parameters
    ----------
    folder : Path
    fresh : bool
        Forget what is there.
    """

    def __init__(self, folder: Path, *, fresh: bool = False) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        if fresh:
            for name in TITLES:
                (folder / f"{name}.csv").unlink(missing_ok=True)

    def frame(self, name: str) -> pd.DataFrame:
        """A table, empty where nothing has been measured."""
        path = self.folder / f"{name}.csv"
        return pd.read_csv(path) if path.exists() else pd.DataFrame()

    def has(self, name: str, **key: Any) -> bool:
        """Whether there are rows with these values."""
        frame = self.frame(name)
        if frame.empty:
            return False
        return bool((frame[list(key)] == pd.Series(key)).all(axis=1).any())

    def add(self, name: str, rows: list[dict[str, Any]]) -> None:
        """Write rows at once, so that a run that is stopped goes on from here."""
        path = self.folder / f"{name}.csv"
        frame = pd.DataFrame([{**row, **machine()} for row in rows])
        frame.to_csv(path, mode="a", header=not path.exists(), index=False, float_format="%.6g")

    def text(self) -> str:
        """All tables, for people."""
        parts = []
        for name, title in TITLES.items():
            frame = _readable(name, self.frame(name))
            if not frame.empty:
                parts.append(f"{title}\n\n{frame.to_string(index=False)}\n")
        return "\n".join(parts)

    def markdown(self) -> str:
        """All tables, for the documentation."""
        parts = []
        for name, title in TITLES.items():
            frame = _readable(name, self.frame(name))
            if not frame.empty:
                lines = [
                    list(frame.columns),
                    ["---"] * frame.shape[1],
                    *frame.astype(str).to_numpy().tolist(),
                ]
                table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
                parts.append(f"## {title}\n\n{table}\n")
        return "\n".join(parts)

    def publish(self, folder: Path) -> None:
        """Write a page of the documentation, and a folder of its name with tables and picture."""
        (folder / "speed").mkdir(parents=True, exist_ok=True)
        for path in [*self.folder.glob("*.csv"), *self.folder.glob("*.png")]:
            shutil.copy(path, folder / "speed" / path.name)
        about = self.frame("steps").iloc[0][list(machine())]
        on = ", ".join(f"{name} {value}" for name, value in about.items())
        (folder / "speed.md").write_text(PAGE.substitute(machine=on, tables=self.markdown()))


def machine() -> dict[str, Any]:
    """What the numbers were measured on and with."""
    cpu = platform.processor() or platform.machine()
    about = Path("/proc/cpuinfo")
    if about.exists():
        lines = (line.partition(":") for line in about.read_text().splitlines())
        cpu = next((value.strip() for name, _, value in lines if name.startswith("model name")), cpu)
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "sparsevae": sparsevae.__version__,
    }


def _readable(name: str, frame: pd.DataFrame) -> pd.DataFrame:
    if frame.empty:
        return frame
    frame = frame.drop(columns=list(machine()), errors="ignore")
    if name == "steps":
        return _readable_steps(frame)
    columns = {column: str(column).replace("_", " ") for column in frame}
    return frame.map(_short).rename(columns=columns)


def _readable_steps(frame: pd.DataFrame) -> pd.DataFrame:
    wanted = [
        WANTED.get((shape, candidate), float("nan")) if n_hidden == 2 else float("nan")
        for shape, n_hidden, candidate in frame[["shape", "n_hidden", "candidate"]].itertuples(index=False)
    ]
    return pd.DataFrame(
        {
            "shape": frame["shape"],
            "hidden": frame["n_hidden"],
            "step": frame["label"],
            "ms": frame["milliseconds"].map(_short),
            "× loop": frame["ratio_to_loop"].map(_short),
            "wanted": pd.Series(wanted, index=frame.index).map(_short),
            "× plain VAE": frame["ratio_to_plain"].map(_short),
            "GFLOP/s": frame["gflops"].map(_short),
            "of matmul": frame["of_matmul"].map(_percent),
            "of cached matmul": frame["of_cached_matmul"].map(_percent),
            "peak MB": frame["peak_megabytes"].map(_short),
        }
    )


def _short(value: Any) -> str:
    if not isinstance(value, float):
        return str(value)
    return "" if pd.isna(value) else f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def _percent(value: float) -> str:
    return "" if pd.isna(value) else f"{value:.0%}"
