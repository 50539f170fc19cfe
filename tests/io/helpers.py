"""A small table, and files that hold it."""

from __future__ import annotations

import numpy as np

VALUES = np.array([[1.5, 2.0, -3.0], [4.0, 5.25, 6.0], [7.0, 8.0, 9.5], [0.0, 1.0, 2.0]])


def write(path, text):
    path.write_bytes(text.encode())
    return path


def csv_of(values, head="", labels=None):
    rows = [",".join(map(str, row)) for row in values]
    if labels is not None:
        rows = [f"{label},{row}" for label, row in zip(labels, rows, strict=True)]
    return head + "\n".join(rows) + "\n"
