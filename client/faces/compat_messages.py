# SPDX-License-Identifier: Apache-2.0
"""Messages in the form of apache/rocketmq-client-python, to be sent and received."""

from __future__ import annotations

import enum
from typing import Any

from txrocketmq.client.producer.new_message import new_message
from txrocketmq.remoting.arguments.arguments import checked_class
from txrocketmq.remoting.message import message as core
from txrocketmq.remoting.message import properties as names


def as_text(value: str | bytes) -> str:
    """Returns a text, which may be given as bytes in UTF-8."""
    return value.decode() if isinstance(value, bytes) else value


@checked_class
class Message:
    """A message to send."""

    def __init__(self, topic: str | bytes) -> None:
        self._topic = as_text(topic)
        self._body = b""
        self._properties: dict[str, str] = {}

    def set_keys(self, keys: str | bytes) -> None:
        """Sets the keys by which the message can be found, separated by blanks."""
        self._properties[names.KEYS] = as_text(keys)

    def set_tags(self, tags: str | bytes) -> None:
        """Sets the tag that subscriptions filter by."""
        self._properties[names.TAGS] = as_text(tags)

    def set_body(self, body: str | bytes) -> None:
        """Sets the body; a text is sent in UTF-8."""
        self._body = body.encode() if isinstance(body, str) else body

    def set_property(self, key: str | bytes, value: str | bytes) -> None:
        """Sets a property of the program's own. Raises ValueError for a name of the system's."""
        names.check_user_property(as_text(key), as_text(value))
        self._properties[as_text(key)] = as_text(value)

    def set_delay_time_level(self, delay_time_level: int) -> None:
        """Sets the delay level, which says after which time the message is delivered."""
        self._properties[names.DELAY] = str(delay_time_level)

    def as_core(self) -> core.Message:
        """Returns the message to be sent, a new one for each send, since each has a unique key."""
        message = new_message(self._topic, self._body)
        message.properties.update(self._properties)
        return message


class ReceivedMessage:
    """A received message, or that of a transaction. `tags`, `keys` and `body` are bytes."""

    def __init__(self, message: core.Message) -> None:
        self._message = message

    def __getattr__(self, name: str) -> Any:
        """Returns other attributes of a stored message, such as queue_id and reconsume_times."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._message, name)

    @property
    def topic(self) -> str:
        """The topic of the message."""
        return self._message.topic

    @property
    def tags(self) -> bytes:
        """The tag of the message; empty if it has none."""
        return (self._message.tags or "").encode()

    @property
    def keys(self) -> bytes:
        """The keys of the message, separated by blanks; empty if it has none."""
        return self._message.properties.get(names.KEYS, "").encode()

    @property
    def body(self) -> bytes:
        """The body of the message."""
        return self._message.body

    @property
    def id(self) -> str:
        """The id that the producer gave the message."""
        return self._message.unique_key or str(getattr(self._message, "msg_id", ""))

    @property
    def delay_time_level(self) -> int:
        """The delay level of the message, or 0 if it has none."""
        return self._message.delay_level

    def get_property(self, prop: str | bytes | enum.Enum) -> bytes | None:
        """Returns a property, or None if the message does not have it."""
        name = prop.value if isinstance(prop, enum.Enum) else prop
        value = self._message.properties.get(as_text(name))
        return None if value is None else value.encode()

    def __getitem__(self, key: str | bytes | enum.Enum) -> bytes | None:
        return self.get_property(key)

    def __str__(self) -> str:
        return self.body.decode("utf-8")

    def __bytes__(self) -> bytes:
        return self.body

    def __repr__(self) -> str:
        return f"<ReceivedMessage topic={self.topic!r} id={self.id!r} body={self.body!r}>"
