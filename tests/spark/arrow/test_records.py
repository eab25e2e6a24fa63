# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.spark.logs import Log, buffer_of, log_of, logs
from tests.spark.stores import Draft
from txrocketmq.remoting.message.record import RECORD
from txrocketmq.spark.arrow.records import Records

NUMBERS = (
    "total_size",
    "magic",
    "body_crc",
    "queue_id",
    "flag",
    "queue_offset",
    "physical_offset",
    "sys_flag",
    "born_timestamp",
    "store_timestamp",
    "reconsume_times",
    "prepared_transaction_offset",
)


def records_of(log: Log) -> Records:
    return Records(log.buffer, np.array(log.starts, np.int64), log.first_offset)


def check(records: Records, expected: list[Any]) -> None:
    """All that the records say is what the declaration says."""
    assert len(records) == len(expected)
    total_size = [each.total_size for each in expected]
    assert records.total_size.tolist() == total_size
    for name in NUMBERS:
        values = getattr(records, name)
        assert values.dtype.isnative
        assert values.tolist() == [each[name] for each in expected], name
    for name in ("body", "topic", "properties"):
        lengths = getattr(records, f"{name}_length").tolist()
        starts = getattr(records, f"{name}_at").tolist()
        texts = [
            bytes(records.buffer[at : at + length])
            for at, length in zip(starts, lengths, strict=True)
        ]
        assert texts == [each[name] for each in expected], name
    assert records.parts_size.tolist() == total_size
    assert not records.inconsistent().any()
    codes, topics = records.topics()
    names = [topics[code] for code in codes.tolist()]
    assert names == [each.topic.decode("utf-8", "replace") for each in expected]
    assert len(set(topics)) == len(topics)


@given(log=logs())
def test_fields_are_those_of_the_declaration(log: Log) -> None:
    check(records_of(log), log.parsed)


@given(log=logs(), data=st.data())
def test_chosen_records_are_the_same_records(log: Log, data: st.DataObject) -> None:
    records = records_of(log)
    parsed = log.parsed
    if data.draw(st.booleans()):
        check(records, parsed)  # what was read is taken along
    mask = data.draw(st.lists(st.booleans(), min_size=len(parsed), max_size=len(parsed)))
    kept = records.where(np.array(mask))
    parsed = [each for each, is_kept in zip(parsed, mask, strict=True) if is_kept]
    check(kept, parsed)
    start = data.draw(st.integers(0, len(parsed)))
    check(kept.slice(start, start + 3), parsed[start : start + 3])


def test_no_records() -> None:
    check(Records(buffer_of(b""), np.empty(0, np.int64)), [])
    check(Records(buffer_of(b"short"), np.empty(0, np.int64)), [])


@given(log=logs(max_size=3), data=st.data())
def test_a_damaged_byte_is_inconsistent_or_read_as_the_declaration_reads_it(
    log: Log, data: st.DataObject
) -> None:
    damaged = bytearray(log.data)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(damaged) - 1))
        damaged[at] = data.draw(st.integers(0, 255))
    records = Records(buffer_of(bytes(damaged)), np.array(log.starts, np.int64), log.first_offset)
    for row, at in enumerate(log.starts):
        one = records.slice(row, row + 1)
        try:
            parsed = RECORD.parse(bytes(damaged[at:]))
        except Exception:  # noqa: BLE001 - whatever construct says
            assert one.inconsistent().all()
            continue
        check(one, [parsed])


@pytest.mark.parametrize("ipv6", [False, True])
@pytest.mark.parametrize("value", [-1, -(1 << 31), (1 << 31) - 1, 1, 1 << 20])
def test_any_length_of_a_body_is_safe(value: int, ipv6: bool) -> None:
    log = log_of([Draft(born_ipv6=ipv6, store_ipv6=ipv6, topic="", body=b"")])
    at = 84 + 24 * ipv6
    data = log.data[:at] + value.to_bytes(4, "big", signed=True) + log.data[at + 4 :]
    records = Records(buffer_of(data), np.array([0], np.int64))
    assert records.inconsistent().tolist() == [True]
    assert records.body_length.tolist() == [0]


def test_a_record_that_says_ipv6_and_is_too_short_for_it() -> None:
    log = log_of([Draft(topic="", body=b"")])
    data = bytearray(log.data)
    data[39] = 0x30
    records = Records(buffer_of(bytes(data)), np.array([0], np.int64))
    assert records.inconsistent().tolist() == [True]


def test_addresses_of_ipv6_hosts() -> None:
    log = log_of([Draft(), Draft(born_ipv6=True), Draft(born_ipv6=True)])
    heads = records_of(log).ipv6_heads(np.array([1, 2]), 0x10)
    assert bytes(heads["born_host_ip"][1]) == log.parsed[2].born_host.ip
    assert heads["born_host_port"].tolist() == [log.parsed[1].born_host.port] * 2
