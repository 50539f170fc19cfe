"""Download of official files: resumable, verified, and never a half file under the final name."""

from __future__ import annotations

import hashlib
import http.client
import os
import urllib.error
import urllib.request
import zipfile
from pathlib import Path

from tqdm import tqdm

from sparsevae.datasets.sources import DownloadError, Source, data_directory, get_source
from sparsevae.exceptions import DataError

__all__ = ["fetch", "verify_file"]

_BLOCK = 1 << 20


def fetch(
    name: str,
    *,
    directory: str | os.PathLike[str] | None = None,
    url: str | None = None,
    progress: bool | None = None,
    verify: bool = True,
    timeout: float = 30.0,
) -> Path:
    """Download an official file unless a good copy is there already.

    The file grows under a name that ends in ``.part`` and gets its own name only when its size and checksum
    are right. A download that was cut off goes on where it stopped.

    Parameters
    ----------
    name : str
        One of ``sparsevae.datasets.SOURCES``.
    directory : path, optional
        Folder for the file; see `data_directory` for the default.
    url : str, optional
        A mirror, instead of the publisher's address.
    progress : bool, optional
        Whether to draw a progress bar on stderr; by default where stderr is a terminal.
    verify : bool, default=True
        Whether to compare the checksum, where one is known; size and archive are checked always.
    timeout : float, default=30.0
        Seconds to wait for the server before giving up.

    Returns
    -------
    Path
        The file, ready for the loader.
    """
    source = get_source(name)
    folder = data_directory() if directory is None else Path(directory).expanduser()
    target = folder / source.filename
    if target.exists():
        verify_file(target, source, checksum=verify)
        return target
    folder.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(target.name + ".part")
    try:
        _download(url or source.url, partial, progress=progress, timeout=timeout)
    except (OSError, http.client.HTTPException) as error:
        raise DownloadError(
            f"Could not download {url or source.url} ({_reason(error)}); try again to go on where it "
            f"stopped, or get the file by other means and put it at {target}."
        ) from error
    try:
        verify_file(partial, source, checksum=verify)
    except DataError:
        partial.unlink()
        raise
    os.replace(partial, target)
    return target


def verify_file(path: str | os.PathLike[str], source: Source, *, checksum: bool = True) -> None:
    """Refuse a file that is not the official one: wrong size, wrong checksum, broken archive.

    Parameters
    ----------
    path : path
    source : Source
    checksum : bool, default=True
        Whether to read the whole file for its checksum.
    """
    path = Path(path)
    size = path.stat().st_size
    if source.size is not None and size != source.size:
        raise DataError(
            f"Expected {path} to hold the {source.size} bytes of {source.filename}; got {size}. "
            f"Delete the file and fetch it again."
        )
    if checksum and source.checksum is not None:
        kind, expected = source.checksum.split(":")
        got = _digest(path, kind)
        if got != expected:
            raise DataError(
                f"Expected {path} with {kind} {expected}; got {got}, so it is damaged or another file. "
                f"Delete it and fetch it again."
            )
    elif source.filename.endswith(".zip"):
        try:
            with zipfile.ZipFile(path) as archive:
                damaged = archive.testzip()
        except zipfile.BadZipFile as error:
            raise DataError(f"Expected {path} to be a zip archive; got {error}. Fetch it again.") from error
        if damaged is not None:
            raise DataError(
                f"Expected {path} to be a whole archive; its member {damaged} is damaged. Fetch it again."
            )


def _download(url: str, partial: Path, *, progress: bool | None, timeout: float) -> None:
    start = partial.stat().st_size if partial.exists() else 0
    request = urllib.request.Request(url, headers={"User-Agent": "sparsevae"})
    if start:
        request.add_header("Range", f"bytes={start}-")
    try:
        response = urllib.request.urlopen(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE and start:
            error.close()
            return  # the part is already as long as the file; verification decides
        error.close()
        raise
    with response:
        resumed = response.status == http.client.PARTIAL_CONTENT
        start = start if resumed else 0
        length = response.headers.get("Content-Length")
        total = start + int(length) if length is not None else None
        bar = tqdm(
            total=total,
            initial=start,
            unit="B",
            unit_scale=True,
            desc=partial.name.removesuffix(".part"),
            disable=None if progress is None else not progress,
        )
        with bar, partial.open("ab" if resumed else "wb") as file:
            while block := response.read(_BLOCK):
                file.write(block)
                bar.update(len(block))
    got = partial.stat().st_size
    if total is not None and got < total:
        raise ConnectionError(f"the connection ended after {got} of {total} bytes")


def _digest(path: Path, kind: str) -> str:
    digest = hashlib.new(kind, usedforsecurity=False)
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _reason(error: BaseException) -> str:
    return str(getattr(error, "reason", None) or error) or type(error).__name__
