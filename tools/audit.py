"""Compare the locked versions with the known vulnerabilities: ``python tools/audit.py`` (``make audit``).

pip-audit does it, in an environment of its own, as it brings much with it. Where it cannot be installed, or
the lists of vulnerabilities cannot be reached, that is said and is no failure; a vulnerability is one.
"""

from __future__ import annotations

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
    lock = ("--require-hashes", "--disable-pip", "-r", str(ROOT / "requirements.lock"))
    audited = _run(python, "-m", "pip_audit", "--progress-spinner", "off", *lock)
    # 1 is also what it answers where nobody could be asked; then it has no table of findings.
    if audited.returncode and "Fix Versions" not in audited.stdout:
        return _say_that_it_could_not("the lists of vulnerabilities could not be read", audited.stderr)
    print(audited.stdout or audited.stderr)
    return audited.returncode


def _run(*command: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)


def _say_that_it_could_not(why: str, said: str) -> int:
    last = (said.strip().splitlines() or [""])[-1]
    print(f"No audit: {why} ({last[:200]}).", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
