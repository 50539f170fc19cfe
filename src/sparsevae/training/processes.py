"""Several processes that fit one model together: each takes its rows of every batch, and sums meet.

The processes run the same code on the same table with the same randomness; what is summed over rows is summed
over processes, and whatever is decided is decided from such sums. So all of them hold the same model at any
time, and the batch, the learning rate and the result mean what they mean in one process.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from typing import TypeVar

import torch
from torch import Tensor
from torch import distributed as dist

from sparsevae.exceptions import DataError, MeetingError, ProcessError
from sparsevae.training.interrupt import Agreement, agreeing, is_asked

__all__ = [
    "Group",
    "alone",
    "current_group",
    "first_says",
    "is_first_process",
    "is_helper",
    "is_one_of_several",
    "join_processes",
    "joined_fit",
    "summed",
]

_PATIENCE = 300.0  # seconds without an answer after which a process is given up

Value = TypeVar("Value")


class Group:
    """The processes of one fit.

    Parameters
    ----------
    rank, size : int
        Number of this process, from 0, and how many there are.
    agreement : Agreement
        Whether the processes have agreed to stop.

    Attributes
    ----------
    n_sent : int
        Numbers that this process has put into sums so far: the traffic, up to the factor of the algorithm.
    """

    def __init__(self, rank: int, size: int, agreement: Agreement) -> None:
        self.rank, self.size, self.agreement = rank, size, agreement
        self.n_sent = 0
        self._buffer = torch.empty(0)

    def rows(self, n_rows: int) -> slice:
        """Which rows of so many this process takes: shares differ by one at most."""
        return slice(n_rows * self.rank // self.size, n_rows * (self.rank + 1) // self.size)

    def sum_(self, flat: Tensor) -> Tensor:
        """Sum a tensor over the processes, in place."""
        self.n_sent += flat.numel()
        self._call(lambda: dist.all_reduce(flat))
        return flat

    def sum_gradients_(self, parameters: Sequence[Tensor]) -> None:
        """Sum the gradients of parameters in one message, and agree on whether to stop.

        A parameter has a gradient if it has one in any of the processes.
        """
        length = sum(p.numel() for p in parameters)
        if (
            self._buffer.numel() != length + len(parameters) + 1
            or self._buffer.device != parameters[0].device
        ):
            self._buffer = parameters[0].new_empty(length + len(parameters) + 1, requires_grad=False)
        buffer = self._buffer.zero_()
        found, at = buffer[length:-1], 0
        for i, parameter in enumerate(parameters):
            if parameter.grad is not None:
                buffer[at : at + parameter.numel()] = parameter.grad.reshape(-1)
                found[i] = 1.0
            at += parameter.numel()
        buffer[-1] = float(is_asked())
        self.sum_(buffer)
        at = 0
        for parameter, n_found in zip(parameters, found.tolist(), strict=True):
            if n_found:
                total = buffer[at : at + parameter.numel()].view_as(parameter)
                if parameter.grad is None:
                    parameter.grad = total.clone()
                else:
                    parameter.grad.copy_(total)
            at += parameter.numel()
        self.agreement.stop |= bool(buffer[-1] > 0)

    def agree_to_stop(self) -> None:
        """Let all processes stop if one of them was asked to."""
        flag = torch.tensor([float(is_asked())])
        self.agreement.stop |= bool(self.sum_(flag)[0] > 0)

    def from_first(self, value: Value) -> Value:
        """What the first process has."""
        return self._call(lambda: first_says(value))

    def check_alike(self, value: object, what: str) -> None:
        """Refuse to go on where processes differ.

        Raises
        ------
        DataError
        """
        values: list[object] = [None] * self.size
        self._call(lambda: dist.all_gather_object(values, value))
        other = next((r for r, found in enumerate(values) if found != values[0]), None)
        if other is not None:
            raise DataError(
                f"Expected the same {what} in all {self.size} processes; got others in processes 0 and "
                f"{other}. Pass each the whole table and the same parameters: the rows are shared out inside."
            )

    def copy_first_(self, tensors: Mapping[str, Tensor]) -> None:
        """Give all processes the tensors of the first, in place.

        They should be the same to the last bit already, unless processors differ in how they round.
        """
        self.check_alike([(name, tuple(t.shape)) for name, t in tensors.items()], "model")
        for tensor in tensors.values():
            if tensor.numel():
                whole = tensor.detach().contiguous()
                self._call(lambda whole=whole: dist.broadcast(whole, src=0))  # type: ignore[misc]
                tensor.detach().copy_(whole)

    def _call(self, collective: Callable[[], Value]) -> Value:
        try:
            return collective()
        except RuntimeError as error:
            late = "timed out" in str(error).lower()
            what = "does not answer" if late else "has ended"
            raise ProcessError(
                f"Expected all {self.size} processes to go on to the end of the fit; got one that {what}, as "
                f"process {self.rank} sees it. Start them all again: a fit with a checkpoint goes on from "
                "there."
            ) from error


_current: ContextVar[Group | None] = ContextVar("group", default=None)
_alone: ContextVar[bool] = ContextVar("alone", default=False)


def current_group() -> Group | None:
    """The processes that share the fit at hand; None where it has one."""
    return _current.get()


def is_first_process() -> bool:
    """Whether this process is the one that speaks and writes."""
    if dist.is_available() and dist.is_initialized():
        return dist.get_rank() == 0
    return True


def first_says(value: Value) -> Value:
    """What the first process says, in all of them; the value itself where there is one process."""
    if not (dist.is_available() and dist.is_initialized()):
        return value
    values: list[Value] = [value]
    dist.broadcast_object_list(values, src=0)
    found: Value = values[0]
    return found


def is_one_of_several() -> bool:
    """Whether a launcher has started this process as one of several."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1


