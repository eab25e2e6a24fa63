# SPDX-License-Identifier: Apache-2.0
"""The compiled walk finds the same records as the one in Python, whatever the log looks like."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kernel.installed import kernel, needs_kernel
from tests.kernel.random_records import logs
from txrocketmq.broker.store.log.packed_walk import MOST_RECORDS, walk
from txrocketmq.remoting.message.record import MAGIC_V1, build_record

pytestmark = needs_kernel


def _same(data: bytes, from_offset: int, start: int, end: int) -> int:
    view = memoryview(data)
    for check_crc in (False, True):
        expected = walk(view, from_offset, start, end, check_crc)
        assert kernel.walk(view, from_offset, start, end, check_crc) == expected
    return expected[1]


@given(logs(), st.data())
def test_both_find_the_same_records_between_any_two_places(
    log: tuple[bytes, int, list[int]], more: st.DataObject
) -> None:
    data, from_offset, begins = log
    assert _same(data, from_offset, 0, len(data)) == len(begins) - 1
    start = more.draw(st.sampled_from(begins) | st.integers(0, len(data) + 9))
    end = more.draw(st.sampled_from(begins) | st.integers(0, len(data) + 9))
    _same(data, from_offset, start, end)
    _same(data, from_offset + 1, 0, len(data))


@given(logs(), st.data())
def test_both_end_at_the_same_damage(
    log: tuple[bytes, int, list[int]], more: st.DataObject
) -> None:
    data, from_offset, begins = log
    damaged = bytearray(data)
    for _ in range(more.draw(st.integers(1, 4))):
        # Most of what decides is in the first hundred bytes of a record.
        at = more.draw(st.sampled_from(begins)) + more.draw(st.integers(0, 100))
        if at < len(damaged):
            damaged[at] = more.draw(st.sampled_from([0, 1, 127, 128, 255]) | st.integers(0, 255))
    if more.draw(st.booleans()) and len(damaged) > 4096:
        damaged[4096:8192] = bytes(len(damaged[4096:8192]))
    _same(bytes(damaged), from_offset, 0, len(damaged))


def test_one_call_finds_no_more_than_so_many() -> None:
    data = b""
    parts: list[bytes] = []
    at = 0
    host = {"ip": bytes(4), "port": 1}
    for _ in range(MOST_RECORDS + 10):
        part = build_record({
            "magic": MAGIC_V1, "body_crc": 0, "queue_id": 0, "flag": 0, "queue_offset": 0,
            "physical_offset": at, "sys_flag": 0, "born_timestamp": 1, "born_host": host,
            "store_timestamp": 1, "store_host": host, "reconsume_times": 0,
            "prepared_transaction_offset": 0, "body": b"", "topic": b"T", "properties": b"",
        })  # fmt: skip
        parts.append(part)
        at += len(part)
    data = b"".join(parts)
    assert _same(data, 0, 0, len(data)) == MOST_RECORDS
    position, _, _ = kernel.walk(data, 0, 0, len(data), True)
    assert _same(data, 0, position, len(data)) == 10


def test_what_is_no_walk_is_refused() -> None:
    for wrong in [(b"", 0, -1, 0, True), ("text", 0, 0, 0, True), (b"", 2**63, 0, 0, True)]:
        with pytest.raises((TypeError, OverflowError, BufferError)):
            kernel.walk(*wrong)
    assert kernel.walk(b"", 0, 0, 1 << 63, True) == (0, 0, b"")
    assert kernel.walk(bytes(100), 2**63 - 1, 50, 1 << 63, True) == (50, 0, b"")
    assert kernel.walk(bytes(100), 0, 2**63, 1 << 63, True)[1] == 0
