# SPDX-License-Identifier: Apache-2.0
"""Stores that the original brokers wrote, closed in order or not: read, searched and continued."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from txrocketmq.broker.store.disk.steps import finished
from txrocketmq.broker.store.message_store import (
    GetMessageStatus,
    MessageStore,
    PutMessage,
    PutStatus,
)
from txrocketmq.remoting.message.message import MessageExt, decode_message
from txrocketmq.remoting.message.tags import tags_code

FAR_MS = 1 << 50
STATES = ("clean", "crashed")


@pytest.fixture(params=STATES)
def state(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def stored(
    golden_messages: Callable[[str], list[dict[str, Any]]], golden_version: str
) -> list[dict[str, Any]]:
    return golden_messages(golden_version)


@pytest.fixture
def store(
    golden_copy: Callable[[str, str], Path],
    open_golden: Callable[..., MessageStore],
    golden_version: str,
    state: str,
) -> MessageStore:
    return open_golden(golden_copy(golden_version, state))


def decoded(data: memoryview, *, decompress: bool = True) -> MessageExt:
    message, end = decode_message(data, decompress_body=decompress)
    assert end == len(data)
    return message


ADDED_BY_THE_CLIENT = ("MIN_OFFSET", "MAX_OFFSET")


def check(message: MessageExt, expected: dict[str, Any]) -> None:
    assert message.body == base64.b64decode(expected["bodyBase64"])
    assert message.properties == {
        name: value
        for name, value in expected["properties"].items()
        if name not in ADDED_BY_THE_CLIENT
    }
    assert message.born_host.ip == expected["bornHost"]
    assert f"/{message.store_host}" == expected["storeHost"]
    assert message.offset_msg_id == expected["offsetMsgId"]
    found = {
        "topic": message.topic,
        "queueId": message.queue_id,
        "queueOffset": message.queue_offset,
        "commitLogOffset": message.commit_log_offset,
        "storeSize": message.store_size,
        "bodyCRC": message.body_crc,
        "bornTimestamp": message.born_timestamp,
        "storeTimestamp": message.store_timestamp,
        "reconsumeTimes": message.reconsume_times,
        "preparedTransactionOffset": message.prepared_transaction_offset,
        "flag": message.flag,
    }
    assert found == {name: expected[name] for name in found}


def test_each_message_is_got_at_its_offset(
    store: MessageStore, stored: list[dict[str, Any]], state: str
) -> None:
    for line in stored:
        place = line["topic"], line["queueId"], line["queueOffset"]
        result = store.get(*place, 1, 1 << 22)
        if state == "crashed" and result.status is not GetMessageStatus.FOUND:
            assert line["queueOffset"] >= store.max_offset(*place[:2])  # stored after the copy
            continue
        assert (result.status, result.count) == (GetMessageStatus.FOUND, 1), line
        assert result.next_begin_offset == line["queueOffset"] + 1
        check(decoded(result.buffers[0]), line)
        at = store.message_at(line["commitLogOffset"])
        assert at is not None
        assert at == result.buffers[0]


def test_a_consumer_gets_all_messages_of_each_queue(
    store: MessageStore, stored: list[dict[str, Any]]
) -> None:
    expected: dict[tuple[str, int], list[int]] = {}
    for line in stored:
        key = line["topic"], line["queueId"]
        if line["queueOffset"] < store.max_offset(*key):
            expected.setdefault(key, []).append(line["commitLogOffset"])
    for key, offsets in expected.items():
        found: list[int] = []
        offset = store.min_offset(*key)
        while True:
            result = store.get(*key, offset, 32, 1 << 22)
            if result.status is not GetMessageStatus.FOUND:
                break
            count = 0
            for buffer in result.buffers:
                at = 0
                while at < len(buffer):
                    message, at = decode_message(buffer, at)
                    found.append(message.commit_log_offset)
                    count += 1
            assert count == result.count
            offset = result.next_begin_offset
        assert result.status is GetMessageStatus.OFFSET_OVERFLOW_ONE
        assert found == sorted(offsets)


def test_tags_are_filtered_by_their_hash_in_the_ext_files(
    store: MessageStore, stored: list[dict[str, Any]]
) -> None:
    tags = {line["properties"].get("TAGS") for line in stored if line["topic"] == "Plain"}
    assert len(tags) > 2
    for tag in tags - {None}:
        found = []
        for queue_id in store.queue_ids("Plain"):
            offset = 0
            while offset < store.max_offset("Plain", queue_id):
                result = store.get(
                    "Plain", queue_id, offset, 1, 1 << 22, frozenset([tags_code(tag)])
                )
                offset = result.next_begin_offset
                found += [decoded(buffer).properties.get("TAGS") for buffer in result.buffers]
        expected = [
            line
            for line in stored
            if line["topic"] == "Plain" and line["properties"].get("TAGS") == tag
        ]
        assert found == [tag] * len(expected)


def keys_of(line: dict[str, Any]) -> list[str]:
    properties = line["properties"]
    return [properties["UNIQ_KEY"], *properties.get("KEYS", "").split()]


def test_the_index_of_a_closed_store_finds_each_key(
    golden_copy: Callable[[str, str], Path],
    open_golden: Callable[..., MessageStore],
    golden_version: str,
    stored: list[dict[str, Any]],
) -> None:
    store = open_golden(golden_copy(golden_version, "clean"))
    check_index(store, stored)


def check_index(store: MessageStore, stored: list[dict[str, Any]]) -> None:
    for line in stored:
        for key in keys_of(line):
            result = finished(store.query(line["topic"], key, 64, 0, FAR_MS))
            offsets = [decoded(buffer).commit_log_offset for buffer in result.buffers]
            assert line["commitLogOffset"] in offsets, (line["topic"], key)
            assert offsets == sorted(offsets)


def test_5_4_finds_messages_by_tag(
    golden_copy: Callable[[str, str], Path],
    open_golden: Callable[..., MessageStore],
    golden_messages: Callable[[str], list[dict[str, Any]]],
) -> None:
    store = open_golden(golden_copy("5.4.0", "clean"))
    expected = [
        line["commitLogOffset"]
        for line in golden_messages("5.4.0")
        if line["topic"] == "Plain" and line["properties"].get("TAGS") == "TagA"
    ]
    result = finished(store.query("Plain", "TagA", 64, 0, FAR_MS, "T"))
    assert [decoded(each).commit_log_offset for each in result.buffers] == sorted(expected)
    assert 3 < len(expected) < 64


def test_a_killed_process_keeps_its_index(
    golden_copy: Callable[[str, str], Path],
    open_golden: Callable[..., MessageStore],
    golden_version: str,
    stored: list[dict[str, Any]],
) -> None:
    path = golden_copy(golden_version, "crashed")
    os.utime(path / "abort")  # as if this machine had run the broker
    store = open_golden(path)
    there = [
        line
        for line in stored
        if line["queueOffset"] < store.max_offset(line["topic"], line["queueId"])
    ]
    assert len(there) > 300
    check_index(store, there)


def test_a_store_goes_on_where_the_original_stopped(
    golden_copy: Callable[[str, str], Path],
    open_golden: Callable[..., MessageStore],
    message: Callable[..., PutMessage],
    golden_version: str,
    state: str,
    stored: list[dict[str, Any]],
) -> None:
    path = golden_copy(golden_version, state)
    store = open_golden(path)
    end = store.max_physical_offset
    first = store.max_offset("Roll", 0)
    more = [
        message("Roll", 0, bytes([each]) * 3000, uniq_key=f"more{each:04X}") for each in range(200)
    ]
    results = store.put(more, FAR_MS)
    assert {result.status for result in results} == {PutStatus.PUT_OK}
    assert results[0].physical_offset >= end
    assert [result.queue_offset for result in results] == list(range(first, first + 200))
    store.stop(FAR_MS)
    again = open_golden(path)
    for number, result in enumerate(results):
        got = again.get("Roll", 0, result.queue_offset, 1, 1 << 22)
        assert decoded(got.buffers[0]).body == bytes([number]) * 3000
        found = finished(again.query("Roll", f"more{number:04X}", 32, 0, FAR_MS + 1))
        assert [decoded(each).queue_offset for each in found.buffers] == [result.queue_offset]
    for line in stored:
        if line["queueOffset"] < again.min_offset(line["topic"], line["queueId"]):
            continue
        old = again.get(line["topic"], line["queueId"], line["queueOffset"], 1, 1 << 22)
        if old.status is GetMessageStatus.FOUND and line["topic"] != "Roll":
            check(decoded(old.buffers[0]), line)


def test_ext_files_go_on_where_the_original_stopped(
    golden_copy: Callable[[str, str], Path],
    open_golden: Callable[..., MessageStore],
    message: Callable[..., PutMessage],
    golden_version: str,
    state: str,
) -> None:
    path = golden_copy(golden_version, state)
    store = open_golden(path, enable_consume_queue_ext=True)
    first = store.max_offset("Plain", 0)
    codes = [tags_code(f"Tag{each}") for each in range(300)]
    store.put([message("Plain", 0, tags_code=code) for code in codes], FAR_MS)
    store.stop(FAR_MS)
    again = open_golden(path, enable_consume_queue_ext=True)
    units = list(again.queue_units("Plain", 0, first, 999))
    assert [unit.tags_code for unit in units] == codes
    result = again.get("Plain", 0, first, 32, 1 << 22, frozenset(codes[3:5]))
    assert [decoded(each).queue_offset for each in split(result.buffers)] == [first + 3, first + 4]


def split(buffers: Sequence[memoryview]) -> list[memoryview]:
    """The records of buffers."""
    records = []
    for buffer in buffers:
        at = 0
        while at < len(buffer):
            _, end = decode_message(buffer, at)
            records.append(buffer[at:end])
            at = end
    return records


def test_opening_a_closed_store_changes_nothing(
    golden_copy: Callable[[str, str], Path],
    open_golden: Callable[..., MessageStore],
    golden_version: str,
) -> None:
    path = golden_copy(golden_version, "clean")
    before = contents(path)
    store = open_golden(path)
    assert (path / "abort").exists()
    store.stop(FAR_MS)
    after = contents(path)
    after.pop("inventory")
    before.pop("checkpoint")
    after.pop("checkpoint")
    assert after == before


def contents(path: Path) -> dict[str, bytes]:
    return {
        str(each.relative_to(path)): each.read_bytes() for each in path.rglob("*") if each.is_file()
    }
