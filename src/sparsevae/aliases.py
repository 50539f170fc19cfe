"""Types that several parts of the package name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import ArrayLike
    from scipy import sparse

__all__ = ["JSON", "JSONValue", "Matrix", "MatrixLike", "Parameters", "State", "TableLike"]

Matrix: TypeAlias = "np.ndarray | sparse.csr_array"
"""Numbers in rows and columns, dense or sparse."""

MatrixLike: TypeAlias = "ArrayLike | sparse.csr_array"
"""What becomes a `Matrix`."""

TableLike: TypeAlias = "ArrayLike | pd.DataFrame | sparse.csr_array"
"""What a user may pass as a table."""

JSON: TypeAlias = dict[str, Any]
"""An object of JSON or TOML, whose values are known by their keys."""

JSONValue: TypeAlias = "bool | int | float | str | list[JSONValue] | dict[str, JSONValue] | None"
"""What a file of JSON can hold."""

State: TypeAlias = dict[str, Any]
"""What is saved of an object: plain values and arrays, by name."""

Parameters: TypeAlias = Mapping[str, Any]
"""Keyword arguments of a function that is chosen at run time."""
