"""Files and directories that are replaced as a whole: the old one or the new one, never something between."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from sparsevae.persistence.durability import sync, write_synced
from sparsevae.persistence.place import take_place

__all__ = [
    "check_writable",
    "finish_replacement",
    "replacing",
    "replacing_directory",
    "replacing_together",
]

_PROBE = 4096  # bytes: a block of most file systems


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A place to write a file at; on success it gets its name, on failure nothing is left of it.

    The partial file is in the same directory, has the same ending (some libraries choose a format by it) and
    the number of the process in its name: several may write the same file, and the last one wins.

    Parameters
    ----------
    path : Path
        A file that is there is replaced.
    """
    partial = _partial(path)
    _remove_left(path)
    try:
        yield partial
        sync(partial)
        os.replace(partial, path)
        sync(path.parent)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def replacing_together(paths: Sequence[Path]) -> Iterator[list[Path]]:
    """Places to write several files at, which get their names as one set.

    A list of the renames, synced before the first of them, is the decision: a process that is killed after it
    has its work finished by the next `finish_replacement` or `replacing_together` of these files.

    Parameters
    ----------
    paths : sequence of Path
        In one directory; files that are there are replaced.
    """
    finish_replacement(paths)
    partials = [_partial(path) for path in paths]
    journal, decided = _journal(paths), False
    try:
        yield partials
        for partial in partials:
            sync(partial)
        with replacing(journal) as written:
            renames = {partial.name: path.name for partial, path in zip(partials, paths, strict=True)}
            write_synced(written, json.dumps(renames).encode())
        decided = True
        finish_replacement(paths)
    finally:
        if not decided and not journal.exists():
            for partial in partials:
                partial.unlink(missing_ok=True)


def finish_replacement(paths: Sequence[Path]) -> bool:
    """Do the renames that a `replacing_together` of these files has decided on; whether there were any.

    Parameters
    ----------
    paths : sequence of Path
        The same as there. A list that names other files is not believed.
    """
    journal, folder = _journal(paths), paths[0].parent
    for path in (journal, *paths):
        _remove_left(path, unless=journal)
    try:
        renames = json.loads(journal.read_bytes())
    except FileNotFoundError:
        return False
    except ValueError:
        renames = None
    ours = {path.name: path for path in paths}
    if isinstance(renames, dict):
        for partial, name in renames.items():
            if name in ours and _is_partial(partial, ours[name]) and (folder / partial).is_file():
                os.replace(folder / partial, ours[name])
    sync(folder)
    journal.unlink()
    return True


@contextmanager
def replacing_directory(path: Path) -> Iterator[Path]:
    """A new directory to write into; on success it becomes ``path``, on failure the old one stays.

    Parameters
    ----------
    path : Path
        A directory that is there is removed at the end, with all that is in it: check it first. Parents are
        made.
    """
    with take_place(path) as place:
        yield place.folder
        place.commit()


def check_writable(path: Path) -> None:
    """Find out whether a file can be written, before the work whose result it is to hold; parents are made.

    Raises
    ------
    OSError
        As the attempt to write would.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    partial = _partial(path)
    try:
        partial.write_bytes(bytes(_PROBE))
    finally:
        partial.unlink(missing_ok=True)


def _partial(path: Path) -> Path:
    return path.with_name(f".{path.stem}.{os.getpid()}.partial{path.suffix}")


def _is_partial(name: str, path: Path) -> bool:
    begin, end = f".{path.stem}.", f".partial{path.suffix}"
    return name.startswith(begin) and name.endswith(end) and name[len(begin) : -len(end)].isdigit()


def _remove_left(path: Path, unless: Path | None = None) -> None:
    """Remove partial files of a path whose processes are gone, unless a list of renames has need of them."""
    if unless is not None and unless.exists():
        return
    with suppress(OSError):
        for other in path.parent.glob(f".{_escape(path.stem)}.*.partial{_escape(path.suffix)}"):
            if _is_partial(other.name, path) and not _is_alive(_process(other.name, path)):
                other.unlink(missing_ok=True)


def _process(name: str, path: Path) -> int:
    """The number of the process in the name of a partial file."""
    return int(name[len(path.stem) + 2 : -len(f".partial{path.suffix}")])


def _escape(text: str) -> str:
    return "".join(f"[{sign}]" if sign in "*?[" else sign for sign in text)


def _is_alive(process: int) -> bool:
    if os.name == "nt":
        return True  # there a signal of 0 would end it
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True


def _journal(paths: Sequence[Path]) -> Path:
    return paths[0].with_name(f".{paths[0].stem}.together.json")
