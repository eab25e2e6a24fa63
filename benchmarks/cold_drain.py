# SPDX-License-Identifier: Apache-2.0
"""What a consumer of old messages costs others: sends every 10 ms while a cold log is drained.

    python -m benchmarks.cold_drain [--megabytes 256] [--read-ms 0]

Writes a store, has the system forget its files, and starts a broker of ours over it. One connection
sends a message every 10 ms; two others pull all old messages, and ask for what else reads them:
by key, by offset id, by time, for the statistics of a group. Printed are median, 99th percentile
and maximum of the sends' times before and meanwhile, and how often the reactor's thread itself had
to wait for the disk (major faults): that does not depend on what else the machine does. With
`--read-ms` each read of what is not in memory takes that much longer: a slow disk. It ends after
two minutes, whatever happens.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from benchmarks.probe_walks import Connection, percentile
from txrocketmq.broker import __main__ as broker_main
from txrocketmq.broker.intake.inner_message import InnerMessage
from txrocketmq.broker.store.disk.files import OsFiles
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.message_store import MessageStore
from txrocketmq.remoting.codes import RequestCode
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.frame.frame import encode_frame

SEND_EACH_S: Final = 0.010
BODY_BYTES: Final = 4_000
QUEUES: Final = 4
FILE_BYTES: Final = 64 * 1024 * 1024
IDLE_S: Final = 5
MOST_S: Final = 120
SEND: Final = {
    "a": "P", "b": "new", "c": "TBW102", "d": "4", "e": "0", "f": "0", "g": "1700000000000",
    "h": "0", "i": "", "j": "0", "k": "false", "m": "false",
}  # fmt: skip


class Asking(Connection):
    """A connection that keeps only the headers of answers."""

    def answer(self, code: int, fields: dict[str, str], body: bytes = b"") -> dict[str, Any]:
        """Sends a request; returns the header of its answer."""
        frame = encode_frame(RemotingCommand(code, fields, body, opaque=1))
        self._socket.sendall(b"".join(map(bytes, frame)))
        size, mark = struct.unpack(">iI", self._exactly(8))
        header: dict[str, Any] = json.loads(self._exactly(mark & 0xFFFFFF))
        left = size - 4 - (mark & 0xFFFFFF)
        while left:
            left -= len(self._exactly(min(left, 1 << 20)))
        return header


def write_store(folder: Path, megabytes: int) -> int:
    """Writes a store of old messages; returns the number of messages in each queue."""
    store = MessageStore(StoreConfig(str(folder), mapped_file_size_commit_log=FILE_BYTES))
    now_ms = time.time_ns() // 1_000_000
    store.load(now_ms)
    host, count = bytes([127, 0, 0, 1, 0, 0, 0x2A, 0x9F]), 0
    while count * BODY_BYTES < megabytes * 1_000_000:
        store.put(
            [
                InnerMessage(
                    "old", (count + n) % QUEUES, bytes(BODY_BYTES), now_ms, host, host,
                    {"UNIQ_KEY": f"{count + n:032X}", "KEYS": f"k{count + n}"},
                ).to_put()
                for n in range(256)
            ],
            now_ms,
        )  # fmt: skip
        count += 256
    store.stop(now_ms)
    return count // QUEUES


def forget(folder: Path) -> None:
    """Has the system drop these files from the page cache."""
    for path in folder.rglob("*"):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)


def serve(settings: str, read_ms: int) -> None:
    """Runs a broker whose reads from the disk take that much longer."""
    read_ahead = OsFiles.read_ahead

    def slowly(files: OsFiles, path: str, offset_bytes: int, length_bytes: int) -> bytes:
        time.sleep(read_ms / 1000)
        return read_ahead(files, path, offset_bytes, length_bytes)

    setattr(OsFiles, "read_ahead", slowly)  # noqa: B010 - a method of its own kind to mypy
    broker_main.main(["-c", settings])


@contextmanager
def broker(folder: Path, read_ms: int) -> Iterator[tuple[int, int]]:
    """Runs a broker over the store, none of which is in memory; yields its port and process id."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = folder / "broker.conf"
    settings.write_text(
        f"listenPort={port}\nbrokerIP1=127.0.0.1\nstorePathRootDir={folder}\n"
        f"mappedFileSizeCommitLog={FILE_BYTES}\ndiskSpaceWarningLevelRatio=99\n"
    )
    with (folder / "broker.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.cold_drain", "--serve", str(settings),
             "--read-ms", str(read_ms)],
            stdout=log, stderr=log,
        )  # fmt: skip
        try:
            until_s = time.monotonic() + 60
            while time.monotonic() < until_s and process.poll() is None:
                with suppress(OSError):
                    Connection(port).close()
                    break
                time.sleep(0.1)
            forget(folder)
            yield port, process.pid
        finally:
            process.terminate()
            process.wait(30)


