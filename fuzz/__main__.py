"""Run the attacks: ``python -m fuzz [--cases N] [--seed S]``. Ends with code 1 if any of them failed."""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import os
import random
import secrets
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as with_seed

from fuzz.files import OTHERS, TABLES, attack_dialect, attack_file, dialect_cases, file_cases, prepare
from fuzz.process import Outcome, attack
from fuzz.tables import ESTIMATORS, LIKELIHOODS, TableCase, attack_table, table_cases

SHARES = {"tables": 0.25, "files": 0.6, "dialects": 0.15}
SORTS = {
    "tables": [f"{estimator} {likelihood}" for estimator in ESTIMATORS for likelihood in LIKELIHOODS],
    "files": [*TABLES, *OTHERS],
    "dialects": ["csv", "tsv", "txt"],
}
"""What each kind of attack must reach."""
# All kinds are reached early, and hypothesis, which varies what it has tried, begins anew now and then.
_BLOCK = 400  # attacks of all kinds


@dataclass
class Tally:
    """What came of the attacks of one kind.

    Attributes
    ----------
    outcomes : Counter
        How many passed, were refused, and failed.
    sorts : Counter
        How many there were of each sort.
    failures : dict from str to str
        For each reason one case.
    seconds : float
        Of the processor, with those of the children.
    """

    outcomes: Counter[str] = field(default_factory=Counter)
    sorts: Counter[str] = field(default_factory=Counter)
    failures: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    def add(self, other: Tally) -> None:
        """Take in what came of further attacks."""
        self.outcomes += other.outcomes
        self.sorts += other.sorts
        self.failures = {**other.failures, **self.failures}
        self.seconds += other.seconds

    def line(self, name: str) -> str:
        """How many attacks, what came of them, and how often the rarest sort came."""
        rarest = min(SORTS[name], key=lambda sort: self.sorts[sort])
        reached = sum(self.sorts[sort] > 0 for sort in SORTS[name])
        return (
            f"{name}: {self.outcomes.total()} attacks, {dict(sorted(self.outcomes.items()))}; {reached} of "
            f"{len(SORTS[name])} sorts, the rarest {self.sorts[rarest]} times ({rarest}); "
            f"{self.seconds:.0f} s of the processor"
        )


@dataclass(frozen=True)
class Attack:
    """A kind of attack: its cases, what is done with one, and how one becomes a case of a given sort."""

    cases: Any
    target: Callable[[Any], None]
    become: Callable[[Any, str], Any] | None = None


