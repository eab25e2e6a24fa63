# SPDX-License-Identifier: Apache-2.0
"""Plain puts write what puts write, byte for byte; or nothing, and say so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.broker.store.conftest import HOST, NOW_MS, MemoryFiles
from tests.remoting.serialize.java_sends import frame, header
from txrocketmq.broker.store.config import SYNC_FLUSH
from txrocketmq.broker.store.message_store import MessageStore, PutMessage, PutStatus
from txrocketmq.remoting.frame import FrameDecoder
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.tags import tags_code
from txrocketmq.remoting.serialize.plain_sends import PlainSends

BORN_HOST = bytes([10, 0, 0, 7]) + (40_000).to_bytes(4, "big")
END = b"CLUSTER\x01c\x02"
KEYS = st.none() | st.sampled_from(["a", "a b", "\u00e9"])
TAGS = st.none() | st.sampled_from(["t", "\u4e2d"])
SENDS = st.tuples(
    st.integers(0, 2), st.integers(NOW_MS - 2, NOW_MS), KEYS, TAGS, st.binary(max_size=50)
)


def sends_of(asked: list[Any]) -> PlainSends:
    """The sends as they come."""
    data = b""
    for n, (queue_id, born_ms, keys, tags, body) in enumerate(asked):
        text = f"UNIQ_KEY\x01{'K' * (3 + n % 2)}{n:04X}\x02WAIT\x01true"
        text = text if keys is None else f"KEYS\x01{keys}\x02{text}"
        text = text if tags is None else f"{text}\x02TAGS\x01{tags}"
        data += frame(header(n, e=str(queue_id), g=str(born_ms), i=text, f="1"), body)
    (sends,) = FrameDecoder(plain_sends=True).receive(data)
    assert len(sends.sends) == len(asked)
    return sends  # type: ignore[no-any-return]


def put_plain(store: MessageStore, sends: PlainSends, sys_flag: int = 1) -> Any:
    places = {
        send[0]: store.place("T", int(send[0].split(b'"e":"')[1][:1]), sys_flag, END)
        for send in sends.sends
    }
    hosts = (BORN_HOST, HOST)
    return store.put_plain(sends.sends, places, len(sends.data), hosts, NOW_MS)


def messages_of(sends: PlainSends) -> list[PutMessage]:
    found = []
    for command in sends.commands():
        fields: Any = command.ext_fields
        own = dict(pair.split("\x01") for pair in fields["i"].split("\x02"))
        found.append(
            PutMessage(
                "T", int(fields["e"]), command.body, f"{fields['i']}\x02".encode() + END,
                tags_code(own.get("TAGS")), int(fields["g"]), BORN_HOST, HOST,
                own["UNIQ_KEY"], own.get("KEYS"), own.get("TAGS"), 0, 1,
            )
        )  # fmt: skip
    return found


@pytest.fixture
def first(message: Callable[..., PutMessage]) -> PutMessage:
    """What makes the first file."""
    return message("T", 0)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(SENDS, min_size=1, max_size=8), min_size=1, max_size=6))
def test_both_write_the_same(
    config: Callable[..., Any], first: PutMessage, reads: list[list[Any]]
) -> None:
    disks = [MemoryFiles(), MemoryFiles()]
    stores = [MessageStore(config(), files=disk) for disk in disks]
    arrived: list[list[Any]] = [[], []]
    for store, seen in zip(stores, arrived, strict=True):
        store.load(NOW_MS)
        store.on_arrival = lambda *what, seen=seen: seen.append(what)
        store.put([first], NOW_MS)
    short, plain = stores
    for read in reads:
        sends = sends_of(read)
        results = plain.put(messages_of(sends), NOW_MS)
        assert all(result.status is PutStatus.PUT_OK for result in results)
        batch = put_plain(short, sends)
        if batch is None:  # it is the end of the file
            results = short.put(messages_of(sends), NOW_MS)
            continue
        assert batch.offsets == [result.physical_offset for result in results]
        assert batch.queue_offsets == [result.queue_offset for result in results]
        assert batch.totals == [
            ("T", len(group), sum(size for size in group))
            for group in _sizes_by_queue(read, results)
        ]
    assert arrived[0] == arrived[1]
    assert short.stats.put_bytes == plain.stats.put_bytes
    for store in stores:
        store.stop(NOW_MS)
    maps = [{path: bytes(m) for path, m in disk.maps.items()} for disk in disks]
    assert maps[0] == maps[1]


def _sizes_by_queue(read: list[Any], results: list[Any]) -> list[list[int]]:
    sizes: dict[int, list[int]] = {}
    for (queue_id, *_), result in zip(read, results, strict=True):
        sizes.setdefault(queue_id, []).append(result.size)
    return list(sizes.values())


ONE = [(0, NOW_MS, None, None, b"body")]


def test_what_is_put_is_found(open_store: Callable[..., MessageStore], first: PutMessage) -> None:
    store = open_store()
    store.put([first], NOW_MS)
    batch = put_plain(store, sends_of(ONE))
    assert store.get("T", 0, 1, 8, 1 << 20).count == 1
    (record,) = store.query("T", "KKK0000", 8, NOW_MS, NOW_MS).buffers
    assert record == store.message_at(batch.offsets[0])


def test_no_room_leaves_nothing_behind(
    files: MemoryFiles, open_store: Callable[..., MessageStore], first: PutMessage
) -> None:
    store = open_store()
    store.put([first], NOW_MS)
    sends = sends_of([(2, NOW_MS, None, None, b"x")] * 3)
    files.room_bytes = 0
    end = store.max_physical_offset
    assert put_plain(store, sends) is None
    assert store.max_physical_offset == end
    files.room_bytes = None
    assert put_plain(store, sends).queue_offsets == [0, 1, 2]


def test_texts_that_are_no_unicode_leave_nothing_behind(
    open_store: Callable[..., MessageStore], first: PutMessage
) -> None:
    store = open_store()
    store.put([first], NOW_MS)
    sends = sends_of([*ONE, (0, NOW_MS, "@", None, b"body")])
    odd = [(*send[:2], send[2] and b"\xff", *send[3:]) for send in sends.sends]
    sends.sends = odd
    assert put_plain(store, sends) is None
    assert put_plain(store, sends_of(ONE)).queue_offsets == [1]


def test_who_waits_for_the_disk_puts_otherwise(
    open_store: Callable[..., MessageStore], first: PutMessage
) -> None:
    store = open_store(flush_disk_type=SYNC_FLUSH)
    store.put([first], NOW_MS)
    assert put_plain(store, sends_of(ONE)) is None


def test_a_store_without_files_or_closed_takes_none(
    open_store: Callable[..., MessageStore], first: PutMessage
) -> None:
    store = open_store()
    assert put_plain(store, sends_of(ONE)) is None
    store.put([first], NOW_MS)
    store.stop(NOW_MS)
    assert put_plain(store, sends_of(ONE)) is None


def test_without_index_nothing_is_indexed(
    open_store: Callable[..., MessageStore], first: PutMessage
) -> None:
    store = open_store(message_index_enable=False)
    store.put([first], NOW_MS)
    assert put_plain(store, sends_of(ONE)) is not None
    assert store.query("T", "KKK0000", 8, NOW_MS, NOW_MS).buffers == []


@pytest.mark.parametrize(
    "sys_flag",
    [
        MessageSysFlag.BORN_HOST_V6,
        MessageSysFlag.TRANSACTION_PREPARED_TYPE,
        MessageSysFlag.TRANSACTION_ROLLBACK_TYPE,
        -1,
        1 << 31,
    ],
)
def test_flags_that_are_not_plain(open_store: Callable[..., MessageStore], sys_flag: int) -> None:
    with pytest.raises(ValueError, match="system flag"):
        open_store().place("T", 0, sys_flag, END)


def test_properties_that_are_too_long(open_store: Callable[..., MessageStore]) -> None:
    with pytest.raises(ValueError, match="too long"):
        open_store().place("T", 0, 0, bytes(32_767))


def test_removed_queues_are_told(
    open_store: Callable[..., MessageStore], first: PutMessage
) -> None:
    store = open_store()
    store.put([first], NOW_MS)
    before = store.queues_removed
    store.delete_topic("T")
    assert store.queues_removed == before + 1
