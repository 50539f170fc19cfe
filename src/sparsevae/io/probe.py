"""A look at an HDF5 file from another process.

The library that reads HDF5 may crash, or loop for ever, on a file that is damaged. A child process can do so
in our place: it visits every object, attribute and text, and only a file that it comes back from is opened.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from sparsevae.exceptions import DataError

__all__ = ["check_hdf5"]

_SECONDS, _BYTES_PER_SECOND = 20.0, 5e6  # far more than a sound file takes
_VISIT = """
import signal
import sys
import h5py

if hasattr(signal, "alarm"):
    signal.alarm(int(sys.argv[2]))  # also if nobody is left to wait for an end

def look(name, item):
    for key in item.attrs:
        item.attrs[key]
    if isinstance(item, h5py.Dataset) and item.ndim == 1:
        numbers = item.dtype.kind in "biuf"
        item[:1], item[-1:], None if numbers else item[:]

with h5py.File(sys.argv[1], "r") as file:
    look("/", file)
    file.visititems(look)
"""


def check_hdf5(path: Path, kind: str = "an H5AD file") -> None:
    """Refuse a file that a child process cannot read to its end.

    Parameters
    ----------
    path : Path
    kind : str
        What the file should be, for the message.

    Raises
    ------
    DataError
        If the child crashes, takes too long or finds the file damaged.
    """
    if not sys.executable:
        return  # Python inside another program
    limit = _SECONDS + path.stat().st_size / _BYTES_PER_SECOND
    try:
        done = subprocess.run(
            [sys.executable, "-c", _VISIT, str(path), str(int(limit) + 1)],
            capture_output=True,
            timeout=limit,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise DataError(
            f"Expected {path} to be {kind}; reading it does not come to an end: it is damaged. Copy it "
            "again, or make it again."
        ) from error
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        reason = (
            lines[-1][:200] if lines and done.returncode > 0 else f"the reader crashed, {done.returncode}"
        )
        raise DataError(
            f"Expected {path} to be {kind}; it cannot be read as one: it is damaged, or something else "
            f"({reason})."
        )
