# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from tests.broker.conftest import Parts
from txrocketmq.broker.intake.inner_message import InnerMessage, Way
from txrocketmq.broker.store.message_store import PutStatus
from txrocketmq.remoting.message.flags import MessageSysFlag


def message(
    topic: str = "T", way: Way = Way.SEND, body: bytes = b"body", **properties: str
) -> InnerMessage:
    return InnerMessage(topic, 1, body, 1, bytes(8), bytes(8), properties, way=way)


def counted(parts: Parts, topic: str) -> tuple[int, int] | None:
    nums, size = (parts.stats.item(name, topic) for name in ("TOPIC_PUT_NUMS", "TOPIC_PUT_SIZE"))
    return None if nums is None or size is None else (nums.value, size.value)


def test_a_run_is_put_at_once_and_counted_once(parts: Parts) -> None:
    run = [message("A"), message("B"), message("A")]
    assert parts.intake.take(run, parts.now_ms) == [PutStatus.PUT_OK] * 3
    size = parts.store.max_physical_offset // 3
    assert counted(parts, "A") == (2, 2 * size)
    assert counted(parts, "B") == (1, size)


def test_sizes_are_counted_where_they_are_wanted(parts: Parts) -> None:
    parts.stats.sizes = {}
    half = message("A")
    half.sys_flag = MessageSysFlag.TRANSACTION_PREPARED_TYPE
    parts.intake.take([message("A"), message("B", body=bytes(2_000)), half], parts.now_ms)
    counts = {topic: its.counts[:3] for topic, its in parts.stats.sizes.items()}
    assert counts == {"A": [2, 0, 0], "B": [0, 1, 0]}
    assert sum(its.total for its in parts.stats.sizes.values()) == parts.store.max_physical_offset


def test_each_message_has_its_outcome(parts: Parts) -> None:
    run = [
        message("A"), message("A", TIMER_DELAY_MS="x"), message("a/b"), message("A", body=b""),
        message("A", DELAY="1"),
    ]  # fmt: skip
    assert parts.intake.take(run, parts.now_ms) == [
        PutStatus.PUT_OK, PutStatus.WHEEL_TIMER_MSG_ILLEGAL, PutStatus.MESSAGE_ILLEGAL,
        PutStatus.MESSAGE_ILLEGAL, PutStatus.PUT_OK,
    ]  # fmt: skip
    assert parts.store.max_offset("A", 1) == 1
    assert parts.store.max_offset("SCHEDULE_TOPIC_XXXX", 0) == 1


def test_nothing_is_put_when_nothing_is_admitted(parts: Parts) -> None:
    assert parts.intake.take([message(body=b"")], parts.now_ms) == [PutStatus.MESSAGE_ILLEGAL]
    assert parts.store.max_physical_offset == 0


def test_what_enters_no_queue_is_counted_too(parts: Parts) -> None:
    half = message("A")
    half.sys_flag = MessageSysFlag.TRANSACTION_PREPARED_TYPE
    parts.intake.take([half, message("A")], parts.now_ms)
    assert counted(parts, "A") == (2, parts.store.max_physical_offset)


def test_a_store_that_takes_nothing_counts_nothing(parts: Parts) -> None:
    parts.store.stop(parts.now_ms)
    assert parts.intake.take([message("A")], parts.now_ms) == [PutStatus.SERVICE_NOT_AVAILABLE]
    assert counted(parts, "A") is None
