# SPDX-License-Identifier: Apache-2.0
"""Delayed messages that are due: what is put for each of them, made of the record that waits.

What is put is the message itself, for the queue that it was sent to, with all its properties. A
record is only cut by its lengths, and the bytes of its properties are put as they are, unless a
transform of the intake touches such a message, or the record is in any way unusual: then it is
decoded and goes through the intake like any other message. What cannot be delivered becomes a dead
letter.

Timer messages that are due are put in the same way; what is said of them on the way is added to
their properties (see DueMessages).

Java: ScheduleMessageService.messageTimeup, TimerMessageStore.convert, doPut.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from txrocketmq.broker.intake.check import check_topic
from txrocketmq.broker.intake.inner_message import InnerMessage, Way, packed
from txrocketmq.broker.intake.intake import Intake
from txrocketmq.broker.intake.transform import NotTaken, Transforms
from txrocketmq.broker.store.commit_log import IPV4_LAYOUT
from txrocketmq.broker.store.put_message import PutMessage, PutStatus
from txrocketmq.remoting.call import Buffer
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message import record as records
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.message import MessageDecodeError, MessageExt, decode_message
from txrocketmq.remoting.message.properties import encode_properties
from txrocketmq.remoting.message.tags import tags_code
from txrocketmq.remoting.message.topics import DLQ_PREFIX, SCHEDULE_TOPIC

DEAD_LETTER_TOPIC = DLQ_PREFIX + SCHEDULE_TOPIC
"""Where a delayed message goes that cannot be delivered; it has one queue."""
NEVER: Final = frozenset(
    {
        PutStatus.MESSAGE_ILLEGAL,
        PutStatus.PROPERTIES_SIZE_EXCEEDED,
        PutStatus.WHEEL_TIMER_NOT_ENABLE,
        PutStatus.WHEEL_TIMER_MSG_ILLEGAL,
    }
)
"""What the store says of a message that it will never take."""
_IPV6_HOSTS: Final = MessageSysFlag.BORN_HOST_V6 | MessageSysFlag.STORE_HOST_V6
_LENGTHS_BYTES: Final = records.TOPIC_LENGTH_V1.sizeof() + records.PROPERTIES_LENGTH.sizeof()
_MAX_DIGITS: Final = 9
"""So many digits are surely an int."""


class DueMessage:
    """A message that is due, and what is to be put for it: itself, or what says that it cannot be.

    `offset` is where it waits in its level. The record is a part of the mapped log, so a message is
    not to be kept.
    """

    __slots__ = ("_record", "_stored", "message", "offset", "why")

    def __init__(
        self,
        offset: int,
        record: Buffer,
        plain: PutMessage | InnerMessage | None,
        stamps: Mapping[str, str] | None = None,
    ) -> None:
        self.offset = offset
        self.why = ""
        """Why it is a dead letter."""
        self._record = record
        self._stored: MessageExt | None = None
        self.message: PutMessage | InnerMessage
        if plain is not None:
            self.message = plain
            return
        message = restored(self.stored)
        if message is None:
            self.why = "it does not say which queue it is for"
        elif stamps:
            message.properties.update(stamps)
        self.message = dead_letter(self.stored) if message is None else message

    @property
    def stored(self) -> MessageExt:
        """The message as it waits; raises MessageDecodeError."""
        if self._stored is None:
            self._stored = decode_message(self._record, decompress_body=False)[0]
        return self._stored

    @property
    def is_dead(self) -> bool:
        """Whether a dead letter is put for it."""
        return bool(self.why)

    def give_up(self, why: str) -> bool:
        """Puts something else in its place; False when there is nothing left."""
        if not self.is_dead:
            self.why = why
            self.message = dead_letter(self.stored)
            return True
        if self.message.body is not self.stored.body:
            return False
        self.message = note(self.stored, self.why)
        return True


class DueMessages:
    """Those of one batch: `messages`, and `unread`, the offsets of those that cannot be read."""

    def __init__(self, transforms: Transforms) -> None:
        self.messages: list[DueMessage] = []
        self.unread: list[int] = []
        self._transforms = transforms
        self._touched = transforms.properties(Way.DELIVERY)
        self._plain_topics: dict[tuple[str, int], bool] = {}

    def add(
        self, offset: int, record: memoryview | None, stamps: Mapping[str, str] | None = None
    ) -> None:
        """Adds the message that waits at the offset of its level; None: its record is damaged.

        `stamps` are properties that it gets on its way.
        """
        if record is not None:
            try:
                plain = self._plain(record, stamps)
            except (ValueError, KeyError, IndexError):
                plain = None
            try:
                self.messages.append(DueMessage(offset, record, plain, stamps))
            except MessageDecodeError:
                record = None
        if record is None:
            self.unread.append(offset)

    # The path of every delayed message: no call in it that could be left out.
    def _plain(self, record: memoryview, stamps: Mapping[str, str] | None) -> PutMessage | None:
        """What is put for a record when nothing about it is unusual; else None, or an error."""
        (
            size, magic, _, _, flag, _, _, sys_flag, born_ms, born_host, _, store_host,
            reconsume_times, _, body_bytes,
        ) = IPV4_LAYOUT.unpack_from(record)  # fmt: skip
        if magic != records.MAGIC_V1 or sys_flag & _IPV6_HOSTS or body_bytes < 0:
            return None
        body_at = IPV4_LAYOUT.size
        body_end = body_at + body_bytes
        properties_at = body_end + _LENGTHS_BYTES + record[body_end]
        encoded = bytes(record[properties_at:])
        properties_bytes = record[properties_at - 2] << 8 | record[properties_at - 1]
        if size != len(record) or properties_bytes != len(encoded):
            return None
        pairs = str(encoded, "utf-8").split("\x02")
        if pairs[-1]:
            encoded += b"\x02"
        else:
            pairs.pop()
        properties = dict([pair.split("\x01") for pair in pairs])
        get, topic, queue_id = properties.get, properties["REAL_TOPIC"], properties["REAL_QID"]
        is_plain = self._plain_topics.get((topic, sys_flag))
        if is_plain is None:
            is_plain = self._plain_topics[topic, sys_flag] = self._is_plain(topic, sys_flag)
        if (
            not is_plain
            or len(properties) != len(pairs)
            or not self._touched.isdisjoint(properties)
            or "" in properties
            or "" in properties.values()
            or not (queue_id.isascii() and queue_id.isdigit() and len(queue_id) <= _MAX_DIGITS)
        ):
            return None
        if stamps:
            if not stamps.keys().isdisjoint(properties):
                return None
            encoded += encode_properties(stamps).encode()
        tags = get("TAGS")
        return tuple.__new__(PutMessage, (
            topic, int(queue_id), bytes(record[body_at:body_end]), encoded,
            tags_code(tags) if tags else 0, born_ms, born_host, store_host, get("UNIQ_KEY"),
            get("KEYS"), tags, flag, sys_flag, reconsume_times, 0,
        ))  # fmt: skip

    def _is_plain(self, topic: str, sys_flag: int) -> bool:
        try:
            check_topic(topic)
        except NotTaken:
            return False
        return not self._transforms.touches_topic(Way.DELIVERY, topic, sys_flag)


def restored(stored: MessageExt) -> InnerMessage | None:
    """A waiting message for the queue it was sent to; None when it does not say which.

    It keeps all its properties, DELAY and those of its destination too, as the original's do.
    """
    topic = stored.properties.get(names.REAL_TOPIC)
    queue_id = stored.properties.get(names.REAL_QID, "")
    if not topic or not (queue_id.isascii() and queue_id.isdigit()):
        return None
    return InnerMessage.of_stored(stored, topic, int(queue_id), packed(stored.store_host))


def dead_letter(stored: MessageExt) -> InnerMessage:
    """A waiting message that cannot be delivered, whole, for the topic of such messages."""
    topic = DLQ_PREFIX + stored.topic
    message = InnerMessage.of_stored(stored, topic, 0, packed(stored.store_host))
    message.properties[names.DELAY] = "0"  # as other dead letters have it
    return message


def note(stored: MessageExt, why: str) -> InnerMessage:
    """What stands for a dead letter that is too large itself: where the message still lies."""
    text = (
        f"The message at offset {stored.queue_offset} of queue {stored.queue_id} of"
        f" {stored.topic} cannot be delivered: {why}"
    )
    message = dead_letter(stored)
    message.body, message.properties = text.encode(), {}
    return message


def put_due(
    intake: Intake, due: list[DueMessage], done: set[int], now_ms: int
) -> tuple[DueMessage, PutStatus] | None:
    """Puts the messages, and dead letters for those that the store will never take.

    `done` gets the offsets of all that were put. Gives the first that the store does not take for
    now, and what it says.
    """
    refused: list[tuple[DueMessage, PutStatus]] = []
    while due:
        statuses = intake.take([each.message for each in due], now_ms)
        given_up: list[DueMessage] = []
        for each, status in zip(due, statuses, strict=True):
            if status is PutStatus.PUT_OK:
                done.add(each.offset)
            elif status not in NEVER:
                refused.append((each, status))
            elif each.give_up(status.name):
                given_up.append(each)
            else:
                done.add(each.offset)  # not even a note of it
        due = given_up
    return min(refused, key=lambda one: one[0].offset, default=None)
