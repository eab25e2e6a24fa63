# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.spark.logs import Log, buffer_of, log_of, logs
from tests.spark.stores import Draft
from txrocketmq.remoting.message.record import BLANK, MAGIC_BLANK
from txrocketmq.spark.log import resync as resync_module
from txrocketmq.spark.log.resync import beyond, resync, whole_bytes

FIRST = 1 << 30
END = BLANK.build({"room": 4711, "magic": MAGIC_BLANK}) + bytes(100)


def mixed_log(seed: int, messages: int = 60) -> Log:
    draw = random.Random(seed)
    return log_of(
        (
            Draft(
                body=draw.randbytes(draw.randrange(300)),
                fakes=draw.choice((0, 0, 1, 5)),
                store_ipv6=draw.random() < 0.2,
                v2=draw.random() < 0.2,
            )
            for _ in range(messages)
        ),
        FIRST,
    )


@given(log=logs(), data=st.data())
def test_from_anywhere_the_next_record_is_found(log: Log, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(log.data)))
    expected = next((at for at in log.starts if at >= start), None)
    found = resync(buffer_of(log.data + END), log.first_offset, start)
    assert found == expected


@pytest.mark.parametrize("seed", range(3))
def test_no_record_in_a_body_is_taken_for_one(seed: int) -> None:
    log = mixed_log(seed)
    buffer = buffer_of(log.data + bytes(5000))
    for start in range(0, len(log.data), 37):
        expected = next((at for at in log.starts if at >= start), None)
        assert resync(buffer, FIRST, start) == expected


def test_nothing_is_found_in_nothing() -> None:
    assert resync(buffer_of(b""), 0, 0) is None
    assert resync(buffer_of(bytes(10_000)), 0, 17) is None
    assert resync(buffer_of(b"\xda\xa3\x20\xa7" * 1000), 0, 1) is None


DAMAGE = {
    "total_size": (0, 4),
    "magic": (4, 8),
    "physical_offset": (28, 36),
    "body_length": (84, 88),
    "all": (0, 91),
}


@pytest.mark.parametrize("field", DAMAGE)
@pytest.mark.parametrize("seed", range(3))
def test_behind_a_damaged_record_the_next_one_is_found(field: str, seed: int) -> None:
    draw = random.Random(seed)
    messages = [Draft(body=draw.randbytes(draw.randrange(300))) for _ in range(40)]
    log = log_of(messages, FIRST)
    data = bytearray(log.data + END)
    start, end = DAMAGE[field]
    for number in (3, 5, 6, 30, 39):
        at = log.starts[number]
        data[at + start : at + end] = draw.randbytes(end - start)
    buffer = buffer_of(bytes(data))
    assert beyond(buffer, FIRST, log.starts[3]) == log.starts[4]
    assert beyond(buffer, FIRST, log.starts[30]) == log.starts[31]


def test_the_parts_lead_on_when_the_size_is_that_of_two_records() -> None:
    log = log_of([Draft(), Draft(), Draft(), Draft()], FIRST)
    size = log.starts[1]
    data = (2 * size).to_bytes(4, "big") + log.data[4:]
    assert beyond(buffer_of(data), FIRST, 0) == size


def test_the_size_leads_on_over_records_in_a_damaged_body() -> None:
    log = log_of([Draft(fakes=4), Draft()], FIRST)
    data = bytearray(log.data)
    data[84:88] = b"\x00\x00\x00\x07"
    assert beyond(buffer_of(bytes(data)), FIRST, 0) == log.starts[1]


def test_behind_the_last_record_the_blank_is_found() -> None:
    log = log_of([Draft(), Draft()], FIRST)
    data = bytearray(log.data + END)
    data[log.starts[1] + 4] ^= 1
    assert beyond(buffer_of(bytes(data)), FIRST, log.starts[1]) == len(log.data)
    assert beyond(buffer_of(bytes(data)[: len(log.data)]), FIRST, log.starts[1]) is None


def test_a_chain_longer_than_any_record_needs_no_good_end(monkeypatch: pytest.MonkeyPatch) -> None:
    log = log_of([Draft(body=b"x" * 200)] * 40, FIRST)
    rest = b"a rest that is no record, of which there is more than a head has" * 2
    buffer = buffer_of(b"?" * 50 + rest + b"?" * 14 + log.data + rest)
    first = FIRST - (len(buffer) - len(log.data) - len(rest))
    expected = len(buffer) - len(log.data) - len(rest)
    assert resync(buffer, first, 1) == expected, "the longest of those that break"
    monkeypatch.setattr(resync_module, "LONGEST_RECORD_BYTES", 1000)
    assert resync(buffer, first, 1) == expected


_MOST = 64 << 20


def test_how_much_to_read_of_a_record() -> None:
    log = log_of([Draft(body=b"x" * 500)], FIRST)
    data = buffer_of(log.data)
    assert whole_bytes(data[:50], 10_000, _MOST) == len(data)
    assert 0 < whole_bytes(data[:5], 10_000, _MOST) <= len(data), "its size is not known yet"
    assert whole_bytes(data[:50], len(data) - 1, _MOST) == 0, "the file ends before it does"
    assert whole_bytes(data[:50], 50, _MOST) == 0
    huge = buffer_of((_MOST + 1).to_bytes(4, "big") + bytes(log.data[4:]))
    assert whole_bytes(huge, 1 << 30, _MOST) == 0
