# SPDX-License-Identifier: Apache-2.0
"""Results and messages as lines, for people and for programs."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.zones import in_zone
from txrocketmq.cli.show import message_json, message_line, sent_json, sent_line
from txrocketmq.client.producer.send_result import SendResult, SendStatus
from txrocketmq.remoting.message.ids import Host
from txrocketmq.remoting.message.message import MessageExt, MessageQueue

RESULT = SendResult(SendStatus.SEND_OK, "KEY", "OFFSETID", MessageQueue("T", "broker-a", 2), 5)


@pytest.fixture(autouse=True)
def _utc() -> Iterator[None]:
    with in_zone("UTC"):
        yield


def message(body: bytes = b"hello", **properties: str) -> MessageExt:
    return MessageExt(
        "T",
        body,
        properties=properties,
        queue_id=2,
        queue_offset=5,
        store_timestamp=1_795_248_930_123,
        store_host=Host("127.0.0.1", 10911),
        broker_name="broker-a",
    )


def test_a_result_for_people() -> None:
    assert sent_line(RESULT) == "SEND_OK broker-a/2@5 KEY"


def test_a_batch_is_counted() -> None:
    batch = SendResult(SendStatus.FLUSH_DISK_TIMEOUT, "K1,K2,K3", "a,b,c", RESULT.queue, 5)
    assert sent_line(batch) == "FLUSH_DISK_TIMEOUT broker-a/2@5 3 messages"


def test_a_result_for_programs() -> None:
    assert json.loads(sent_json(RESULT)) == {
        "status": "SEND_OK",
        "topic": "T",
        "broker": "broker-a",
        "queueId": 2,
        "queueOffset": 5,
        "msgId": "KEY",
        "offsetMsgId": "OFFSETID",
    }


def test_a_message_for_people() -> None:
    shown = message_line(message(TAGS="A", KEYS="k1 k2", own="1", UNIQ_KEY="K", WAIT="true"))
    assert shown == "2026-11-21 08:15:30.123 broker-a/2@5 [A] {keys=k1 k2, own=1} hello"
    assert message_line(message()) == "2026-11-21 08:15:30.123 broker-a/2@5 hello"


def test_a_body_that_is_no_text_is_counted() -> None:
    assert message_line(message(b"\xff\x00")).endswith(" <2 bytes: ff00>")
    assert message_line(message(b"\xff" * 100)).endswith(f" <100 bytes: {'ff' * 32}...>")


@given(st.binary(), st.text(), st.text())
def test_a_line_does_nothing_to_a_terminal(body: bytes, tag: str, value: str) -> None:
    shown = message_line(message(body, TAGS=tag, own=value))
    assert shown.isprintable()


def test_letters_of_the_world_stay() -> None:
    assert message_line(message("wörld 世界\x1b[31m".encode())).endswith(r" wörld 世界\x1b[31m")


def test_json_does_nothing_to_a_terminal_either() -> None:
    assert message_json(message(TAGS="A\x7f\x9b2J")).isprintable()


def test_a_message_for_programs() -> None:
    shown = json.loads(message_json(message(TAGS="A", KEYS="k1 k2")))
    assert shown["body"] == "hello"
    assert (shown["broker"], shown["queueId"], shown["queueOffset"]) == ("broker-a", 2, 5)
    assert (shown["tags"], shown["keys"]) == ("A", ["k1", "k2"])
    assert shown["storeHost"] == "127.0.0.1:10911"
    assert shown["msgId"] == shown["offsetMsgId"]
    assert "bodyBase64" not in shown


@given(st.binary())
def test_any_body_comes_back_from_json(body: bytes) -> None:
    line = message_json(message(body))
    assert "\n" not in line
    shown = json.loads(line)
    back = shown["body"].encode() if "body" in shown else base64.b64decode(shown["bodyBase64"])
    assert back == body
