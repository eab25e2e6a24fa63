# SPDX-License-Identifier: Apache-2.0
"""A message to send, in one call: what the original's Message has setters for."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Never, TypeVar

from txrocketmq.client.base.errors import MessageIllegal
from txrocketmq.remoting.arguments.arguments import Given, converted_by
from txrocketmq.remoting.arguments.kinds import Of, Whole, refused, shown
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.message import Message
from txrocketmq.remoting.message.properties import check_user_property

F = TypeVar("F", bound=Callable[..., Any])
_WHOLE: Final = Whole()
_SWITCH: Final = Of(bool)
_TEXT: Final = Of(str)
_DELAYS: Final = {
    names.DELAY: "delay_level",
    names.TIMER_DELAY_MS: "delay_ms",
    names.TIMER_DELIVER_MS: "deliver_at_ms",
}
_BODY: Final = Of(bytes, bytearray, memoryview, words="bytes or str")


def new_message(  # noqa: PLR0913 - what a message has, by name
    topic: str,
    body: bytes | str,
    *,
    tags: str | None = None,
    keys: str | Iterable[str] = (),
    properties: Mapping[str, str] | None = None,
    flag: int = 0,
    delay_level: int | None = None,
    delay_ms: int | None = None,
    deliver_at_ms: int | None = None,
    priority: int | None = None,
    wait_for_store: bool = True,
    **others: Never,
) -> Message:
    """Makes a message; a text as body is encoded in UTF-8.

    `tags` is the one tag by which subscriptions filter; `keys` are the keys by which queries find
    the message. `delay_level` is 1 to 18. `delay_ms` and `deliver_at_ms` (since the epoch) are for
    5.x brokers; only one of the three can be given. With `wait_for_store=False`, the broker answers
    without waiting for flush and replication, even if it is configured to.

    Raises MessageIllegal for values that brokers could not tell apart or would not accept, and
    TypeError for values of a wrong type.
    """
    if others:
        raise _no_argument(next(iter(others)))
    if type(body) is not bytes:
        body = body.encode() if isinstance(body, str) else bytes(_BODY.take("body", body))
    if type(topic) is not str:
        _TEXT.take("topic", topic)
    if type(flag) is not int:
        flag = _WHOLE.take("flag", flag)
    message = Message(topic, body, flag)
    own = message.properties
    if properties is not None:
        _set_properties(own, properties)
    if tags is not None:
        own[names.TAGS] = _word("tags", tags, "a str, the one tag of the message")
    if keys != ():
        _set_keys(own, keys)
    if delay_level is not None or delay_ms is not None or deliver_at_ms is not None:
        _delay(own, delay_level, delay_ms, deliver_at_ms)
    if priority is not None:
        own[names.PRIORITY] = str(_WHOLE.take("priority", priority))
    if wait_for_store is not True and not _SWITCH.take("wait_for_store", wait_for_store):
        own[names.WAIT] = "false"
    return message


def _no_argument(name: str) -> TypeError:
    """What is raised for an argument that messages do not have, but perhaps in other clients."""
    instead = _FOREIGN_PARTS.get(name)
    known = ", ".join(inspect.signature(new_message).parameters)
    return TypeError(f"new_message has no argument {name!r}: {instead or f'it has {known}'}")


def _set_properties(own: dict[str, str], properties: Mapping[str, str]) -> None:
    if type(properties) is not dict and not isinstance(properties, Mapping):
        raise refused("properties", "a dict of str to str", properties)
    for name, value in properties.items():
        if not isinstance(name, str):
            raise refused("each name in properties", "str", name)
        if not isinstance(value, str):
            raise refused(f"properties[{name!r:.80}]", "str", value)
        try:
            check_user_property(name, value)
        except ValueError as error:
            raise MessageIllegal(str(error)) from None
        own[name] = value


def _set_keys(own: dict[str, str], keys: Any) -> None:
    words = "a str or a list of str"
    if isinstance(keys, str):
        own[names.KEYS] = _word("keys", keys, words)
        return
    if not isinstance(keys, Iterable) or isinstance(keys, (bytes, bytearray, Mapping)):
        raise refused("keys", words, keys)
    key_list = list(keys)
    if key_list:
        own[names.KEYS] = names.KEY_SEPARATOR.join(_word("keys", key, words) for key in key_list)


def _delay(
    own: dict[str, str], delay_level: int | None, delay_ms: int | None, deliver_at_ms: int | None
) -> None:
    delays = zip(_DELAYS, (delay_level, delay_ms, deliver_at_ms), strict=True)
    given = {name: value for name, value in delays if value is not None}
    if len(given) > 1:
        raise MessageIllegal("give one of delay_level, delay_ms and deliver_at_ms, not several")
    for name, value in given.items():
        delay = _WHOLE.take(_DELAYS[name], value)
        if delay < 0:
            raise MessageIllegal(f"{_DELAYS[name]} cannot be negative, as {delay} is")
        own[name] = str(delay)


def _word(name: str, text: str, words: str) -> str:
    if not isinstance(text, str):
        raise refused(name, words, text)
    if names.NAME_VALUE_SEPARATOR in text or names.PROPERTY_SEPARATOR in text:
        raise MessageIllegal(f"{name}: {text!r:.80} has a \\x01 or \\x02, which end properties")
    return text


def topic_and_body(function: F) -> F:
    """Marks a method of a producer that takes a topic and a body in place of a message as well.

    The method itself gets a message; it is made where a program's arguments are checked.
    """
    signature = inspect.signature(function)
    own, message, *others = signature.parameters.values()
    body = message.replace(name="body", annotation="bytes | str | None", default=None)
    either = message.replace(annotation="Message | str")
    made: Any = function
    made.__signature__ = signature.replace(parameters=[own, either, body, *others])
    conversion = _with_message_and_key if "selector" in signature.parameters else _with_message
    return converted_by(conversion, message=(str,), body=(bytes, str))(function)


def _with_message_and_key(arguments: tuple[Any, ...], named: dict[str, Any]) -> Given:
    """Does the same for a method with a selector, for which a key without one is of no effect."""
    if named.get("key") is not None and named.get("selector") is None:
        raise TypeError(
            "key is what a selector chooses the queue by: give selector=by_hash as well, or give"
            " the message keys by which it is found"
        )
    return _with_message(arguments, named)


def _with_message(arguments: tuple[Any, ...], named: dict[str, Any]) -> Given:
    """Makes a message of a topic and a body, if the first argument is a topic."""
    rest = dict(named)
    first, *others = arguments or (rest.pop("message", None),)
    body = others.pop(0) if others else rest.pop("body", None)
    if misplaced := sorted(rest.keys() & _OF_MESSAGES):
        name = misplaced[0]
        raise TypeError(f"{name} is a part of the message: give new_message(..., {name}=...)")
    if foreign := sorted(rest.keys() & _FOREIGN.keys()):
        raise TypeError(f"there is no argument {foreign[0]!r}: {_FOREIGN[foreign[0]]}")
    if isinstance(first, (list, tuple)):
        raise TypeError("message must be one Message: give a list of them to send_batch")
    if not isinstance(first, str):
        if body is not None:
            raise TypeError("body must be left out beside a message: give a topic and a body")
        return arguments, named
    if body is None:
        raise TypeError(
            f"message must be a Message, or a topic that is followed by a body, not"
            f" {shown('message', first)} alone"
        )
    return (new_message(first, body), *others), rest


_PROPERTIES = "a message has properties: give new_message(topic, body, properties={'a': 'b'})"
_RESULT = "send returns the result or raises an error, and send_async returns a future"
_FOREIGN: Final = {
    "value": "the body follows the topic: give send(topic, body)",
    "data": "the body follows the topic: give send(topic, body)",
    "headers": _PROPERTIES,
    "header": _PROPERTIES,
    "tag": "a message has tags: give new_message(topic, body, tags='paid')",
    "partition": "give queue, a MessageQueue, or a selector and its key",
    "partition_key": "give selector=by_hash and key, for messages that belong together",
    "sharding_key": "give selector=by_hash and key, for messages that belong together",
    "message_group": "give selector=by_hash and key, for messages that belong together",
    "routing_key": "a message has tags: give new_message(topic, body, tags='paid')",
    "timeout": "give timeout_ms, in milliseconds",
    "timestamp_ms": "brokers note when a message was sent; properties may have other times",
    "delay": "a message has delay_ms: give new_message(topic, body, delay_ms=5000)",
    "callback": _RESULT,
    "on_delivery": _RESULT,
}
"""What other clients give with a message."""
_FOREIGN_PARTS: Final = {
    "value": "give body",
    "data": "give body",
    "payload": "give body",
    "headers": "give properties, a dict of str to str",
    "header": "give properties, a dict of str to str",
    "property": "give properties, a dict of str to str",
    "tag": "give tags, the one tag of the message",
    "routing_key": "give tags, the one tag of the message",
    "key": "give keys, by which queries find the message; to choose a queue by a key, give"
    " selector=by_hash and key to send",
    "partition": "give queue, a MessageQueue, to send",
    "delay": "give delay_ms, in milliseconds",
    "delay_seconds": "give delay_ms, in milliseconds",
    "timestamp_ms": "brokers note when a message was sent; properties may have other times",
}
"""What parts of a message are called in other clients."""
new_message.__signature__ = inspect.Signature(  # type: ignore[attr-defined] # without the rest
    [each for each in inspect.signature(new_message).parameters.values() if each.name != "others"],
    return_annotation=inspect.signature(new_message).return_annotation,
)
_OF_MESSAGES: Final = frozenset(inspect.signature(new_message).parameters) - {"topic", "body"}
