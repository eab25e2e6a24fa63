# SPDX-License-Identifier: Apache-2.0
"""A message to send, in one call: what the original's Message has setters for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from txrocketmq.client.base.errors import MessageIllegal
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.message import Message
from txrocketmq.remoting.message.properties import check_user_property


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
) -> Message:
    """Makes a message; a text as body is encoded in UTF-8.

    `tags` is the one tag by which subscriptions filter; `keys` are the keys by which queries find
    the message. `delay_level` is 1 to 18. `delay_ms` and `deliver_at_ms` (since the epoch) are for
    5.x brokers; only one of the three can be given. With `wait_for_store=False`, the broker answers
    without waiting for flush and replication, even if it is configured to.

    Raises MessageIllegal for values that brokers could not tell apart or would not accept.
    """
    data = body.encode() if isinstance(body, str) else bytes(body)
    message = Message(topic, data, flag)
    own = message.properties
    if properties:
        for name, value in properties.items():
            try:
                check_user_property(name, value)
            except ValueError as error:
                raise MessageIllegal(str(error)) from None
            own[name] = value
    if tags is not None:
        own[names.TAGS] = _word(tags, "tag")
    if keys != ():
        key_list = [keys] if isinstance(keys, str) else list(keys)
        if key_list:
            own[names.KEYS] = names.KEY_SEPARATOR.join(_word(key, "key") for key in key_list)
    if not (delay_level is delay_ms is deliver_at_ms is None):
        _delay(own, delay_level, delay_ms, deliver_at_ms)
    if priority is not None:
        own[names.PRIORITY] = str(priority)
    if not wait_for_store:
        own[names.WAIT] = "false"
    return message


def _delay(
    own: dict[str, str], delay_level: int | None, delay_ms: int | None, deliver_at_ms: int | None
) -> None:
    delays = {names.DELAY: delay_level, names.TIMER_DELAY_MS: delay_ms,
              names.TIMER_DELIVER_MS: deliver_at_ms}  # fmt: skip
    given = {name: value for name, value in delays.items() if value is not None}
    if len(given) > 1:
        raise MessageIllegal("give one of delay_level, delay_ms and deliver_at_ms, not several")
    for name, delay in given.items():
        if delay < 0:
            raise MessageIllegal(f"a delay cannot be negative: {delay}")
        own[name] = str(delay)


def _word(text: str, what: str) -> str:
    if names.NAME_VALUE_SEPARATOR in text or names.PROPERTY_SEPARATOR in text:
        raise MessageIllegal(f"the {what} {text!r:.80} has a \\x01 or \\x02, which end properties")
    return text
