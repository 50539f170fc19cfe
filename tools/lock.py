"""Write ``requirements.lock``: the versions of ``constraints.txt`` with the hashes of their files.

``python tools/lock.py`` (``make lock``) asks the indexes that pip is configured with for every file of each
version, on all platforms, so that one lock serves them all. Files that pip finds on this machine are hashed
here. pip itself is asked, because it knows where to look; its insides may change with a version.
"""

from __future__ import annotations

import hashlib
import re
import sys
from pathlib import Path

from packaging.utils import canonicalize_name, parse_sdist_filename, parse_wheel_filename
from packaging.version import Version
from pip._internal.commands import create_command
from pip._internal.index.collector import parse_links

ROOT = Path(__file__).parents[1]
HEAD = """\
# Written by tools/lock.py (`make lock`) from constraints.txt: the same versions, with the hashes of all their
# files. `make setup` installs nothing else. torch has the files of its CPU build and of its other builds.
"""


def main() -> None:
    """Write the lock, and say which versions have no file."""
    pins = re.findall(
        r"^([\w.-]+)==(\S+)$", (ROOT / "constraints.txt").read_text("utf-8"), flags=re.MULTILINE
    )
    find = _finder()
    lines = [HEAD.rstrip()]
    for name, version in pins:
        hashes = sorted(find(name, version))
        if not hashes:
            sys.exit(f"No file of {name} {version} was found, or none with a hash.")
        lines.append(
            " \\\n    ".join([f"{name}=={version}", *(f"--hash=sha256:{value}" for value in hashes)])
        )
    (ROOT / "requirements.lock").write_text("\n".join(lines) + "\n", "utf-8")


def _finder():
    """Return a function from a name and a version to the hashes of its files."""
    command = create_command("download")
    options, _ = command.parse_args(["x"])
    collector = command._build_package_finder(options, command._build_session(options))._link_collector

    def find(name: str, version: str) -> set[str]:
        links = []

        def of_page(page):
            response = collector.fetch_response(page)
            links.extend(parse_links(response) if response is not None else [])
            return []

        sources = collector.collect_sources(name, of_page)
        for source in (*sources.find_links, *sources.index_urls):
            if source is not None:
                list(source.page_candidates())
                links.extend(source.file_links())
        wanted = (link for link in links if _is_file_of(link.filename, name, version))
        return {value for link in wanted if (value := _hash(link))}

    return find


def _is_file_of(filename: str, name: str, version: str) -> bool:
    """Whether a file is a wheel or an archive of this version, of whatever local build."""
    try:
        parse = parse_wheel_filename if filename.endswith(".whl") else parse_sdist_filename
        found, its_version, *_ = parse(filename)
    except ValueError:
        return False
    return found == canonicalize_name(name) and Version(its_version.public) == Version(version)


def _hash(link) -> str | None:
    if link.hash_name == "sha256" and link.hash:
        return link.hash
    if link.is_file:
        return hashlib.sha256(Path(link.file_path).read_bytes()).hexdigest()
    return None


if __name__ == "__main__":
    main()
