# SPDX-License-Identifier: Apache-2.0
"""What errors say, and the numbers under which the Java client reports them."""

from __future__ import annotations

import pickle

from txrocketmq.client.base.errors import (
    AdminRefused,
    GroupNotFound,
    GroupOffline,
    GroupOnline,
    MQBrokerError,
    NoNameServer,
    NoRoute,
    PartlyFailed,
    SendFailed,
)


def test_a_refusal_names_who_what_and_why() -> None:
    error = MQBrokerError(16, "the topic is read-only", "10.0.0.1:10911", "topic T, queue 3")
    assert str(error) == (
        "10.0.0.1:10911 answered NO_PERMISSION (16): the topic is read-only (topic T, queue 3); the"
        " account may lack the right, or the server, the topic or the group is closed for this"
    )
    assert error.code_name == "NO_PERMISSION"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)  # noqa: S301 - our own


def test_a_code_without_name_is_still_told() -> None:
    text = str(MQBrokerError(4711, None, "b:1"))
    assert text == "b:1 answered UNKNOWN (4711): no reason given"


def test_a_missing_route_names_the_topic() -> None:
    error = NoRoute("T", "nobody has it")
    assert str(error) == "topic T has no route: nobody has it"
    assert (error.topic, error.code) == ("T", 10005)


def test_a_failed_send_tells_the_same_once() -> None:
    attempts = [("a", ValueError("x")), ("b", ValueError("x")), ("a", ValueError("x"))]
    failed = SendFailed("T", [*attempts, ("b", ValueError("y"))], 10001)
    assert str(failed) == "sending to topic T failed after 4 attempts: a (2 times), b: x; b: y"


def test_a_failed_send_tells_each_attempt() -> None:
    failed = SendFailed("T", [("a", ValueError("x")), ("b", ValueError("y"))], 10001)
    assert str(failed) == "sending to topic T failed after 2 attempts: a: x; b: y"
    assert failed.code == 10001
    assert "after 1 attempt: a: x" in str(SendFailed("T", [("a", ValueError("x"))], 1))


def test_no_name_server_has_its_number() -> None:
    assert NoNameServer("none").code == 10004


def test_a_refused_administrator_hears_what_to_do() -> None:
    error = AdminRefused("deleting topic T", MQBrokerError(3, "code 9", "b:1"))
    assert str(error) == (
        "deleting topic T failed: b:1 answered REQUEST_CODE_NOT_SUPPORTED (3): code 9; the server"
        " does not support this request: it may be of an older release, or a name server (9876)"
        " where a broker (10911) is meant"
    )
    assert (error.code, error.remark, error.address) == (3, "code 9", "b:1")
    plain = AdminRefused("asking", MQBrokerError(1, "no", "b:1"))
    assert str(plain) == "asking failed: b:1 answered SYSTEM_ERROR (1): no"


def test_what_failed_in_part_names_the_servers() -> None:
    failed = PartlyFailed("deleting topic T", 2, [("a (h:1)", ValueError("x"))])
    assert str(failed) == "deleting topic T failed at 1 of 3 servers: a (h:1): x"
    assert failed.done == 2


def test_groups_are_named() -> None:
    assert "group g" in str(GroupNotFound("g"))
    assert (GroupNotFound("g").code, GroupOffline("g").code) == (26, 206)
    assert str(GroupOnline("g", "stop them")).endswith("the group g are connected: stop them")
