# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from txrocketmq.broker.store.disk.mapped_file import MappedFile
from txrocketmq.broker.store.formats.scan import (
    RecordWalk,
    deliver_time_ms,
    dispatched,
    store_timestamp_ms,
)
from txrocketmq.remoting.message import record
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.message import body_crc
from txrocketmq.remoting.message.record import BLANK, MAGIC_BLANK, MAGIC_V1, MAGIC_V2, build_record
from txrocketmq.remoting.message.tags import java_string_hash

FROM_OFFSET = 8192
IPV4 = {"ip": bytes(4), "port": 1}
IPV6 = {"ip": bytes(16), "port": 1}
DELAYS_MS = {1: 1000, 2: 5000}


def built(at: int, body: bytes = b"body", **changes: Any) -> bytes:
    fields = {
        "magic": MAGIC_V1,
        "body_crc": body_crc(body),
        "queue_id": 3,
        "flag": 0,
        "queue_offset": 7,
        "physical_offset": FROM_OFFSET + at,
        "sys_flag": 0,
        "born_timestamp": 11,
        "born_host": IPV4,
        "store_timestamp": 13,
        "store_host": IPV4,
        "reconsume_times": 0,
        "prepared_transaction_offset": 0,
        "body": body,
        "topic": b"Topic",
        "properties": b"TAGS\x01A\x02",
    }
    return build_record({**fields, **changes})


def walk_of(files: Any, data: bytes, position: int = 0, *, size: int = 4096) -> RecordWalk:
    file = MappedFile(files, "/file", size, from_offset=FROM_OFFSET)
    file.map()[: len(data)] = data
    return RecordWalk(file, position, check_crc=True)


def test_records_come_in_turn_and_the_end_is_known(files: Any) -> None:
    first = built(0)
    second = built(len(first), b"")
    walk = walk_of(files, first + second)
    found = list(walk)
    assert [each.physical_offset for each in found] == [FROM_OFFSET, FROM_OFFSET + len(first)]
    assert [each.size_bytes for each in found] == [len(first), len(second)]
    assert (found[0].queue_id, found[0].queue_offset, found[0].store_timestamp_ms) == (3, 7, 13)
    assert (found[0].topic, found[0].properties) == (b"Topic", b"TAGS\x01A\x02")
    assert walk.position == len(first) + len(second)
    assert not walk.ended_by_blank


def test_a_blank_ends_a_file(files: Any) -> None:
    data = built(0)
    blank = BLANK.build({"room": 4096 - len(data), "magic": MAGIC_BLANK})
    walk = walk_of(files, data + blank)
    assert len(list(walk)) == 1
    assert walk.ended_by_blank
    assert walk.position == len(data)


def test_a_blank_may_have_just_its_eight_bytes(files: Any) -> None:
    blank = BLANK.build({"room": 8, "magic": MAGIC_BLANK})
    walk = walk_of(files, bytes(4088) + blank, 4088)
    assert list(walk) == []
    assert walk.ended_by_blank
    for position in (4089, 4095, 4096):
        short = walk_of(files, b"", position)
        assert list(short) == []
        assert not short.ended_by_blank


@pytest.mark.parametrize("magic", [MAGIC_V1, MAGIC_V2])
@pytest.mark.parametrize(
    ("sys_flag", "born", "stored"),
    [
        (0, IPV4, IPV4),
        (MessageSysFlag.BORN_HOST_V6, IPV6, IPV4),
        (MessageSysFlag.STORE_HOST_V6, IPV4, IPV6),
        (MessageSysFlag.BORN_HOST_V6 | MessageSysFlag.STORE_HOST_V6, IPV6, IPV6),
    ],
)
def test_every_form_of_a_record_is_known(
    files: Any, magic: int, sys_flag: int, born: dict[str, Any], stored: dict[str, Any]
) -> None:
    data = built(0, magic=magic, sys_flag=sys_flag, born_host=born, store_host=stored)
    (found,) = walk_of(files, data)
    assert found.size_bytes == len(data)
    assert found.topic == b"Topic"
    assert found.store_timestamp_ms == 13
    assert store_timestamp_ms(memoryview(data)) == 13


def test_a_record_that_is_not_where_it_says_is_none(files: Any) -> None:
    assert list(walk_of(files, built(1))) == []


