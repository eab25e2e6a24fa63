# SPDX-License-Identifier: Apache-2.0
"""The declarations against the files that the original brokers wrote."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import construct
import pytest

from txrocketmq.broker.store.formats import formats
from txrocketmq.remoting.message.message import MessageExt, decode_message
from txrocketmq.remoting.message.record import MAGIC_BLANK
from txrocketmq.remoting.message.tags import java_string_hash, tags_code
from txrocketmq.remoting.primitives.packing import fixed

LOG_FILE_BYTES = 262_144


@pytest.fixture(scope="module")
def store(golden_store: Callable[[str], Path], golden_version: str) -> Path:
    return golden_store(golden_version) / "clean"


def message_at(store: Path, offset: int) -> MessageExt:
    start = offset - offset % LOG_FILE_BYTES
    log = memoryview((store / "commitlog" / f"{start:020}").read_bytes())
    return decode_message(log, offset - start)[0]


def units(declaration: construct.Struct, data: bytes) -> Iterator[Any]:
    size = declaration.sizeof()
    assert len(data) % size == 0
    for at in range(0, len(data), size):
        yield declaration.parse(data[at : at + size])


@pytest.mark.parametrize(
    ("declaration", "size"),
    [
        (formats.CONSUME_QUEUE_UNIT, 20),
        (formats.CONSUME_QUEUE_EXT_HEAD, 20),
        (formats.BATCH_CONSUME_QUEUE_UNIT, 46),
        (formats.INDEX_HEADER, 40),
        (formats.INDEX_SLOT, 4),
        (formats.INDEX_ITEM, 20),
        (formats.CHECKPOINT_V4, 24),
        (formats.CHECKPOINT, 40),
        (formats.TIMER_WHEEL_SLOT, 32),
        (formats.TIMER_LOG_UNIT, 52),
        (formats.TIMER_LOG_BLANK, 16),
        (formats.TIMER_CHECK, 56),
        (formats.EPOCH_ENTRY, 12),
    ],
)
def test_sizes(declaration: construct.Struct, size: int) -> None:
    assert declaration.sizeof() == fixed(declaration).size == size


def test_consume_queue_units_lead_to_their_messages(store: Path) -> None:
    seen = 0
    for path in sorted((store / "consumequeue").glob("*/*/*")):
        for index, unit in enumerate(units(formats.CONSUME_QUEUE_UNIT, path.read_bytes())):
            if unit.size == 0:
                continue
            message = message_at(store, unit.physical_offset)
            assert message.store_size == unit.size
            assert message.queue_offset == int(path.name) // 20 + index
            assert (message.topic, str(message.queue_id)) == path.parts[-3:-1]
            if unit.tags_code <= formats.CONSUME_QUEUE_EXT_ADDRESS_MAX:
                check_ext_unit(store, path, unit.tags_code, message)
            elif message.topic != "SCHEDULE_TOPIC_XXXX":
                assert unit.tags_code == tags_code(message.tags)
            seen += 1
    assert seen > 390


def check_ext_unit(store: Path, queue_file: Path, address: int, message: MessageExt) -> None:
    topic, queue_id = queue_file.parts[-3:-1]
    ext_file = store / "consumequeue_ext" / topic / queue_id / f"{0:020}"
    at = address - formats.CONSUME_QUEUE_EXT_ADDRESS_BASE
    unit = formats.CONSUME_QUEUE_EXT_UNIT.parse(ext_file.read_bytes()[at:])
    assert unit.size == formats.CONSUME_QUEUE_EXT_HEAD.sizeof() + unit.bitmap_size
    if topic != "SCHEDULE_TOPIC_XXXX":
        assert unit.tags_code == tags_code(message.tags)
    assert unit.store_time == message.store_timestamp


def test_index_items_lead_to_messages_with_their_key(store: Path, golden_version: str) -> None:
    (path,) = (store / "index").iterdir()
    data = path.read_bytes()
    header = formats.INDEX_HEADER.parse(data)
    slot_count, item_count = 500, 2000
    items_at = 40 + 4 * slot_count
    assert len(data) == items_at + 20 * item_count
    slots = [each.newest_item for each in units(formats.INDEX_SLOT, data[40:items_at])]
    items = list(units(formats.INDEX_ITEM, data[items_at:]))
    assert header.hash_slot_count == sum(newest > 0 for newest in slots)
    assert header.index_count - 1 == {"4.9.7": 842, "5.4.0": 1237}[golden_version]
    walked = 0
    for slot, newest in enumerate(slots):
        number = newest
        while number:
            item = items[number]
            message = message_at(store, item.physical_offset)
            keys = [*message.keys, message.unique_key, f"T#{message.tags}"]
            hashes = {abs(java_string_hash(f"{message.topic}#{key}")) for key in keys}
            assert item.key_hash in hashes
            assert item.key_hash % slot_count == slot
            elapsed_ms = message.store_timestamp - header.begin_timestamp
            assert item.seconds_since_begin == elapsed_ms // 1000
            assert header.begin_physical_offset <= item.physical_offset
            assert item.physical_offset <= header.end_physical_offset
            number = item.previous_item
            walked += 1
    assert walked == header.index_count - 1
    assert message_at(store, header.end_physical_offset).store_timestamp == header.end_timestamp


def test_checkpoint(store: Path, golden_version: str) -> None:
    data = (store / "checkpoint").read_bytes()
    assert len(data) == formats.CHECKPOINT_FILE_BYTES
    checkpoint = formats.CHECKPOINT.parse(data)
    newest_ms = max(
        message_at(store, unit.physical_offset).store_timestamp
        for path in (store / "consumequeue").glob("*/*/*")
        for unit in units(formats.CONSUME_QUEUE_UNIT, path.read_bytes())
        if unit.size
    )
    assert checkpoint.physic_msg_timestamp == newest_ms
    assert checkpoint.logics_msg_timestamp == newest_ms
    assert checkpoint.index_msg_timestamp == 0
    written = formats.CHECKPOINT if golden_version == "5.4.0" else formats.CHECKPOINT_V4
    assert not any(data[written.sizeof() :])


def test_timer_files(golden_store: Callable[[str], Path]) -> None:
    store = golden_store("5.4.0") / "clean"
    data = (store / "config" / "timercheck").read_bytes()
    assert len(data) == formats.TIMER_CHECK_FILE_BYTES
    check = formats.TIMER_CHECK.parse(data)
    topics = json.loads((store / "config" / "timermetrics").read_text("utf-8"))
    assert check.last_read_time_ms > 1_795_000_000_000
    assert check.counter >= 0
    assert "timingCount" in topics
    assert not any(data[formats.TIMER_CHECK.sizeof() :])
    wheel_bytes = formats.TIMER_WHEEL_SLOTS * formats.TIMER_WHEEL_SLOT.sizeof()
    assert (store / "timerwheel").stat().st_size == wheel_bytes


def test_blank_of_the_timer_log_has_the_commit_logs_magic() -> None:
    blank = formats.TIMER_LOG_BLANK.build({"room": 40, "prev_pos": 0, "magic": MAGIC_BLANK})
    assert blank == b"\0\0\0\x28" + bytes(8) + b"\xcb\xd4\x31\x94"
