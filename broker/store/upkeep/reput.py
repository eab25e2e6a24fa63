# SPDX-License-Identifier: Apache-2.0
"""Dispatches records of the log that were not dispatched when they were put.

This is needed after a crash, where recovery dispatches again what may be missing; when dispatching
has failed; and for bytes from a master. Dispatching a message again changes nothing.

Java: DefaultMessageStore.ReputMessageService.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from enum import Enum, auto
from itertools import groupby
from operator import attrgetter
from typing import Final

from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.scan import (
    BLANK_BYTES,
    Dispatched,
    Record,
    RecordWalk,
    begins_record,
    blank_bytes,
    dispatched,
)
from txrocketmq.broker.store.index.index_rows import IndexEntry
from txrocketmq.broker.store.index.packed_index import PackedIndex
from txrocketmq.broker.store.log.commit_log import CommitLog
from txrocketmq.broker.store.log.dispatch import Dispatchers, Following, Units
from txrocketmq.broker.store.log.inner_batch import count_of
from txrocketmq.broker.store.log.packed_run import PackedRun
from txrocketmq.broker.store.log.visibility import enters_queue, is_indexed
from txrocketmq.broker.store.queues.consume_queue import UNIT_FIELDS, ConsumeQueue
from txrocketmq.broker.store.queues.consume_queues import ConsumeQueues
from txrocketmq.broker.store.queues.light_queues import QUEUE_ID, has_places, is_served, places
from txrocketmq.broker.store.upkeep.packed_follow import PackedFollow, packed_follow
from txrocketmq.broker.store.upkeep.records_following import RecordsFollowing
from txrocketmq.broker.store.upkeep.unit_repair import UnitRepair
from txrocketmq.broker.store.upkeep.usual_follow import UsualFollow
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.flags import MessageSysFlag

_MAX_PENDING: Final = 1024
_RECORDS_AT_ONCE: Final = 256
ALL: Final = 1 << 62
"""So many records that a run dispatches all."""
_MAX_NAMED: Final = 5


class Ahead(Enum):
    """What comes next, where dispatching has ended."""

    NOTHING = auto()
    RECORD = auto()
    BEGINNING = auto()
    """The first part of a record, of which a replica has not been sent the rest yet."""
    NO_RECORD = auto()
    """Something that is no record, so that nothing behind it can be dispatched."""


class Reput:
    """Dispatches records; `offset` is where the part of the log begins that is not dispatched."""

    def __init__(
        self, config: StoreConfig, log: CommitLog, queues: ConsumeQueues, dispatchers: Dispatchers
    ) -> None:
        self._config = config
        self._log = log
        self._queues = queues
        self.dispatchers = dispatchers
        self._delays_ms = config.delay_levels_ms()
        self._has_light = is_served(config)
        self._queue_of: dict[tuple[bytes, int], ConsumeQueue] = {}
        self._usual = UsualFollow(queues)
        self.offset = 0
        self.stored_ms = 0
        """The store time of the last message that a run has dispatched, in ms."""
        self.repair: UnitRepair | None = None
        """Fills gaps in queues while the store is being opened. Otherwise messages are only added
        at the end."""
        self.is_known: Callable[[str, int], bool] | None = None
        """Returns whether a queue that does not exist may be created; None: it always may."""
        self.known_before_ms = 0
        """Only for messages older than this time, in ms, `is_known` is asked."""
        self.unknown: Counter[str] = Counter()
        """By topic: how many messages of unknown topics were found."""
        self.unserved: Counter[str] = Counter()
        """By topic: how many batches got no queue, since the topic's queues are plain."""

    def dispatch(self, record: Record) -> ConsumeQueue | None:
        """Gives one message to its queues and to the index; returns a queue that got a unit of it.

        Raises OSError when the disk has no room.
        """
        queue = self._queue_of.get((bytes(record.topic), record.queue_id))
        indexed = (
            self._config.message_index_enable
            and record.physical_offset >= self.dispatchers.index_from
            and is_indexed(record.sys_flag)
        )
        has_unit = queue is not None and self._has(queue, record)
        is_copied = self._has_light and has_places(record)
        if not (indexed or is_copied) and (has_unit or not enters_queue(record.sys_flag)):
            return None
        following = self.follow((record,))
        self.dispatchers.entries(following)
        self._write_index(following.stored_ms)
        found: ConsumeQueue | None = None
        for queue, queue_offset, fields in following.units + following.copies:
            if self.repair is not None:
                is_put = self.repair.put(queue, record, fields, queue_offset)
            else:
                is_put = queue.dispatch_all(queue_offset, fields, following.stored_ms)
            found = queue if is_put and found is None else found
        return found

    def dispatch_packed(self, following: Following) -> None:
        """Gives queues and index what a kernel has found, of which they have nothing yet.

        Raises OSError when the disk has no room.
        """
        self.dispatchers(following)
        self._write_index(following.stored_ms)

    def _has(self, queue: ConsumeQueue, record: Record) -> bool:
        """Whether the queue certainly has the message, or cannot take it any more."""
        if self.repair is None:
            return record.physical_offset + record.size_bytes <= queue.max_physical_offset
        unit = queue.stored(record.queue_offset)
        return unit is not None and unit[:2] == (record.physical_offset, record.size_bytes)

    def run(self, end_offset: int, most_records: int = ALL) -> list[ConsumeQueue]:
        """Dispatches the log up to this offset, or up to the last record that is complete there;
        that part is written and known to be sound. It ends sooner after about `most_records`.

        Returns the queues that have new units. Raises OSError when the disk has no room; the next
        run does what is left.
        """
        touched: dict[ConsumeQueue, int] = {}
        packed = self._packed() or self._usual_now()
        # If there was no room for queues, log files may have been deleted meanwhile.
        self.offset = max(self.offset, self._log.min_offset)
        while self.offset < end_offset and most_records > 0:
            file = self._log.files.find(self.offset)
            if file is None:
                break
            # A replica has the first part of a record before it has the rest.
            end = end_offset - file.from_offset
            while (
                packed is not None
                and self.offset < end_offset
                and most_records > 0
                and (found := packed(file, self.offset, end)) is not None
            ):
                self._dispatch_following(found, touched)
                most_records -= len(found.entries)
            if self.offset >= end_offset or most_records <= 0:
                break
            walk = RecordWalk(file, self.offset - file.from_offset, check_crc=False, end=end)
            records: list[Record] = []
            for record in walk:
                records.append(record)
                if len(records) == _RECORDS_AT_ONCE or walk.position >= end:
                    self._dispatch_records(records, touched)
                    most_records -= len(records)
                    records = []
                    if self.offset >= end_offset or most_records <= 0 or packed is not None:
                        break
            else:
                if records:
                    self._dispatch_records(records, touched)
                    most_records -= len(records)
                rest_bytes = file.size_bytes - walk.position
                if not walk.ended_by_blank or blank_bytes(file.view, walk.position) != rest_bytes:
                    break
                self.offset = file.from_offset + file.size_bytes
        return [queue for queue, before in touched.items() if queue.max_offset > before]

    def _packed(self) -> PackedFollow | None:
        """What finds the consequences of usual records faster; None if it cannot be used."""
        if self.repair is not None or self.is_known is not None:
            return None
        dispatchers = self.dispatchers
        if not self._config.message_index_enable:
            return packed_follow(None, self._queues)
        if dispatchers.index_from > self.offset or not isinstance(dispatchers.index, PackedIndex):
            return None
        return packed_follow(dispatchers.index.new_rows, self._queues)

    def _usual_now(self) -> UsualFollow | None:
        """What finds them without a kernel; None while more has to be decided for each record."""
        return self._usual if self.repair is None and self.is_known is None else None

    def ahead(self, end_offset: int) -> Ahead:
        """What the part of the log begins with that is not dispatched and ends at this offset."""
        file = self._log.files.find(self.offset) if self.offset < end_offset else None
        if file is None:
            return Ahead.NOTHING
        position, end = self.offset - file.from_offset, end_offset - file.from_offset
        if not begins_record(file.view[:end], position, file.size_bytes - position):
            return Ahead.NO_RECORD
        walk = RecordWalk(file, position, check_crc=False, end=end)
        if next(iter(walk), None) is not None or walk.ended_by_blank:
            return Ahead.RECORD
        rest = end - position
        is_there = rest >= BLANK_BYTES and blank_bytes(file.view, position) <= rest
        return Ahead.NO_RECORD if is_there else Ahead.BEGINNING

    def follow(self, records: Iterable[Record]) -> RecordsFollowing:
        """Returns what follows from records that lie one after the other."""
        following: RecordsFollowing | None = None
        units: dict[tuple[ConsumeQueue, int], Units] = {}
        for record in records:
            offset, size = record.physical_offset, record.size_bytes
            if following is None:
                following = RecordsFollowing(offset)
            known = dispatched(record, self._delays_ms)
            following.end_offset = offset + size
            following.stored_ms = record.store_timestamp_ms
            if is_indexed(record.sys_flag):
                following.entries.append(
                    (
                        known.topic, known.uniq_key, known.keys, known.tags, offset,
                        record.store_timestamp_ms,
                    )
                )  # fmt: skip
            unit = [offset, size, known.tags_code]
            if record.sys_flag & MessageSysFlag.INNER_BATCH:
                unit += [0] * UNIT_FIELDS * (_count_of(record, known) - 1)
            enters = enters_queue(record.sys_flag)
            if known.multi_queue_offset and enters and self._has_light:
                self._follow_copies(following, record, known)
            queue = self._queue(record, known.topic, record.queue_id) if enters else None
            if queue is None:
                continue
            before = units.pop((queue, record.queue_offset), None)
            if before is None:
                before = queue, record.queue_offset, unit
                (following.copies if queue.is_light else following.units).append(before)
            else:
                before[2].extend(unit)
            units[queue, record.queue_offset + len(unit) // UNIT_FIELDS] = before
        return following or RecordsFollowing(0)

    def _follow_copies(
        self, following: RecordsFollowing, record: Record, known: Dispatched
    ) -> None:
        """Adds the units that a record has in light queues, one by one."""
        listing = known.multi_dispatch, known.multi_queue_offset
        for name, queue_offset in places(known.topic, *listing):
            queue = self._queue(record, name, QUEUE_ID)
            if queue is not None:
                unit = [record.physical_offset, record.size_bytes, known.tags_code]
                following.copies.append((queue, queue_offset, unit))

    def _dispatch_records(self, records: list[Record], touched: dict[ConsumeQueue, int]) -> None:
        topics = {bytes(record.topic) for record in records}
        if any(self._queues.has_batches(str(topic, "utf-8", "replace")) for topic in topics):
            # Units of batches contain the store time, so only records of the same time go together.
            for _, run in groupby(records, attrgetter("store_timestamp_ms")):
                self._dispatch_run(run, touched)
        else:
            self._dispatch_run(records, touched)

    def _dispatch_run(self, records: Iterable[Record], touched: dict[ConsumeQueue, int]) -> None:
        self._dispatch_following(self.follow(records), touched)

    def _dispatch_following(
        self, following: RecordsFollowing | PackedRun, touched: dict[ConsumeQueue, int]
    ) -> None:
        for queue in following.queues():
            touched.setdefault(queue, queue.max_offset)
        self.dispatchers(following)
        self._write_index(following.stored_ms)
        self.offset, self.stored_ms = following.end_offset, following.stored_ms

    def _write_index(self, stored_ms: int) -> None:
        if self.dispatchers.index.waiting >= _MAX_PENDING:
            self.dispatchers.index.write_pending(stored_ms)

    def forget_queues(self) -> None:
        """Forgets the queues that were looked up, since some were deleted."""
        self._queue_of.clear()
        self._usual.forget_queues()

    def why_unserved(self) -> str:
        """A sentence on batches that got no queue, as that is not served; empty without any."""
        if not self.unserved:
            return ""
        topics = sorted(self.unserved)
        more = f" and {len(topics) - _MAX_NAMED} more" if len(topics) > _MAX_NAMED else ""
        return (
            f"The log has {sum(self.unserved.values()):,} batches that are one record each, of"
            f" topics whose queues are plain: {', '.join(topics[:_MAX_NAMED])}{more}. Consumers do"
            " not see their messages. Where the topics should have queue.type=BatchCQ, correct"
            " topics.json, and move their directories in consumequeue away."
        )

    def _queue(self, record: Record, topic: str, queue_id: int) -> ConsumeQueue | None:
        """The queue that the record belongs to; None when there cannot be one."""
        if self.repair is not None and record.physical_offset < self._queues.deleted.end_of(topic):
            return None
        if record.sys_flag & MessageSysFlag.INNER_BATCH and not self._queues.has_batches(topic):
            self.unserved[topic] += 1
            return None
        key = (topic.encode("utf-8", "replace"), queue_id)
        queue = self._queue_of.get(key)
        if queue is not None:
            return queue
        queue = self._queues.find(topic, queue_id)
        if queue is None:
            if (
                self.is_known is not None
                and record.store_timestamp_ms < self.known_before_ms
                and not self.is_known(topic, queue_id)
            ):
                self.unknown[topic] += 1
                return None
            try:
                queue = self._queues.open(topic, queue_id)
            except ValueError:
                return None
        self._queue_of[key] = queue
        return queue


def _count_of(record: Record, known: Dispatched) -> int:
    """How many messages a batch has; 1 if it does not say it."""
    values = {} if known.inner_num is None else {names.INNER_NUM: known.inner_num}
    return count_of(record.sys_flag, values) or 1


def index_entry(record: Record) -> IndexEntry | None:
    """The index entry of a message; None when it is not indexed."""
    if not is_indexed(record.sys_flag):
        return None
    known = dispatched(record, {})
    at, stored_ms = record.physical_offset, record.store_timestamp_ms
    return known.topic, known.uniq_key, known.keys, known.tags, at, stored_ms


def has_keys(record: Record) -> bool:
    """Whether the message is indexed and has anything to be found by."""
    entry = index_entry(record)
    if entry is None:
        return False
    _, uniq_key, keys, tags, _, _ = entry
    return bool(uniq_key is not None or keys or tags)
