# SPDX-License-Identifier: Apache-2.0
"""Collects traces and sends them to the topic of traces, some at a time.

They leave when there are enough of them, and after five seconds at the latest. What would exceed
the limit of those that wait is dropped and counted: a trace is no reason to hold up a message.
Counterpart of AsyncTraceDispatcher, SendMessageTraceHookImpl and EndTransactionTraceHookImpl.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Final

from twisted.internet.defer import Deferred, gatherResults
from twisted.logger import Logger

from txrocketmq.client.core.trace import EndTransaction, Pub, Recall, TraceRecord
from txrocketmq.client.producer.hooks import EndTransactionContext, SendContext
from txrocketmq.client.producer.send_result import SendStatus
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.message import Message

GROUP_PREFIX: Final = "_INNER_TRACE_PRODUCER"
SEND_TIMEOUT_MS: Final = 5_000
MAX_MESSAGE_BYTES: Final = 128_000
BATCH: Final = 10
FLUSH_MS: Final = 5_000
MAX_WAITING: Final = 2_048
DEFAULT_REGION: Final = "DefaultRegion"

_numbers = itertools.count(1)
log = Logger()


def trace_group(group: str, kind: str) -> str:
    """The group that sends the traces of a group; `kind` is PRODUCE or CONSUME."""
    return f"{GROUP_PREFIX}-{group}-{kind}-{next(_numbers)}"


class TraceDispatcher:
    """The traces of one producer or consumer; it is a SendHook as well."""

    def __init__(
        self, clock: Clock, group: str, topic: str, send: Callable[[Message], Awaitable[Any]]
    ) -> None:
        self._clock = clock
        self._group = group
        self._topic = topic
        self._send = send
        self._waiting: deque[tuple[str, TraceRecord]] = deque()
        self._sending: set[Deferred[Any]] = set()
        self._repeating: Any = None
        self.dropped = 0
        """The number of traces that were dropped because too many waited."""

    def start(self) -> None:
        """Begins to send traces that have waited for five seconds."""
        self._repeating = self._clock.every(FLUSH_MS, self.flush)

    async def shutdown(self) -> None:
        """Sends the traces that wait, and returns when they were sent."""
        if self._repeating is not None:
            self._repeating.cancel()
        self.flush()
        await gatherResults(list(self._sending))

    def append(self, topic: str, record: TraceRecord) -> None:
        """Adds a record about a message of a topic; drops it if too many wait."""
        if len(self._waiting) >= MAX_WAITING:
            if not self.dropped:
                log.warn("{count} traces wait to be sent: more are dropped", count=MAX_WAITING)
            self.dropped += 1
            return
        self._waiting.append((topic, record))
        if len(self._waiting) >= BATCH:
            self._flush(BATCH)

    def flush(self) -> None:
        """Sends all traces that wait."""
        while self._waiting:
            self._flush(BATCH)

    def _flush(self, count: int) -> None:
        by_topic: dict[str, list[TraceRecord]] = {}
        for _ in range(min(count, len(self._waiting))):
            topic, record = self._waiting.popleft()
            by_topic.setdefault(topic, []).append(record)
        for records in by_topic.values():
            self._send_records(records)

    def _send_records(self, records: list[TraceRecord]) -> None:
        keys = sorted(frozenset[str]().union(*(record.found_by for record in records)))
        body = "".join(record.data for record in records).encode()
        properties = {names.KEYS: names.KEY_SEPARATOR.join(keys)}
        sending = Deferred.fromCoroutine(
            self._sent(Message(self._topic, body, properties=properties))
        )
        self._sending.add(sending)
        sending.addBoth(lambda _: self._sending.discard(sending))

    async def _sent(self, message: Message) -> None:
        try:
            await self._send(message)
        except Exception as error:  # noqa: BLE001 - whatever it is: the message itself was sent
            log.warn("a trace could not be sent: {error}", error=error)

    # ----------------------------------------------------------------- hooks

    def before_send(self, context: SendContext) -> None:
        """Does nothing: the trace is made after the send."""

    def after_send(self, context: SendContext) -> None:
        """Adds the trace of a message that was stored; an attempt that failed leaves none."""
        result, message = context.result, context.message
        if result is None or not result.trace_on or message.topic == self._topic:
            return
        self.append(
            message.topic,
            Pub(
                timestamp_ms=context.begun_ms,
                region=result.region_id,
                group=self._group,
                topic=message.topic,
                msg_id=result.msg_id,
                tags=message.tags,
                keys=message.properties.get(names.KEYS),
                store_host=context.broker_address,
                body_bytes=len(message.body),
                cost_ms=self._clock.now_ms() - context.begun_ms,
                message_type=context.message_type,
                offset_msg_id=result.offset_msg_id,
                success=result.status is SendStatus.SEND_OK,
            ),
        )

    def transaction_ended(self, context: EndTransactionContext) -> None:
        """Adds the trace of a transaction's end; an EndTransactionHook."""
        message = context.message
        self.append(
            message.topic,
            EndTransaction(
                timestamp_ms=self._clock.now_ms(),
                region=message.properties.get(names.MSG_REGION) or DEFAULT_REGION,
                group=self._group,
                topic=message.topic,
                msg_id=context.msg_id,
                tags=message.tags,
                keys=message.properties.get(names.KEYS),
                store_host=context.broker_address,
                transaction_id=context.transaction_id,
                state=context.status.value,
                from_check=context.from_check,
            ),
        )

    def recalled(self, topic: str, msg_id: str, *, success: bool) -> None:
        """Adds the trace of a recall, whether it succeeded or not."""
        self.append(
            topic,
            Recall(
                timestamp_ms=self._clock.now_ms(),
                region=DEFAULT_REGION,
                group=self._group,
                topic=topic,
                msg_id=msg_id,
                success=success,
            ),
        )
