"""RNA molecule counts of mouse cortex cells (Zeisel et al. 2015), from the official file or a sparse copy."""

from __future__ import annotations

import csv
import gzip
import os
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.stats import rankdata

from sparsevae.datasets.base import Dataset, check_count
from sparsevae.datasets.sources import get_source, locate
from sparsevae.exceptions import DataError, ParameterError

__all__ = ["load_zeisel", "quantile_normalise"]

# Zeisel et al. (2015), supplementary text: molecules that a gene needs, the correlation that counts as high,
# how many other genes must reach it, and how many of the noisiest genes go on.
_MIN_MOLECULES = 25
_HIGH_CORRELATION = 0.2091
_MIN_COMPANIONS = 5
_NOISIEST = 5000


class _Table(NamedTuple):
    counts: sparse.csr_array  # cells x genes
    genes: np.ndarray
    cell_types: np.ndarray


def load_zeisel(
    path: str | os.PathLike[str] | None = None,
    *,
    directory: str | os.PathLike[str] | None = None,
    n_features: int = 558,
    transform: str = "quantile",
    filter_genes: bool = True,
) -> Dataset:
    """Expression of the most variable genes in 3,005 cells of mouse cortex and hippocampus.

    Parameters
    ----------
    path : path, optional
        The official file ``expression_mRNA_17-Aug-2014.txt`` (or ``.txt.gz``), a folder that holds it, or a
        folder with ``counts.npz`` (CSR, cells x genes), ``cells.csv`` and ``genes.csv``. By default the data
        directory is searched.
    directory : path, optional
        Where to search, in place of `data_directory`.
    n_features : int, default=558
        The genes of largest variance after the transform, in falling order.
    transform : {"quantile", "log1p", "counts"}, default="quantile"
        Quantile normalisation, as in the paper; log(1 + count); or the counts themselves, with genes chosen
        by their variance under log1p.
    filter_genes : bool, default=True
        Whether to apply the filters of Zeisel et al. first.

    Returns
    -------
    Dataset
        ``X`` is an array (CSR for ``transform="counts"``), ``target`` the cell type, one of seven.

    Notes
    -----
    Appendix "Dataset details and preprocessing". The filters: genes with at least 25 molecules in all; genes
    that correlate above 0.2091 with at least five others; the 5,000 genes that stand highest above the line
    of log2 CV on log2 mean, fitted by least squares.
    """
    check_count("n_features", n_features, minimum=1)
    if transform not in ("quantile", "log1p", "counts"):
        raise ParameterError(f"Expected transform to be 'quantile', 'log1p' or 'counts'; got {transform!r}.")
    source = get_source("zeisel")
    found = locate(path, (source.filename, source.filename + ".gz", "zeisel"), source, directory)
    table = _read(found)
    n_cells, n_all = table.counts.shape
    keep, steps = (np.arange(n_all), []) if not filter_genes else _filter(table.counts)
    if not len(keep):
        raise DataError(
            f"Expected genes that pass the filters of Zeisel et al. in {found}; got none of {n_all}. "
            f"Pass filter_genes=False to keep all."
        )
    counts = table.counts[:, keep]
    dense = counts.toarray().astype(np.float64)
    values = quantile_normalise(dense) if transform == "quantile" else np.log1p(dense)
    top = np.argsort(-values.var(axis=0), kind="stable")[:n_features]
    X = counts[:, top] if transform == "counts" else np.ascontiguousarray(values[:, top])
    done = {
        "quantile": "quantile normalisation of cells",
        "log1p": "log(1 + count)",
        "counts": "raw counts",
    }
    return Dataset(
        X=X,
        feature_names=table.genes[keep][top],
        target=table.cell_types,
        description=(
            f"Zeisel et al. (2015), {source.url}; terms: {source.terms}. {n_cells} cells x {X.shape[1]} "
            f"genes of {n_all} in the file; target: {len(np.unique(table.cell_types))} cell types. Steps: "
            f"{''.join(step + '; ' for step in steps)}{done[transform]}; the {X.shape[1]} genes of largest "
            f"variance{' under log1p' if transform == 'counts' else ''}, in falling order."
        ),
    )


def quantile_normalise(values: np.ndarray) -> np.ndarray:
    """Give every row the same distribution: the mean over rows of the sorted values.

    Parameters
    ----------
    values : ndarray of shape (n_samples, n_features)

    Returns
    -------
    ndarray of shape (n_samples, n_features)

    Notes
    -----
    Bolstad et al. (2003). Values tied within a row share the reference value at their mean rank.
    """
    reference = np.sort(values, axis=1).mean(axis=0)
    ranks = rankdata(values, axis=1) - 1  # whole or half numbers
    return np.interp(ranks, np.arange(values.shape[1]), reference)


def _filter(counts: sparse.csr_array) -> tuple[np.ndarray, list[str]]:
    totals = np.asarray(counts.sum(axis=0)).ravel()
    keep = np.flatnonzero(totals >= _MIN_MOLECULES)
    steps = [f"{len(keep)} genes with at least {_MIN_MOLECULES} molecules"]
    keep = keep[_companions(counts[:, keep]) >= _MIN_COMPANIONS]
    steps.append(f"{len(keep)} correlated above {_HIGH_CORRELATION} with at least {_MIN_COMPANIONS} others")
    if len(keep) > _NOISIEST:
        noise = _noise(counts[:, keep])
        keep = np.sort(keep[np.argsort(-noise, kind="stable")[:_NOISIEST]])
    steps.append(f"{len(keep)} highest above the fitted line of log2 CV on log2 mean")
    return keep, steps


