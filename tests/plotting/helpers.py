"""What the tests of plots share."""

from __future__ import annotations

import io

from matplotlib.axes import Axes


def rendered(ax: Axes) -> bytes:
    file = io.BytesIO()
    ax.figure.savefig(file, format="png", dpi=40)
    return file.getvalue()
