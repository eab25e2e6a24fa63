# SPDX-License-Identifier: Apache-2.0
"""The inner loop of a broker, measured without Java in a few seconds.

Replays frames encoded beforehand, as the Java client writes them: one connection, a fixed number
of sends in flight, one write a frame (the client's threads write one by one too); then pulls
everything back. Prints messages a second and broker CPU a message.

    python -m benchmarks.wire                       our broker, all loads
    python -m benchmarks.wire --side original
    python -m benchmarks.wire --port 10911 --pid N  a broker that already runs
    python -m benchmarks.wire --only send --profile var/bench/broker.prof
"""

import argparse
import itertools
import pstats
import socket
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks import frames, proc, servers
from benchmarks.choices import some_of
from compat_tests.jars import JarsUnavailable

ROOT: Final = Path(__file__).resolve().parent.parent
QUEUES: Final = 8
BATCH: Final = 32
BATCH_BODY_BYTES: Final = 128
DISTINCT_FRAMES: Final = 8192
TIMEOUT_S: Final = 10.0


class WireError(Exception):
    """The broker refused a request or went away; the message shows its answer."""


@dataclass(frozen=True)
class Measured:
    """The messages of the window, its length, and the broker's CPU time in it."""

    messages: int
    seconds: float
    cpu_seconds: float

    def __str__(self) -> str:
        rate = self.messages / self.seconds
        cpu_us = self.cpu_seconds / self.messages * 1e6
        busy = self.cpu_seconds / self.seconds
        return f"{rate:>10,.0f} msg/s {cpu_us:>8.2f} us CPU/msg {busy:>6.2f} cores"


@dataclass(frozen=True)
class Target:
    """The broker's port, and the process whose CPU time is read."""

    port: int
    pid: int
    options: argparse.Namespace


def send(target: Target, in_flight: int) -> Measured:
    """Sends SEND_MESSAGE_V2, with always `in_flight` requests unanswered."""
    body = b"x" * target.options.body_bytes
    encoded = [
        frames.send_message_v2(
            "wire-send", n % QUEUES, body, opaque=n, now_ms=_now_ms(), process=in_flight
        )
        for n in range(DISTINCT_FRAMES)
    ]
    return _replay(target, encoded, in_flight, 1)


