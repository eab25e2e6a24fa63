# SPDX-License-Identifier: Apache-2.0
"""Stores read while a broker writes them, ours and official ones, and after it was killed.

The reader is called as Spark calls it, without a session; an official Java client sends.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compat_tests.engine import Engine
from compat_tests.jars import RELEASES
from compat_tests.java_client import ClientJvm, message
from compat_tests.peers import Broker, NameServer, Original, Ours, running
from compat_tests.scene import Scene, poll
from txrocketmq.spark.batch import StoreReader
from txrocketmq.spark.columns.output import Output
from txrocketmq.spark.options.options import SourceOptions

CHUNKS, CHUNK = 30, 100


@pytest.fixture(params=["ours", *RELEASES])
def broker(request: pytest.FixtureRequest, engine: Engine, test_folder: Path) -> Iterator[Broker]:
    """A broker with small files, so that the log rolls while it is read."""
    name: str = request.param
    origin = Ours() if name == "ours" else Original(name, engine)
    names = NameServer(origin, test_folder / f"live-namesrv-{name}")
    settings = {"mappedFileSizeCommitLog": str(1 << 20)}
    made = Broker(origin, test_folder / f"live-broker-{name}", names, "broker-a", settings)
    with running(names, made):
        yield made


def bodies(broker: Broker, **chosen: str) -> list[str]:
    """What is in the store now, in the order of the log. Raises whatever is wrong with a record."""
    options = SourceOptions.of({"storePath": str(broker.store), "columns": "body", **chosen})
    reader = StoreReader(options, Output.of(options))
    return [
        body.decode()
        for partition in reader.partitions()
        for batch in reader.read(partition)
        for body in batch.column("body").to_pylist()
    ]


def test_a_store_that_is_written_has_what_was_acknowledged(
    first_jvm: ClientJvm, broker: Broker
) -> None:
    scene = Scene(first_jvm, broker)
    topic = scene.topic("live")
    producer = scene.producer()
    sent = [[f"{chunk}-{n} {'x' * (7 * n)}" for n in range(CHUNK)] for chunk in range(CHUNKS)]

    def begin(chunks: list[list[str]]) -> list[Any]:
        return [
            first_jvm.submit(
                "send", name=producer.name, mode="sync", messages=[message(topic, m) for m in chunk]
            )
            for chunk in chunks
        ]

    # The rest is sent once something was read: else all may be there before the first read.
    half = CHUNKS // 2
    sends = begin(sent[:half])
    known = {body for chunk in sent for body in chunk}
    by_queues, by_log = {"topic": topic}, {"verify": "crc"}
    seen: dict[str, set[str]] = {"topic": set(), "verify": set()}
    partial_reads = 0

    def read_again() -> bool:
        nonlocal partial_reads
        answered = [send.done() and bool(send.result()) for send in sends]
        stored = {m for chunk in itertools.compress(sent, answered) for m in chunk}
        for chosen in (by_queues, by_log):
            found = bodies(broker, **chosen)
            assert len(found) == len(set(found)), "no message twice"
            # An original's queues come after its log, in a thread of their own.
            is_late = chosen is by_queues and not isinstance(broker.origin, Ours)
            (kind,) = chosen
            assert seen[kind] | (set() if is_late else stored) <= set(found) <= known
            partial_reads += len(found) < len(known)
            seen[kind] = set(found)
        if len(sends) < CHUNKS:
            sends.extend(begin(sent[half:]))
            return False
        return all(answered) and seen["topic"] == known

    poll(read_again, "all is sent", timeout_s=60)
    assert seen["verify"] == known
    assert partial_reads, "the broker wrote meanwhile"
    scene.close()
    broker.kill()
    assert set(bodies(broker, verify="crc")) == known
