# SPDX-License-Identifier: Apache-2.0
"""Messages in one call."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest

from txrocketmq.client.base.errors import MessageIllegal
from txrocketmq.client.producer.new_message import new_message, topic_and_body
from txrocketmq.remoting.arguments.arguments import Arguments
from txrocketmq.remoting.message.message import Message


def test_what_it_holds() -> None:
    message = new_message(
        "T", "gr\u00fcn", tags="t", keys=["a", "b"], properties={"own": "1"}, flag=3, delay_level=2,
        priority=4, wait_for_store=False,
    )  # fmt: skip
    assert (message.topic, message.body, message.flag) == ("T", b"gr\xc3\xbcn", 3)
    assert message.properties == {
        "own": "1", "TAGS": "t", "KEYS": "a b", "DELAY": "2", "_SYS_MSG_PRIORITY_": "4",
        "WAIT": "false",
    }  # fmt: skip
    assert new_message("T", b"x", keys="one").properties == {"KEYS": "one"}


def test_times_of_delivery() -> None:
    assert new_message("T", b"x", delay_ms=5).properties == {"TIMER_DELAY_MS": "5"}
    assert new_message("T", b"x", deliver_at_ms=5).properties == {"TIMER_DELIVER_MS": "5"}


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("headers", "give properties, a dict of str to str"),
        ("key", "give keys, by which queries find the message; to choose a queue by a key, give"),
        ("tag", "give tags"),
        ("colour", "it has topic, body, tags, keys, properties, flag, delay_level, "),
    ],
)
def test_arguments_of_other_clients_are_answered_by_name(name: str, why: str) -> None:
    make: Any = new_message
    with pytest.raises(TypeError, match=re.escape(f"new_message has no argument {name!r}: {why}")):
        make("T", "x", **{name: "a"})
    assert "others" not in inspect.signature(new_message).parameters


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"properties": {"TAGS": "x"}}, "used by system"),
        ({"tags": "a\x01b"}, "x01"),
        ({"keys": ["a\x02"]}, "x02"),
        ({"delay_level": 1, "delay_ms": 1}, "not several"),
        ({"delay_ms": -1}, "negative"),
    ],
)
def test_what_is_refused(settings: dict[str, Any], why: str) -> None:
    with pytest.raises(MessageIllegal, match=why):
        new_message("T", b"x", **settings)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"body": 5}, "body must be bytes or str, not 5 (int)"),
        ({"body": 70_000}, "body must be bytes or str, not 70000 (int)"),
        ({"body": [1, 2]}, "body must be bytes or str, not [1, 2] (list)"),
        ({"body": None}, "body must be bytes or str, not None"),
        ({"topic": 5}, "topic must be str, not 5 (int)"),
        ({"tags": ["a", "b"]}, "tags must be a str, the one tag of the message, not ['a', 'b']"),
        ({"keys": 5}, "keys must be a str or a list of str, not 5 (int)"),
        ({"keys": ["a", 5]}, "keys must be a str or a list of str, not 5 (int)"),
        ({"properties": {"n": 5}}, "properties['n'] must be str, not 5 (int)"),
        ({"properties": {5: "n"}}, "each name in properties must be str, not 5 (int)"),
        ({"properties": "n"}, "properties must be a dict of str to str, not 'n' (str)"),
        ({"flag": "3"}, "flag must be int, not '3' (str)"),
        ({"delay_level": True}, "delay_level must be int, not True (bool)"),
        ({"delay_ms": "5"}, "delay_ms must be int, not '5' (str)"),
        ({"priority": 1.5}, "priority must be int, not 1.5 (float)"),
        ({"wait_for_store": "false"}, "wait_for_store must be bool, not 'false' (str)"),
    ],
)
def test_wrong_types_are_refused(arguments: dict[str, Any], why: str) -> None:
    with pytest.raises(TypeError, match=re.escape(why)):
        new_message(**{"topic": "T", "body": "x", **arguments})


def test_what_holds_bytes_is_a_body() -> None:
    bodies: list[Any] = [bytearray(b"x"), memoryview(b"x")]
    for body in bodies:
        message = new_message("T", body)
        assert (message.body, type(message.body)) == (b"x", bytes)


class Sender:
    """What takes a topic and a body in place of a message."""

    @topic_and_body
    async def send(self, message: Message, timeout_ms: int = 3, *, key: Any = None) -> Any:
        """Sends."""


def test_a_topic_and_a_body_make_a_message() -> None:
    takes = Arguments(Sender.send, "Sender.send", is_hot=True)
    assert str(inspect.signature(Sender.send)) == (
        "(self, message: 'Message | str', body: 'bytes | str | None' = None,"
        " timeout_ms: 'int' = 3, *, key: 'Any' = None) -> 'Any'"
    )
    message = Message("T", b"x")
    assert takes.taken((message,), {}) == ((message,), {})
    assert takes.taken(("T", "x"), {}) == ((message,), {})
    assert takes.taken(("T",), {"body": b"x", "key": 5}) == ((message,), {"key": 5})
    assert takes.taken((), {"message": "T", "body": "x"}) == ((message,), {})
    assert takes.taken((), {"message": message}) == ((), {"message": message})


@pytest.mark.parametrize(
    ("arguments", "named", "why"),
    [
        (("T",), {}, "message must be a Message, or a topic that is followed by a body, not 'T'"),
        (("T", 5), {}, "body must be bytes or str, not 5 (int)"),
        ((Message("T"), "x"), {}, "body must be left out beside a message"),
        (("T", "x"), {"tags": "t"}, "tags is a part of the message: give new_message(..., tags="),
        (("T", "x"), {"headers": {}}, "there is no argument 'headers': a message has properties"),
        (("T",), {"value": "x"}, "there is no argument 'value': the body follows the topic"),
        (("T", "x"), {"on_delivery": print}, "there is no argument 'on_delivery': send returns"),
        ((5,), {}, "message must be Message or str, not 5 (int)"),
        ((), {}, "Sender.send() needs the argument message"),
    ],
)
def test_what_makes_no_message(arguments: Any, named: Any, why: str) -> None:
    with pytest.raises(TypeError, match=re.escape(why)):
        Arguments(Sender.send, "Sender.send", is_hot=True).taken(arguments, named)


class Selecting:
    """What also takes a selector."""

    @topic_and_body
    async def send(self, message: Message, *, selector: Any = None, key: Any = None) -> Any:
        """Sends."""


def test_a_key_without_a_selector_is_refused() -> None:
    takes = Arguments(Selecting.send, "Selecting.send", is_hot=True)
    message, both = Message("T", b"x"), {"selector": print, "key": 5}
    assert takes.taken(("T", "x"), both) == ((message,), both)
    assert takes.taken(("T", "x"), {"key": None}) == ((message,), {"key": None})
    with pytest.raises(TypeError, match="^key is what a selector chooses the queue by: give "):
        takes.taken(("T", "x"), {"key": 5})
