# SPDX-License-Identifier: Apache-2.0
"""A send in process: microseconds of CPU for a message, from the bytes of a read to the answers.

    .venv/bin/python -m benchmarks.sends [--beside PYTHON] [--rounds 12]
    .venv/bin/python -m benchmarks.sends --operations

Frames are those of real clients, encoded beforehand, in reads of one and of 32 sends (a batch is
one send of 32 messages); a whole broker serves them on a reactor without a network. What is
counted is CPU time of the process, and the least of some rounds, since others only ever add.

With `--beside` the same is measured in turn with another interpreter, of another checkout. With
`--operations` Python's operations are counted instead (a thousand take some 9 us), which come out
the same each time, however busy the machine is; what is done in C, and the index, are not in them.
"""

import argparse
import shutil
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType
from typing import Any, Final

from twisted.internet.testing import MemoryReactorClock, StringTransport

from benchmarks.in_turn import LINE, TURNS, compare
from txrocketmq.broker.service import Broker
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.remoting.host.clock import Clock

BODY: Final = b"x" * 1024
ENTRY_BODY: Final = b"x" * 128
BATCH: Final = 32
QUEUES: Final = 8
READS: Final = 512
COUNTED_READS: Final = 32
USER: Final = "\x02orderId\x0120251122000001\x02region\x01eu-central\x02tenant\x01acme"
_LENGTHS: Final = struct.Struct(">II")
_KEY: Final = "FD00000000000000000000000000000200010030946E09%010X"


def json_send(n: int, properties: str, *, oneway: bool = False, sys_flag: int = 0) -> bytes:
    """Encodes a send as the Java client 4.9 does."""
    text = properties.replace("\x01", "\\u0001").replace("\x02", "\\u0002")
    header = (
        '{"code":310,"extFields":{"a":"bench-producer","b":"bench","c":"TBW102","d":"8","e":"%d",'
        '"f":"%d","g":"%d","h":"0","i":"%s","j":"0","k":"false","m":"false","n":"broker-a"},'
        '"flag":%d,"language":"JAVA","opaque":%d,"serializeTypeCurrentRPC":"JSON","version":407}'
    ) % (n % QUEUES, sys_flag, 1_700_000_000_000 + n, text, 2 * oneway, n)
    return frame(header.encode(), BODY, 0)


def long_send(n: int, properties: str) -> bytes:
    """Encodes a send as the Go client does: with long names, in another order each time.

    It reads them from a map, which in Go begins anywhere and goes around.
    """
    text = properties.replace("\x01", "\\u0001").replace("\x02", "\\u0002")
    fields = [
        '"batch":"false"', f'"bornTimestamp":"{1_700_000_000_000 + n}"',
        '"defaultTopic":"TBW102"', f'"defaultTopicQueueNums":"{QUEUES}"', '"flag":"0"',
        '"maxReconsumeTimes":"0"', '"producerGroup":"bench"', f'"properties":"{text}"',
        f'"queueId":"{n % QUEUES}"', '"reconsumeTimes":"0"', '"sysFlag":"0"', '"topic":"bench"',
        '"unitMode":"false"',
    ]  # fmt: skip
    first = n * 5 % len(fields)
    header = (
        '{"code":10,"language":"GO","version":317,"opaque":%d,"flag":0,"remark":"","extFields":{%s}}'
    ) % (n, ",".join([*fields[first:], *fields[:first]]))
    return frame(header.encode(), BODY, 0)


def binary_send(n: int, properties: str) -> bytes:
    """Encodes a send as the Java client does with -Drocketmq.serialize.type=ROCKETMQ."""
    fields = {
        "a": "bench-producer", "b": "bench", "c": "TBW102", "d": "8", "e": str(n % QUEUES),
        "f": "0", "g": str(1_700_000_000_000 + n), "h": "0", "i": properties, "j": "0",
        "k": "false", "m": "false", "n": "broker-a",
    }  # fmt: skip
    encoded = b"".join(
        struct.pack(">h", len(name)) + name.encode() + struct.pack(">i", len(text)) + text.encode()
        for name, text in fields.items()
    )
    head = struct.pack(">hBhiii", 310, 0, 407, n, 0, 0)
    return frame(head + struct.pack(">i", len(encoded)) + encoded, BODY, 1)


