# SPDX-License-Identifier: Apache-2.0
"""Streams over stores (spark/stream.py) that read light queues."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.spark.stores import Draft, StoreWriter, drafts
from tests.spark.streaming import Query, reader
from txrocketmq.remoting.message.flags import transaction_type


@settings(max_examples=examples(15))
@given(
    puts=st.lists(st.lists(drafts(light=True), max_size=12), min_size=1, max_size=4),
    most_bytes=st.sampled_from((300, 2000, 10_000)),
    kill=st.lists(st.booleans(), min_size=4, max_size=4),
    topics=st.sampled_from((("%LMQ%a",), ("Orders", "%LMQ%a"), ("%LMQ%a", "%LMQ%b", "%LMQ%no"))),
    damage=st.booleans(),
)
def test_light_queues_are_read_once_whatever_their_units_have_come_to_name(
    tmp_path_factory: pytest.TempPathFactory,
    puts: list[list[Draft]],
    most_bytes: int,
    kill: list[bool],
    topics: tuple[str, ...],
    damage: bool,
) -> None:
    root = tmp_path_factory.mktemp("stores") / "broker-a"
    writer = StoreWriter(root, segment_bytes=8192)
    options = {
        "startingOffsets": "earliest", "columns": "topic,queueId,queueOffset,physicalOffset",
        "maxBytesPerTrigger": str(most_bytes), "topic": ",".join(topics),
    }  # fmt: skip
    query = Query()
    stream = reader(root, **options)
    for some, killed in zip(puts, kill, strict=False):
        writer.put_all(some)
        query.run(stream, most_batches=2)
        if killed:
            query.plan(stream)
            if damage:
                shutil.rmtree(root / "consumequeue/%LMQ%a", ignore_errors=True)
            stream = reader(root, **options)
    writer.put(Draft())  # the one before may end with zeros
    query.run(reader(root, **options))
    for topic in topics:
        rows = [row for row in query.rows if row["topic"] == topic]
        of_topic = [
            each
            for each in writer.stored
            if topic in (each.draft.topic, *each.draft.light)
            and transaction_type(each.draft.sys_flag) in (0, 8)
        ]
        assert [row["physicalOffset"] for row in rows] == [e.physical_offset for e in of_topic]
        if topic != "Orders":
            places = [(row["queueId"], row["queueOffset"]) for row in rows]
            assert places == [(0, offset) for offset in range(len(rows))]


def test_a_stream_reads_light_queues_by_a_pattern(tmp_path: Path) -> None:
    """Those that come into being while it runs are among them."""
    store = StoreWriter(tmp_path / "broker-a", segment_bytes=4096)
    store.put_all([Draft(light=("%LMQ%a",)), Draft("%LMQ%b"), Draft(light=("%LMQ%x",)), Draft()])
    options = {
        "topicPattern": "%LMQ%[a-c]", "startingOffsets": "earliest", "columns": "topic,queueOffset",
    }  # fmt: skip
    query = Query().run(reader(store.root, **options))
    assert sorted(row["topic"] for row in query.rows) == ["%LMQ%a", "%LMQ%b"]
    store.put_all([Draft(light=("%LMQ%c", "%LMQ%a")), Draft()])
    query.run(reader(store.root, **options))
    rows = sorted((row["topic"], row["queueOffset"]) for row in query.rows)
    assert rows == [("%LMQ%a", 0), ("%LMQ%a", 1), ("%LMQ%b", 0), ("%LMQ%c", 0)]


def test_a_stream_begins_with_an_offset_of_a_light_queue(tmp_path: Path) -> None:
    store = StoreWriter(tmp_path / "broker-a", segment_bytes=4096)
    store.put_all(Draft() for _ in range(20))
    store.put_all(Draft(f"T{n % 2}", body=b"%d" % n, light=("%LMQ%a",)) for n in range(20))
    asked = '{"%LMQ%a": {"broker-a": {"0": 12}}}'
    query = Query().run(reader(store.root, topic="%LMQ%a", startingOffsets=asked))
    assert [row["body"] for row in query.rows] == [b"%d" % n for n in range(12, 20)]