def is_helper() -> bool:
    """Whether a launcher has started this process beside another one, which speaks and writes."""
    return is_one_of_several() and os.environ.get("RANK", "0") != "0"


@contextmanager
def join_processes(timeout: float = _PATIENCE) -> Iterator[int]:
    """Join the processes that a launcher such as torchrun has started, and leave them at the end.

    Does nothing where the environment names no others, or where ``torch.distributed`` is initialised.

    Parameters
    ----------
    timeout : float
        Seconds without an answer after which another process is given up.

    Yields
    ------
    int
        The number of this process, 0 for the one that should write.

    Examples
    --------
    >>> from sparsevae.training import join_processes
    >>> with join_processes() as rank:  # alone here; with torchrun one of several
    ...     rank
    0
    """
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if not is_one_of_several() or not dist.is_available() or dist.is_initialized():
        yield dist.get_rank() if dist.is_available() and dist.is_initialized() else 0
        return
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    try:
        dist.init_process_group(backend, timeout=timedelta(seconds=timeout))
    except (RuntimeError, ValueError) as error:
        raise MeetingError(
            f"Expected {size} processes to meet at {os.environ.get('MASTER_ADDR')}:"
            f"{os.environ.get('MASTER_PORT')} within {timeout:g} s; process {os.environ.get('RANK')} met "
            f"none ({str(error).strip().splitlines()[0]}). Look for a missing one, and for a firewall."
        ) from error
    try:
        yield dist.get_rank()
    finally:
        dist.destroy_process_group()


@contextmanager
def joined_fit() -> Iterator[Group | None]:
    """Share the fit in this context with the other processes, if ``torch.distributed`` is initialised."""
    several = dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1
    if _alone.get() or not several:
        token = _current.set(None)
        try:
            yield None
        finally:
            _current.reset(token)
        return
    with agreeing() as agreement:
        group = Group(dist.get_rank(), dist.get_world_size(), agreement)
        token = _current.set(group)
        try:
            yield group
        finally:
            _current.reset(token)


@contextmanager
def alone() -> Iterator[None]:
    """Let fits in this context be this process's own, whatever others there are."""
    token = _alone.set(True)
    try:
        yield
    finally:
        _alone.reset(token)


def summed(group: Group | None, values: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Tensors, each summed over the processes, in one message; as they are where there is one process."""
    if group is None:
        return dict(values)
    names = sorted(values)
    flat = torch.cat([values[name].detach().double().reshape(-1) for name in names])
    parts = group.sum_(flat).split([values[name].numel() for name in names])
    return {
        name: part.view_as(values[name]).to(values[name]) for name, part in zip(names, parts, strict=True)
    }
