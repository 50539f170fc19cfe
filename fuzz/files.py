"""Damaged files of every kind that the package reads, and text tables in every dialect."""

from __future__ import annotations

import gzip
import json
import shutil
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anndata  # loaded once, here: two seconds for each child otherwise
import numpy as np
import pandas as pd
import pyarrow.parquet  # noqa: F401  (likewise)
from hypothesis import strategies as st
from scipy import sparse
from scipy.io import mmwrite

from fuzz.damage import damage_bytes, damage_value
from sparsevae import Run, SparseVAE, read_table
from sparsevae.cli.settings import read_config
from sparsevae.exceptions import DataError
from sparsevae.io.layout import read_number
from sparsevae.io.spreadsheet import restore_text
from sparsevae.persistence.directory import sign
from sparsevae.report import build_content
from sparsevae.runs.record import believed

__all__ = ["FileCase", "attack_file", "dialect_cases", "file_cases", "prepare"]

TABLES = (
    "t.csv",
    "t.tsv",
    "t.csv.gz",
    "t.npy",
    "dense.npz",
    "csr.npz",
    "coo.npz",
    "t.mtx",
    "t.h5ad",
    "t.parquet",
)
TOML = """
n_factors = 3
hidden_sizes = [4, 4]
[likelihood]
gaussian = ["a", "c", "d"]
[table]
drop = ["b"]
header = true
"""
OTHERS = ("fit.toml", "run.json", "evidence.json", "model.json", "model.safetensors", "signed model.json")


@dataclass(frozen=True)
class FileCase:
    """A file and how it is damaged."""

    name: str
    seed: int
    structured: bool


def file_cases() -> Any:
    """Files of every kind, damaged in bytes or in values."""
    return st.builds(FileCase, st.sampled_from(TABLES + OTHERS), st.integers(0, 2**32 - 1), st.booleans())


def prepare(folder: Path) -> None:
    """Write a sound file of each kind."""
    rng = np.random.default_rng(0)
    X = rng.poisson(2.0, (12, 4)).astype(float)
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame.to_csv(folder / "t.csv", index=False)
    frame.to_csv(folder / "t.tsv", index=False, sep="\t")
    (folder / "t.csv.gz").write_bytes(gzip.compress((folder / "t.csv").read_bytes()))
    np.save(folder / "t.npy", X)
    np.savez(folder / "dense.npz", X=X, feature_names=np.array(list("abcd")))
    sparse.save_npz(folder / "csr.npz", sparse.csr_matrix(X))
    sparse.save_npz(folder / "coo.npz", sparse.coo_matrix(X), compressed=False)
    mmwrite(folder / "t.mtx", sparse.coo_matrix(X))
    frame.to_parquet(folder / "t.parquet")
    (folder / "fit.toml").write_text(TOML)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        anndata.AnnData(sparse.csr_matrix(X)).write_h5ad(folder / "t.h5ad")
        model = SparseVAE(2, n_init=1, max_epochs=2, hidden_sizes=(3,), random_state=0).fit(frame)
        Run.create(folder / "run", model, read_table(folder / "t.csv"))


def attack_file(case: FileCase, folder: Path, scratch: Path) -> None:
    """Damage a file, read it, and look whether what was read is usable."""
    if case.name in TABLES:
        target = scratch / case.name
        target.write_bytes(damage_bytes((folder / case.name).read_bytes(), case.seed))
        table = read_table(target)
        assert table.X.ndim == 2, "not a table"
        assert table.X.dtype.kind in "biuf", "not numbers"
        values = table.X.data if sparse.issparse(table.X) else np.asarray(table.X)
        assert not np.isinf(values).any(), "not finite"
        holes = int(np.isnan(values).sum())  # a cell that the damage emptied is missing, and that is said
        assert not holes or any("missing" in note for note in table.assumptions), "silent hole"
        assert table.feature_names is None or len(table.feature_names) == table.shape[1], "names"
        assert table.sample_names is None or len(table.sample_names) == table.shape[0], "samples"
        table.for_estimator()
    elif case.name == "fit.toml":
        _attack_settings(case, folder, scratch)
    else:
        _attack_run(case, folder, scratch)


def _attack_settings(case: FileCase, folder: Path, scratch: Path) -> None:
    target = scratch / case.name
    if case.structured:
        target.write_text(_odd_settings(case.seed))
    else:
        target.write_bytes(damage_bytes((folder / case.name).read_bytes(), case.seed))
    parameters, reading = read_config(target)
    parameters.setdefault("likelihood", "gaussian")
    parameters["max_epochs"], parameters["n_init"] = 1, 1
    sizes = parameters.get("hidden_sizes", ())
    few = [size for size in np.atleast_1d(sizes).tolist() if isinstance(size, int) and 0 < size < 50]
    parameters["hidden_sizes"] = tuple(few[:3])
    n_factors = parameters.get("n_factors", 2)
    parameters["n_factors"] = min(n_factors, 5) if isinstance(n_factors, int) else n_factors  # or "auto"
    table = read_table(folder / "t.csv", **reading)
    SparseVAE(**parameters).fit(table.for_estimator())


