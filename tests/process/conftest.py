# SPDX-License-Identifier: Apache-2.0
"""The commands as real processes on the loopback interface, as a user runs them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from txrocketmq.testing.server import Server

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for "compat_tests"

DEADLINE_S = 60


class Command:
    """`txrocketmq` as a process whose output is read as it comes."""

    def __init__(self, *arguments: str, namesrv: str = "", stdin: int = subprocess.DEVNULL) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "txrocketmq.cli", *arguments],
            env={**os.environ, "NAMESRV_ADDR": namesrv},
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def line(self) -> str:
        """Returns the next line of output; only the test's time limit ends the wait."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip("\n")

    def complaint(self) -> str:
        """Returns the next line of error output."""
        assert self.process.stderr is not None
        return self.process.stderr.readline().rstrip("\n")

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal."""
        self.process.send_signal(number)

    def end(self, text: str | None = None) -> tuple[int, str, str]:
        """Waits for the end; returns the exit code, and the rest of output and error output."""
        out, err = self.process.communicate(text, timeout=DEADLINE_S)
        return self.process.returncode, out, err


Run = Callable[..., Command]


@pytest.fixture
def txrocketmq() -> Iterator[Run]:
    """Starts commands, which are ended with the test."""
    commands: list[Command] = []

    def start(*arguments: str, **options: object) -> Command:
        commands.append(Command(*arguments, **options))  # type: ignore[arg-type]
        return commands[-1]

    yield start
    for command in commands:
        if command.process.poll() is None:
            command.process.kill()
        command.process.communicate()


class Standalone:
    """A running `txrocketmq standalone` that is ready."""

    def __init__(self, start: Run, folder: Path, *arguments: str) -> None:
        ready = folder / "ready"
        ready.unlink(missing_ok=True)
        self.store = folder / "store"
        flags = ("--namesrv-port", "0", "--broker-port", "0", "--store", str(self.store))
        self.command = start("standalone", *flags, "--ready-file", str(ready), *arguments)
        deadline = time.monotonic() + DEADLINE_S
        while not (ready.exists() and ready.read_text().endswith("\n")):
            assert self.command.process.poll() is None, self.command.end()
            assert time.monotonic() < deadline, "it is not ready"
            time.sleep(0.01)  # another process: nothing could tell us
        self.namesrv, self.broker = ready.read_text().split()


@pytest.fixture
def standalone(txrocketmq: Run, tmp_path: Path) -> Callable[..., Standalone]:
    """Starts servers on the same store, one after the other."""
    return lambda *arguments: Standalone(txrocketmq, tmp_path, *arguments)


@pytest.fixture
def namesrv(rocketmq_server: Server) -> str:
    """The address of the shared name server; each test uses a topic of its own."""
    return rocketmq_server.namesrv_addr
