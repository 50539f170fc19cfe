"""Run the attacks: ``python -m fuzz [--cases N] [--seed S]``. Ends with code 1 if any of them failed."""

from __future__ import annotations

import argparse
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as with_seed

from fuzz.files import attack_dialect, attack_file, dialect_cases, file_cases, prepare
from fuzz.process import Outcome, attack
from fuzz.tables import attack_table, table_cases

SHARES = {"tables": 0.25, "files": 0.6, "dialects": 0.15}
_SAID_EVERY = 250


def main() -> int:
    """Parse the arguments, run, and report."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=6000, help="about how many attacks [%(default)s]")
    parser.add_argument("--seed", type=int, help="of the attacks; a new one by default, and printed")
    parser.add_argument("--only", choices=SHARES, help="one kind of attack")
    parser.add_argument("--workers", type=int, default=1, help="processes at a time [%(default)s]")
    options = parser.parse_args()
    seed = secrets.randbelow(2**31) if options.seed is None else options.seed
    if options.workers > 1:
        return share(options, seed)
    torch.set_num_threads(1)  # a forked child of a process with threads would wait for them
    print(f"seed {seed}: repeat with  python -m fuzz --cases {options.cases} --seed {seed}", flush=True)
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as place:
        folder, scratch = Path(place) / "sound", Path(place) / "scratch"
        folder.mkdir()
        scratch.mkdir()
        # In a child: libraries that start threads would leave this process unfit to fork.
        prepared = attack(partial(prepare, folder))
        if prepared.kind != "passed":
            sys.exit(f"The sound files could not be written: {prepared.reason}")
        kinds: dict[str, tuple[Any, Callable[[Any], None]]] = {
            "tables": (table_cases(), attack_table),
            "files": (file_cases(), partial(attack_file, folder=folder, scratch=scratch)),
            "dialects": (dialect_cases(), partial(attack_dialect, scratch=scratch)),
        }
        failures = {
            name: run(strategy, target, seed, max(1, round(options.cases * SHARES[name])), name)
            for name, (strategy, target) in kinds.items()
            if options.only in (None, name)
        }
    found = sum(len(reasons) for reasons in failures.values())
    print(f"{time.perf_counter() - started:.0f} s, {found} kinds of failure")
    return int(found > 0)


def share(options: argparse.Namespace, seed: int) -> int:
    """Let several processes attack, each with a seed of its own; 1 if one of them found something."""
    each = [sys.executable, "-m", "fuzz", "--cases", str(-(-options.cases // options.workers))]
    each += ["--only", options.only] if options.only else []
    workers = [subprocess.Popen([*each, "--seed", str(seed + number)]) for number in range(options.workers)]
    return max(worker.wait() for worker in workers)


def run(strategy: Any, target: Callable[[Any], None], seed: int, n_cases: int, name: str) -> dict[str, Any]:
    """Attack with as many cases of a strategy; return the failures, one case for each reason."""
    outcomes: Counter[str] = Counter()
    failures: dict[str, Any] = {}

    @with_seed(seed)
    @settings(
        max_examples=n_cases,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def attack_all(case: Any) -> None:
        outcome: Outcome = attack(partial(target, case))
        outcomes[outcome.kind] += 1
        if outcomes.total() % _SAID_EVERY == 0:  # a run that is cut short has said how far it came
            print(f"{name}: {outcomes.total()} of {n_cases}, {dict(outcomes)}", flush=True)
        if outcome.kind == "failed" and outcome.reason not in failures:
            failures[outcome.reason] = case
            print(f"FAILED {name}: {outcome.reason}\n    {case!r}", flush=True)

    attack_all()
    print(f"{name}: {sum(outcomes.values())} attacks, {dict(outcomes)}", flush=True)
    return failures


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
