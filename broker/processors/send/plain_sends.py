# SPDX-License-Identifier: Apache-2.0
"""Puts plain sends in their places: commands become messages, without being decoded.

A send is plain when its header was seen before and no transform touches its message. This is a pure
unit, as the store's encoder is (broker/store/log/encode.py): it uses neither topics nor queues nor
requests that are answered, only places that were learned. What it cannot place it leaves to whoever
calls it. Should it ever get a compiled form, that has to make the same messages: this one is the
reference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from txrocketmq.broker.processors.send.send_places import NO_SHAPE, Place, Shapes
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.message.tags import tags_code
from txrocketmq.remoting.protocol import send

ALL: Final[Any] = object()
"""Stands for a place when every plain send was taken."""
NEW: Final[Any] = object()
"""Stands for a place that is not known yet."""
_SINGLE: Final = frozenset({send.SEND_MESSAGE.code, send.SEND_MESSAGE_V2.code})
_MAX_DIGITS: Final = 18  # a number of so many digits certainly fits into a long


class PlainSends:
    """Takes plain sends; `store_host` is the broker's own address, packed as in records.

    `plain` finds the important properties in a text, see PlainProperties; it is None for a text
    with a property that a transform acts on.
    """

    def __init__(self, plain: Callable[[str], Any], store_host: bytes) -> None:
        self.shapes = Shapes()
        self.shape = NO_SHAPE
        """The shape of the last header."""
        self._parts = plain, store_host, b"", b""

    def add_to_all(self, own_text: bytes) -> None:
        """Sets the properties that the broker adds to each message, encoded."""
        self._parts = *self._parts[:2], own_text, b"\x02" + own_text

    # Every plain message passes here, so no call is made that can be avoided.
    def take(
        self,
        commands: Sequence[RemotingCommand],
        born_host: bytes,
        messages: list[Any],
        outcomes: list[Any],
        learned: Place | None = None,
    ) -> tuple[int, Place | None]:
        """Takes the longest beginning of the commands that are plain sends; it never raises.

        Adds a message and an outcome for each (PutMessage and writes.Outcome, as plain tuples);
        `learned` is the place of the first if that is new. Returns how many were taken, and why it
        was not one more: ALL, if the next is no single send, or there is none; NEW, if its place is
        not known; or its place, if the message is not plain (None: with such a header none is).
        """
        plain, store_host, own, own_behind = self._parts
        born_name, text_name, rest_of, places, size = self.shape.parts
        # Most messages in a run are born at the same time.
        before, last_born, born_timestamp_ms = len(outcomes), None, 0
        for command in commands:
            if command.code not in _SINGLE:
                break
            ext: Any = command.ext_fields
            body = command.body
            try:
                if len(ext) != size:
                    raise KeyError  # noqa: TRY301 - as if a name were missing
                key = "\0".join(rest_of(ext))
            except (KeyError, TypeError):
                shape = self.shape = self.shapes.of(ext) or NO_SHAPE
                born_name, text_name, rest_of, places, size = shape.parts
                key = "\0".join(rest_of(ext))
            place: Any = places.get(key, NEW)
            try:
                if place is NEW:
                    if learned is None:
                        return len(outcomes) - before, NEW
                    place, learned = learned, None
                born, text = ext[born_name], ext[text_name]
                found: Any = plain(text)
                if found is None or found[0] is None or not body:  # as with many that follow
                    return len(outcomes) - before, place
                uniq_key, keys, tags, wait = found
                topic, queue_id, queue_text, flag, sys_flag, reconsume_times, _ = place
                if born != last_born:
                    if not born.isdecimal() or len(born) > _MAX_DIGITS:
                        raise ValueError  # noqa: TRY301 - as for what is wrong with the text
                    last_born, born_timestamp_ms = born, int(born)
                properties = text.encode() + (own if text[-1] == "\x02" else own_behind)
                put = (
                    topic, queue_id, body, properties, tags_code(tags) if tags else 0,
                    born_timestamp_ms, born_host, store_host, uniq_key, keys, tags, flag, sys_flag,
                    reconsume_times, 0,
                )  # fmt: skip
            except (ValueError, KeyError, TypeError):
                return len(outcomes) - before, place
            waits = wait is None or wait == "true" or wait.lower() == "true"
            outcomes.append((command, len(messages), 1, queue_text, uniq_key, waits, None, None))
            messages.append(put)
        return len(outcomes) - before, ALL

    def varying(self, command: RemotingCommand) -> tuple[int, str] | None:
        """The time of birth and the properties in a header of the last shape; None if one of them
        is not there or is no such thing.
        """
        ext: Any = command.ext_fields
        born, text = ext.get(self.shape.born), ext.get(self.shape.properties)
        if not (isinstance(born, str) and isinstance(text, str)):
            return None
        return (int(born), text) if born.isdecimal() and len(born) <= _MAX_DIGITS else None
