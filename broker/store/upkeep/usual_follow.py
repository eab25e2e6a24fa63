# SPDX-License-Identifier: Apache-2.0
"""Finds what follows from usual records, many at a time, without an object for each.

Usual are records with one unit each, in queues of plain units, whose topic and properties are plain
text. Those of one producer and topic differ in little but the unique key, so the rest of their text
is read once and remembered. What follows from all other records is found by Reput.follow, which is
the reference, and finds the same for these. A compiled kernel has a form of its own
(packed_follow.py).

Java: DispatchRequest, which is made for each record.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from txrocketmq.broker.store.disk.mapped_file import MappedFile
from txrocketmq.broker.store.formats.scan import USUAL_FIXED
from txrocketmq.broker.store.log.dispatch import Units
from txrocketmq.broker.store.queues.consume_queue import UNIT_FIELDS, ConsumeQueue
from txrocketmq.broker.store.queues.consume_queues import ConsumeQueues
from txrocketmq.broker.store.upkeep.records_following import RecordsFollowing
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.properties import decode_properties
from txrocketmq.remoting.message.record import MAGIC_V1, PROPERTIES_LENGTH
from txrocketmq.remoting.message.tags import tags_code
from txrocketmq.remoting.primitives.packing import fixed

MOST_RECORDS: Final = 256
"""How many records are taken at once."""
MOST_TEXTS: Final = 1_024
"""How many texts are remembered. If each message has keys of its own, all are soon forgotten."""
MOST_TEXT_BYTES: Final = 1_024
"""Longer texts are not remembered."""
_UNUSUAL_FLAGS: Final = (
    MessageSysFlag.BORN_HOST_V6
    | MessageSysFlag.STORE_HOST_V6
    | MessageSysFlag.INNER_BATCH
    | MessageSysFlag.TRANSACTION_PREPARED_TYPE
)
_UNUSUAL_NAMES: Final = frozenset({
    names.DELAY, names.INNER_MULTI_DISPATCH, names.INNER_MULTI_QUEUE_OFFSET,
})  # fmt: skip
_PROPERTIES_LENGTH: Final = fixed(PROPERTIES_LENGTH).struct
_KEY: Final = f"{names.UNIQ_KEY}{names.NAME_VALUE_SEPARATOR}".encode()
_END: Final = names.PROPERTY_SEPARATOR.encode()


class Facts(NamedTuple):
    """What the text of a record says, besides its unique key."""

    topic: str
    keys: str | None
    tags: str | None
    tags_code: int


class UsualFollow:
    """Finds it, for the queues of a store."""

    def __init__(self, queues: ConsumeQueues) -> None:
        self._queues = queues
        self._facts: dict[bytes, Facts | None] = {}
        """By the text of a record from its topic on, without the unique key; None: unusual."""
        self._queue_of: dict[tuple[str, int], ConsumeQueue] = {}

    # Every record that a slave gets passes here, so no call is made that can be avoided.
    def __call__(self, file: MappedFile, offset: int, end: int) -> RecordsFollowing | None:
        """Returns what follows from the records from this log offset on, up to a position in their
        file; None if it has to be found otherwise, for a first record that is unusual.
        """
        view, from_offset, facts_of = file.view[:end], file.from_offset, self._facts
        unpack, fixed_bytes = USUAL_FIXED.unpack_from, USUAL_FIXED.size
        position, file_bytes = offset - from_offset, len(view)
        last_start = file_bytes - fixed_bytes
        following = RecordsFollowing(offset)
        entries, rows = following.entries, dict[tuple[str, int], Units]()
        while position <= last_start and len(entries) < MOST_RECORDS:
            (
                size, magic, _, queue_id, queue_offset, physical_offset, sys_flag, stored_ms,
                body_bytes,
            ) = unpack(view, position)  # fmt: skip
            text_at, record_end = position + fixed_bytes + body_bytes, position + size
            if (
                magic != MAGIC_V1
                or sys_flag & _UNUSUAL_FLAGS
                or physical_offset != from_offset + position
                or body_bytes < 0
                or not text_at < record_end <= file_bytes
            ):
                break
            text = bytes(view[text_at:record_end])
            key_at = text.find(_KEY) + len(_KEY)
            unique = None
            if key_at >= len(_KEY):
                key_end = text.find(_END, key_at)
                key = text[key_at:key_end] if key_end > 0 else text[key_at:]
                if not key.isascii():
                    break
                unique = key.decode()
                text = text[:key_at] + text[key_end:] if key_end > 0 else text[:key_at]
            facts = facts_of[text] if text in facts_of else self._read(text)
            if facts is None:
                break
            topic, keys, tags, code = facts
            place = topic, queue_id
            row = rows.get(place)
            if row is None:
                queue = self._queue(place)
                if queue is None:
                    break
                rows[place] = queue, queue_offset, [physical_offset, size, code]
            else:
                _, first, units = row
                if first + len(units) // UNIT_FIELDS != queue_offset:
                    break
                units += physical_offset, size, code
            entries.append((topic, unique, keys, tags, physical_offset, stored_ms))
            following.stored_ms = stored_ms
            position = record_end
        following.units = list(rows.values())
        following.end_offset = from_offset + position
        return following if entries else None

    def forget_queues(self) -> None:
        """Forgets the queues that were looked up, since some were deleted."""
        self._queue_of.clear()

    def _read(self, text: bytes) -> Facts | None:
        facts = facts_in(text)
        if len(text) <= MOST_TEXT_BYTES:
            if len(self._facts) >= MOST_TEXTS:
                self._facts.clear()
            self._facts[text] = facts
        return facts

    def _queue(self, place: tuple[str, int]) -> ConsumeQueue | None:
        """The queue, if its units are plain."""
        queue = self._queue_of.get(place)
        if queue is None and (queue := self._plain(*place)) is not None:
            self._queue_of[place] = queue
        return queue

    def _plain(self, topic: str, queue_id: int) -> ConsumeQueue | None:
        try:
            queue = self._queues.open(topic, queue_id)
        except ValueError:
            return None
        return None if queue.is_batch or queue.is_light or queue.ext is not None else queue


def facts_in(text: bytes) -> Facts | None:
    """Reads the text of a record from the length of its topic on; None if it is unusual.

    Where it has a unique key, the characters of that are left out. The length of the properties
    says how many there were.
    """
    properties_at = 1 + text[0] + _PROPERTIES_LENGTH.size
    if properties_at > len(text):
        return None
    (length,) = _PROPERTIES_LENGTH.unpack_from(text, properties_at - _PROPERTIES_LENGTH.size)
    end = properties_at + length
    key_at = text.find(_KEY) + len(_KEY)
    has_key = key_at >= len(_KEY)
    if has_key:
        some_key = b"k" * (end - len(text))
        text = text[:key_at] + some_key + text[key_at:]
    if end != len(text) or text.count(_KEY) != has_key:
        return None
    topic, properties = text[1 : properties_at - _PROPERTIES_LENGTH.size], text[properties_at:]
    if not topic.isascii() or not properties.isascii():
        return None
    values = decode_properties(properties.decode())
    if not _UNUSUAL_NAMES.isdisjoint(values):
        return None
    if values.get(names.UNIQ_KEY) != (some_key.decode() if has_key else None):
        return None
    tags = values.get(names.TAGS)
    return Facts(topic.decode(), values.get(names.KEYS), tags, tags_code(tags))
