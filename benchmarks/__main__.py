"""Run the benchmarks one after the other: speed first, then recovery in its quick form."""

from __future__ import annotations

import subprocess
import sys

STEPS = (
    ["benchmarks.speed"],
    ["benchmarks.recovery", "--quick", "--problems", "synthetic-0", "synthetic-0.6"],
)


def main() -> int:
    failed = 0
    for step in STEPS:
        print(f"$ python -m {' '.join(step)}", flush=True)
        failed |= subprocess.run([sys.executable, "-m", *step], check=False).returncode
    return failed


if __name__ == "__main__":
    sys.exit(main())
