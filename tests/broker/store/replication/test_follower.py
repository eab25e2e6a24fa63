# SPDX-License-Identifier: Apache-2.0
"""What a slave makes of what its master sends; and both sides together, with bytes cut anywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.disk import MemoryFiles
from tests.examples import examples
from txrocketmq.broker.store.disk.steps import finished
from txrocketmq.broker.store.message_store import MessageStore, PutMessage
from txrocketmq.broker.store.replication.feed import Feed
from txrocketmq.broker.store.replication.follower import Follower
from txrocketmq.broker.store.replication.frames import (
    HEAD_CODEC,
    REPORT_CODEC,
    HaPeerError,
)
from txrocketmq.remoting.message.tags import tags_code

NOW_MS = 1_700_000_000_000
FILE_BYTES = 8192
OpenStore = Callable[..., MessageStore]
Build = Callable[..., PutMessage]


def frame(offset: int, data: bytes = b"") -> bytes:
    return HEAD_CODEC.pack(offset, len(data)) + data


def report(offset: int) -> bytes:
    return REPORT_CODEC.pack(offset)


@pytest.fixture
def store(open_store: OpenStore) -> MessageStore:
    return open_store(MemoryFiles())


def follower(store: MessageStore) -> Follower:
    return Follower(store, store.config, 0)


def test_it_says_at_once_where_its_log_ends(store: MessageStore) -> None:
    assert follower(store).report(0) == report(0)
    store.append_raw(0, bytes(100))
    assert follower(store).report(0) == report(100)


def test_one_read_is_one_report(store: MessageStore) -> None:
    one = follower(store)
    one.report(0)
    data = frame(0, b"a" * 50) + frame(50, b"b" * 30) + frame(80) + frame(80, b"c")[:-1]
    assert one.received(data, 0) == report(80)
    assert one.received(b"c", 0) == report(81)
    assert one.received(frame(81), 0) == b""
    assert bytes(store.read_raw(0, 99) or b"") == b"a" * 50 + b"b" * 30 + b"c"
    assert one.master_offset == 81


def test_an_empty_log_begins_where_the_master_says(store: MessageStore) -> None:
    one = follower(store)
    one.report(0)
    assert one.received(frame(0), 0) == b""
    assert one.received(frame(2 * FILE_BYTES), 0) == report(2 * FILE_BYTES)
    assert one.received(frame(2 * FILE_BYTES, b"a"), 0) == report(2 * FILE_BYTES + 1)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (frame(11, b"x"), "sends the log from 11 on, but this slave's log ends at 10"),
        (frame(9, b"x"), "sends the log from 9 on"),
        (frame(0), "sends the log from 0 on"),
        (frame(10, bytes(FILE_BYTES)), "do not fit into one file of the log. Is mappedFileSize"),
    ],
)
def test_what_does_not_follow_ends_the_connection(
    store: MessageStore, data: bytes, why: str
) -> None:
    one = follower(store)
    with pytest.raises(HaPeerError, match=why):
        one.received(frame(0, b"a" * 10) + data, 0)
    assert store.max_physical_offset == 10, "what came before is kept"


def test_the_first_bytes_of_an_empty_log_begin_a_file(store: MessageStore) -> None:
    with pytest.raises(HaPeerError, match="the same on both sides"):
        follower(store).received(frame(4096, b"x"), 0)


def test_it_says_again_that_it_lives(store: MessageStore) -> None:
    one = follower(store)
    one.report(0)
    assert one.due(4_999) == b""
    assert one.due(5_000) == report(0)
    assert one.due(9_999) == b""


def test_a_master_that_is_silent_counts_as_dead(store: MessageStore) -> None:
    one = follower(store)
    assert not one.is_silent(20_000)
    one.received(b"", 10_000)
    assert not one.is_silent(30_000)
    assert one.is_silent(30_001)


def test_it_may_report_what_is_durable(open_store: OpenStore) -> None:
    store = open_store(MemoryFiles(), ha_report_durable=True)
    store.append_raw(0, b"a" * 10)
    one = follower(store)
    assert one.report(0) == report(10), "there it goes on"
    assert one.received(frame(10, b"b" * 10), 0) == report(0)
    job = store.flush.begin()
    assert job is not None
    assert one.received(frame(20, b"c"), 0) == b""
    job.run()
    store.flush.finish(job)
    assert one.due(0) == report(20)


def contents(store: MessageStore) -> tuple[Any, ...]:
    """All that follows from a log: its bytes, units of queues, what is found by key."""
    start = max(store.min_physical_offset, 0)
    files = [
        bytes(store.read_raw(at, FILE_BYTES) or b"")
        for at in range(start, store.max_physical_offset, FILE_BYTES)
    ]
    units = {
        (topic, queue): list(store.queue_units(topic, queue, 0, 1_000))
        for topic in sorted(store.topics())
        for queue in store.queue_ids(topic)
    }
    found = [
        [bytes(each) for each in finished(store.query("T0", f"key{n}", 99, 0, NOW_MS * 2)).buffers]
        for n in range(3)
    ]
    return files, units, found


def messages(build: Build, sizes: list[int]) -> list[PutMessage]:
    return [
        build(
            f"T{n % 2}", n % 3, bytes([n % 256]) * size, tags=f"Tag{n % 5}", keys=f"key{n % 3}",
            uniq_key=f"{n:032}", tags_code=tags_code(f"Tag{n % 5}"),
        )
        for n, size in enumerate(sizes)
    ]  # fmt: skip


@settings(
    max_examples=examples(60),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.data())
def test_both_sides_together_make_the_same_store(
    open_store: OpenStore, message: Build, data: st.DataObject
) -> None:
    batch = data.draw(st.sampled_from([1, 37, 500, 32_768]))
    master = open_store(MemoryFiles(), ha_transfer_batch_size=batch)
    slave = open_store(MemoryFiles())
    waiting = messages(message, data.draw(st.lists(st.integers(0, 3000), min_size=1, max_size=25)))
    cuts = st.integers(1, data.draw(st.sampled_from([40, 2_000, 100_000])))

    feed = follower = None
    on_its_way = b""
    turns = 0
    while waiting or slave.max_physical_offset < master.max_physical_offset:
        turns += 1
        if waiting and (turns % 3 == 1 or turns > 50):
            master.put([waiting.pop(0)], NOW_MS)
        if feed is None or follower is None or (turns < 60 and data.draw(st.integers(0, 9)) == 0):
            # A connection ends anywhere in a frame, and what was on its way is lost.
            feed, follower = (
                Feed(master, master.config, "slave:1", turns),
                Follower(slave, slave.config, turns),
            )
            feed.reported(follower.report(turns), turns)
            on_its_way = b""
        count = data.draw(cuts) if turns < 200 else 1 << 20
        taken = b"".join(feed.pieces(count + 100, turns))[:count]
        feed.sent(len(taken), turns)
        on_its_way += taken
        arrived, on_its_way = on_its_way[:count], on_its_way[count:]
        feed.reported(follower.received(arrived, turns), turns)
        assert feed.acknowledged <= slave.max_physical_offset
        if turns % 2:
            slave.confirmed()
    slave.confirmed()
    assert slave.dispatch_behind_bytes == 0
    assert contents(slave) == contents(master)