def send_batch(target: Target) -> Measured:
    """Sends SEND_BATCH_MESSAGE of 32 x 128 bytes, with four requests unanswered."""
    bodies = [b"x" * BATCH_BODY_BYTES] * BATCH
    encoded = [
        frames.send_batch_message(
            "wire-batch", n % QUEUES, bodies, opaque=n, now_ms=_now_ms(), process=0
        )
        for n in range(DISTINCT_FRAMES // BATCH)
    ]
    return _replay(target, encoded, 4, BATCH)


def _replay(target: Target, encoded: list[bytes], in_flight: int, weight: int) -> Measured:
    """Keeps `in_flight` frames unanswered through warm-up and window; each counts as `weight`."""
    options = target.options
    endless = itertools.cycle(encoded)
    with _connect(target.port) as connection:
        connection.sendall(next(endless))  # makes the topic before many sends do
        _receive_answers(connection, b"")
        for _ in range(in_flight):
            connection.sendall(next(endless))
        now = time.monotonic()
        start, end = now + options.warm_up, now + options.warm_up + options.seconds
        start_cpu, answered, rest = 0.0, 0, b""
        measuring = False
        while now < end:
            count, rest = _receive_answers(connection, rest)
            for _ in range(count // options.frames_per_write):
                connection.sendall(b"".join(itertools.islice(endless, options.frames_per_write)))
            for _ in range(count % options.frames_per_write):
                connection.sendall(next(endless))
            now = time.monotonic()
            if measuring:
                answered += count
            elif now >= start:
                measuring, start, start_cpu = True, now, proc.cpu_seconds(target.pid)
        return Measured(answered * weight, now - start, proc.cpu_seconds(target.pid) - start_cpu)


def drain(target: Target) -> Measured:
    """Pulls 32 messages at a time from all queues of what `send` has stored, one pull a queue."""
    topic, group = "wire-send", f"wire-{time.monotonic_ns()}"
    messages, version = 0, _now_ms()
    offsets = dict.fromkeys(range(QUEUES), 0)
    with _connect(target.port) as connection:
        heartbeat = frames.consumer_heartbeat(
            "wire@drain", group, topic, opaque=QUEUES, version=version
        )
        connection.sendall(heartbeat)
        answers = _answers(connection)
        next(answers)

        def pull(queue_id: int) -> None:
            connection.sendall(
                frames.pull_message(
                    topic, group, queue_id, offsets[queue_id], opaque=queue_id, version=version
                )
            )

        started, start_cpu = time.monotonic(), proc.cpu_seconds(target.pid)
        for queue_id in offsets:
            pull(queue_id)
        while offsets:
            header, _ = next(answers)
            if header["code"] != frames.SUCCESS:
                raise WireError(f"the broker answered a pull with {header}")
            queue_id, found = header["opaque"], header["extFields"]
            messages += int(found["nextBeginOffset"]) - offsets[queue_id]
            offsets[queue_id] = int(found["nextBeginOffset"])
            if offsets[queue_id] >= int(found["maxOffset"]):
                del offsets[queue_id]
            else:
                pull(queue_id)
        seconds = time.monotonic() - started
    return Measured(messages, seconds, proc.cpu_seconds(target.pid) - start_cpu)


def _connect(port: int) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), TIMEOUT_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _receive_answers(connection: socket.socket, rest: bytes) -> tuple[int, bytes]:
    """Reads once; returns how many answers are complete, all of them successes, and the rest.

    Raises WireError.
    """
    chunk = connection.recv(1 << 18)
    if not chunk:
        raise WireError("the broker closed the connection")
    data = rest + chunk
    count = at = 0
    while (end := at + 4 + int.from_bytes(data[at : at + 4], "big")) <= len(data) > at:
        count, at = count + 1, end
    if data.count(b'"code":0', 0, at) != count:
        refused = [header for header, _ in frames.split(data)[0] if header["code"]]
        raise WireError(f"the broker refused a send: {refused[0]}")
    return count, data[at:]


def _answers(connection: socket.socket) -> Iterator[tuple[dict[str, Any], bytes]]:
    """Yields answers as they come; ignores requests of the broker (consumer ids changed)."""
    rest = b""
    while chunk := connection.recv(1 << 18):
        whole, rest = frames.split(rest + chunk)
        yield from (answer for answer in whole if answer[0]["flag"] & frames.RESPONSE)
    raise WireError("the broker closed the connection")


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


LOADS: Final[dict[str, Callable[[Target], Measured]]] = {
    "send": lambda target: send(target, target.options.in_flight),
    "send1": lambda target: send(target, 1),
    "batch": send_batch,
    "drain": drain,
}


def _measure(target: Target) -> None:
    for name in target.options.only:
        print(f"{name:<6} {LOADS[name](target)}", flush=True)


def _arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.wire", description=__doc__.splitlines()[0])
    parser.add_argument("--side", choices=("ours", "original"), default="ours")
    parser.add_argument("--port", type=int, help="a running broker instead (with --pid)")
    parser.add_argument("--pid", type=int, help="its process, to read CPU time from")
    parser.add_argument("--only", type=some_of(LOADS), default=list(LOADS))
    parser.add_argument("--seconds", type=float, default=3.0, help="measured window")
    parser.add_argument("--warm-up", type=float, default=1.0, help="seconds before it")
    parser.add_argument("--in-flight", type=int, default=64)
    parser.add_argument("--body-bytes", type=int, default=1024)
    parser.add_argument("--frames-per-write", type=int, default=1)
    parser.add_argument("--profile", type=Path, help="cProfile statistics of our broker")
    options = parser.parse_args(argv)
    if (options.port is None) != (options.pid is None):
        parser.error("--port and --pid go together")
    if options.profile and (options.side != "ours" or options.port):
        parser.error("--profile works on our broker, started here")
    return options


def main(argv: list[str]) -> int:
    """Runs the loads that were asked for and prints a line each."""
    options = _arguments(argv)
    try:
        if options.port:
            _measure(Target(options.port, options.pid, options))
            return 0
        profile = options.profile.resolve() if options.profile else None
        with servers.running(options.side, ROOT / "var" / "bench", profile=profile) as running:
            print(f"{options.side}: {running}", flush=True)
            _measure(Target(running.broker_port, running.broker_pid, options))
    except (WireError, servers.ServerError, JarsUnavailable, OSError) as error:
        print(f"benchmarks.wire: {error}", file=sys.stderr)
        return 1
    if profile:
        pstats.Stats(str(profile)).sort_stats("tottime").print_stats(25)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
