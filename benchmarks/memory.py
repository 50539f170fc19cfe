"""Memory of this process, as Linux tells it."""

from __future__ import annotations

from pathlib import Path

__all__ = ["megabytes"]

_STATUS = Path("/proc/self/status")


def megabytes(*, peak: bool) -> float:
    """Resident memory, now or at its largest; NaN where the system does not tell.

    Not ``ru_maxrss``, which a process inherits from the one that started it.
    """
    if not _STATUS.exists():
        return float("nan")
    field = "VmHWM" if peak else "VmRSS"
    line = next(line for line in _STATUS.read_text().splitlines() if line.startswith(field))
    return 1024 * int(line.split()[1]) / 1e6
