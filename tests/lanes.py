# SPDX-License-Identifier: Apache-2.0
"""Runs kinds of tests side by side, for `make test` and `make check`.

Each argument is a lane: targets of make that run one after the other. Lanes run at the same time.
What a kind prints goes to a file, which is shown when the kind ends, so that kinds do not mix; a
table at the end says how each of them ended and how long it took. A kind that fails does not keep
the others from running. The exit code is 1 if one has failed.

Kinds in which others have timers come first at the processors: official clients, and Spark, which
gives a process of Python ten seconds to start.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Final

LOGS: Final = Path("var/test")
_HAS_TIMERS: Final = ("engine", "engine-oldest", "compat", "compat-all")
_GIVES_WAY: Final = ("nice", "-n", "5")


@dataclass(frozen=True)
class Result:
    """How a kind ended."""

    kind: str
    exit_code: int
    seconds: float

    def __str__(self) -> str:
        ended = "passed" if self.exit_code == 0 else "FAILED"
        return f"{self.kind:14s} {ended} {duration(self.seconds):>12s}"


@dataclass
class Lanes:
    """Kinds that run, and the results of those that have ended."""

    make: str
    logs: Path
    results: list[Result] = field(default_factory=list)
    _running: set[subprocess.Popen[bytes]] = field(default_factory=set)
    _stopped: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, lanes: list[list[str]]) -> int:
        """Runs them all; returns the exit code."""
        self.logs.mkdir(parents=True, exist_ok=True)
        began = time.monotonic()
        threads = [threading.Thread(target=self._run_lane, args=(lane,)) for lane in lanes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for result in self.results:
            print(result)
        print(f"{'all':14s} {'':6s} {duration(time.monotonic() - began):>12s}", flush=True)
        has_failed = any(result.exit_code != 0 for result in self.results)
        return 1 if has_failed or self._stopped else 0

    def stop(self, number: int, frame: FrameType | None = None) -> None:
        """Starts nothing more. A terminal interrupts what runs by itself, others only us."""
        self._stopped = True
        if number != signal.SIGINT:
            for process in list(self._running):
                process.send_signal(number)

    def _run_lane(self, lane: list[str]) -> None:
        for kind in lane:
            if not self._stopped:
                self._run_kind(kind)

    def _run_kind(self, kind: str) -> None:
        path = self.logs / f"{kind}.log"
        self._say(f"{kind} begins; it prints to {path}")
        began = time.monotonic()
        with path.open("wb") as log:
            command = [*(() if kind in _HAS_TIMERS else _GIVES_WAY), self.make, kind]
            process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
            self._running.add(process)
            if self._stopped:  # a moment ago
                process.terminate()
            exit_code = process.wait()
            self._running.discard(process)
        result = Result(kind, exit_code, time.monotonic() - began)
        with self._lock:
            self.results.append(result)
            print(f"{'=' * 20} {kind} {'=' * 20}")
            print(path.read_text("utf-8", "replace"), end="")
            print(f"{'=' * 20} {result}", flush=True)

    def _say(self, text: str) -> None:
        with self._lock:
            print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


def duration(seconds: float) -> str:
    """As people say it: 3 min 12 s."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:2d} s"


def main() -> int:
    """Runs the lanes of the command line."""
    lanes = Lanes(os.environ.get("MAKE") or "make", LOGS)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lanes.stop)
    return lanes.run([lane.split() for lane in sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