def _odd_settings(seed: int) -> str:
    """One parameter with a value of any type."""
    rng = np.random.default_rng(seed)
    names = ("n_factors", "likelihood", "recipe", "spike_rate", "slab_rate", "expected_features_per_factor",
             "inclusion_prior", "factor_covariance", "init", "anchors", "batch_size", "learning_rate",
             "validation_fraction", "precision", "features_per_step", "device", "random_state")  # fmt: skip
    options = ("header", "id_column", "drop", "transpose", "layer", "feature_names", "groups", "weights")
    values = ("true", "0", "-1", "1", "3", "0.5", "1e300", "nan", "inf", '""', '"a"', '"auto"', '"cpu"',
              "[]", "[1]", '["a"]', "[1.5, 2]", "[[1, 0], [0, 1]]", "{}", "{a = 0}", '{a = "b"}', "{a = [1]}",
              "1979-05-27",
              '{gaussian = ["a", "b"], poisson = ["c", "d"]}', "{gaussian = 5}", "{x = []}")  # fmt: skip
    value = values[int(rng.integers(len(values)))]
    if rng.integers(4) == 0:
        return f"[table]\n{options[int(rng.integers(len(options)))]} = {value}\n"
    return f"{names[int(rng.integers(len(names)))]} = {value}\n"


def _attack_run(case: FileCase, folder: Path, scratch: Path) -> None:
    run = scratch / "run"
    shutil.rmtree(run, ignore_errors=True)
    shutil.copytree(folder / "run", run)
    name = case.name.removeprefix("signed ")
    target = run / name if (run / name).exists() else run / "model" / name
    before = target.read_bytes()
    if name.endswith(".json") and (case.structured or case.name.startswith("signed")):
        after = json.dumps(damage_value(json.loads(before), case.seed)).encode()
    else:
        after = damage_bytes(before, case.seed)
    if case.name.startswith("signed"):
        try:
            after = sign(after, (run / "model" / "model.safetensors").read_bytes())
        except AssertionError as error:
            raise DataError("no checksum left to be written") from error
    target.write_bytes(after)
    opened = Run.open(run)
    model = opened.model()
    if name.startswith("model.") and not case.name.startswith("signed"):
        assert json.loads(after) == json.loads(before) if name.endswith("json") else after == before, (
            "silent change"
        )
    codes = opened.factors(folder / "t.csv")
    assert np.isfinite(codes.to_numpy()).all(), "codes are not finite"
    if name == "evidence.json":
        with believed(target):
            build_content(model, evidence=opened.evidence(), record=dict(opened.record))
    model.loadings()
    model.effects()


# -- dialects -----------------------------------------------------------------------------------------------


@st.composite
def dialect_cases(draw: Callable[..., Any]) -> tuple[str, str, np.ndarray, list[str] | None]:
    """Text of a table in some dialect, an ending, and what is in it."""
    n, G = draw(st.integers(2, 12)), draw(st.integers(2, 7))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.standard_normal((n, G)) * 10.0 ** rng.integers(-4, 5, (n, G))
    if draw(st.booleans()):
        X = np.round(X)
    separator, ending = draw(
        st.sampled_from(((",", "csv"), (";", "csv"), ("\t", "tsv"), ("\t", "txt"), (",", "txt")))
    )
    comma = separator == ";" and draw(st.booleans())
    newline = draw(st.sampled_from(("\n", "\r\n", "\r")))
    quote = draw(st.sampled_from(("", '"')))
    names = None
    if draw(st.booleans()):
        # Of a line of numbers nobody can tell whether they are names: the reader says what it assumes.
        letters = st.text("abcxyz_=-+@'éß 0123456789.", min_size=1, max_size=6).map(str.strip)
        letters = letters.filter(lambda name: read_number(name) is None)
        names = draw(st.lists(letters, min_size=G, max_size=G, unique=True))
    labels = draw(st.sampled_from(("none", "text", "unnamed")))
    rows = [[repr(v).replace(".", ",") if comma else repr(v) for v in row] for row in X.tolist()]
    if labels != "none":
        rows = [[f"row {i}", *row] for i, row in enumerate(rows)]
    head = [] if names is None else [[*({"text": ["who"], "unnamed": [""]}.get(labels, [])), *names]]
    lines = [separator.join(f"{quote}{cell}{quote}" for cell in row) for row in [*head, *rows]]
    blank = draw(st.sampled_from(("", newline, "  " + newline)))
    text = blank + newline.join(lines) + draw(st.sampled_from(("", newline, newline * 2)))
    return draw(st.sampled_from(("", "\ufeff"))) + text, ending, X, names


def attack_dialect(case: tuple[str, str, np.ndarray, list[str] | None], scratch: Path) -> None:
    """Read a table in text: to the last bit as it was written, or refused."""
    text, ending, X, names = case
    path = scratch / f"dialect.{ending}"
    path.write_bytes(text.encode())
    table = read_table(path)
    assert table.shape == X.shape, f"silent change: {table.shape} of {X.shape}"
    assert np.array_equal(table.X, X), "silent change of a number"
    if names is not None:
        assert table.feature_names is not None, "silent loss of the names"
        assert list(table.feature_names) == [restore_text(name) for name in names], "silent change of a name"