def batch_send(n: int, properties: str) -> bytes:
    """Encodes a SEND_BATCH_MESSAGE of 32 messages of 128 bytes."""
    entries = []
    for each in range(BATCH):
        text = plain(n * BATCH + each, properties).encode()
        size = 20 + len(ENTRY_BODY) + 2 + len(text)
        entries.append(struct.pack(">IIIII", size, 0, 0, 0, len(ENTRY_BODY)) + ENTRY_BODY)
        entries.append(struct.pack(">h", len(text)) + text)
    header = (
        '{"code":320,"extFields":{"a":"bench-producer","b":"bench","c":"TBW102","d":"8","e":"%d",'
        '"f":"0","g":"%d","h":"0","i":"WAIT\\u0001true","j":"0","k":"false","m":"true",'
        '"n":"broker-a"},"flag":0,"language":"JAVA","opaque":%d,'
        '"serializeTypeCurrentRPC":"JSON","version":407}'
    ) % (n % QUEUES, 1_700_000_000_000 + n, n)
    return frame(header.encode(), b"".join(entries), 0)


def plain(n: int, more: str = "") -> str:
    """Returns the properties of a message: the client's own and `more`."""
    return f"UNIQ_KEY\x01{_KEY % n}\x02WAIT\x01true{more}"


def frame(header: bytes, body: bytes, kind: int) -> bytes:
    """Returns the frame of a request; `kind` is the serialization of its header."""
    return _LENGTHS.pack(4 + len(header) + len(body), kind << 24 | len(header)) + header + body


TAGGED: Final = "\x02TAGS\x01paid"
LOADS: Final[dict[str, tuple[Callable[[int], bytes], int]]] = {
    "JSON": (lambda n: json_send(n, plain(n)), 1),
    "JSON, tag": (lambda n: json_send(n, plain(n, TAGGED)), 1),
    "JSON, 3 properties": (lambda n: json_send(n, plain(n, USER)), 1),
    "JSON as of Go": (lambda n: long_send(n, plain(n)), 1),
    "binary": (lambda n: binary_send(n, plain(n)), 1),
    "binary, 3 properties": (lambda n: binary_send(n, plain(n, USER)), 1),
    "one-way, 3 properties": (lambda n: json_send(n, plain(n, USER), oneway=True), 1),
    "batch, a message": (lambda n: batch_send(n, ""), BATCH),
    "batch, 3 properties": (lambda n: batch_send(n, USER), BATCH),
}


class Sink(StringTransport):
    """A connection whose answers nobody keeps."""

    def setTcpNoDelay(self, enabled: bool) -> None:  # noqa: N802, FBT001 - ITCPTransport
        """Does nothing, since nothing is delayed."""

    def write(self, data: bytes) -> None:
        """Drops the data."""

    def writeSequence(self, data: Any) -> None:  # noqa: N802 - ITransport
        """Drops the data."""


