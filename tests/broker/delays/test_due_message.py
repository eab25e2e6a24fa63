# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import pytest

from tests.broker.conftest import STORE_HOST, Parts
from txrocketmq.broker.delays.due_message import DueMessages, restored
from txrocketmq.broker.intake.inner_message import InnerMessage, Way
from txrocketmq.broker.intake.intake import Intake
from txrocketmq.broker.intake.transform import ActsOn, no_transforms
from txrocketmq.broker.store.formats.put_message import PutMessage, PutStatus
from txrocketmq.remoting.message.message import decode_message
from txrocketmq.remoting.message.topics import SCHEDULE_TOPIC

IPV6_HOST = bytes(15) + b"\1" + (10911).to_bytes(4, "big")
PLAIN = {"UNIQ_KEY": "A1", "KEYS": "k l", "TAGS": "a", "DELAY": "1", "REAL_TOPIC": "T"}


def waiting(parts: Parts, properties: dict[str, str] | bytes, **fields: Any) -> memoryview:
    """The record of a message that waits in the first level."""
    message = InnerMessage(
        SCHEDULE_TOPIC,
        0,
        fields.pop("body", b"later"),
        parts.now_ms - 9,
        fields.pop("born_host", STORE_HOST),
        STORE_HOST,
        {},
        deliver_ms=parts.now_ms,
        **fields,
    )
    if isinstance(properties, dict):
        message.properties = properties
        put = message.to_put()
    else:
        put = message.to_put(properties)
    (appended,) = parts.store.put([put], parts.now_ms)
    assert appended.status is PutStatus.PUT_OK
    record = parts.store.message_at(appended.physical_offset, appended.size)
    assert record is not None
    return record


def due(parts: Parts, record: memoryview, *transforms: Any) -> DueMessages:
    batch = DueMessages(Intake(parts.store, parts.stats, no_transforms(transforms)))
    batch.add(7, record)
    return batch


@pytest.mark.parametrize(
    ("properties", "fields"),
    [
        (PLAIN, {}),
        (PLAIN, {"flag": -7, "sys_flag": 1, "reconsume_times": 3}),
        (PLAIN, {"body": b""}),
        (PLAIN, {"body": bytes(30_000)}),
        ({"REAL_TOPIC": "Ж%RETRY%", "x": "ä" * 300}, {}),
    ],
)
def test_a_plain_record_is_cut_to_what_decoding_it_gives(
    parts: Parts, properties: dict[str, str], fields: dict[str, Any]
) -> None:
    record = waiting(parts, {**properties, "REAL_QID": "3"}, **fields)
    (message,) = due(parts, record).messages
    decoded = restored(decode_message(record, decompress_body=False)[0])
    assert decoded is not None
    assert isinstance(message.message, PutMessage)
    assert message.message == decoded.to_put()
    assert (message.offset, message.is_dead) == (7, False)


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        (b"REAL_TOPIC\1T\2REAL_QID\0013\2REAL_QID\0014\2", {}),
        (b"REAL_TOPIC\1T\2REAL_QID\0013\2empty\1\2", {}),
        (b"REAL_TOPIC\1T\2REAL_QID\0013\2none\2", {}),
        (b"REAL_TOPIC\1T\2REAL_QID\0013\2two\1a\1b\2", {}),
        (b"REAL_TOPIC\1T\2REAL_QID\0013\2x\1\xff\2", {}),
        (b"REAL_TOPIC\1T\2REAL_QID\0013\2", {"born_host": IPV6_HOST}),
        (b"REAL_TOPIC\1" + b"t" * 200 + b"\2REAL_QID\0013\2", {}),
    ],
)
def test_an_unusual_record_is_decoded(parts: Parts, text: bytes, fields: dict[str, Any]) -> None:
    record = waiting(parts, text, **fields)
    (message,) = due(parts, record).messages
    assert message.message == restored(decode_message(record)[0])


def test_the_last_separator_may_be_missing(parts: Parts) -> None:
    record = waiting(parts, b"REAL_TOPIC\1T\2REAL_QID\0013")
    (message,) = due(parts, record).messages
    assert isinstance(message.message, PutMessage)
    assert message.message.properties == b"REAL_TOPIC\1T\2REAL_QID\0013\2"


@pytest.mark.parametrize("text", [b"", b"REAL_TOPIC\1T\2", b"REAL_TOPIC\1T\2REAL_QID\1-1\2"])
def test_without_a_queue_it_is_a_dead_letter(parts: Parts, text: bytes) -> None:
    (message,) = due(parts, waiting(parts, text)).messages
    assert message.why == "it does not say which queue it is for"


class Touching:
    """A transform that acts on one property, on one topic, or on a flag."""

    def __init__(self, **acts_on: Any) -> None:
        self.acts_on = ActsOn(**acts_on)

    def apply(self, message: InnerMessage, now_ms: int) -> None:
        """Does nothing."""


@pytest.mark.parametrize(
    ("acts_on", "is_plain"),
    [
        ({"properties": frozenset({"KEYS"})}, False),
        ({"topics": frozenset({"T"})}, False),
        ({"sys_flags": 4}, False),
        ({"properties": frozenset({"KEYS"}), "ways": Way.SEND}, True),
        ({"properties": frozenset({"other"}), "topics": frozenset({"U"})}, True),
    ],
)
def test_what_a_transform_touches_goes_through_the_intake(
    parts: Parts, acts_on: dict[str, Any], is_plain: bool
) -> None:
    record = waiting(parts, {**PLAIN, "REAL_QID": "3"}, sys_flag=4)
    (message,) = due(parts, record, Touching(**acts_on)).messages
    assert isinstance(message.message, PutMessage) is is_plain


def test_what_is_damaged_is_told_by_its_offset(parts: Parts) -> None:
    record = bytearray(waiting(parts, {**PLAIN, "REAL_QID": "3"}))
    for at in range(len(record)):
        damaged = bytearray(record)
        damaged[at] ^= 0x55
        batch = due(parts, memoryview(damaged)[: len(record)])
        assert len(batch.messages) + len(batch.unread) == 1
    batch = due(parts, memoryview(record)[:-1])
    batch.add(8, None)
    assert batch.unread == [7, 8]
