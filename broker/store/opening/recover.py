# SPDX-License-Identifier: Apache-2.0
"""Opens a store: finds the end of the log, and makes queues and index agree with it.

First all is looked at, and nothing changed: what files there are, where the queues end, and where
the log does. After an orderly stop the last file of the log is checked, after a crash all from the
last file on that begins before the checkpoint. Where messages are missing that are known to have
been stored, the start is refused (see loss.py).

Then the log is cut off after its last sound record and the queues after the last message that it
has, and what queues and index lack is dispatched again. What that is, is found by comparing them
with the log: after an orderly stop with the inventory, else by adding up what the queues cover.

Java: DefaultMessageStore.recover, CommitLog.recoverNormally, recoverAbnormally,
isMappedFileMatchedRecover, ConsumeQueueStore.recover, recoverOffsetTable.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from typing import Final

from txrocketmq.broker.store.disk.files import Files
from txrocketmq.broker.store.disk.mapped_file import MappedFile, MappedFileQueue, file_name
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.opening_report import Recovered, messages
from txrocketmq.broker.store.index.index_file import Index
from txrocketmq.broker.store.log.commit_log import CommitLog
from txrocketmq.broker.store.log.log_walk import LogWalk, UnreadableStretch, has_since, record_at
from txrocketmq.broker.store.opening import coverage
from txrocketmq.broker.store.opening.coverage import Range
from txrocketmq.broker.store.opening.cut import Cut
from txrocketmq.broker.store.opening.index_recovery import IndexRecovery
from txrocketmq.broker.store.opening.inventory import Inventory, InventoryFile
from txrocketmq.broker.store.opening.loss import Loss, is_written, written_length
from txrocketmq.broker.store.opening.unfinished import drop_unfinished
from txrocketmq.broker.store.opening.usual_records import UsualRecords
from txrocketmq.broker.store.queues.consume_queue import UNIT_BYTES
from txrocketmq.broker.store.queues.consume_queues import ConsumeQueues
from txrocketmq.broker.store.queues.light_queues import is_light, is_served, parts_with_places
from txrocketmq.broker.store.upkeep.checkpoint import Checkpoint, MarkerFiles
from txrocketmq.broker.store.upkeep.reput import Reput
from txrocketmq.broker.store.upkeep.unit_repair import UnitRepair

_SMALL_BYTES: Final = 8 * 1024 * 1024
"""Queues that are no larger in all are read whole at each start, in some hundredths of a second."""
_MAX_HOLES_BYTES: Final = 64 * 1024 * 1024
"""How much of the log is read at most to find messages that no queue names."""
_MAX_NAMED: Final = 10
"""How many of many topics a warning names."""


class Recovery:
    """One recovery, over the loaded parts of a store."""

    def __init__(
        self,
        files: Files,
        config: StoreConfig,
        marks: MarkerFiles,
        checkpoint: Checkpoint,
        log: CommitLog,
        queues: ConsumeQueues,
        index: Index,
        reput: Reput,
        walk_type: Callable[..., LogWalk] = LogWalk,
    ) -> None:
        self._files, self._walk_type = files, walk_type
        self._config = config
        self._log = log
        self._queues = queues
        self._index = index
        self._reput = reput
        self._checkpoint = checkpoint
        self._marks = marks
        self._inventory: Inventory | None = None
        self._cut_order = Cut(files, config)
        self._loss = Loss(files, config.store_path_root_dir, 0)
        self._keeps_tail = False
        """Whether the bytes behind the end of the log are kept, as they may be worth something."""
        self._durable = 0
        """The part of the log before this offset was durable when it was opened."""
        self._known_start = 0
        """Where the log began for its last user; what is before that has expired."""
        self._expired: list[MappedFile] = []
        """Expired files that are separated from the others by a gap."""
        self._gap_from: int | None = None
        """Where the first files of the log are missing without which the start went on."""
        self._told: set[Range] = set()
        """The damaged parts of the log for which there were warnings already."""

    def run(self, now_ms: int, topics: Collection[str] | None = None) -> Recovered:
        """Loads the parts and recovers them; the caller holds the store's lock.

        Queues are created only for `topics`, or for all topics if that is None. Raises StoreLoss
        when messages are missing, FileSizeError when the configuration is not the store's, OSError
        when the disk has no room for what is dispatched again.
        """
        done = Recovered(was_closed=not self._marks.is_aborted)
        self._loss = Loss(self._files, self._config.store_path_root_dir, now_ms)
        done.warnings = self._loss.warnings
        self._load(done)
        if self._log.files.mapped_files:
            self._recover(done, topics)
        else:
            self._weigh_empty_log()
        if self._cut_order.at is not None:
            # From now on it is a store that was left open, and no longer the one that was closed.
            self._marks.open(max(self._log.min_offset, 0))
            self._cut_order.obeyed(self._queues, done)
        self._loss.obeyed()
        return done

    def _load(self, done: Recovered) -> None:
        """Finds the files and reads what they say of themselves; changes none."""
        machine_down = not done.was_closed and self._marks.is_machine_down
        self._checkpoint.load()
        self._log.files.load()
        self._cut_order.cut(self._log.files, self._checkpoint.physic_msg_timestamp_ms)
        self._queues.load()
        keep_until_ms = self._checkpoint.index_msg_timestamp_ms if machine_down else None
        self._index.load(keep_until_ms, redo=not done.was_closed)
        left = InventoryFile(self._files, self._config.store_path_root_dir).read()
        if done.was_closed:
            self._inventory = left
            self._known_start = left.log_start if left else 0
        else:
            self._known_start = self._marks.log_start or 0
        self._name_foreign()
        for queue in self._queues:
            queue.recover()
        self._weigh_files(machine_down=machine_down)

    def _recover(self, done: Recovered, topics: Collection[str] | None) -> None:
        """Finds the end of the log, and makes queues and index agree with it."""
        walk = self._walk(done)
        self._weigh_end(done, walk)
        self._cut(done, walk)
        self._queues.deleted.load(max(self._log.min_offset, 0), done.max_offset)
        for path in self._queues.deleted.unreadable:
            self._warn(
                f"{path} does not say where the log ended when this topic was deleted; it is left"
                " alone. Messages that were deleted with the topic may be back."
            )
        if not done.was_closed:
            self._queues.drop_former_lives()
        repair = UnitRepair(self._log.files)
        for queue in self._queues:
            self._tell_misfits(queue.files)
            queue.settle()
            if not done.was_closed:
                queue.clear_tail()
            if self._cut_order.at is not None:
                self._cut_order.truncate(queue, done.max_offset)
            elif queue.max_physical_offset > done.max_offset:
                queue.truncate(done.max_offset)
            for start, end in () if done.was_closed else sorted(self._told):
                repair.blank(queue, start, end)
        self._dispatch(done, self._lacking(done), topics)
        done.min_offset = max(self._log.min_offset, 0)
        for queue in self._queues:
            queue.find_min_offset(done.min_offset)
            if not done.was_closed:
                queue.flush_again(self._log.files.flushed_offset)
        self._reput.offset = done.max_offset

    # --- what is there ---

    def _name_foreign(self) -> None:
        for path in [*self._log.files.foreign, *self._queues.foreign, *self._index.foreign]:
            self._warn(f"{path} is not a file of the store; it is not changed.")

    def _weigh_files(self, *, machine_down: bool) -> None:
        """Checks for files of the log that are missing in the row, or that were shortened.

        When the machine went down, files that nobody had made durable may be left without their
        size, also if one behind them has kept it. They are like blank ones, and what they lack is
        weighed with the end of the log.
        """
        row = self._log.files
        if any(int(entry.name) < self._known_start for entry in row.misfits):
            row.misfits = [entry for entry in row.misfits if int(entry.name) >= self._known_start]
            while len(row.mapped_files) > 1 and row.min_offset < self._known_start:
                self._expired += row.take_first(1)
        if not row.fits and (len(row.misfits) > 1 or not self._loss.is_accepted):
            row.refuse_misfits()
        for entry in row.misfits:
            if entry.size_bytes > row.file_bytes:
                row.refuse_misfits()
            start = int(entry.name) + entry.size_bytes
            end = int(entry.name) + row.file_bytes
            path = os.path.join(row.directory, entry.name)
            if machine_down and not entry.size_bytes:
                continue
            self._loss.weigh(
                f"{path} was cut: it has {entry.size_bytes} of {row.file_bytes} bytes, and queues"
                f" refer to {messages(self._queues.known_between(start, end))} in the rest",
                "Restore the file",
            )
        for start, end in row.gaps():
            if end <= self._known_start:
                # All files before this have expired, but were not all unlinked.
                while row.min_offset < end:
                    self._expired += row.take_first(1)
                continue
            count = (end - start) // row.file_bytes
            if self._gap_from is None:
                self._gap_from = start
            self._loss.weigh(
                f"{row.directory} lacks {count} {'file' if count == 1 else 'files'} of the log,"
                f" from {start:020d} on, {end - start} bytes, before {end:020d}; queues refer to"
                f" {messages(self._queues.known_between(start, end))} there",
                "Restore what is missing",
            )

    def _weigh_empty_log(self) -> None:
        """Checks for other files: without a log they mean nothing, but show that there was one."""
        count = sum(queue.max_offset - queue.min_offset for queue in self._queues)
        traces = [
            (f"{self._queues.directory} knows of {messages(count)}", count),
            ("there are index files", len(self._index.spans())),
            ("the checkpoint mentions messages", self._checkpoint.physic_msg_timestamp_ms),
            ("the inventory does", self._inventory.log_end if self._inventory else 0),
        ]
        if not (found := [what for what, is_there in traces if is_there]):
            return
        self._loss.weigh(
            f"{self._log.files.directory} has no files, but {' and '.join(found)}",
            "Bring the log back (a volume that is not mounted, perhaps)",
        )
        for path in self._index.drop_from(0):
            self._loss.move_aside(path)
        for path in self._queues.forget():
            self._loss.move_aside(path)
        self._files.make_directory(self._queues.directory)
        self._checkpoint.reset(0)

    # --- the end of the log ---

    def _walk(self, done: Recovered) -> LogWalk:
        """Checks the log from the file to start with to its end."""
        files = self._log.files.mapped_files
        start = files[self._start(done)].from_offset
        check_crc = self._config.check_crc_on_recover
        walk = self._walk_type(self._log.files, self._queues, check_crc=check_crc)
        done.checked_messages = walk.pass_all(start)
        if self._marks.was_replica:
            drop_unfinished(self._log.files, walk)
        done.max_offset, done.last_store_timestamp_ms = walk.position, walk.last_ms
        self._durable = start
        done.damaged_from = self._gap_from
        self._tell(done, walk.damages)
        return walk

    def _tell(self, done: Recovered, damages: list[UnreadableStretch]) -> None:
        for damage in damages:
            if damage[:2] in self._told:
                continue
            self._told.add(damage[:2])
            done.damaged_messages += damage.messages
            if done.damaged_from is None or damage.start < done.damaged_from:
                done.damaged_from = damage.start
            self._warn(
                f"The log is damaged from {damage.start} to {damage.end}, in"
                f" {self._path_at(damage.start)}"
                f" ({damage.end - damage.start} bytes): {messages(damage.messages)} that queues"
                " refer to there cannot be relied on; all before and behind can."
            )

    def _start(self, done: Recovered) -> int:
        """The index of the log file to start with."""
        files = self._log.files.mapped_files
        index = len(files) - 1
        while index and not self._may_start_with(files[index], done):
            index -= 1
        return index

    def _may_start_with(self, file: MappedFile, done: Recovered) -> bool:
        check_crc = self._config.check_crc_on_recover
        first = record_at(self._log.files, file.from_offset, check_crc=check_crc)
        if first is None or first.store_timestamp_ms == 0:
            return False
        if done.was_closed:
            return True
        return first.store_timestamp_ms <= self._checkpoint.min_timestamp_ms

    def _weigh_end(self, done: Recovered, walk: LogWalk) -> None:
        """Checks whether the log ends before a place that it is known to have reached."""
        end, inventory = done.max_offset, self._inventory
        if inventory is not None and (inventory.log_end, inventory.last_ms) == (end, walk.last_ms):
            # The log is complete: a unit that points behind its end is wrong.
            self._tell_start()
            return
        self._inventory = None
        if not done.was_closed and self._marks.log_start is not None:
            self._tell_start()
        done.lost_messages = walk.units_behind()
        known_end = max((queue.max_physical_offset for queue in self._queues), default=0)
        is_known = done.was_closed and done.lost_messages > 0
        if inventory is not None:
            known_end = max(known_end, inventory.log_end)
            # Otherwise an original broker has continued the store.
            is_known = is_known or inventory.log_end > end
        durable_ms = self._checkpoint.physic_msg_timestamp_ms
        was_stored = durable_ms <= walk.newest_ms or has_since(self._log.files, durable_ms)
        what = (
            f"The log ends at {end}, behind which there is nothing that can be read"
            f" ({self._path_at(end)} and on)"
        )
        if done.lost_messages:
            what += f", but queues refer to {messages(done.lost_messages)} there"
        if known_end > end:
            what += f" ({known_end - end} bytes)"
        if not was_stored:
            what += (
                "; the checkpoint says that messages stored"
                f" {max(durable_ms - walk.newest_ms, 0)} ms later were durable"
            )
        if self._cut_order.at == end:
            self._checkpoint.reset(walk.last_ms)
        elif is_known or not was_stored:
            self._loss.weigh(what, "Restore the files of the log")
            self._checkpoint.reset(walk.last_ms)
            self._keeps_tail = True
        elif done.lost_messages:
            self._keeps_tail = True
            self._warn(f"{what}: they were not durable when the machine went down, and are lost.")

    def _tell_start(self) -> None:
        """Warns if the log does not begin where its last user left it."""
        known_start, start = self._known_start, max(self._log.min_offset, 0)
        if start > known_start:
            self._warn(
                f"The log began at {known_start} when the store was last used; since then"
                f" {self._path_at(known_start)} and all before {start} has been removed:"
                f" {start - known_start:,} bytes, in which queues refer to"
                f" {messages(self._queues.known_between(known_start, start))}."
            )

    # --- from here on files are changed ---

    def _cut(self, done: Recovered, walk: LogWalk) -> None:
        """Ends the log after its last sound record."""
        row = self._log.files
        while self._expired:
            self._expired.pop().remove()
        row.end_at(done.max_offset)
        for file in row.behind:
            if is_written(self._files, file):
                done.was_cut = True
                file.unmap()
                target = self._loss.move_aside(file.path)
                self._warn(
                    f"{file.path} lies behind the end of the log at {done.max_offset}; it was moved"
                    f" to {target}."
                )
            else:
                file.remove()  # made in advance, and never written
        last = row.mapped_files[-1]
        if row.behind:
            self._files.sync(last.path)  # or these names could be back when there are new files
        row.behind.clear()
        tail = last.view[last.wrote_bytes :]
        done.was_cut = done.was_cut or any(tail[:8])
        if self._keeps_tail and (length := written_length(tail)):
            done.was_cut = True
            target = self._loss.keep(f"{last.path}.{done.max_offset}", tail[:length])
            self._warn(f"{length} bytes behind the end of the log were moved to {target}.")
        # What a killed process has written may be in the system's memory only.
        row.flushed_offset = done.max_offset if done.was_closed else self._durable
        if done.was_cut or not done.was_closed:
            del tail
            last.clear_tail()

    def _tell_misfits(self, row: MappedFileQueue) -> None:
        """Warns of files of a queue that were too short or too long; the latter are moved aside."""
        for entry in row.misfits:
            path = os.path.join(row.directory, entry.name)
            text = f"{path} has {entry.size_bytes} bytes, where others have {row.file_bytes}"
            if entry.size_bytes > row.file_bytes:
                text += f"; it was moved to {self._loss.move_aside(path)}"
            self._warn(f"{text}; what it lacks is built from the log.")

    def _lacking(self, done: Recovered) -> list[Range]:
        """The parts of the log that queues may lack."""
        row, end = self._log.files, done.max_offset
        if self._inventory is None:
            lacking = coverage.uncovered(row, self._queues, end)
            lacking += parts_with_places(row, end) if is_served(self._config) else []
            return lacking if done.was_closed else [*lacking, (self._durable, end)]
        lacking = coverage.missing(row, self._queues, self._inventory, end)
        units = sum(queue.max_offset - queue.min_offset for queue in self._queues)
        if units * UNIT_BYTES <= _SMALL_BYTES:
            holes = coverage.uncovered(row, self._queues, end)
            if sum(after - start for start, after in holes) <= _MAX_HOLES_BYTES:
                lacking += holes  # else they are messages of deleted topics
            lacking += coverage.lacking_light(row, self._queues, end)
        return lacking

    def _dispatch(
        self, done: Recovered, lacking: list[Range], topics: Collection[str] | None
    ) -> None:
        """Gives queues what they lack in these parts, and the index what it lacks."""
        index_from = IndexRecovery(self._config, self._log.files, self._index, self._loss).begin(
            done, self._inventory, self._durable
        )
        if index_from < done.max_offset:
            lacking = [*lacking, (index_from, done.max_offset)]
        reput = self._reput
        reput.dispatchers.index_from = index_from
        reput.repair = repair = UnitRepair(self._log.files)
        reput.is_known = self._known(topics)
        # A topic may be younger than the last topics.json that was durable.
        reput.known_before_ms = 1 << 62 if done.was_closed else self._checkpoint.min_timestamp_ms
        damages: list[UnreadableStretch] = []
        # Also after an orderly stop: what an earlier start found to be damaged must stay out.
        check_crc = self._config.check_crc_on_recover
        usual = UsualRecords(self._log.files, self._queues, repair, reput, check_crc)
        for start, end in self._parts(lacking, done.max_offset):
            walk = LogWalk(self._log.files, self._queues, check_crc=check_crc)
            for record in usual.others(walk, start, end):
                done.indexed_messages += record.physical_offset >= index_from
                done.dispatched_messages += reput.dispatch(record) is not None
            damages += walk.damages
        done.indexed_messages += usual.indexed_messages
        done.dispatched_messages += usual.dispatched_messages
        reput.repair = reput.is_known = None
        self._index.write_pending(done.last_store_timestamp_ms)
        self._tell_dispatched(done, damages)

    def _parts(self, lacking: list[Range], end: int) -> Iterator[Range]:
        """Yields those parts, and once more the log behind a gap in a queue of batches."""
        yield from coverage.merged(lacking)
        if self._reput.repair and (cut_from := self._reput.repair.cut_from) is not None:
            yield cut_from, end

    def _known(self, topics: Collection[str] | None) -> Callable[[str, int], bool]:
        """Tells which queues may be created: the others are of deleted topics."""
        inventory, table = self._inventory, self._queues.table

        def is_known(topic: str, queue_id: int) -> bool:
            if inventory is not None and str(queue_id) not in inventory.queues.get(topic, ()):
                return False
            return topics is None or topic in topics or topic in table or is_light(topic)

        return is_known

    def _tell_dispatched(self, done: Recovered, damages: list[UnreadableStretch]) -> None:
        if done.was_closed and done.dispatched_messages:
            self._warn(
                f"Queues lacked {messages(done.dispatched_messages)} that the log has; they were"
                " put into their queues again."
            )
        if damages:
            # Where a unit was wrong, it is known by now what is there.
            holes = coverage.uncovered(self._log.files, self._queues, done.max_offset)
            self._tell(
                done,
                [
                    damage
                    for damage in damages
                    if any(start < damage.end and damage.start < end for start, end in holes)
                ],
            )
        unknown = self._reput.unknown
        done.unknown_messages = sum(unknown.values())
        # Topics that had no queues when the store was closed need no warning.
        had = unknown if self._inventory is None else self._inventory.queues
        if names := sorted(unknown.keys() & had.keys()):
            text = ", ".join(names[:_MAX_NAMED])
            more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
            self._warn(
                f"The log has {messages(sum(unknown[name] for name in names))} of topics that are"
                f" neither in topics.json nor have queues: {text}{more}. They are given no queues,"
                " since such topics were deleted, unless topics.json was lost."
            )
        unknown.clear()

    def _path_at(self, offset: int) -> str:
        start = offset - offset % self._log.files.file_bytes
        return os.path.join(self._log.files.directory, file_name(start))

    def _warn(self, text: str) -> None:
        self._loss.warnings.append(text)
