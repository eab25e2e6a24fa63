# SPDX-License-Identifier: Apache-2.0
"""What errors say, and the numbers under which the Java client reports them."""

from __future__ import annotations

from txrocketmq.client.errors import MQBrokerError, NoNameServer, NoRoute, SendFailed


def test_a_refusal_names_who_what_and_why() -> None:
    error = MQBrokerError(16, "the topic is read-only", "10.0.0.1:10911")
    assert str(error) == "10.0.0.1:10911 answered NO_PERMISSION (16): the topic is read-only"
    assert error.code_name == "NO_PERMISSION"


def test_a_code_without_name_is_still_told() -> None:
    text = str(MQBrokerError(4711, None, "b:1"))
    assert text == "b:1 answered UNKNOWN (4711): no reason given"


def test_a_missing_route_names_the_topic() -> None:
    error = NoRoute("T", "nobody has it")
    assert str(error) == "topic T has no route: nobody has it"
    assert (error.topic, error.code) == ("T", 10005)


def test_a_failed_send_tells_each_attempt() -> None:
    failed = SendFailed("T", [("a", ValueError("x")), ("b", ValueError("y"))], 10001)
    assert str(failed) == "sending to topic T failed after 2 attempts: a: x; b: y"
    assert failed.code == 10001
    assert "after 1 attempt: a: x" in str(SendFailed("T", [("a", ValueError("x"))], 1))


def test_no_name_server_has_its_number() -> None:
    assert NoNameServer("none").code == 10004
