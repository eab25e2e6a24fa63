# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import zlib

import pytest

from tests.proxy.scene import a_message
from txrocketmq.proxy.receives.message_out import plain_message, received_message
from txrocketmq.proxy.schema.enums import DigestType, Encoding, MessageType
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.ids import Host

NOW_MS = 9_000


def test_a_message_has_all_that_the_store_knows() -> None:
    stored = a_message(
        b"body",
        5,
        properties={
            "TAGS": "t",
            "KEYS": "a b",
            "größe": "漢字",
            "__SHARDINGKEY": "g",
            "POP_CK": "handle",
            "TRACE_CONTEXT": "trace",
            "DLQ_ORIGIN_TOPIC": "O",
            "DLQ_ORIGIN_MESSAGE_ID": "OID",
        },
        queue_id=3,
        reconsume_times=2,
        born_host=Host("10.0.0.1", 1),
        store_host=Host("10.0.0.2", 2),
    )
    message = received_message(stored, "T", NOW_MS).message
    system = message.system_properties
    assert (message.topic.name, message.topic.resource_namespace) == ("T", "")
    assert dict(message.user_properties) == {"größe": "漢字"}
    assert message.body == b"body"
    assert (system.tag, list(system.keys), system.message_id) == ("t", ["a", "b"], "ID5")
    assert system.body_digest.type == DigestType.MD5
    assert system.body_digest.checksum == "841A2D689AD86BD1611447453C22C6FC"
    assert system.body_encoding == Encoding.IDENTITY
    assert (system.message_type, system.message_group) == (MessageType.FIFO, "g")
    assert (system.born_host, system.store_host) == ("10.0.0.1:1", "10.0.0.2:2")
    assert system.born_timestamp.ToMilliseconds() == 1_500
    assert system.store_timestamp.ToMilliseconds() == 2_500
    assert (system.queue_id, system.queue_offset, system.delivery_attempt) == (3, 5, 3)
    assert (system.receipt_handle, system.trace_context) == ("handle", "trace")
    assert (system.dead_letter_queue.topic, system.dead_letter_queue.message_id) == ("O", "OID")


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("TRAN_MSG", "true", MessageType.TRANSACTION),
        ("DELAY", "3", MessageType.DELAY),
        ("TIMER_DELIVER_MS", "7000", MessageType.DELAY),
        ("TIMER_DELAY_SEC", "7", MessageType.DELAY),
        ("_SYS_MSG_PRIORITY_", "3", MessageType.PRIORITY),
        ("other", "x", MessageType.NORMAL),
    ],
)
def test_the_type_follows_from_properties(name: str, value: str, kind: MessageType) -> None:
    system = plain_message(a_message(properties={name: value}), "T", NOW_MS).system_properties
    assert system.message_type == kind


def test_delivery_times_are_told() -> None:
    stored = a_message(properties={"TIMER_DELIVER_MS": "7001"})
    system = plain_message(stored, "T", NOW_MS).system_properties
    assert system.delivery_timestamp.ToMilliseconds() == 7_001
    stored = a_message(properties={"TIMER_DELAY_SEC": "2"})
    system = plain_message(stored, "T", NOW_MS).system_properties
    assert system.delivery_timestamp.ToMilliseconds() == 11_000


@pytest.mark.parametrize("name", ["TIMER_DELIVER_MS", "TIMER_DELAY_SEC", "_SYS_MSG_PRIORITY_"])
@pytest.mark.parametrize("value", ["x", "9" * 18, "-5"])
def test_properties_that_are_no_numbers_do_no_harm(name: str, value: str) -> None:
    assert plain_message(a_message(properties={name: value}), "T", NOW_MS).body == b"body"


def test_a_damaged_body_is_passed_on_as_it_is() -> None:
    body = zlib.compress(b"plain")[:-5]
    stored = a_message(body, sys_flag=MessageSysFlag.COMPRESSED)
    message = plain_message(stored, "T", NOW_MS)
    assert (message.body, message.system_properties.body_encoding) == (body, Encoding.GZIP)
