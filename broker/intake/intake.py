# SPDX-License-Identifier: Apache-2.0
"""The only way for messages into the log, wherever they come from.

It takes a run of messages: transforms change each as needed, then all are put in one write, and
counted once. Whoever wants to know when they are confirmed asks the store's commit point about the
end of the batch.

Java: DefaultMessageStore.asyncPutMessage, EscapeBridge.
"""

from __future__ import annotations

from collections.abc import Sequence

from txrocketmq.broker.intake.inner_message import InnerMessage
from txrocketmq.broker.intake.transform import NotTaken, Transforms
from txrocketmq.broker.intake.transforms.record_limits import check_message
from txrocketmq.broker.store.formats.packed import SendRun
from txrocketmq.broker.store.log.packed_run import PackedRun
from txrocketmq.broker.store.message_store import MessageStore, PutMessage, PutStatus, QueueBatch
from txrocketmq.broker.store.queues.consume_queue import UNIT_FIELDS
from txrocketmq.broker.tables.stats import BrokerStats


class Intake:
    """The intake; `transforms` is public for code that asks which messages are plain."""

    def __init__(self, store: MessageStore, stats: BrokerStats, transforms: Transforms) -> None:
        self.store = store
        self.transforms = transforms
        self._stats = stats

    def admit(self, message: InnerMessage, now_ms: int) -> None:
        """Applies the transforms to a message before it is put.

        Raises NotTaken, or a ResponseError, when the message must not be stored.
        """
        check_message(message)
        self.transforms.apply(message, now_ms)

    def put(self, messages: Sequence[PutMessage], now_ms: int) -> QueueBatch:
        """Puts messages that were admitted or are plain, and counts those that were stored."""
        batch = self.store.append(messages, now_ms)
        stats = self._stats
        topic, count, size_bytes = "", 0, 0
        for queue, _, fields in batch.units:
            if queue.topic != topic:
                if count:
                    stats.put(topic, count, size_bytes)
                topic, count, size_bytes = queue.topic, 0, 0
            count += len(fields) // UNIT_FIELDS
            size_bytes += sum(fields[1::UNIT_FIELDS])
        if count:
            stats.put(topic, count, size_bytes)
        if stats.sizes is not None:
            for queue, _, fields in batch.units:
                stats.sized(queue.topic, fields[1::UNIT_FIELDS])
        for topic, size in batch.hidden:
            stats.put(topic, 1, size)
            stats.sized(topic, (size,))
        return batch

    def put_run(
        self, run: SendRun, table: object, born: bytes, host: bytes, now_ms: int
    ) -> PackedRun | None:
        """Puts a run of plain sends, and counts them; None, if it cannot be put as one."""
        packed = self.store.append_run(run, table, born, host, now_ms)
        if packed is None:
            return None
        stats = self._stats
        topic, count, size_bytes = "", 0, 0
        for queue, more, more_bytes in packed.ends:
            if queue.topic != topic:
                if count:
                    stats.put(topic, count, size_bytes)
                topic, count, size_bytes = queue.topic, 0, 0
            count += more
            size_bytes += more_bytes
        stats.put(topic, count, size_bytes)
        if stats.sizes is not None:
            for queue, sizes in packed.sizes():
                stats.sized(queue.topic, sizes)
        return packed

    def take(self, messages: Sequence[InnerMessage | PutMessage], now_ms: int) -> list[PutStatus]:
        """Admits and puts messages that the broker itself stores; returns the status of each.

        This is `admit` and `put` in one, for callers that write no answers. A PutMessage is plain:
        see `transforms` for what that is.
        """
        outcomes: list[PutStatus] = []
        puts: list[PutMessage] = []
        for message in messages:
            if isinstance(message, PutMessage):
                outcomes.append(PutStatus.PUT_OK)
                puts.append(message)
                continue
            try:
                self.admit(message, now_ms)
            except NotTaken as reason:
                outcomes.append(reason.status)
            else:
                outcomes.append(PutStatus.PUT_OK)
                puts.append(message.to_put())
        refused = self.put(puts, now_ms).refused if puts else {}
        if not refused:
            return outcomes
        at = -1
        for index, outcome in enumerate(outcomes):
            if outcome is PutStatus.PUT_OK:
                at += 1
                outcomes[index] = refused.get(at, outcome)
        return outcomes
