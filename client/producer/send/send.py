# SPDX-License-Identifier: Apache-2.0
"""One send: a broker is asked, and when that fails another one, until the time is over.

Nearly every send is over with the answer to its first request, for which nothing has to be waited
for: that takes no coroutine. Whatever else may happen, such as a route that is to be asked for or a
broker that fails, a coroutine goes on from there. What is on its way is counted (backpressure.py);
whoever begins a send sees to it that there is room. Counterpart of sendDefaultImpl of
DefaultMQProducerImpl.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn, Self

from twisted.internet.defer import CancelledError
from twisted.python.failure import Failure

from txrocketmq.client.base import errors
from txrocketmq.client.base.errors import BrokerNotExist, MQBrokerError, MQClientError, SendFailed
from txrocketmq.client.producer.send.attempt import Attempt, Attempts
from txrocketmq.client.producer.send.parcel import Parcel
from txrocketmq.client.producer.send_result import SendResult, SendStatus, send_result
from txrocketmq.client.thread.coroutine import Course
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.codes import STORED
from txrocketmq.remoting.errors import ConnectError, RemotingError, RequestTimeout
from txrocketmq.remoting.message.message import MessageQueue


class Sending:
    """See the module; `settle` is called once, with the SendResult or with a Failure.

    With a queue there is one attempt, and its error is the one that is told. The time for the
    attempts begins when the route of the topic is known, if it had to be asked for; that has limits
    of its own.
    """

    __slots__ = (
        "_attempt",
        "_attempts",
        "_course",
        "_deadline_ms",
        "_late_result",
        "_parcel",
        "_queue",
        "_settle",
        "_timeout_ms",
    )

    def __init__(
        self,
        attempts: Attempts,
        parcel: Parcel,
        queue: MessageQueue | None,
        timeout_ms: int,
        settle: Callable[[Any], None],
    ) -> None:
        self._attempts = attempts
        self._parcel = parcel
        self._queue = queue
        self._timeout_ms = timeout_ms
        self._settle = settle
        self._deadline_ms = 0
        self._attempt: Attempt | None = None
        """The first attempt, while its answer is waited for."""
        self._course: Course | None = None
        self._late_result: SendResult | None = None
        """What an earlier attempt has led to, whose answer came while a later one was made."""

    def begun(self) -> Self:
        """Makes the first attempt, if its queue and the address of its broker are known."""
        attempts, timeout_ms = self._attempts, self._timeout_ms
        begun_ms = attempts.steady_ms()
        self._deadline_ms = begun_ms + timeout_ms
        queue = self._queue or attempts.known_queue(self._parcel.topic, None)
        address = None if queue is None else attempts.known_address(queue)
        room = attempts.room
        room.count = count = room.count + 1
        room.size_bytes = size_bytes = room.size_bytes + len(self._parcel.body)
        if count >= room.max_count or size_bytes >= room.max_bytes:
            room.is_full = True
        if queue is None or address is None or timeout_ms <= 0:
            self._go_on(None, None)
            return self
        self._attempt = attempt = Attempt(self._parcel, queue, address, begun_ms)
        try:
            pending = attempts.ask(attempt, attempts.shortened(timeout_ms))
        except Exception as error:  # noqa: BLE001 - what goes on raises it
            self._attempt = None
            self._go_on(queue, error)
        else:
            pending.then(self._answered)
        return self

    def cancel(self) -> None:
        """Stops waiting; `settle` is called with a CancelledError unless it was called already."""
        attempt, self._attempt = self._attempt, None
        if attempt is not None:
            try:
                self._attempts.result_of(attempt, CancelledError())
            except CancelledError:
                self._end(Failure())
        elif self._course is not None:
            self._course.cancel()

    def _answered(self, outcome: Reply[Any] | Exception) -> None:
        attempt, self._attempt = self._attempt, None
        if attempt is None:  # it was cancelled
            return
        try:
            result = self._attempts.result_of(attempt, outcome)
        except Exception as error:  # noqa: BLE001 - what goes on raises it
            self._go_on(attempt.queue, error)
            return
        if result.status is SendStatus.SEND_OK or self._queue is not None:
            self._end(result)
        else:
            self._go_on(attempt.queue, result)

    def _end(self, outcome: Any) -> None:
        """Makes room for sends that wait, and tells the outcome."""
        room = self._attempts.room
        room.count -= 1
        room.size_bytes -= len(self._parcel.body)
        if room.is_full:
            room.left(self._deadline_ms, self._timeout_ms)
        self._settle(outcome)

    def _go_on(self, queue: MessageQueue | None, outcome: SendResult | Exception | None) -> None:
        """Continues in a coroutine, with the outcome of the first attempt if it was made."""
        self._course = Course(self._rest(queue, outcome), self._end_course)
        self._course.go_on()

    def _end_course(self, outcome: Any) -> None:
        self._course = None
        self._end(self._late_result or outcome)

    async def _rest(
        self, first_queue: MessageQueue | None, first: SendResult | Exception | None
    ) -> SendResult:
        """Makes all attempts; the outcome of the first one may be given."""
        if self._queue is not None:
            return await self._attempted(self._queue, first, is_last=True)
        config = self._attempts.config
        failed: list[tuple[str, Exception]] = []
        result: SendResult | None = None
        last_broker: str | None = None
        for retries_left in reversed(range(1 + config.retry_times)):
            target, outcome = first_queue, first
            first_queue = first = None
            if target is None:
                target = await self._next_queue(last_broker, is_stored=result is not None)
            if target is None:
                break
            last_broker = target.broker_name
            try:
                result = await self._attempted(target, outcome, is_last=not retries_left)
            except MQBrokerError as error:
                failed.append((last_broker, error))
                if error.code not in config.retry_response_codes:
                    if result is None:
                        raise
                    break
            except (BrokerNotExist, RemotingError) as error:
                failed.append((last_broker, error))
                self._hear_late(error, target)
            else:
                is_safe = result.status is SendStatus.SEND_OK
                if is_safe or not config.retry_another_broker_when_not_store_ok:
                    return result
        return result or self._give_up(failed)

    def _hear_late(self, error: Exception, queue: MessageQueue) -> None:
        """Has the answer to an attempt count whose time is over, while others are made."""
        if isinstance(error, RequestTimeout) and error.late is not None:
            error.late.hear(self._deadline_ms, partial(self._answered_late, queue))

    def _answered_late(self, queue: MessageQueue, reply: Reply[Any] | Exception) -> None:
        """Ends the send if an attempt, whose time was over, has stored the message after all."""
        course = self._course
        if course is None or isinstance(reply, Exception) or reply.code not in STORED:
            return
        parcel = self._parcel
        named = MessageQueue(parcel.message.topic, queue.broker_name, queue.queue_id)
        self._late_result = send_result(reply, named, parcel.msg_id)
        course.cancel()

    async def _next_queue(self, last_broker: str | None, *, is_stored: bool) -> MessageQueue | None:
        """Returns the queue of the next attempt, or None if the time is over.

        It is None also if there is no queue any more and the message `is_stored` already.
        """
        attempts, topic = self._attempts, self._parcel.topic
        queue = attempts.known_queue(topic, last_broker)
        if queue is None:
            try:
                queue = await attempts.next_queue(topic, last_broker)
            except MQClientError:
                if is_stored:
                    return None
                raise
            if last_broker is None and self._timeout_ms > 0:  # it could not leave earlier
                self._deadline_ms = attempts.steady_ms() + self._timeout_ms
        return None if self._deadline_ms <= attempts.steady_ms() else queue

    def _give_up(self, failed: list[tuple[str, Exception]]) -> NoReturn:
        code = _code_of(failed[-1][1]) if failed else errors.ACCESS_BROKER_TIMEOUT
        raise SendFailed(self._parcel.topic, failed, code, self._timeout_ms)

    async def _attempted(
        self, queue: MessageQueue, outcome: SendResult | Exception | None, *, is_last: bool
    ) -> SendResult:
        """Sends to a queue. The last attempt waits for a broker that is left alone for a while.

        The attempts before it ask another broker instead. A broker that has just come back is found
        in this way, although connections to it failed shortly before.
        """
        attempts = self._attempts
        try:
            if isinstance(outcome, Exception):
                raise outcome
            if outcome is not None:
                return outcome
            left_ms = self._deadline_ms - attempts.steady_ms()
            return await attempts.attempt(self._parcel, queue, attempts.shortened(left_ms))
        except ConnectError as error:
            left_ms = self._deadline_ms - attempts.steady_ms()
            if not (is_last and 0 < error.again_in_ms < left_ms):
                raise
            await attempts.pause(error.again_in_ms)
        return await self._attempted(queue, None, is_last=False)


def _code_of(error: Exception) -> int:
    """The number under which the Java client reports what went wrong last."""
    if isinstance(error, MQClientError):
        return error.code
    if isinstance(error, ConnectError):
        return errors.CONNECT_BROKER
    if isinstance(error, RequestTimeout):
        return errors.ACCESS_BROKER_TIMEOUT
    return MQClientError.code
