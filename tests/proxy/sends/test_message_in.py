# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import gzip
import zlib
from typing import Any

import pytest

from txrocketmq.proxy.base.statuses import Refused
from txrocketmq.proxy.config import MessagingConfig
from txrocketmq.proxy.schema.codes import Code
from txrocketmq.proxy.schema.enums import Encoding, MessageType
from txrocketmq.proxy.schema.messages import message_type
from txrocketmq.proxy.sends.message_in import MessageIn, check_type, gunzipped
from txrocketmq.remoting.message.flags import MessageSysFlag

NOW_MS = 1_700_000_000_000


def taken(system: dict[str, Any] | None = None, **fields: Any) -> MessageIn:
    fields = {"topic": {"name": "T"}, "body": b"body", **fields}
    message = message_type("Message")(
        **fields, system_properties={"message_id": "ID", **(system or {})}
    )
    return MessageIn(message, message.topic.name, "10.1.1.1:5000", NOW_MS, MessagingConfig())


def test_properties_have_the_names_of_rocketmq() -> None:
    message = taken(
        {
            "tag": "t",
            "keys": ["k1", "k2"],
            "born_timestamp": {"seconds": 5, "nanos": 7_000_000},
            "born_host": "host",
            "trace_context": "trace",
            "delivery_attempt": 2,
        },
        user_properties={"größe": "漢字"},
    )
    assert message.properties == {
        "größe": "漢字",
        "TAGS": "t",
        "KEYS": "k1 k2",
        "UNIQ_KEY": "ID",
        "RECONSUME_TIME": "2",
        "PGROUP": "T",
        "TRACE_CONTEXT": "trace",
        "__BORNHOST": "host",
        "BORN_TIMESTAMP": "5007",
    }
    assert (message.type, message.sys_flag) == (MessageType.NORMAL, 0)


@pytest.mark.parametrize(
    ("system", "kind", "name", "value"),
    [
        ({"message_group": "g"}, MessageType.FIFO, "__SHARDINGKEY", "g"),
        ({"priority": 3}, MessageType.PRIORITY, "_SYS_MSG_PRIORITY_", "3"),
        (
            {"delivery_timestamp": {"seconds": NOW_MS // 1_000 + 5}},
            MessageType.DELAY,
            "TIMER_DELIVER_MS",
            str(NOW_MS + 5_000),
        ),
        ({"message_type": MessageType.TRANSACTION}, MessageType.TRANSACTION, "TRAN_MSG", "true"),
    ],
)
def test_the_type_follows_from_properties(
    system: dict[str, Any], kind: MessageType, name: str, value: str
) -> None:
    message = taken(system)
    assert message.type is kind
    assert message.properties[name] == value
    assert message.properties["__BORNHOST"] == "10.1.1.1:5000"


def test_a_transaction_has_its_flag_and_its_time() -> None:
    recovery = {"orphaned_transaction_recovery_duration": {"seconds": 9}}
    message = taken({"message_type": MessageType.TRANSACTION, **recovery})
    assert message.sys_flag == MessageSysFlag.TRANSACTION_PREPARED_TYPE
    assert message.properties["CHECK_IMMUNITY_TIME_IN_SECONDS"] == "9"


@pytest.mark.parametrize(
    ("system", "fields", "code"),
    [
        ({}, {"body": b""}, Code.MESSAGE_BODY_EMPTY),
        ({}, {"body": bytes(4 * 1024 * 1024 + 1)}, Code.MESSAGE_BODY_TOO_LARGE),
        (
            {},
            {"user_properties": {str(n): "x" for n in range(129)}},
            Code.MESSAGE_PROPERTIES_TOO_LARGE,
        ),
        ({}, {"user_properties": {"a": "x" * 16_384}}, Code.MESSAGE_PROPERTIES_TOO_LARGE),
        ({}, {"user_properties": {"TAGS": "x"}}, Code.ILLEGAL_MESSAGE_PROPERTY_KEY),
        ({}, {"user_properties": {"a\x01": "x"}}, Code.ILLEGAL_MESSAGE_PROPERTY_KEY),
        ({}, {"user_properties": {"a": "x\x02"}}, Code.ILLEGAL_MESSAGE_PROPERTY_KEY),
        ({"tag": " "}, {}, Code.ILLEGAL_MESSAGE_TAG),
        ({"tag": "a|b"}, {}, Code.ILLEGAL_MESSAGE_TAG),
        ({"tag": "a\x7f"}, {}, Code.ILLEGAL_MESSAGE_TAG),
        ({"keys": ["a", " "]}, {}, Code.ILLEGAL_MESSAGE_KEY),
        ({"keys": ["a\x85"]}, {}, Code.ILLEGAL_MESSAGE_KEY),
        ({"message_id": " "}, {}, Code.ILLEGAL_MESSAGE_ID),
        ({"message_id": "a\x02TRAN_MSG\x01true"}, {}, Code.ILLEGAL_MESSAGE_ID),
        ({"message_group": " "}, {}, Code.ILLEGAL_MESSAGE_GROUP),
        ({"message_group": "x" * 64}, {}, Code.ILLEGAL_MESSAGE_GROUP),
        ({"message_group": "a\n"}, {}, Code.ILLEGAL_MESSAGE_GROUP),
        (
            {"delivery_timestamp": {"seconds": NOW_MS // 1_000 + 86_401}},
            {},
            Code.ILLEGAL_DELIVERY_TIME,
        ),
        ({"delivery_timestamp": {"seconds": 2**62}}, {}, Code.BAD_REQUEST),
        ({"trace_context": "a\x02TRAN_MSG\x01true"}, {}, Code.BAD_REQUEST),
        ({"born_host": "a\x02TRAN_MSG\x01true"}, {}, Code.BAD_REQUEST),
        (
            {
                "message_type": MessageType.TRANSACTION,
                "orphaned_transaction_recovery_duration": {"seconds": 3_601},
            },
            {},
            Code.BAD_REQUEST,
        ),
        ({"lite_topic": "x"}, {}, Code.UNSUPPORTED),
        ({"body_encoding": Encoding.GZIP}, {"body": b"\x1f\x8bno"}, Code.MESSAGE_CORRUPTED),
    ],
)
def test_what_is_wrong_has_its_code(
    system: dict[str, Any], fields: dict[str, Any], code: Code
) -> None:
    with pytest.raises(Refused) as refused:
        taken(system, **fields)
    assert refused.value.code is code


def test_compressed_bodies_are_of_zlib_or_plain() -> None:
    compressed = zlib.compress(b"plain")
    message = taken({"body_encoding": Encoding.GZIP}, body=compressed)
    assert (message.body, message.sys_flag) == (compressed, MessageSysFlag.COMPRESSED)
    message = taken({"body_encoding": Encoding.GZIP}, body=gzip.compress(b"plain"))
    assert (message.body, message.sys_flag) == (b"plain", 0)
    assert gunzipped(gzip.compress(b"plain")[:-5]) is None


def test_a_topic_takes_its_types_only() -> None:
    message = taken({"message_group": "g"})
    check_type(message, "T", (MessageType.FIFO,))
    check_type(message, "T", (MessageType.NORMAL, MessageType.FIFO))
    check_type(message, "%RETRY%G", (MessageType.NORMAL,))
    with pytest.raises(
        Refused, match="expected type is NORMAL, but actual type is FIFO"
    ) as refused:
        check_type(message, "T", (MessageType.NORMAL,))
    assert refused.value.code is Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE
