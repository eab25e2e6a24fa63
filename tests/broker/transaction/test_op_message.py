# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from tests.broker.conftest import STORE_HOST, Parts
from txrocketmq.broker.store.formats.put_message import PutMessage
from txrocketmq.broker.transaction.op_message import ENDED_CODE, half_offsets, op_messages
from txrocketmq.remoting.message.message import decode_message

IPV6_HOST = bytes(15) + b"\x01" + (10911).to_bytes(4, "big")


def put(parts: Parts, message: PutMessage) -> tuple[memoryview, int]:
    (appended,) = parts.store.put([message], parts.now_ms)
    record = parts.store.message_at(appended.physical_offset)
    assert record is not None
    return record, message.tags_code


@pytest.mark.parametrize("host", [STORE_HOST, IPV6_HOST])
def test_it_is_read_as_it_was_written(parts: Parts, host: bytes) -> None:
    record, code = put(parts, op_messages([(0, 12_345)], host, parts.now_ms)[0])
    assert half_offsets(record, code) == [12_345]
    stored = decode_message(record)[0]
    assert (stored.topic, stored.body) == ("RMQ_SYS_TRANS_OP_HALF_TOPIC", b"12345")
    assert stored.properties == {"TAGS": "d", "WAIT": "true"}


@pytest.mark.parametrize(
    ("body", "offsets"),
    [
        (b"7", [7]),
        (b"7,", [7]),
        (b"7,8,9,", [7, 8, 9]),
        (b"", []),
        (b"seven", []),
        (b"7;8", []),
        (b"-1,x,,5 ,6", [6]),
        (b"9" * 19, []),
        (b"\xff\x00,3", [3]),
    ],
)
def test_both_forms_are_read_and_what_is_none_is_not(
    parts: Parts, body: bytes, offsets: list[int]
) -> None:
    message = op_messages([(0, 0)], STORE_HOST, parts.now_ms)[0]._replace(body=body or b"x")
    record, _ = put(parts, message)
    if not body:
        message = message._replace(body=b"")
        record, _ = put(parts, message)
    assert half_offsets(record, ENDED_CODE) == offsets
    assert half_offsets(record, ENDED_CODE + 1) == []
