# SPDX-License-Identifier: Apache-2.0
"""ACK_MESSAGE, BATCH_ACK_MESSAGE, CHANGE_MESSAGE_INVISIBLETIME: settles popped messages.

An ack is noted with its check point while that is kept in memory, or else written to the revive
topic. An ack of a message that was popped in order counts at once: the group's offset moves, and
the queue is open again when all of its messages are acknowledged. Changing the invisible time
writes a new check point for the message, and, when that is durable, an ack of the old one. Acks of
what was never popped are taken and change nothing, as by the original. Codes: 0; 13 when there is
no such queue, or an ack in order is for none of the messages that were popped; 208 when the queue
has no such offset; 17; 1 for an invalid handle, and when the store takes no records, where the
original reports no error.

Java: AckMessageProcessor, ChangeInvisibleTimeProcessor.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from txrocketmq.broker.intake.inner_message import InnerMessage
from txrocketmq.broker.intake.intake import Intake
from txrocketmq.broker.intake.transform import NotTaken
from txrocketmq.broker.pop.metrics import ACK, CK
from txrocketmq.broker.pop.order_info import NOT_FOUND
from txrocketmq.broker.pop.pop import Pop
from txrocketmq.broker.pop.records import MAX_MESSAGES, MergeKey, check_point
from txrocketmq.broker.processors.lite_topics import refusal_of_lite_topic
from txrocketmq.broker.processors.pop.pop_checks import PopChecks
from txrocketmq.broker.processors.send.writes import Outcome, writes
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.formats.put_message import PutMessage, PutStatus
from txrocketmq.broker.tables.offset import ConsumerOffsets
from txrocketmq.broker.work.walks import Walk, Walks
from txrocketmq.remoting.call import Peer, PendingReply, Reply, Request
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.dispatch import Run, serves
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.message.pop import (
    ORDER_REVIVE_QUEUE,
    ReceiptHandle,
    ReceiptHandleError,
    real_topic,
)
from txrocketmq.remoting.protocol import pop
from txrocketmq.remoting.protocol.body.pop import BatchAck, BatchAckMessageRequestBody
from txrocketmq.remoting.protocol.pop import (
    AckMessageRequestHeader,
    ChangeInvisibleTimeRequestHeader,
    ChangeInvisibleTimeResponseHeader,
)

_LONG_MAX = 2**63 - 1
_AHEAD_MS = 1_000
_NOT_DURABLE = "too many check points wait to be durable: the disk does not keep up"
_NOTHING = "the body names no messages that are acknowledged"


class Ack:
    """An acknowledgement of which a record is to be written, with the name of its check point."""

    __slots__ = ("_key", "_processor", "record")

    def __init__(self, processor: AckMessageProcessor, key: MergeKey, record: InnerMessage) -> None:
        self._processor = processor
        self._key = key
        self.record = record

    def settled(self, status: PutStatus) -> Reply[NoHeader] | ResponseError:
        """Counts if its record was stored."""
        processor, key = self._processor, self._key
        try:
            processor.written(key, ACK, status)
        except ResponseError as error:
            return error
        processor.pop.in_flight.add(key.topic, key.group, key.queue_id, -1)
        return Reply()


class AckMessageProcessor:
    """Takes acknowledgements."""

    def __init__(
        self,
        config: BrokerConfig,
        checks: PopChecks,
        intake: Intake,
        offsets: ConsumerOffsets,
        parts: Pop,
        walks: Walks,
    ) -> None:
        self._config = config
        self._checks = checks
        self._intake = intake
        self._store = intake.store
        self._offsets = offsets
        self.pop = parts
        self._walks = walks

    @writes(pop.ACK_MESSAGE)
    def read_ack(
        self,
        run: Run,
        commands: Sequence[RemotingCommand],
        messages: list[PutMessage],
        outcomes: list[Outcome],
    ) -> int:
        """Acknowledges one message."""
        command = commands[0]
        run.work += 1
        ack: Ack | None = None
        outcome: Any = None
        try:
            ack = self._ack_one(run, command)
            if ack is not None:
                self._intake.admit(ack.record, run.now_ms)
                put = ack.record.to_put()
                # A plain tuple costs less than an Outcome.
                outcome = command, len(messages), 1, b"", None, False, ack, None
                messages.append(put)
        except NotTaken as reason:
            instead = ack.settled(reason.status) if ack is not None else reason
            outcome = Outcome(command, 0, 0, instead=instead)
        except Exception as error:  # noqa: BLE001 - one bad request must not harm the others
            outcome = Outcome(command, 0, 0, instead=error)
        outcomes.append(outcome or Outcome(command, 0, 0, instead=Reply()))
        return 1

    def _ack_one(self, run: Run, command: RemotingCommand) -> Ack | None:
        """Takes an acknowledgement; returns it if a record of it is needed."""
        header = AckMessageRequestHeader.decode(command.ext_fields)
        if header.lite_topic:
            raise refusal_of_lite_topic(header.lite_topic)
        topic, queue_id, offset = header.topic, header.queue_id, header.offset
        self._checks.queue(topic, queue_id, run.peer)
        least, most = (
            self._store.min_offset(topic, queue_id),
            self._store.max_offset(topic, queue_id),
        )
        if not least <= offset <= most:
            raise ResponseError(
                ResponseCode.NO_MESSAGE,
                f"offset is illegal, key:{topic}@{queue_id}, commit:{offset}, store:{least}~{most}",
            )
        handle = _parsed(header.extra_info)
        key = MergeKey(
            topic, header.consumer_group, queue_id, handle.start_offset, handle.pop_time,
            handle.broker_name,
        )  # fmt: skip
        revive_queue_id = handle.revive_queue_id
        if revive_queue_id == ORDER_REVIVE_QUEUE:
            self._ack_in_order(key, offset, handle.invisible_time, run.peer)
            return None
        if self.pop.check_points.ack(key, (offset,), run.now_ms):
            self.pop.in_flight.add(topic, key.group, queue_id, -1)
            return None
        self._check_revive_queue(revive_queue_id)
        revive_ms = handle.pop_time + handle.invisible_time
        revive_topic = self.pop.revive_topic
        record = revive_topic.ack(key, offset, revive_ms, revive_queue_id, run.now_ms)
        return Ack(self, key, record)

    @serves(pop.BATCH_ACK_MESSAGE)
    def batch_ack(self, request: Request[NoHeader]) -> Reply[NoHeader] | PendingReply:
        """Acknowledges messages of many pops."""
        if not request.body:
            raise ResponseError(ResponseCode.NO_MESSAGE, _NOTHING)
        return self._walks.soon(self._ack_all(request.body, request.peer, request.now_ms))

    def _ack_all(self, body: bytes, peer: Peer, now_ms: int) -> Walk:
        wanted = yield from BatchAckMessageRequestBody.reading(body)
        if not wanted.acks:
            raise ResponseError(ResponseCode.NO_MESSAGE, _NOTHING)
        refusal: ResponseError | None = None
        for ack in wanted.acks:
            try:
                self._ack_batch(ack, wanted.broker_name or self._config.broker_name, peer, now_ms)
            except ResponseError as error:
                refusal = error  # the others count all the same
            yield
        if refusal is not None:
            raise refusal
        return Reply()

    def _ack_batch(self, ack: BatchAck, broker_name: str, peer: Peer, now_ms: int) -> None:
        group, queue_id = ack.consumer_group or "", ack.queue_id
        try:
            topic = real_topic(ack.topic or "", group, ack.retry or "")
        except ReceiptHandleError as error:
            raise ResponseError(ResponseCode.SYSTEM_ERROR, str(error)) from None
        self._checks.queue(topic, queue_id, peer)
        least, most = (
            self._store.min_offset(topic, queue_id),
            self._store.max_offset(topic, queue_id),
        )
        distances = ack.within(least, most)
        count = distances.bit_count()
        if count > MAX_MESSAGES:
            raise ResponseError(
                ResponseCode.MESSAGE_ILLEGAL,
                f"{count} messages of one pop are acknowledged; it has {MAX_MESSAGES} at most",
            )
        if not distances:
            return
        offsets = ack.offsets(distances)
        key = MergeKey(topic, group, queue_id, ack.start_offset, ack.pop_time, broker_name)
        if ack.revive_queue_id == ORDER_REVIVE_QUEUE:
            for offset in offsets:
                self._ack_in_order(key, offset, ack.invisible_time, peer)
            return
        revive_ms = ack.pop_time + ack.invisible_time
        self._ack(key, offsets, revive_ms, ack.revive_queue_id, now_ms)

    @serves(pop.CHANGE_MESSAGE_INVISIBLETIME)
    def change_invisible_time(
        self, request: Request[ChangeInvisibleTimeRequestHeader]
    ) -> Reply[ChangeInvisibleTimeResponseHeader]:
        """Hides a message for another time, which begins now.

        With `suspend`, it then comes back without another attempt being counted. Messages that are
        popped in order are counted in any case, as by the original.
        """
        header, now_ms = request.header, request.now_ms
        if header.lite_topic:
            raise refusal_of_lite_topic(header.lite_topic)
        topic, group, queue_id = header.topic, header.consumer_group, header.queue_id
        self._checks.queue(topic, queue_id, request.peer)
        least, most = (
            self._store.min_offset(topic, queue_id),
            self._store.max_offset(topic, queue_id),
        )
        if not least <= header.offset < most:
            raise ResponseError(
                ResponseCode.NO_MESSAGE,
                f"the queue has messages from {least} to {most}, not {header.offset}",
            )
        self._checks.invisible_time(header.invisible_time)
        handle = _parsed(header.extra_info)
        if handle.revive_queue_id == ORDER_REVIVE_QUEUE:
            return self._change_in_order(header, handle, now_ms)
        pop_time = _later(handle.pop_time, now_ms)
        key = MergeKey(topic, group, queue_id, header.offset, pop_time, handle.broker_name)
        old = key._replace(start_offset=handle.start_offset, pop_time=handle.pop_time)
        has_batches = self._store.has_batches(topic)
        point = check_point(
            key, header.invisible_time, (0,), has_batches=has_batches, suspend=bool(header.suspend)
        )
        revive_queue_id = handle.revive_queue_id
        self._check_revive_queue(revive_queue_id)
        if self.pop.replaced.is_full:
            raise ResponseError(ResponseCode.SYSTEM_ERROR, _NOT_DURABLE)
        revive_topic = self.pop.revive_topic
        record = revive_topic.check_point(point, revive_queue_id, now_ms)
        self._put(record, key, CK, now_ms)
        if not self.pop.check_points.ack(old, (header.offset,), now_ms):
            revive_ms = handle.pop_time + handle.invisible_time
            ack = revive_topic.ack(old, header.offset, revive_ms, revive_queue_id, now_ms)
            self.pop.replaced.add(old, header.offset, ack)
        return Reply(
            ChangeInvisibleTimeResponseHeader(
                pop_time=pop_time, invisible_time=header.invisible_time, revive_qid=revive_queue_id
            )
        )

    # ------------------------------------------------------------------ parts

    def _ack(
        self,
        key: MergeKey,
        offsets: Sequence[int],
        revive_ms: int,
        revive_queue_id: int,
        now_ms: int,
    ) -> None:
        if not self.pop.check_points.ack(key, offsets, now_ms):
            self._check_revive_queue(revive_queue_id)
            topic = self.pop.revive_topic
            record = topic.batch_ack(key, offsets, revive_ms, revive_queue_id, now_ms)
            self._put(record, key, ACK, now_ms)
        self.pop.in_flight.add(key.topic, key.group, key.queue_id, -len(offsets))

    def _check_revive_queue(self, queue_id: int) -> None:
        """Refuses revive queues that do not exist, so that a handle cannot create any."""
        if not 0 <= queue_id < self._config.revive_queue_num:
            raise ResponseError(
                ResponseCode.MESSAGE_ILLEGAL,
                f"the receipt handle names the revive queue {queue_id}; there are"
                f" {self._config.revive_queue_num}",
            )

    def _put(self, record: InnerMessage, key: MergeKey, kind: str, now_ms: int) -> None:
        (status,) = self._intake.take([record], now_ms)
        self.written(key, kind, status)

    def written(self, key: MergeKey, kind: str, status: PutStatus) -> None:
        """Counts a record that was to be written; raises ResponseError if it could not be."""
        self.pop.metrics.wrote(key, kind, status.name)
        if status is not PutStatus.PUT_OK:
            raise ResponseError(
                ResponseCode.SYSTEM_ERROR, f"it cannot be written now: {status.name}"
            )

    def _ack_in_order(self, key: MergeKey, offset: int, invisible_ms: int, peer: Peer) -> None:
        topic, group, queue_id = key.topic, key.group, key.queue_id
        committed = self._offsets.query(group, topic, queue_id)
        if offset < committed:
            return
        orders = self.pop.orders
        next_offset = orders.acked(topic, group, queue_id, offset, key.pop_time)
        if next_offset == NOT_FOUND:
            raise ResponseError(
                ResponseCode.MESSAGE_ILLEGAL,
                f"offset is illegal, key:{topic}@{group}@{queue_id}, old:{committed},"
                f" commit:{offset}, next:{next_offset}, {peer.remote_address}",
            )
        if next_offset >= 0:
            self._offsets.commit(group, topic, queue_id, next_offset)
            if not orders.is_blocked(None, topic, group, queue_id, invisible_ms):
                self.pop.polling.notify(topic, group, queue_id)
        self.pop.in_flight.add(topic, group, queue_id, -1)

    def _change_in_order(
        self, header: ChangeInvisibleTimeRequestHeader, handle: ReceiptHandle, now_ms: int
    ) -> Reply[ChangeInvisibleTimeResponseHeader]:
        topic, group, queue_id = header.topic, header.consumer_group, header.queue_id
        if header.offset < self._offsets.query(group, topic, queue_id):
            return Reply(
                ChangeInvisibleTimeResponseHeader(pop_time=0, invisible_time=0, revive_qid=0)
            )
        visible_ms = now_ms + header.invisible_time
        self.pop.orders.set_visible(
            topic, group, queue_id, header.offset, handle.pop_time, visible_ms
        )
        return Reply(
            ChangeInvisibleTimeResponseHeader(
                pop_time=handle.pop_time,
                invisible_time=max(min(visible_ms - handle.pop_time, _LONG_MAX), -_LONG_MAX),
                revive_qid=handle.revive_queue_id,
            )
        )


def _parsed(text: str) -> ReceiptHandle:
    try:
        return ReceiptHandle.parse(text)
    except ReceiptHandleError as error:
        raise ResponseError(ResponseCode.SYSTEM_ERROR, str(error)) from None


def _later(pop_time: int, now_ms: int) -> int:
    """Returns the time of a check point that replaces another: it always differs from the old one.

    Two check points of one name would be the same one, and the ack of the old one would end the new
    one; in the original that happens within one millisecond. No pop has a time far ahead.
    """
    return pop_time + 1 if now_ms <= pop_time < now_ms + _AHEAD_MS else now_ms