def test_a_body_is_checked_if_that_is_asked(files: Any) -> None:
    data = bytearray(built(0))
    at = data.index(b"body")
    data[at] ^= 1
    walk = walk_of(files, bytes(data))
    assert list(walk) == []
    file = MappedFile(files, "/file", 4096, from_offset=FROM_OFFSET)
    assert len(list(RecordWalk(file, 0, check_crc=False))) == 1


def test_a_record_may_end_with_the_file_and_not_after_it(files: Any) -> None:
    data = built(0)
    assert len(list(walk_of(files, data, size=len(data)))) == 1
    files.maps.clear()
    assert list(walk_of(files, data[:-1], size=len(data) - 1)) == []


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_damage_never_raises_and_never_goes_on_behind_it(files: Any, data: st.DataObject) -> None:
    first = built(0)
    second = built(len(first), b"x" * 40)
    whole = bytearray(first + second)
    at = data.draw(st.integers(len(first), len(whole) - 1))
    whole[at] ^= data.draw(st.integers(1, 255))
    files.maps.clear()
    walk = walk_of(files, bytes(whole))
    found = list(walk)
    assert found[0].size_bytes == len(first)
    assert walk.position in (len(first), len(whole))
    files.maps.clear()
    noise = data.draw(st.binary(max_size=300))
    list(walk_of(files, noise))


def test_a_cut_record_is_none_wherever_its_sizes_or_its_body_are_cut(files: Any) -> None:
    data = built(0)
    for cut in range(data.index(b"body") + 4):
        files.maps.clear()
        assert list(walk_of(files, data[:cut])) == []


def test_times_of_short_data_are_unknown() -> None:
    assert store_timestamp_ms(memoryview(built(0)[:87])) == -1


def dispatched_of(files: Any, **changes: Any) -> Any:
    (found,) = walk_of(files, built(0, **changes))
    return dispatched(found, DELAYS_MS)


def test_what_is_dispatched_is_read_from_the_properties(files: Any) -> None:
    text = b"UNIQ_KEY\x01U\x02KEYS\x01a b\x02TAGS\x01A"  # 4.9 ends without a separator
    found = dispatched_of(files, properties=text)
    assert found == ("Topic", java_string_hash("A"), "U", "a b", "A", None, None, None)
    assert dispatched_of(files, properties=b"") == ("Topic", 0, *[None] * 6)
    text = b"INNER_MULTI_DISPATCH\x01%LMQ%a\x02INNER_MULTI_QUEUE_OFFSET\x013\x02"
    assert dispatched_of(files, properties=text)[-3:] == ("%LMQ%a", "3", None)
    assert dispatched_of(files, properties=b"INNER_NUM\x017\x02").inner_num == "7"
    assert dispatched_of(files, topic=b"\xff").topic == "\N{REPLACEMENT CHARACTER}"


def test_the_code_of_a_delayed_message_is_its_time(files: Any) -> None:
    topic, text = b"SCHEDULE_TOPIC_XXXX", b"TAGS\x01A\x02DELAY\x01%b\x02"
    codes = {
        level: dispatched_of(files, topic=topic, properties=text % level).tags_code
        for level in (b"1", b"2", b"99", b"0", b"x")
    }
    plain = java_string_hash("A")
    assert codes == {b"1": 1013, b"2": 5013, b"99": 5013, b"0": plain, b"x": plain}
    assert dispatched_of(files, properties=text % b"1").tags_code == plain
    assert deliver_time_ms("3", 10, {}) == 1010


def test_the_declaration_is_that_of_the_wire() -> None:
    assert record.RECORD_FIXED.sizeof() == 88


def test_a_record_whose_last_page_was_never_written_is_none(files: Any) -> None:
    properties = b"KEYS\x01" + b"k" * 400 + b"\x02"
    data = built(0, bytes(3640), properties=properties)
    assert 3640 < len(data) - len(properties) < 4096 < len(data)
    assert len(list(walk_of(files, data, size=8192))) == 1
    files.maps.clear()
    assert list(walk_of(files, data[:4096] + bytes(len(data) - 4096), size=8192)) == []


@pytest.mark.parametrize("cut", [0, 1])
def test_a_record_without_properties_may_end_at_a_page(files: Any, cut: int) -> None:
    """The zeros at the start of the page are the length of its properties."""
    data = built(0, bytes(4096 - 88 - 1 - 5 - cut), properties=b"")
    assert len(data) == 4098 - cut
    assert len(list(walk_of(files, data, size=8192))) == 1
