# SPDX-License-Identifier: Apache-2.0
"""Real servers that used much memory for a while: it goes back to the system, and soon."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.process.test_bad_peers import MIB, Peer, message, pull_of
from txrocketmq.remoting.codes import ResponseCode

LIMIT_S = 30.0
UNFINISHED = bytes.fromhex("00fffffc 00000064")
"""The beginning of a long frame."""
RETURN_S = 12.0
"""How long it takes at most until memory has gone back; some two seconds are usual."""
SLACK_BYTES = 16 * MIB
"""What may stay: it was free before and is in use now, or lies between what is."""
HURRIED = """
import signal, sys
from txrocketmq.remoting.host.memory import Peaks
Peaks.PERIOD_MS = 1_000
kept = []
signal.signal(signal.SIGUSR1, lambda *_: kept.extend([bytes(1500) for _ in range(60_000)][::99]))
from txrocketmq.cli.__main__ import main
sys.exit(main())
"""
"""A server that looks for peaks each second, so that the test is short. At a signal it uses some 90
MiB, and keeps a little in between, as it does when tables are made and dropped."""


class Hurried:
    """A server in a process of its own."""

    def __init__(self, folder: Path) -> None:
        ready = folder / "ready"
        flags = ("--namesrv-port", "0", "--broker-port", "0", "--store", str(folder / "store"))
        self.process = subprocess.Popen(
            [sys.executable, "-c", HURRIED, "standalone", *flags, "--ready-file", str(ready)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + LIMIT_S
        while not (ready.exists() and ready.read_text().endswith("\n")):
            assert self.process.poll() is None
            assert time.monotonic() < deadline, "it is not ready"
            time.sleep(0.02)  # another process: there is nothing that could tell
        self._staying: list[Peer] = []
        _, self.broker = ready.read_text().split()

    def stay(self) -> None:
        """Has a little memory used between what is given back later."""
        self._staying.append(Peer(self.broker))
        self._staying[-1].socket.sendall(UNFINISHED + bytes(3_000))

    def end(self) -> None:
        """Ends the process."""
        for each in self._staying:
            each.socket.close()
        self.process.terminate()
        self.process.wait(LIMIT_S)

    def own_bytes(self) -> int:
        """Returns how much memory it has that is not of files (RssAnon)."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) * 1024
        raise AssertionError("the process has ended")

    def is_below(self, most_bytes: int) -> bool:
        """Waits until it has no more than that; returns whether it came so far in time."""
        deadline = time.monotonic() + RETURN_S
        while self.own_bytes() > most_bytes:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.1)
        return True


@contextmanager
def hurried(folder: Path) -> Iterator[Hurried]:
    server = Hurried(folder)
    try:
        yield server
    finally:
        server.end()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Hurried]:
    with hurried(tmp_path) as made:
        peer = Peer(made.broker)
        for number in range(200):  # what is imported and kept from the first requests on
            assert peer.ask(message(f"T{number % 8}", bytes(100_000))).code == 0
        assert peer.ask(pull_of("T0")).code == ResponseCode.SUCCESS
        peer.socket.close()
        yield made


def unfinished(server: Hurried, stack: ExitStack) -> None:
    """A hundred beginnings of frames, of 1 MiB each."""
    for _ in range(100):
        peer = Peer(server.broker)
        stack.callback(peer.socket.close)
        peer.socket.sendall(UNFINISHED + bytes(MIB))
        server.stay()


def unread(server: Hurried, stack: ExitStack) -> None:
    """Eighty peers that ask for messages of 2 MiB and do not read the answers.

    What the system takes of the last answer is not held by the server. Where it ends in that answer
    is the system's affair, and much the same for all peers; so that the rest is not small for all
    of them, each asks for another number of small messages before.
    """
    peer = Peer(server.broker)
    for _ in range(4):
        assert peer.ask(message("Huge", bytes(2 * MIB))).code == ResponseCode.SUCCESS
    peer.socket.close()
    for number in range(80):
        peer = Peer(server.broker)
        stack.callback(peer.socket.close)
        peer.socket.sendall(pull_of("T0") * (number % 20) + pull_of("Huge") * 20)
        server.stay()


def used(server: Hurried, stack: ExitStack) -> None:
    """What is held for no peer at all."""
    server.process.send_signal(signal.SIGUSR1)


@pytest.mark.parametrize(
    ("use", "least_bytes"), [(unfinished, 80 * MIB), (unread, 48 * MIB), (used, 60 * MIB)]
)
def test_memory_goes_back_after_a_peak(
    server: Hurried, use: Callable[[Hurried, ExitStack], None], least_bytes: int
) -> None:
    before = server.own_bytes()
    with ExitStack() as stack:
        use(server, stack)
        deadline = time.monotonic() + LIMIT_S
        while server.own_bytes() < before + least_bytes:
            assert time.monotonic() < deadline, "there was no peak"
            time.sleep(0.05)
    assert server.is_below(before + SLACK_BYTES), f"{server.own_bytes() / MIB:.0f} MiB stay"
