# SPDX-License-Identifier: Apache-2.0
"""How long a broker delays others: a probe every 10 ms while it serves long requests.

    python -m benchmarks.probe_walks [--groups 1000] [--topics 10000]

Starts a broker of ours over a store that has so many topics and groups, each group with offsets of
20 topics of 8 queues. A connection asks GET_MAX_OFFSET every 10 ms, while another one asks one
thing after the other that looks at everything. Printed for each are how long its answer took, and
median, 99th percentile and maximum of the probes. A row "idle" says what the machine does
by itself. It ends after a few minutes, whatever happens.
"""

from __future__ import annotations

import argparse
import json
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

from txrocketmq.remoting.codes import RequestCode
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.frame.frame import encode_frame

TOPICS_OF_A_GROUP = 20
QUEUES = 8
PROBE_S = 0.010
TIMEOUT_S = 120
"""Seconds that an answer may take."""
LEAST_S = 1.0
"""A request is repeated for so many seconds, so that there are enough probes."""

ASKED: dict[RequestCode, dict[str, str]] = {
    RequestCode.GET_BROKER_CONSUME_STATS: {"isOrder": "false"},
    RequestCode.GET_ALL_CONSUMER_OFFSET: {},
    RequestCode.GET_ALL_TOPIC_CONFIG: {},
    RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: {},
    RequestCode.GET_CONSUME_STATS: {"consumerGroup": "group_1"},
    RequestCode.QUERY_TOPIC_CONSUME_BY_WHO: {"topic": "topic_1"},
    RequestCode.QUERY_TOPICS_BY_CONSUMER: {"group": "group_1"},
    RequestCode.GET_TOPIC_STATS_INFO: {"topic": "topic_1"},
    RequestCode.GET_BROKER_RUNTIME_INFO: {},
    RequestCode.CLEAN_UNUSED_TOPIC: {},
    RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE: {},
    RequestCode.UPDATE_AND_CREATE_TOPIC: {
        "defaultTopic": "TBW102", "readQueueNums": "8", "writeQueueNums": "8", "perm": "6",
        "topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "false",
    },
}  # fmt: skip


class Connection:
    """A connection that waits for each answer."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, code: RequestCode, fields: dict[str, str]) -> float:
        """Sends a request; returns the seconds until the whole answer has arrived."""
        started_s = time.perf_counter()
        frame = encode_frame(RemotingCommand(code, fields, b"", opaque=1))
        self._socket.sendall(b"".join(map(bytes, frame)))
        (left,) = struct.unpack(">i", self._exactly(4))
        while left:
            left -= len(self._exactly(min(left, 1 << 20)))
        return time.perf_counter() - started_s

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            piece = self._socket.recv(count - len(data))
            if not piece:
                raise ConnectionError("the broker has closed the connection")
            data += piece
        return data

    def close(self) -> None:
        """Closes the connection."""
        self._socket.close()


def write_config(folder: Path, topics: int, groups: int) -> None:
    """Writes the files of a broker with so many topics and groups."""
    config = folder / "config"
    config.mkdir(parents=True)
    names = [f"topic_{number}" for number in range(topics)]
    table = {
        name: {"topicName": name, "readQueueNums": QUEUES, "writeQueueNums": QUEUES, "perm": 6}
        for name in names
    }
    group_table = {f"group_{n}": {"groupName": f"group_{n}"} for n in range(groups)}
    offsets = {
        f"{names[(number * 7 + each) % topics]}@group_{number}": {
            str(queue_id): 5 for queue_id in range(QUEUES)
        }
        for number in range(groups)
        for each in range(TOPICS_OF_A_GROUP)
    }
    for name, content in (
        ("topics.json", {"topicConfigTable": table}),
        ("subscriptionGroup.json", {"subscriptionGroupTable": group_table}),
        ("consumerOffset.json", {"offsetTable": offsets}),
    ):
        (config / name).write_text(json.dumps(content))


@contextmanager
def broker(folder: Path) -> Iterator[int]:
    """Runs a broker over a folder; yields its port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = folder / "broker.conf"
    settings.write_text(
        f"listenPort={port}\nbrokerIP1=127.0.0.1\nstorePathRootDir={folder}\n"
        "mappedFileSizeCommitLog=67108864\nmaxHashSlotNum=100000\nmaxIndexNum=400000\n"
        "diskSpaceWarningLevelRatio=99\n"
    )
    with (folder / "broker.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "txrocketmq.broker", "-c", str(settings)],
            stdout=log,
            stderr=log,
        )
        try:
            until_s = time.monotonic() + 60
            while time.monotonic() < until_s and process.poll() is None:
                with suppress(OSError):
                    Connection(port).close()
                    break
                time.sleep(0.1)
            yield port
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()


class Probe:
    """Asks a short question every 10 ms, in a thread of its own."""

    def __init__(self, port: int) -> None:
        self._connection = Connection(port)
        self._is_over = False
        self._taken_s: list[float] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        fields = {"topic": "topic_1", "queueId": "0"}
        while not self._is_over:
            self._taken_s.append(self._connection.ask(RequestCode.GET_MAX_OFFSET, fields))
            time.sleep(PROBE_S)

    def end(self) -> list[float]:
        """Stops; returns how long each answer took, in ms."""
        self._is_over = True
        self._thread.join(TIMEOUT_S)
        self._connection.close()
        return [each * 1000 for each in self._taken_s]


def percentile(values: list[float], percent: int) -> float:
    """Returns the smallest value that `percent` percent of the values do not exceed."""
    return sorted(values)[min(len(values) * percent // 100, len(values) - 1)]


def measured(port: int, code: RequestCode | None, fields: dict[str, str]) -> str:
    """Returns a row: the request, how often it ran, how long it took, and the probes' times."""
    asking, probe = Connection(port), Probe(port)
    taken_s: list[float] = []
    until_s = time.monotonic() + LEAST_S
    while time.monotonic() < until_s:
        if code is None:
            time.sleep(LEAST_S)
            continue
        own = {"topic": f"new_{len(taken_s)}"} if "defaultTopic" in fields else {}
        taken_s.append(asking.ask(code, {**fields, **own}))
    asking.close()
    probes_ms = probe.end()
    return (
        f"{code.name if code else 'idle':34} {len(taken_s):6} {max(taken_s, default=0):9.3f}"
        f" {len(probes_ms):7} {percentile(probes_ms, 50):8.1f} {percentile(probes_ms, 99):8.1f}"
        f" {max(probes_ms):8.1f}"
    )


def main() -> None:
    """Runs all measurements and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--topics", type=int, default=10_000)
    parser.add_argument("--groups", type=int, default=1_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        write_config(Path(folder), options.topics, options.groups)
        with broker(Path(folder)) as port:
            print(f"{'request':34} {'asked':>6} {'longest s':>9} {'probes':>7}", end="")
            print(f" {'p50 ms':>8} {'p99 ms':>8} {'max ms':>8}")
            print(measured(port, None, {}), flush=True)
            for code, fields in ASKED.items():
                print(measured(port, code, fields), flush=True)


if __name__ == "__main__":
    main()
