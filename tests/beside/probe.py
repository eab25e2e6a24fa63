# SPDX-License-Identifier: Apache-2.0
"""Counts how much of a server's reactor others wait for, while requests are pipelined.

What counts is the CPU time of the reactor's thread between a question and its answer, so a machine
that is busy with other things changes little. It may still be that the probe gets its answer late,
after the server has gone on. So the server also tells how long its own longest turn was, which is
measured where it happens (measured.py).
"""

from __future__ import annotations

import mmap
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.beside.fields import Asked
from tests.beside.measured import LONGEST, shared
from txrocketmq.remoting.codes import MQVersion
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.frame.frame import FrameDecoder, encode_frame

PROBE_S = 0.010
LIMIT_MS = 30
"""For how much of the reactor's time a probe may wait, in ms."""
LONGEST_S = 5
"""For how long requests of one kind may go on."""
READ_BYTES = 1 << 18


def frame(code: int, fields: Mapping[str, str], body: bytes = b"", opaque: int = 1) -> bytes:
    """A request, as it is sent."""
    command = RemotingCommand(code, fields, body, opaque=opaque, version=MQVersion.V5_4_0)
    return b"".join(map(bytes, encode_frame(command)))


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


class Asking:
    """A connection that waits for each answer."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._decoder = FrameDecoder()

    def ask_all(self, frames: list[bytes]) -> list[RemotingCommand]:
        """Sends requests together; returns their answers as they come."""
        self._socket.sendall(b"".join(frames))
        answers: list[RemotingCommand] = []
        while len(answers) < len(frames):
            data = self._socket.recv(READ_BYTES)
            assert data, "the server has closed the connection"
            answers += self._decoder.receive(data)
            while self._decoder.is_behind:
                answers += self._decoder.receive(b"")
        return answers

    def ask(self, data: bytes) -> RemotingCommand:
        """Sends a request and returns its answer."""
        return self.ask_all([data])[0]

    def close(self) -> None:
        """Closes the connection."""
        self._socket.close()


class Running:
    """A server process."""

    def __init__(self, pid: int, port: int, longest: mmap.mmap) -> None:
        self.pid = pid
        self.port = port
        self._longest = longest

    def cpu_ms(self) -> float:
        """The CPU time of the reactor's thread, which is the first."""
        text = Path(f"/proc/{self.pid}/task/{self.pid}/schedstat").read_text()
        return int(text.split()[0]) / 1e6

    def longest_turn_ms(self) -> float:
        """The CPU time of the reactor's longest turn since this was called last."""
        (longest_s,) = LONGEST.unpack_from(self._longest)
        LONGEST.pack_into(self._longest, 0, 0.0)
        return float(longest_s * 1000)


@contextmanager
def running(module: str, folder: Path, settings: Mapping[str, object]) -> Iterator[Running]:
    """Runs a server with these settings, until it listens and to its end."""
    file = folder / f"{module.rpartition('.')[2]}.conf"
    file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    turns = file.with_suffix(".turns")
    longest = shared(turns)
    with file.with_suffix(".log").open("wb") as log:
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tests.beside.measured",
                str(turns),
                module,
                "-c",
                str(file),
            ],
            stdout=log,
            stderr=log,
        )
    port = int(str(settings["listenPort"]))
    try:
        until_s = time.monotonic() + 60
        while True:
            with suppress(OSError):
                Asking(port).close()
                break
            assert process.poll() is None, file.with_suffix(".log").read_text()
            assert time.monotonic() < until_s, "the server does not listen"
            time.sleep(0.05)
        yield Running(process.pid, port, longest)
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Seen:
    """What a probe has seen."""

    def __init__(
        self, worst_ms: float, turn_ms: float, all_ms: float, probes: int, came: str
    ) -> None:
        self.worst_ms = worst_ms
        """The reactor's CPU time while the probe waited longest."""
        self.turn_ms = turn_ms
        """The same of the reactor's longest turn."""
        self.all_ms = all_ms
        self.probes = probes
        self.came, self.wanted, self.lost = map(int, came.split())


def rows_of(asked: Asked, requests: int, peers: int) -> list[list[bytes]]:
    """Makes so many requests, divided among so many peers, which get other ones than one peer."""
    count = min(requests, asked.most)
    first = count if peers > 1 else 0
    frames = [
        frame(asked.code, *asked.made(first + number), opaque=number) for number in range(count)
    ]
    return [frames[each::peers] for each in range(min(peers, count))]


def beside(
    server: Running,
    question: Callable[[], bytes],
    peers: list[list[bytes]],
    seconds: float = LONGEST_S,
) -> Seen:
    """Asks a question every 10 ms while peers pipeline their requests."""
    loading = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "tests.beside.load",
            str(server.port),
            str(len(peers)),
            str(seconds),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert loading.stdin is not None
    assert loading.stdout is not None
    for each in peers:
        frames = b"".join(each)
        loading.stdin.write(struct.pack(">ii", len(each), len(frames)))
        loading.stdin.write(frames)
    loading.stdin.flush()
    assert loading.stdout.readline() == b"ready\n"
    asking = Asking(server.port)
    for _ in range(80):  # it has been there before
        asking.ask(question())
    server.longest_turn_ms()
    worst_ms, probes, began_ms = 0.0, 0, server.cpu_ms()
    loading.stdin.write(b"!")
    loading.stdin.close()
    while loading.poll() is None:
        before_ms = server.cpu_ms()
        asking.ask(question())
        worst_ms = max(worst_ms, server.cpu_ms() - before_ms)
        probes += 1
        time.sleep(PROBE_S)
    asking.close()
    came = loading.stdout.read().decode()
    loading.stdout.close()
    return Seen(worst_ms, server.longest_turn_ms(), server.cpu_ms() - began_ms, probes, came)
