# SPDX-License-Identifier: Apache-2.0
"""From the log to queues and index: for messages that did not get there when they were put.

That is after a crash, where recovery dispatches again what may be missing; with SYNC_FLUSH, where
consumers are to see messages only when they are durable; and for what a master sent. Dispatching
a message again changes nothing.

Java: DefaultMessageStore.ReputMessageService, CommitLogDispatcherBuildConsumeQueue,
CommitLogDispatcherBuildIndex.
"""

from __future__ import annotations

from typing import Final

from txrocketmq.broker.store.commit_log import CommitLog
from txrocketmq.broker.store.config import StoreConfig
from txrocketmq.broker.store.consume_queue import ConsumeQueue
from txrocketmq.broker.store.consume_queues import ConsumeQueues
from txrocketmq.broker.store.index_file import Index
from txrocketmq.broker.store.scan import Record, Walk, dispatched
from txrocketmq.remoting.message.flags import MessageSysFlag

_NOT_IN_QUEUE: Final = MessageSysFlag.TRANSACTION_PREPARED_TYPE
_ROLLBACK: Final = MessageSysFlag.TRANSACTION_ROLLBACK_TYPE
_MAX_PENDING: Final = 1024


class Reput:
    """Dispatches records; `offset` is where the part of the log starts that is not dispatched.

    `index_from` is where the index goes on: messages before it are indexed.
    """

    def __init__(
        self, config: StoreConfig, log: CommitLog, queues: ConsumeQueues, index: Index
    ) -> None:
        self._config = config
        self._log = log
        self._queues = queues
        self._index = index
        self._delays_ms = config.delay_levels_ms()
        self._queue_of: dict[tuple[bytes, int], ConsumeQueue] = {}
        self.offset = 0
        self.index_from = 0

    def dispatch(self, record: Record) -> ConsumeQueue | None:
        """Gives one message to its queue and to the index; the queue, if it got a unit.

        OSError when the disk has no room.
        """
        offset, end = record.physical_offset, record.physical_offset + record.size_bytes
        in_queue = not record.sys_flag & _NOT_IN_QUEUE
        queue = self._queue_of.get((bytes(record.topic), record.queue_id))
        indexed = (
            self._config.message_index_enable
            and offset >= self.index_from
            and record.sys_flag & _ROLLBACK != _ROLLBACK
        )
        if (
            (queue is not None and end <= queue.max_physical_offset) or not in_queue
        ) and not indexed:
            return None
        known = dispatched(record, self._delays_ms)
        if indexed:
            stored_ms = record.store_timestamp_ms
            self._index.add(
                [(known.topic, known.uniq_key, known.keys, known.tags, offset, stored_ms)]
            )
            self.index_from = offset + 1
            if self._index.waiting >= _MAX_PENDING:
                self._index.write_pending(record.store_timestamp_ms)
        if not in_queue:
            return None
        queue = self._queue(record, known.topic)
        if queue is None:
            return None
        put = queue.dispatch(
            record.queue_offset,
            offset,
            record.size_bytes,
            known.tags_code,
            record.store_timestamp_ms,
        )
        return queue if put else None

    def run(self, end_offset: int) -> list[ConsumeQueue]:
        """Dispatches the log up to there, which is written and known to be sound.

        The queues that have new units. OSError when the disk has no room; what is left is done
        by the next run.
        """
        touched: dict[int, ConsumeQueue] = {}
        while self.offset < end_offset:
            file = self._log.files.find(self.offset)
            if file is None:
                break
            walk = Walk(file, self.offset - file.from_offset, check_crc=False)
            for record in walk:
                queue = self.dispatch(record)
                if queue is not None:
                    touched[id(queue)] = queue
                self.offset = file.from_offset + walk.position
                if self.offset >= end_offset:
                    break
            else:
                if not walk.ended_by_blank:
                    break
                self.offset = file.from_offset + file.size_bytes
        return list(touched.values())

    def forget_queues(self) -> None:
        """Looks queues up anew: some were deleted."""
        self._queue_of.clear()

    def _queue(self, record: Record, topic: str) -> ConsumeQueue | None:
        """The record's queue; None when it cannot have one."""
        key = (bytes(record.topic), record.queue_id)
        queue = self._queues.find(topic, record.queue_id)
        if queue is None:
            try:
                queue = self._queues.open(topic, record.queue_id)
            except ValueError:
                return None
        self._queue_of[key] = queue
        return queue