def main() -> int:
    """Parse the arguments, run, and report."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=6000, help="about how many attacks [%(default)s]")
    parser.add_argument("--seed", type=int, help="of the attacks; a new one by default, and printed")
    parser.add_argument("--only", choices=SHARES, help="one kind of attack, with its share of the cases")
    parser.add_argument("--workers", type=int, default=1, help="processes at a time [%(default)s]")
    parser.add_argument(
        "--minutes", type=float, default=60.0, help="after which no attacks begin [%(default)s]"
    )
    parser.add_argument("--tally", type=Path, help="file that gets the numbers as JSON")
    options = parser.parse_args()
    seed = secrets.randbelow(2**31) if options.seed is None else options.seed
    started = time.perf_counter()
    if options.workers > 1:
        tallies = share(options, seed)
    else:
        tallies = work(options, seed, started + 60.0 * options.minutes)
    if options.tally is not None:
        options.tally.write_text(json.dumps({name: vars(tally) for name, tally in tallies.items()}))
        return 0
    for name, tally in tallies.items():
        print(tally.line(name))
    found = sum(len(tally.failures) for tally in tallies.values())
    n_cases = sum(tally.outcomes.total() for tally in tallies.values())
    print(
        f"seed {seed}: {n_cases} attacks in {time.perf_counter() - started:.0f} s, {found} kinds of failure"
    )
    return int(found > 0)


def work(options: argparse.Namespace, seed: int, until: float) -> dict[str, Tally]:
    """Attack, all kinds in turn."""
    torch.set_num_threads(1)  # a forked child of a process with threads would wait for them
    print(f"seed {seed}: repeat with  python -m fuzz --cases {options.cases} --seed {seed}", flush=True)
    with tempfile.TemporaryDirectory() as place:
        folder, scratch = Path(place) / "sound", Path(place) / "scratch"
        folder.mkdir()
        scratch.mkdir()
        # In a child: libraries that start threads would leave this process unfit to fork.
        prepared = attack(partial(prepare, folder))
        if prepared.kind != "passed":
            sys.exit(f"The sound files could not be written: {prepared.reason}")
        kinds = {
            "tables": Attack(table_cases(), attack_table, _fitted_by),
            "files": Attack(
                file_cases(),
                partial(attack_file, folder=folder, scratch=scratch),
                lambda case, name: replace(case, name=name),
            ),
            "dialects": Attack(dialect_cases(), partial(attack_dialect, scratch=scratch)),
        }
        asked = {
            name: max(1, round(options.cases * SHARES[name]))
            for name in kinds
            if options.only in (None, name)
        }
        n_blocks = max(1, round(sum(asked.values()) / _BLOCK))
        tallies = {name: Tally() for name in asked}
        gc.freeze()  # else each child would copy the memory in which its collector looks around
        for block in range(n_blocks):
            for name, n_cases in asked.items():
                own = n_cases * (block + 1) // n_blocks - n_cases * block // n_blocks
                if not own or time.perf_counter() > until:
                    continue
                own_seed = random.Random(f"{seed} {name} {block}").getrandbits(31)
                turns = itertools.count(tallies[name].outcomes.total())
                tallies[name].add(run(kinds[name], SORTS[name], turns, own_seed, own))
            done = ", ".join(f"{tally.outcomes.total()} {name}" for name, tally in tallies.items())
            print(f"seed {seed}: {done} of {sum(asked.values())}", flush=True)
            if time.perf_counter() > until:
                print(f"seed {seed}: the time is up", flush=True)
                break
    return tallies


def share(options: argparse.Namespace, seed: int) -> dict[str, Tally]:
    """Let several processes attack, each with a seed of its own."""
    each = [sys.executable, "-m", "fuzz", "--cases", str(-(-options.cases // options.workers))]
    each += ["--minutes", str(options.minutes)]
    each += ["--only", options.only] if options.only else []
    with tempfile.TemporaryDirectory() as place:
        files = [Path(place) / f"{number}.json" for number in range(options.workers)]
        workers = [
            subprocess.Popen([*each, "--seed", str(seed + number), "--tally", str(file)])
            for number, file in enumerate(files)
        ]
        codes = [worker.wait() for worker in workers]  # all of them, whatever the first says
        if any(codes):
            sys.exit("One of the processes ended before its last attack.")
        together: dict[str, Tally] = {}
        for file in files:
            for name, numbers in json.loads(file.read_text()).items():
                tally = Tally(Counter(numbers["outcomes"]), Counter(numbers["sorts"]), numbers["failures"])
                tally.seconds = numbers["seconds"]
                together.setdefault(name, Tally()).add(tally)
    return together


def run(kind: Attack, sorts: list[str], turns: Iterator[int], seed: int, n_cases: int) -> Tally:
    """Attack with as many cases of a kind, the sorts in turn: hypothesis prefers some to others."""
    tally = Tally()

    @with_seed(seed)
    @settings(
        max_examples=n_cases,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(kind.cases)
    def attack_all(case: Any) -> None:
        if kind.become is None:
            sort = case[1]  # the ending, as it was drawn
        else:
            sort = sorts[next(turns) % len(sorts)]
            case = kind.become(case, sort)
        outcome: Outcome = attack(partial(kind.target, case))
        tally.outcomes[outcome.kind] += 1
        tally.sorts[sort] += 1
        if outcome.kind == "failed" and outcome.reason not in tally.failures:
            tally.failures[outcome.reason] = repr(case)
            print(f"FAILED: {outcome.reason}\n    {case!r}", flush=True)

    before = _seconds()
    attack_all()
    tally.seconds = _seconds() - before
    return tally


def _seconds() -> float:
    """Of the processor, used by this process and its children that have ended."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def _fitted_by(case: TableCase, sort: str) -> TableCase:
    estimator, likelihood = sort.split()
    return replace(case, estimator=estimator, likelihood=likelihood)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
