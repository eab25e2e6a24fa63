# SPDX-License-Identifier: Apache-2.0
"""Delayed messages that are due: makes what is stored for each from the record that waited.

What is stored is the message itself, in the queue that it was sent to, with the bytes of all its
properties as they are; see intake/usual_record.py. A message that cannot be delivered becomes a
dead letter.

Timer messages that are due are stored in the same way; properties that they get on the way are
added (see DueMessages.add).

Java: ScheduleMessageService.messageTimeup, TimerMessageStore.convert, doPut.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from txrocketmq.broker.intake.inner_message import InnerMessage, Way, packed
from txrocketmq.broker.intake.intake import Intake
from txrocketmq.broker.intake.new_queues import NewQueues
from txrocketmq.broker.intake.usual_record import destination, is_plain_place, usual_record
from txrocketmq.broker.store.formats.put_message import PutMessage, PutStatus
from txrocketmq.remoting.call import Buffer
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.message import MessageDecodeError, MessageExt, decode_message
from txrocketmq.remoting.message.properties import encode_properties
from txrocketmq.remoting.message.tags import tags_code
from txrocketmq.remoting.message.topics import DLQ_PREFIX, SCHEDULE_TOPIC

DEAD_LETTER_TOPIC = DLQ_PREFIX + SCHEDULE_TOPIC
"""The topic of delayed messages that cannot be delivered. It has one queue."""
NEVER: Final = frozenset(
    {
        PutStatus.MESSAGE_ILLEGAL,
        PutStatus.PROPERTIES_SIZE_EXCEEDED,
        PutStatus.WHEEL_TIMER_NOT_ENABLE,
        PutStatus.WHEEL_TIMER_MSG_ILLEGAL,
    }
)
"""The statuses with which the store refuses a message for good."""


class DueMessage:
    """A due message, and what is to be stored for it: the message, a dead letter or a note.

    `offset` is where it waits in its level. The record is a part of the mapped log, so do not keep
    a DueMessage for long.
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
        """Why the message becomes a dead letter; empty when it is delivered."""
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
        """The waiting message, decoded. Raises MessageDecodeError."""
        if self._stored is None:
            self._stored = decode_message(self._record, decompress_body=False)[0]
        return self._stored

    @property
    def is_dead(self) -> bool:
        """Whether a dead letter, or a note of one, is stored instead of the message."""
        return bool(self.why)

    def give_up(self, why: str) -> bool:
        """Falls back from the message to a dead letter, and then to a note of it.

        Returns False when there is nothing left to fall back to.
        """
        if not self.is_dead:
            self.why = why
            self.message = dead_letter(self.stored)
            return True
        if self.message.body is not self.stored.body:
            return False
        self.message = note(self.stored, self.why)
        return True


class DueMessages:
    """The due messages of one batch; `unread` has the offsets of unreadable records.

    `is_full` tells that its messages make enough new queues for one write.
    """

    def __init__(self, intake: Intake) -> None:
        self.messages: list[DueMessage] = []
        self.unread: list[int] = []
        self.is_full = False
        self._new_queues = NewQueues(intake.store)
        self._transforms = intake.transforms
        self._touched = intake.transforms.properties(Way.DELIVERY)
        self._plain_topics: dict[tuple[str, int], bool] = {}

    def add(
        self, offset: int, record: memoryview | None, stamps: Mapping[str, str] | None = None
    ) -> None:
        """Adds the message that waits at an offset of its level; a damaged `record` is None.

        `stamps` are properties that the message gets on its way.
        """
        if record is not None:
            try:
                plain = self._plain(record, stamps)
                due = DueMessage(offset, record, plain, stamps)
                message = due.message
                self.messages.append(due)
                place = message.topic, message.queue_id
                if place not in self._new_queues.seen:
                    self.is_full = self._new_queues.are_enough_with(*place)
            except MessageDecodeError:
                record = None
        if record is None:
            self.unread.append(offset)

    # Every delayed message passes here, so no call is made that can be avoided.
    def _plain(self, record: memoryview, stamps: Mapping[str, str] | None) -> PutMessage | None:
        """Returns what to store for a record that is in no way unusual; None for others."""
        usual = usual_record(record)
        place = None if usual is None else destination(usual.properties)
        if usual is None or place is None:
            return None
        (
            _, _, _, _, flag, sys_flag, born_ms, born_host, store_host, reconsume_times, body,
            encoded, properties,
        ) = usual  # fmt: skip
        topic, queue_id = place
        is_plain = self._plain_topics.get((topic, sys_flag))
        if is_plain is None:
            is_plain = is_plain_place(self._transforms, Way.DELIVERY, topic, sys_flag)
            self._plain_topics[topic, sys_flag] = is_plain
        if not is_plain or not self._touched.isdisjoint(properties):
            return None
        if stamps:
            if not stamps.keys().isdisjoint(properties):
                return None
            encoded += encode_properties(stamps).encode()
        get = properties.get
        tags = get("TAGS")
        return PutMessage(
            topic=topic,
            queue_id=queue_id,
            body=body,
            properties=encoded,
            tags_code=tags_code(tags) if tags else 0,
            born_timestamp_ms=born_ms,
            born_host=born_host,
            store_host=store_host,
            uniq_key=get("UNIQ_KEY"),
            keys=get("KEYS"),
            tags=tags,
            flag=flag,
            sys_flag=sys_flag,
            reconsume_times=reconsume_times,
        )


def restored(stored: MessageExt) -> InnerMessage | None:
    """Makes the message for the queue it was sent to; None when its properties name no queue.

    It keeps all its properties, also DELAY and those of its destination, as in the original.
    """
    place = destination(stored.properties)
    if place is None:
        return None
    return InnerMessage.of_stored(stored, *place, packed(stored.store_host))


def dead_letter(stored: MessageExt) -> InnerMessage:
    """Makes a dead letter that contains the whole message, which cannot be delivered."""
    topic = DLQ_PREFIX + stored.topic
    message = InnerMessage.of_stored(stored, topic, 0, packed(stored.store_host))
    message.properties[names.DELAY] = "0"  # as other dead letters have it
    return message


def note(stored: MessageExt, why: str) -> InnerMessage:
    """Makes a note for a dead letter that is too large: it says where the message lies."""
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
    """Stores the messages, or dead letters for those that the store refuses for good.

    Adds the offsets of all stored messages to `done`. Returns the first message that the store
    refuses for now, with the status; None when there is none.
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