def major_faults(process: int) -> int:
    """Returns how often a process's first thread, the reactor's, has waited for a page."""
    stat = Path(f"/proc/{process}/task/{process}/stat").read_text()
    return int(stat.rpartition(")")[2].split()[9])


class Sender:
    """Sends a message every 10 ms, in a thread of its own."""

    def __init__(self, port: int) -> None:
        self._connection = Asking(port)
        self._is_over = False
        self._taken_ms: list[float] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._is_over:
            started_s = time.perf_counter()
            header = self._connection.answer(RequestCode.SEND_MESSAGE_V2, SEND, bytes(100))
            self._taken_ms.append((time.perf_counter() - started_s) * 1000)
            if header["code"]:
                raise SystemExit(f"a send was refused: {header}")
            time.sleep(SEND_EACH_S)

    def end(self) -> list[float]:
        """Stops; returns how long each send took, in ms."""
        self._is_over = True
        self._thread.join(MOST_S)
        self._connection.close()
        return self._taken_ms


def drain(port: int, each: int, until_s: float) -> int:
    """Pulls all old messages and asks for some of them; returns how many were pulled."""
    pulling, asking = Asking(port), Asking(port)
    pulled = 0
    for queue in range(QUEUES):
        offset = 0
        while offset < each and time.monotonic() < until_s:
            header = pulling.answer(
                RequestCode.PULL_MESSAGE,
                {"consumerGroup": "G", "topic": "old", "queueId": str(queue),
                 "queueOffset": str(offset), "maxMsgNums": "32", "sysFlag": "4",
                 "commitOffset": "0", "suspendTimeoutMillis": "0", "subscription": "*",
                 "subVersion": "0"},
            )  # fmt: skip
            went = int(header["extFields"]["nextBeginOffset"]) - offset
            offset, pulled = offset + went, pulled + went
            if offset % 512 < 32:
                key = {"topic": "old", "key": f"k{offset}", "maxNum": "8", "beginTimestamp": "0",
                       "endTimestamp": str(1 << 60)}  # fmt: skip
                spot = {"topic": "old", "queueId": str(queue)}
                asking.answer(RequestCode.QUERY_MESSAGE, key)
                asking.answer(RequestCode.GET_EARLIEST_MSG_STORETIME, spot)
                asking.answer(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, {**spot, "timestamp": "1"})
                asking.answer(RequestCode.GET_TOPIC_STATS_INFO, {"topic": "old"})
    pulling.close()
    asking.close()
    return pulled


def told(name: str, taken_ms: list[float]) -> str:
    """Returns a row of the table."""
    return (
        f"{name:28} {len(taken_ms):6} {percentile(taken_ms, 50):8.1f}"
        f" {percentile(taken_ms, 99):8.1f} {max(taken_ms):8.1f}"
    )


def main() -> None:
    """Runs the measurement and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--megabytes", type=int, default=256)
    parser.add_argument("--read-ms", type=int, default=0)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve, options.read_ms)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        each = write_store(folder, options.megabytes)
        with broker(folder, options.read_ms) as (port, process):
            sender = Sender(port)
            time.sleep(IDLE_S)
            print(f"{'':28} {'sends':>6} {'p50 ms':>8} {'p99 ms':>8} {'max ms':>8}")
            print(told("nobody drains", sender.end()), flush=True)
            sender, started_s, faults = Sender(port), time.monotonic(), major_faults(process)
            pulled = drain(port, each, started_s + MOST_S)
            took_s = time.monotonic() - started_s
            faults = major_faults(process) - faults
            print(told("a cold drain", sender.end()))
            print(f"{pulled} messages of {BODY_BYTES} bytes were pulled in {took_s:.1f} s")
            print(f"{faults} major faults in the reactor's thread meanwhile")


if __name__ == "__main__":
    main()
