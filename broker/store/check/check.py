# SPDX-License-Identifier: Apache-2.0
"""Examines a store from end to end without changing anything.

First the store is opened as a broker would open it, but on copies (see dry_files.py): what a broker
would report and do is reported. Then everything is read that opening takes on trust: every record
of the log with its CRC, and whether its queue has its unit; every unit, and every item of the
index, and whether it points at a record.

That is done in parts, one for each file of the log and of the index, which may be examined in any
order and in several processes.

A file of the log may be split into several parts, so that all processes have something to do. The
start of such a part is a guess, which is right if the part before it ends there. If so, soundness
is as certain as from one walk over the file; if anything is wrong, the whole file is walked once,
since how to go on behind damage depends on what came before.

Where numpy is installed, sound records are examined many at a time (stretches.py); others, or all
without numpy, one after the other.

Java: has no counterpart.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from itertools import zip_longest
from typing import Final, NamedTuple

from txrocketmq.broker.store.disk.dry_files import DryFiles
from txrocketmq.broker.store.disk.mapped_file import MappedFile, MappedFileQueue
from txrocketmq.broker.store.disk.record_head import HEAD, MAGICS, next_head
from txrocketmq.broker.store.formats import formats
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.errors import StoreError, StoreLocked, StoreLoss
from txrocketmq.broker.store.formats.opening_report import Recovered, messages
from txrocketmq.broker.store.formats.scan import Record
from txrocketmq.broker.store.index.index_file import ITEM_BYTES, Index
from txrocketmq.broker.store.log.commit_log import CommitLog
from txrocketmq.broker.store.log.dispatch import Dispatchers
from txrocketmq.broker.store.log.log_walk import LogWalk, Run, record_at, runs_of
from txrocketmq.broker.store.log.visibility import enters_queue
from txrocketmq.broker.store.opening.index_comparison import has_keys_between
from txrocketmq.broker.store.opening.inventory import InventoryFile
from txrocketmq.broker.store.opening.recover import Recovery
from txrocketmq.broker.store.queues.batch_queue import BatchQueue
from txrocketmq.broker.store.queues.consume_queue import ConsumeQueue
from txrocketmq.broker.store.queues.consume_queues import ConsumeQueues, KindOf, kind_unknown
from txrocketmq.broker.store.queues.light_queues import QUEUE_ID, places_of
from txrocketmq.broker.store.queues.units import PRE_BLANK_SIZE, UNIT_BYTES, columns, is_written
from txrocketmq.broker.store.upkeep.checkpoint import Checkpoint, MarkerFiles
from txrocketmq.broker.store.upkeep.reput import Reput
from txrocketmq.remoting.primitives.packing import fixed

_ITEM: Final = fixed(formats.INDEX_ITEM).struct
LOG: Final = "log"
_CRC: Final = "crc"
_QUEUE: Final = "queue"
_INDEX: Final = "index"
_OPENING: Final = "opening"
_MAX_FINDINGS: Final = 1_000
"""How many findings one part keeps; further ones are only counted."""
_UNITS_AT_ONCE: Final = 65_536
_ITEMS_AT_ONCE: Final = 16_384
_NONE: Final = -1

TopicQueue = tuple[bytes, int]


class Finding(NamedTuple):
    """Something that is wrong: a whole sentence, and where it is."""

    kind: str
    """`opening`, `log`, `crc`, `queue` or `index`."""
    text: str
    path: str = ""
    position: int = _NONE
    """The position in the file in bytes; -1 when the finding has none."""
    offset: int = _NONE
    """The offset in the log; -1 when the finding has none."""


class Part(NamedTuple):
    """A file that is to be examined, or a piece of it."""

    kind: str
    number: int
    size_bytes: int
    position: int = 0
    """The position in the file at which the part begins."""
    is_last: bool = True
    """Whether this is the last piece of the file."""


@dataclass
class Looked:
    """What was found in a part."""

    part: Part
    findings: list[Finding] = field(default_factory=list)
    more: int = 0
    """The number of findings beyond those that are kept."""
    messages: int = 0
    units: dict[TopicQueue, int] = field(default_factory=dict)
    """By queue: how many messages have their units."""
    without_queue: int = 0
    """How many messages are of topics that have no queues, or were deleted."""
    is_joined: bool = True
    """Whether the part ends where the next one begins, and the last part with the last record that
    opening saw; otherwise the whole file has to be walked."""

    def add(self, other: Looked) -> None:
        """Adds the counts of another part of the same kind, but not its findings."""
        size_bytes = self.part.size_bytes + other.part.size_bytes
        self.part = self.part._replace(size_bytes=size_bytes)
        self.more += other.more
        self.messages += other.messages
        for key, count in other.units.items():
            self.has_units(key, count)
        self.without_queue += other.without_queue
        self.is_joined = self.is_joined and other.is_joined

    def find(self, finding: Finding) -> None:
        """Adds a finding."""
        if len(self.findings) < _MAX_FINDINGS:
            self.findings.append(finding)
        else:
            self.more += 1

    def has_units(self, key: TopicQueue, count: int) -> None:
        """Counts messages that have their units."""
        self.units[key] = self.units.get(key, 0) + count


class StoreCheck:
    """One examination of a store; `open` and `finish` add to `findings`."""

    def __init__(self, config: StoreConfig, kind_of: KindOf = kind_unknown) -> None:
        self._config = config
        self._kind_of = kind_of
        self._walk_type = _fastest_walk()
        self.findings: list[Finding] = []
        self.recovered: Recovered | None = None
        """What opening did, on the copies; None when the store cannot be opened at all."""
        self.refusal: StoreError | None = None
        """Why a broker would refuse to open the store."""
        self.start = self.end = 0
        """The bounds of the log."""
        self._build(())

    def _build(self, extra: Collection[str]) -> None:
        config, root = self._config, self._config.store_path_root_dir
        self.files = DryFiles(extra)
        self._marks = MarkerFiles(self.files, root)
        self._log = CommitLog(self.files, config)
        self._queues = ConsumeQueues(self.files, config)
        self._queues.kind_of = self._kind_of
        self._index = Index(
            self.files, os.path.join(root, "index"), config.max_hash_slot_num, config.max_index_num
        )

    def open(
        self, now_ms: int, topics: Collection[str] | None = None, *, trusts: bool = False
    ) -> bool:
        """Opens the store on copies; returns whether that works, if need be with accepted losses.

        With `trusts`, a log that was closed is taken to end where the inventory says. Raises
        StoreLocked when a broker is using the store.
        """
        try:
            self._open(now_ms, topics, trusts=trusts)
        except StoreLocked:
            raise
        except StoreLoss as error:
            self._refused(error)
            self._build([error.word])
            try:
                self._open(now_ms, topics)
            except StoreError as again:
                self._refused(again)
        except StoreError as error:
            self._refused(error)
        return self.recovered is not None

    def _refused(self, error: StoreError) -> None:
        self.refusal = error
        self.findings.append(Finding(_OPENING, str(error)))

    def _open(self, now_ms: int, topics: Collection[str] | None, *, trusts: bool = False) -> None:
        config, root = self._config, self._config.store_path_root_dir
        checkpoint = Checkpoint(self.files, os.path.join(root, "checkpoint"))
        dispatchers = Dispatchers(config, self._index)
        reput = Reput(config, self._log, self._queues, dispatchers)
        self._marks.lock()
        try:
            done = Recovery(
                self.files, config, self._marks, checkpoint, self._log, self._queues, self._index,
                reput, partial(self._opening_walk, trusts=trusts),
            ).run(now_ms, topics)  # fmt: skip
        except BaseException:
            self._marks.unlock()
            raise
        self.recovered = done
        self.start, self.end = max(self._log.min_offset, 0), self._log.max_offset
        self.findings += [Finding(_OPENING, text) for text in done.warnings]
        wants_index = has_keys_between(self._log.files, self.start, self.end)
        if done.was_closed and not self._index.spans() and wants_index:
            text = "The index is missing; opening the store builds it from the log."
            self.findings.append(Finding(_INDEX, text))

    def _opening_walk(
        self, log: MappedFileQueue, queues: Iterable[ConsumeQueue], *, check_crc: bool, trusts: bool
    ) -> LogWalk:
        walk = self._walk_type(log, queues, check_crc=check_crc)
        if trusts and not self._marks.is_aborted:
            noted = InventoryFile(self.files, self._config.store_path_root_dir).read()
            walk.known_end = None if noted is None else (noted.log_end, noted.last_ms)
        return walk

    def close(self) -> None:
        """Releases the store."""
        self._marks.unlock()
        self.files.close()

    @property
    def log(self) -> CommitLog:
        """The log, once the store is open."""
        return self._log

    def structure(self) -> LogWalk:
        """A walk over the log that believes bodies without looking at their CRCs."""
        return self._walk_type(self._log.files, self._queues, check_crc=False)

    # --- the parts ---

    def parts(self, most_bytes: int | None = None) -> list[Part]:
        """Returns the parts to examine: first the log, in pieces of about `most_bytes`."""
        found: list[Part] = []
        for number, file in enumerate(self._log.files.mapped_files):
            size_bytes = max(min(self.end - file.from_offset, file.size_bytes), 0)
            starts = [0, *_guesses(file, size_bytes, most_bytes or file.size_bytes)]
            for start, end in zip_longest(starts, starts[1:], fillvalue=size_bytes):
                found.append(Part(LOG, number, end - start, start, end == size_bytes))
        for number, each in enumerate(self._index.files):
            found.append(Part(_INDEX, number, each.next_item * ITEM_BYTES))
        return found

    def look(self, part: Part) -> Looked:
        """Examines a part, in any process that has this object."""
        looked = Looked(part)
        if part.kind == LOG:
            self._look_at_log(looked)
        else:
            self._look_at_index(looked)
        return looked

    def _walk(self) -> LogWalk:
        return self._walk_type(self._log.files, self._queues, check_crc=True)

    def _look_at_log(self, looked: Looked) -> None:
        file = self._log.files.mapped_files[looked.part.number]
        start = file.from_offset + looked.part.position
        end = start + looked.part.size_bytes
        walk = self._walk()
        for found in walk.batches(start, end):
            looked.messages += len(found)
            for run in found.runs():
                self._compare(looked, run)
            for run in _light_runs(found.records()) if self._queues.light_count else ():
                self._compare(looked, run)
        damages = [(damage.start, min(damage.end, end)) for damage in walk.damages]
        for first, after in [*damages, (walk.position, end)]:
            self._tell_damage(looked, first, after, file.path)
        looked.is_joined = looked.part.is_last or walk.position == end
        if self.recovered and start < end == self.end:
            looked.is_joined = walk.last_ms == self.recovered.last_store_timestamp_ms

    def _tell_damage(self, looked: Looked, start: int, end: int, path: str) -> None:
        """Reports a stretch without sound records: wrong CRCs, or bytes that are no records."""
        at = start
        while at < end:
            record = record_at(self._log.files, at, check_crc=False)
            if record is None:
                break
            topic = str(record.topic, "utf-8", "replace")
            place = f"{topic}/{record.queue_id}@{record.queue_offset}"
            position = at % self._log.files.file_bytes
            text = (
                f"{path} at byte {position}: the body of a message ({place}, {record.size_bytes}"
                " bytes) does not have the CRC that it was stored with; it is delivered as it is."
            )
            looked.find(Finding(_CRC, text, path, position, at))
            looked.messages += 1
            queue = self._queues.find(topic, record.queue_id)
            unit = None if queue is None else queue.stored(record.queue_offset)
            if unit is not None and (unit[0], unit[1]) == (at, record.size_bytes):
                looked.has_units((bytes(record.topic), record.queue_id), 1)
            at += record.size_bytes
        if at < end:
            position = at % self._log.files.file_bytes
            text = f"{path} has no records from byte {position} on, for {end - at:,} bytes."
            looked.find(Finding(LOG, text, path, position, at))

    def _compare(self, looked: Looked, run: Run) -> None:
        """Checks that messages of one queue have the units that they should have."""
        key, queue_offsets, offsets, sizes = run[:2], *run[2:]
        topic, queue_id = str(run.topic, "utf-8", "replace"), run.queue_id
        queue = self._queues.find(topic, queue_id)
        if queue is None:
            looked.without_queue += len(offsets)
            return
        first, count = queue_offsets[0], len(queue_offsets)
        if (
            not queue.is_batch
            and queue_offsets[-1] - first + 1 == count
            and queue_offsets == array("q", range(first, first + count))
            and _units(queue, first, count) == (offsets, sizes)
        ):
            looked.has_units(key, count)
            return
        deleted_until = self._queues.deleted.end_of(topic)
        sound = 0
        for queue_offset, offset, size in zip(queue_offsets, offsets, sizes, strict=True):
            unit = queue.stored(queue_offset)
            begins = not isinstance(queue, BatchQueue) or queue.begins_at(queue_offset)
            if unit is not None and (unit[0], unit[1]) == (offset, size) and begins:
                sound += 1
            elif offset < deleted_until or queue_offset < queue.min_offset:
                looked.without_queue += 1
            else:
                has = "nothing" if unit is None else f"{unit[1]} bytes at {unit[0]}"
                text = (
                    f"{queue.files.directory} has {has} as unit {queue_offset}, where the log has a"
                    f" message of {size} bytes at {offset}."
                )
                position = _NONE if queue.is_batch else queue_offset * UNIT_BYTES
                looked.find(Finding(_QUEUE, text, queue.files.directory, position, offset))
        looked.has_units(key, sound)

    def _look_at_index(self, looked: Looked) -> None:
        """Checks that each item of the index names a record of the log."""
        file = self._index.files[looked.part.number]
        first = next((position for position, _ in file.items()), 0)
        after = first + (file.next_item - 1) * ITEM_BYTES
        looked.messages = file.next_item - 1
        walk = self._walk()
        for at in range(first, after, _ITEMS_AT_ONCE * ITEM_BYTES):
            items = file.file.view[at : min(at + _ITEMS_AT_ONCE * ITEM_BYTES, after)]
            if walk.names_records(items, self.start, self.end):
                continue
            for number, offset in self._unsound_items(items):
                position = at + number * ITEM_BYTES
                text = f"{file.path} at byte {position}: its item names {offset} of the log, where"
                text += " no record begins."
                looked.find(Finding(_INDEX, text, file.path, position, offset))

    def _unsound_items(self, items: memoryview) -> Iterator[tuple[int, int]]:
        """The items that name no record: their index, and the log offset that they name."""
        view, view_start, last_start = memoryview(b""), 0, _NONE
        sound = _NONE
        for number, (_, offset, _, _) in enumerate(_ITEM.iter_unpack(items)):
            if offset == sound:  # a message has several items, one behind the other
                continue
            if not 0 <= offset - view_start <= last_start:
                if 0 <= offset < self.start:
                    continue
                log_file = self._log.files.find(offset) if offset < self.end else None
                if log_file is None:
                    yield number, offset
                    continue
                view, view_start = log_file.view, log_file.from_offset
                written = min(log_file.wrote_bytes, self.end - view_start)
                last_start = written - HEAD.size
                if offset - view_start > last_start:
                    yield number, offset
                    continue
            _, magic, own = HEAD.unpack_from(view, offset - view_start)
            if own == offset and magic in MAGICS:
                sound = offset
            else:
                yield number, offset

    # --- together ---

    def finish(self, looked: Collection[Looked]) -> Iterator[Finding]:
        """Returns findings that only show when all parts are known."""
        with_units: dict[TopicQueue, int] = {}
        for each in looked:
            for key, count in each.units.items():
                with_units[key] = with_units.get(key, 0) + count
        for queue in self._queues:
            key = queue.topic.encode("utf-8", "replace"), queue.queue_id
            surplus = self._count_units(queue) - with_units.get(key, 0)
            if surplus > 0:
                text = f"{queue.files.directory} has {surplus} units that name no message of the"
                yield Finding(_QUEUE, f"{text} log.", queue.files.directory)

    def _count_units(self, queue: ConsumeQueue) -> int:
        """How many units of the queue name something that the log should contain."""
        if isinstance(queue, BatchQueue):
            return sum(
                unit.is_written and unit.physical_offset >= self.start for unit in queue.columns()
            )
        count = 0
        first, after = queue.min_offset, queue.max_offset
        for at in range(first, after, _UNITS_AT_ONCE):
            found = _units(queue, at, min(_UNITS_AT_ONCE, after - at))
            if found is None or not found[0]:
                continue
            offsets, sizes = found
            if min(sizes) > 0 and max(sizes) < PRE_BLANK_SIZE and min(offsets) >= self.start:
                count += len(sizes)
                continue
            pairs = zip(offsets, sizes, strict=True)
            count += sum(is_written(*pair) and pair[0] >= self.start for pair in pairs)
        return count

    def summary(self, looked: Collection[Looked]) -> str:
        """Says in a sentence what was examined."""
        count = sum(each.messages for each in looked if each.part.kind == LOG)
        items = sum(each.messages for each in looked if each.part.kind == _INDEX)
        loose = sum(each.without_queue for each in looked)
        text = f"{messages(count)} in the log from {self.start} to {self.end}"
        if loose:
            text += f" ({loose:,} of them of queues that no longer exist)"
        return f"{text}; {sum(1 for _ in self._queues):,} queues; {items:,} items of the index."


def _guesses(file: MappedFile, size_bytes: int, most_bytes: int) -> Iterator[int]:
    """Where pieces of a log file after the first may begin: at places that look like records."""
    last = 0
    for at in range(most_bytes, size_bytes, most_bytes):
        found = next_head(file.map(), file.from_offset, max(at, last + 1), size_bytes)
        if found < 0:
            return
        if found > last:
            yield found
        last = found


def _fastest_walk() -> type[LogWalk]:
    """The kind of walk that looks at many records at once, if numpy is installed."""
    if find_spec("numpy") is None:
        return LogWalk
    from txrocketmq.broker.store.check.stretches import StretchWalk  # noqa: PLC0415 - see above

    return StretchWalk


def _light_runs(records: Iterable[Record]) -> Iterator[Run]:
    """The same messages as runs of light queues."""
    seen: dict[TopicQueue, list[int]] = {}
    for found in records:
        for topic, queue_offset in places_of(found) if enters_queue(found.sys_flag) else ():
            rows = seen.setdefault((topic.encode("utf-8", "replace"), QUEUE_ID), [])
            rows += (queue_offset, found.physical_offset, found.size_bytes)
    return runs_of(seen)


def _units(queue: ConsumeQueue, first: int, count: int) -> tuple[array[int], array[int]] | None:
    """Offsets and sizes of units as they are stored; None when some are missing."""
    offsets, sizes = array("q"), array("i")
    per_file = queue.files.file_bytes // UNIT_BYTES
    while count > 0:
        here = min(count, per_file - first % per_file)
        data = queue.files.select(first * UNIT_BYTES, here * UNIT_BYTES)
        if data is None:
            return None
        some, their = columns(data)
        offsets += some
        sizes += their
        first, count = first + here, count - here
    return offsets, sizes
