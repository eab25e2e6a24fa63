# SPDX-License-Identifier: Apache-2.0
"""`make fuzz`: property tests over and over, with other examples each time, until the time is over.

    python -m tests.fuzz --minutes 60 [--seed N] [FILE ...]

Each round runs every test module that uses hypothesis with pytest, in the profile "fuzz", with a
seed of its own. The seeds follow from the seed of the whole run, which is printed. Among the
modules are decoders of frames, headers, records and bodies, and servers that get random requests.
After the minutes no further module is begun. Each failure is printed with a command that repeats
it, and the examples are counted. The exit code is 1 when anything failed.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
SLOW_S: Final = 900
"""Seconds that one test may take: thousands of examples of a whole server."""
_WITHOUT: Final = ("tests/engine/", "tests/tidy/", "tests/process/", "tests/crash/")
_EXAMPLES: Final = re.compile(r"(\d+) passing(?: examples)?, (\d+) failing")


@dataclass
class Covered:
    """What the run has done so far, by test module."""

    runs: Counter[str] = field(default_factory=Counter)
    examples: Counter[str] = field(default_factory=Counter)
    failed: list[str] = field(default_factory=list)
    """Commands that repeat the failures."""

    def lines(self) -> Iterator[str]:
        """A line for each module, then one for all, then the failures."""
        for module in sorted(self.runs):
            yield f"{self.examples[module]:>10} examples in {self.runs[module]} runs  {module}"
        yield (
            f"{self.examples.total():>10} examples in {self.runs.total()} runs of"
            f" {len(self.runs)} modules; {len(self.failed)} failed"
        )
        yield from (f"to see it again: {command}" for command in self.failed)


def modules() -> list[str]:
    """Returns the test modules that draw examples, as paths from the root."""
    found = (
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "tests").rglob("test_*.py")
        if "\nfrom hypothesis import" in path.read_text("utf-8")
    )
    return sorted(path for path in found if not path.startswith(_WITHOUT))


def command(module: str, seed: int) -> list[str]:
    """Returns the command that runs the property tests of a module with this seed."""
    return [
        sys.executable, "-m", "pytest", "-q", "-m", "hypothesis", "-p", "no:cacheprovider",
        "--hypothesis-profile", "fuzz", "--hypothesis-seed", str(seed),
        "--hypothesis-show-statistics", "--timeout", str(SLOW_S), module,
    ]  # fmt: skip


def counted(output: str) -> int:
    """Returns how many examples pytest's output mentions."""
    return sum(int(passed) + int(failed) for passed, failed in _EXAMPLES.findall(output))


def run(chosen: Sequence[str], seed: int, minutes: float) -> Covered:
    """Runs the modules in rounds, as many at a time as there are processors."""
    covered, lock = Covered(), threading.Lock()
    seeds = random.Random(seed)
    deadline = time.monotonic() + minutes * 60
    work = ((module, seeds.randrange(1 << 32)) for module in itertools.cycle(chosen))

    def go_on() -> None:
        while time.monotonic() < deadline:
            with lock:
                module, its_seed = next(work)
            words = command(module, its_seed)
            done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
            with lock:
                covered.runs[module] += 1
                covered.examples[module] += counted(done.stdout)
                if done.returncode != 0:
                    covered.failed.append(" ".join(["python", *words[1:]]))
                    print(done.stdout, done.stderr, sep="\n", flush=True)

    workers = os.cpu_count() or 1
    with ThreadPoolExecutor(workers) as pool:
        for ended in [pool.submit(go_on) for _ in range(workers)]:
            ended.result()
    return covered


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit code, 1 when an example failed."""
    parser = argparse.ArgumentParser(prog="fuzz", description="Property tests, until time is over.")
    parser.add_argument("modules", nargs="*", metavar="FILE", help="test modules; all by default")
    parser.add_argument("--minutes", type=float, default=60.0, help="(%(default)s)")
    parser.add_argument("--seed", type=int, help="of a run that is to be repeated; else a new one")
    options = parser.parse_args(arguments)
    seed = random.SystemRandom().randrange(1 << 32) if options.seed is None else options.seed
    print(f"fuzz: {options.minutes:g} minutes, --seed {seed}", flush=True)
    covered = run(options.modules or modules(), seed, options.minutes)
    print("\n".join(covered.lines()))
    return 1 if covered.failed else 0


if __name__ == "__main__":
    sys.exit(main())
