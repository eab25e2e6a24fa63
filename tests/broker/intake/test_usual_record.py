# SPDX-License-Identifier: Apache-2.0
"""What is cut from a record is what decoding it gives."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.broker.intake.inner_message import InnerMessage, Way, packed
from txrocketmq.broker.intake.transform import ActsOn, no_transforms
from txrocketmq.broker.intake.usual_record import (
    destination,
    is_plain_place,
    usual_record,
)
from txrocketmq.remoting.message.ids import Host
from txrocketmq.remoting.message.message import (
    MessageDecodeError,
    MessageExt,
    decode_message,
    encode_message,
)
from txrocketmq.remoting.message.properties import encode_properties

TEXTS = st.text(st.characters(exclude_characters="\x01\x02", exclude_categories=["Cs"]), min_size=1)
RAW = st.binary(max_size=40) | st.lists(
    st.sampled_from([b"a", b"b", b"", b"\x01", b"\x02", b"\xff"]), max_size=9
).map(b"".join)


def record_of(text: bytes | None = None, **fields: Any) -> bytes:
    """The record of a message, with this text as its properties."""
    values: dict[str, Any] = {
        "topic": "T",
        "body": b"body",
        "properties": {"a": "1"},
        "born_host": Host("10.0.0.1", 4),
        "store_host": Host("10.0.0.2", 5),
    }
    message = MessageExt(**{**values, **fields})
    if text is None:
        return encode_message(message)
    message.properties = {}
    made = encode_message(message)
    size = (len(made) + len(text)).to_bytes(4, "big")
    return size + made[4:-2] + len(text).to_bytes(2, "big") + text


def expected(message: MessageExt) -> tuple[Any, ...]:
    return (
        message.topic, message.queue_id, message.queue_offset, message.commit_log_offset,
        message.flag, message.sys_flag, message.born_timestamp, packed(message.born_host),
        packed(message.store_host), message.reconsume_times, message.body,
        encode_properties(message.properties).encode(), message.properties,
    )  # fmt: skip


@given(
    properties=st.dictionaries(TEXTS, TEXTS, max_size=5),
    body=st.binary(max_size=9),
    topic=st.sampled_from(["T", "%RETRY%g", "Ж", "t" * 127]),
    flag=st.integers(-(2**31), 2**31 - 1),
    sys_flag=st.sampled_from([0, 1, 8, 12]),
    times=st.integers(0, 9),
)
def test_a_usual_record(
    properties: dict[str, str], body: bytes, topic: str, flag: int, sys_flag: int, times: int
) -> None:
    record = record_of(
        topic=topic, body=body, properties=properties, flag=flag, sys_flag=sys_flag,
        reconsume_times=times, queue_id=3, queue_offset=7, commit_log_offset=900,
        born_timestamp=11, store_timestamp=12, prepared_transaction_offset=5,
    )  # fmt: skip
    found = usual_record(memoryview(record))
    assert found is not None
    assert found == expected(decode_message(record, decompress_body=False)[0])


@given(RAW)
def test_whatever_its_properties_are(text: bytes) -> None:
    record = record_of(text)
    found = usual_record(memoryview(record))
    if found is not None:
        assert found == expected(decode_message(record)[0])


@given(st.data())
def test_whatever_its_bytes_are(data: st.DataObject) -> None:
    record = bytearray(record_of())
    for _ in range(data.draw(st.integers(1, 3))):
        record[data.draw(st.integers(0, len(record) - 1))] = data.draw(st.integers(0, 255))
    found = usual_record(memoryview(record)[: data.draw(st.integers(0, len(record)))])
    if found is None:
        return
    try:
        message = decode_message(record, decompress_body=False)[0]
    except MessageDecodeError:
        raise AssertionError(found) from None
    assert found == expected(message)


@pytest.mark.parametrize(
    "record",
    [
        record_of(b"a\x011\x02a\x012\x02"),
        record_of(b"a\x01\x02"),
        record_of(b"\x011\x02"),
        record_of(b"a\x02"),
        record_of(b"a\x011\x012\x02"),
        record_of(b"a\x01\xff\x02"),
        record_of(topic="t" * 128),
        record_of(born_host=Host("::1", 4)),
        record_of(store_host=Host("::1", 4)),
        record_of()[:-1],
        record_of() + b"x",
        b"",
    ],
)
def test_what_is_unusual(record: bytes) -> None:
    assert usual_record(memoryview(record)) is None


def test_the_last_separator_is_added() -> None:
    found = usual_record(memoryview(record_of(b"a\x011")))
    assert found is not None
    assert found.encoded == b"a\x011\x02"


@pytest.mark.parametrize(
    ("properties", "place"),
    [
        ({"REAL_TOPIC": "T", "REAL_QID": "3"}, ("T", 3)),
        ({"REAL_TOPIC": "T"}, None),
        ({"REAL_QID": "3"}, None),
        ({"REAL_TOPIC": "T", "REAL_QID": "-3"}, None),
        ({"REAL_TOPIC": "T", "REAL_QID": "\u0663"}, None),
        ({"REAL_TOPIC": "T", "REAL_QID": "9" * 10}, None),
    ],
)
def test_where_it_is_for(properties: dict[str, str], place: tuple[str, int] | None) -> None:
    assert destination(properties) == place


class Touching:
    """A transform of one way and topic."""

    acts_on = ActsOn(topics=frozenset({"T"}), ways=Way.COMMIT)

    def apply(self, message: InnerMessage, now_ms: int) -> None:
        """Does nothing."""


def test_which_places_are_plain() -> None:
    transforms = no_transforms([Touching()])
    assert not is_plain_place(transforms, Way.COMMIT, "T", 0)
    assert is_plain_place(transforms, Way.DELIVERY, "T", 0)
    assert is_plain_place(transforms, Way.COMMIT, "U", 0)
    assert not is_plain_place(transforms, Way.COMMIT, "t" * 128, 0)
