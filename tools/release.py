"""Write the version of a release where it belongs; ``python tools/release.py 0.2.0``."""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime
from pathlib import Path

PLACES = {
    "src/sparsevae/_version.py": (r'^__version__ = ".+"$', '__version__ = "{version}"'),
    "CITATION.cff": (r"^version: .+$", "version: {version}"),
    "recipe/meta.yaml": (r'set version = ".+?"', 'set version = "{version}"'),
    "CHANGELOG.md": (r"^## \[Unreleased\]$", "## [Unreleased]\n\n## [{version}] - {date}"),
}


def main(version: str, root: Path = Path(__file__).parents[1]) -> None:
    """Replace one line in each file; nothing is written unless each has exactly one."""
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        sys.exit(f"Expected a version such as 0.2.0; got {version!r}.")
    date = datetime.now(UTC).date().isoformat()
    written = {}
    for name, (pattern, line) in PLACES.items():
        new = line.format(version=version, date=date)
        text, found = re.subn(pattern, new, (root / name).read_text("utf-8"), flags=re.MULTILINE)
        if found != 1:
            sys.exit(f"Expected one line like {pattern!r} in {name}; found {found}.")
        written[root / name] = text
    for path, text in written.items():
        path.write_text(text, "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:2])
