"""Compare the locked versions with the known vulnerabilities: ``python tools/audit.py`` (``make audit``).

pip-audit does it, in an environment of its own, as it brings much with it. Where it cannot be installed, or
the lists of vulnerabilities cannot be reached, that is said and is no failure; a vulnerability is one. It is
also said how many versions the lists did not know: those were not audited.
"""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
HOME = ROOT / ".audit"
TOOL = "pip-audit==2.10.1"


def main() -> int:
    """Audit; the exit code."""
    python = HOME / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    if not python.exists():
        venv.create(HOME, with_pip=True)
    installed = _run(python, "-m", "pip", "install", "-qq", "--disable-pip-version-check", TOOL)
    if installed.returncode:
        return _say_that_it_could_not("pip-audit could not be installed", installed.stderr)
    lock = ("--require-hashes", "--disable-pip", "-r", ROOT / "requirements.lock")
    audited = _run(python, "-m", "pip_audit", "--progress-spinner", "off", "--format", "json", *lock)
    try:
        found = json.loads(audited.stdout)["dependencies"]
    except (ValueError, KeyError):
        return _say_that_it_could_not("the lists of vulnerabilities could not be read", audited.stderr)
    return report(found)


def report(found: list[dict]) -> int:
    """Say what was found, of pip-audit's list of packages; 1 if there is a vulnerability."""
    known = [package for package in found if "vulns" in package]
    if not known:
        return _say_that_it_could_not(f"the lists know none of the {len(found)} versions", "")
    for package in known:
        for weakness in package["vulns"]:
            fixed = ", ".join(weakness.get("fix_versions", [])) or "no version"
            print(f"{package['name']} {package['version']}: {weakness['id']}, mended in {fixed}")
    n_weak = sum(bool(package["vulns"]) for package in known)
    print(f"Audited {len(known)} of {len(found)} versions: {n_weak} with known vulnerabilities.")
    return int(n_weak > 0)


def _run(*command: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)


def _say_that_it_could_not(why: str, said: str) -> int:
    last = (said.strip().splitlines() or [""])[-1]
    print(f"No audit: {why}{f' ({last[:200]})' if last else ''}.", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