class Bench:
    """A broker and a connection to it."""

    def __init__(
        self, folder: Path, store_settings: Mapping[str, Any] | None = None, **settings: Any
    ) -> None:
        reactor: Any = MemoryReactorClock()
        reactor.advance(1_700_000_000)
        store = StoreConfig(
            store_path_root_dir=str(folder), disk_space_warning_level_ratio=90,
            **(store_settings or {}),
        )  # fmt: skip
        self.broker = Broker(
            BrokerConfig(broker_ip1="127.0.0.1", **settings), store, Clock(reactor)
        )
        self.broker.start()
        self.peer = reactor.tcpServers[0][1].buildProtocol(None)
        self.peer.makeConnection(Sink())  # type: ignore[no-untyped-call]

    def cpu_us(self, make: Callable[[int], bytes], sends: int, weight: int, first: int) -> float:
        """Returns the CPU time of a message in reads of so many sends, none of them equal."""
        count = max(READS // sends, 16)
        reads = [
            b"".join(make(first + read * sends + n) for n in range(sends)) for read in range(count)
        ]
        receive = self.peer.dataReceived
        parts: Any = getattr(self.broker, "parts", self.broker)  # older checkouts do not have it
        store = parts.store
        before = store.max_physical_offset
        started = time.process_time()
        for data in reads:
            receive(data)
        spent = time.process_time() - started
        if store.max_physical_offset <= before:
            raise SystemExit("benchmarks.sends: nothing was stored")
        return spent / (count * sends * weight) * 1e6

    def operations(self, make: Callable[[int], bytes], sends: int, weight: int) -> float:
        """Returns the interpreter's operations for a message in reads of so many sends."""
        count = 0

        def seen(_frame: FrameType, event: str, _argument: object) -> Any:
            nonlocal count
            count += event == "opcode"
            return seen

        def called(frame: FrameType, _event: str, _argument: object) -> Any:
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
            return seen

        reads = [b"".join(make(read * sends + n) for n in range(sends)) for read in range(96)]
        parts: Any = getattr(self.broker, "parts", self.broker)
        for data in reads[COUNTED_READS:]:
            self.peer.dataReceived(data)
        parts.store._index.write_pending(self.broker.clock.now_ms())  # noqa: SLF001 - see above
        parts.store._index.write_pending = lambda *_: None  # noqa: SLF001
        sys.settrace(called)
        try:
            for data in reads[:COUNTED_READS]:
                self.peer.dataReceived(data)
        finally:
            sys.settrace(None)
            del parts.store._index.write_pending  # noqa: SLF001
        return count / (COUNTED_READS * sends * weight)


def count_operations() -> None:
    """Prints a table of the operations."""
    folder = tempfile.mkdtemp()
    print(f"{'operations of Python a message':<32}  1 in a read / 32")
    try:
        bench = Bench(Path(folder))
        for name, (make, weight) in LOADS.items():
            one, many = (bench.operations(make, sends, weight) for sends in (1, 32))
            print(f"{name:<32}  {one:>8,.0f} / {many:>5,.0f}")
    finally:
        shutil.rmtree(folder)


def measure(rounds: int) -> dict[str, tuple[float, float]]:
    """Returns the microseconds of a message for each load, with one and with 32 sends in a read."""
    folder = tempfile.mkdtemp()
    try:
        bench = Bench(Path(folder))
        best: dict[str, tuple[float, float]] = {}
        first = 0
        for _ in range(rounds):
            for name, (make, weight) in LOADS.items():
                one = bench.cpu_us(make, 1, weight, first)
                many = bench.cpu_us(make, 32, weight, first + READS)
                first += 2 * READS
                known = best.get(name, (one, many))
                best[name] = min(known[0], one), min(known[1], many)
        return best
    finally:
        shutil.rmtree(folder)


def main() -> None:
    """Reads the arguments, and prints a table."""
    parser = argparse.ArgumentParser(description="Measures a send in process.")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--beside", help="another interpreter, to be measured in turn")
    parser.add_argument("--operations", action="store_true", help="count, and do not measure")
    parser.add_argument("--bare", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.operations:
        count_operations()
        return
    if options.bare:
        for name, (one, many) in measure(options.rounds).items():
            print(LINE.format(name=name, one=one, many=many))
        return
    rounds = str(max(options.rounds // TURNS, 1))
    arguments = ["-m", "benchmarks.sends", "--bare", "--rounds", rounds]
    compare(options.beside, arguments, LOADS, "microseconds of CPU a message")


if __name__ == "__main__":
    main()
