"""A progress bar over epochs, on standard error, only when asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from tqdm import tqdm

from sparsevae.training.loop import Progress, Record
from sparsevae.training.processes import is_first_process

__all__ = ["progress_bar"]


@contextmanager
def progress_bar(verbose: int, total: int) -> Iterator[Progress | None]:
    """A function to call with the record of each epoch, or None where nothing is to be shown."""
    if not verbose or not is_first_process():
        yield None
        return
    with tqdm(total=total, unit="epoch", dynamic_ncols=True) as bar:

        def show(record: Record) -> None:
            bar.total = max(bar.total, bar.n + 1)
            bar.update(1)
            bar.set_description(str(record["phase"]))
            bar.set_postfix(
                objective=f"{np.nanmin(record['objective']):.3f}",
                nonzero=int(np.min(record["n_nonzero"])),
                factors=int(np.min(record["n_active"])),
            )

        yield show
        bar.total = bar.n
        bar.refresh()
