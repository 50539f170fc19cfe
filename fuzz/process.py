"""One attack in a child process, with limits on memory and time: what came of it, whatever came of it."""

from __future__ import annotations

import os
import resource
import signal
import traceback
import warnings
from collections.abc import Callable
from typing import NamedTuple

from sparsevae.exceptions import SparseVAEError

__all__ = ["Outcome", "attack"]

_MEMORY = 3 << 30  # bytes that a child may take beyond what it begins with
_GROWTH = 1 << 30  # bytes of real memory beyond which it took too much
_SECONDS = 60  # of the processor: a busy machine does not make a case slow
_WALL_SECONDS = 900  # for a child that waits and does nothing


class Outcome(NamedTuple):
    """What came of an attack: one of "passed", "refused" and "failed", and the reason."""

    kind: str
    reason: str = ""


_ENDED_BY = {
    -signal.SIGXCPU: Outcome("failed", f"took more than {_SECONDS} s of the processor"),
    -signal.SIGALRM: Outcome("failed", f"had not ended after {_WALL_SECONDS} s"),
}


def attack(target: Callable[[], None]) -> Outcome:
    """Call a function in a child process.

    Refusals are the package's own errors and those of the system. Everything else is a failure: other errors,
    warnings of numpy (an overflow that nobody saw), a crash, too much memory or time.
    """
    reader, writer = os.pipe()
    process = os.fork()
    if not process:
        os.close(reader)
        outcome = _outcome(target)
        os.write(writer, f"{outcome.kind}\n{outcome.reason}"[:4000].encode(errors="replace"))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        text = pipe.read().decode(errors="replace")
    _, status = os.waitpid(process, 0)
    code = os.waitstatus_to_exitcode(status)
    if code in _ENDED_BY:
        return _ENDED_BY[code]
    if code or not text:
        return Outcome("failed", f"ended with code {code}")
    kind, _, reason = text.partition("\n")
    return Outcome(kind, reason)


def _outcome(target: Callable[[], None]) -> Outcome:
    _limit()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    outcome = Outcome("passed")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", RuntimeWarning)
            target()
    except (SparseVAEError, OSError) as error:
        outcome = Outcome("refused", f"{type(error).__name__}: {error}")
    except BaseException as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{os.path.basename(place.filename)}:{place.lineno}"
        outcome = Outcome("failed", f"{type(error).__name__}: {error} ({where})")
    grown = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    if grown > _GROWTH:
        return Outcome("failed", f"took {grown / 1e9:.1f} GB; {outcome.kind}: {outcome.reason}")
    return outcome


def _limit() -> None:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(_WALL_SECONDS)
    resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS + 5))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with open("/proc/self/statm", encoding="ascii") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + _MEMORY, used + _MEMORY))
    quiet = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(quiet, stream)
