# SPDX-License-Identifier: Apache-2.0
"""Sends parcels, several at a time, and repeats those that failed.

Only one parcel is under way to one queue, so that its messages keep their order. A parcel that
failed goes to another queue of its lane, of another broker if there is one, after a pause and a
look at the route. It may then be in the log twice, which is what "at least once" means.

Java: DefaultMQProducerImpl.sendDefaultImpl.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.codes import STORED, ResponseCode
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.message.properties import decode_properties
from txrocketmq.remoting.protocol.send import RETRY_RESPONSE_CODES, SendMessageResponseHeader
from txrocketmq.remoting.routing.routes import PublishInfo
from txrocketmq.spark.arrow.errors import ClusterError
from txrocketmq.spark.live.wire.cluster import Cluster
from txrocketmq.spark.live.wire.rpc import Question, Refused, Unreachable
from txrocketmq.spark.live.wire.send import start_send
from txrocketmq.spark.live.wire.transaction import half_message
from txrocketmq.spark.sink.half_messages import HalfMessages
from txrocketmq.spark.sink.parcels import Packed
from txrocketmq.spark.sink.targets import Lane, Targets

IN_FLIGHT: Final = 4
"""Parcels of a task that are under way."""
HALF_IN_FLIGHT: Final = 16
"""Half messages of a task that are under way; each is a parcel."""

RETRIED: Final = RETRY_RESPONSE_CODES | {ResponseCode.FLOW_CONTROL}
"""Codes of answers that may differ at another broker, or at the same one later."""


@dataclass(slots=True)
class _Sending:
    """A parcel under way; `question` is None if it could not even be sent."""

    packed: Packed
    queue: MessageQueue
    question: Question[SendMessageResponseHeader] | None
    troubles: list[str] = field(default_factory=list)


class Sender:
    """Sends the parcels of one task.

    `retries` is how often a parcel is tried again, `first` the number of the first queue, which
    differs between tasks. `half_messages` collects stored half messages in the order of the sends.
    """

    def __init__(
        self,
        cluster: Cluster,
        targets: Targets,
        *,
        group: str,
        timeout_ms: int,
        retries: int,
        first: int = 0,
        half_messages: HalfMessages | None = None,
    ) -> None:
        self._cluster = cluster
        self._targets = targets
        self._group = group
        self._timeout_ms = timeout_ms
        self._retries = retries
        self._turn = first
        self._half_messages = half_messages
        self._in_flight = IN_FLIGHT if half_messages is None else HALF_IN_FLIGHT
        self._under_way: list[_Sending] = []

    def send(self, packed: Packed) -> None:
        """Sends a parcel as soon as there is room for it under way.

        Raises ClusterError when this parcel or an earlier one has failed in all attempts.
        """
        lane = packed.lane
        while len(self._under_way) >= self._in_flight or (
            lane.is_one_queue and self._is_busy(lane)
        ):
            self._finish(self._under_way.pop(0))
        queues = self._targets.queues(lane)
        self._under_way.append(self._start(packed, self._pick(queues, None)))

    def finish(self) -> None:
        """Waits for all parcels under way. Raises ClusterError as `send` does."""
        while self._under_way:
            self._finish(self._under_way.pop(0))

    def _is_busy(self, lane: Lane) -> bool:
        return any(sending.packed.lane == lane for sending in self._under_way)

    def _pick(self, queues: Sequence[MessageQueue], failed_broker: str | None) -> MessageQueue:
        self._turn += 1
        return PublishInfo(queues, self._turn).select(failed_broker)

    def _start(self, packed: Packed, queue: MessageQueue) -> _Sending:
        try:
            question = start_send(
                self._cluster,
                queue,
                packed.parcel,
                producer_group=self._group,
                timeout_ms=self._timeout_ms,
            )
        except Unreachable as error:
            return _Sending(packed, queue, None, [str(error)])
        return _Sending(packed, queue, question)

    def _finish(self, sending: _Sending) -> None:
        """Waits until the parcel is stored, and tries again as often as is allowed."""
        troubles: list[str] = []
        for attempt in range(self._retries + 1):
            if attempt:
                sending = self._again(sending, attempt)
            troubles += sending.troubles
            if sending.question is None:
                continue
            try:
                reply = sending.question.wait(STORED)
            except Unreachable as error:
                troubles.append(str(error))
            except Refused as error:
                if error.code not in RETRIED:
                    raise
                troubles.append(str(error))
            else:
                if self._half_messages is not None:
                    _keep(self._half_messages, sending, reply)
                return
        lane = sending.packed.lane
        raise ClusterError(
            f"{sending.packed.messages} messages of topic {lane.topic} could not be sent in"
            f" {len(troubles)} attempts: {'; '.join(troubles)}"
        )

    def _again(self, sending: _Sending, attempt: int) -> _Sending:
        lane = sending.packed.lane
        self._cluster.recover({lane.topic}, attempt)
        self._targets.forget(lane.topic)
        queues = self._targets.queues(lane)
        return self._start(sending.packed, self._pick(queues, sending.queue.broker_name))


def _keep(
    half_messages: HalfMessages, sending: _Sending, sent: Reply[SendMessageResponseHeader]
) -> None:
    """Keeps a half message, so that it can be ended.

    One that a broker's crash could lose is not kept, as in the original's producer.
    """
    key = decode_properties(sending.packed.parcel.properties)[names.UNIQ_KEY]
    half_messages.add(half_message(sending.queue, sent, key))
    if sent.code != ResponseCode.SUCCESS:
        raise ClusterError(
            f"a half message was stored by {sending.queue.broker_name}, but not yet flushed or"
            f" replicated: {ResponseCode(sent.code).name} ({sent.code})"
        )