def _companions(counts: sparse.csr_array, block: int = 1024) -> np.ndarray:
    """Count the genes that correlate highly with each gene, in blocks: all pairs are too many to hold."""
    values = counts.toarray().astype(np.float32)
    values -= values.mean(axis=0)
    norms = np.linalg.norm(values, axis=0)
    values /= np.where(norms > 0, norms, 1)
    found = np.zeros(values.shape[1], dtype=np.int64)
    for start in range(0, values.shape[1], block):
        end = min(start + block, values.shape[1])
        high = values[:, start:end].T @ values[:, start:] > _HIGH_CORRELATION
        found[start:end] += high.sum(axis=1)
        found[end:] += high[:, end - start :].sum(axis=0)  # the matrix is symmetric: half of it suffices
    return found - (norms > 0)  # a gene correlates with itself


def _noise(counts: sparse.csr_array) -> np.ndarray:
    mean = np.asarray(counts.mean(axis=0)).ravel()
    square = np.asarray(counts.astype(np.float64).power(2).mean(axis=0)).ravel()
    log_mean = np.log2(mean)
    log_cv = np.log2(np.sqrt(square - mean**2)) - log_mean
    slope, level = np.polyfit(log_mean, log_cv, deg=1)
    return log_cv - (slope * log_mean + level)


def _read(path: Path) -> _Table:
    if path.is_dir():
        if (path / "counts.npz").is_file():
            return _read_copy(path)
        name = get_source("zeisel").filename
        inside = [path / file for file in (name, name + ".gz") if (path / file).is_file()]
        if not inside:
            raise DataError(f"Expected counts.npz or {name} in {path}; got neither.")
        path = inside[0]
    return _read_official(path)


def _read_copy(folder: Path) -> _Table:
    try:
        with (folder / "counts.npz").open("rb") as file:
            counts = sparse.csr_array(sparse.load_npz(file))
    except (ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"Expected a CSR matrix in {folder / 'counts.npz'}; got {error}.") from error
    try:
        cell_types = pd.read_csv(folder / "cells.csv", usecols=["level1class"])["level1class"].to_numpy(str)
        genes = pd.read_csv(folder / "genes.csv", usecols=["gene"], keep_default_na=False)["gene"].to_numpy(
            str
        )
    except (ValueError, OSError) as error:
        raise DataError(
            f"Expected {folder}/cells.csv with a column level1class and genes.csv with a column gene; got "
            f"{error}."
        ) from error
    if counts.shape != (len(cell_types), len(genes)):
        raise DataError(
            f"Expected {len(cell_types)} cells x {len(genes)} genes in {folder / 'counts.npz'}, as in "
            f"cells.csv and genes.csv; got {counts.shape}. One of the files is truncated."
        )
    return _Table(counts, genes, cell_types)


def _read_official(path: Path) -> _Table:
    """Read rows of annotation with an empty first cell, then per gene a name, a group, a count per cell."""
    try:
        with _open(path) as file:
            annotation, n_lines = _read_annotation(file, path)
        cell_types = annotation["level1class"]
        n_cells = len(cell_types)
        types: dict[int, str] = {0: "str", 1: "str"} | dict.fromkeys(range(2, n_cells + 2), "int32")
        blocks, genes = [], []
        with _open(path) as file:
            layout: dict[str, Any] = {"sep": "\t", "header": None, "skiprows": n_lines, "dtype": types}
            # Without the filter an empty cell is an error, and a gene called NA is none.
            layout |= {"na_filter": False, "quoting": csv.QUOTE_NONE}
            for chunk in pd.read_csv(file, chunksize=500, **layout):
                if chunk.shape[1] != n_cells + 2:
                    raise ValueError(f"{chunk.shape[1] - 2} counts in a line of {n_cells} cells")
                genes.append(chunk[0].to_numpy(str))
                blocks.append(sparse.csr_array(chunk.iloc[:, 2:].to_numpy()))
    except (ValueError, KeyError, EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(
            f"Expected rows of annotation with level1class and a row of counts per gene in {path}; got "
            f"{error}. The file is truncated, damaged or another one."
        ) from error
    counts = sparse.csr_array(sparse.vstack(blocks).T)
    if counts.nnz and counts.data.min() < 0:
        raise DataError(f"Expected counts of molecules in {path}; got negative numbers. It is another file.")
    return _Table(counts, np.concatenate(genes), np.asarray(cell_types, dtype=str))


def _read_annotation(file: IO[str], path: Path) -> tuple[dict[str, list[str]], int]:
    annotation: dict[str, list[str]] = {}
    n_lines = 0
    for line in file:
        cells = line.rstrip("\r\n").split("\t")
        if cells[0].strip():
            break
        if len(cells) > 2 and cells[1].strip():
            annotation[cells[1].strip()] = cells[2:]
        n_lines += 1
    else:
        raise ValueError("no rows of genes")
    if "level1class" not in annotation:
        raise ValueError(f"annotation {sorted(annotation)} without level1class")
    lengths = {len(values) for values in annotation.values()}
    if len(lengths) > 1:
        raise ValueError(f"rows of annotation of different lengths {sorted(lengths)}")
    return annotation, n_lines


def _open(path: Path) -> IO[str]:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8")
    return path.open(encoding="utf-8")
