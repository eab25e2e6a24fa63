# SPDX-License-Identifier: Apache-2.0
"""POP_MESSAGE: takes messages of a topic and hides them from the other members for a time.

Checked in the original's order: how late the request is, broker permission, number of messages,
topic and its permission, queue id, group, subscription. A pop that finds nothing waits for
messages, as long as its client does, and is run again for each message that might be for it; a pop
with a narrow filter passes over the other messages on its way. Filters by tags and by SQL92
expressions are served whatever enablePropertyFilter says, as by the original. Codes: 0; 209 when
too many wait, 210 when the time is over; 1, 2, 16, 17, 23, 26, 29. POP_ROLLBACK moves records of
another kind of store (popConsumerKVServiceEnable), which this broker does not have, so it does
nothing.

Java: PopMessageProcessor.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from txrocketmq.broker.filter.consumer_filters import ConsumerFilters
from txrocketmq.broker.filter.expression import ExpressionError
from txrocketmq.broker.pop.polling import ANY_QUEUE, PollingResult, PopPolling, PopRequest
from txrocketmq.broker.pop.queues import Popped, PopQueues, Wanted
from txrocketmq.broker.processors.pop.pop_checks import Attempts, Held, PopChecks
from txrocketmq.broker.pulls.message_filter import ALL, MessageFilter, filter_by, filter_of
from txrocketmq.broker.store.disk.steps import Steps
from txrocketmq.broker.tables.attributes import priority_factor
from txrocketmq.remoting.call import PendingReply, Reply, Request
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.dispatch import serves
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.message.pop import ORDER_REVIVE_QUEUE
from txrocketmq.remoting.message.tags import TAG, SubscriptionError, build_subscription_data
from txrocketmq.remoting.protocol import pop
from txrocketmq.remoting.protocol.pop import PopMessageRequestHeader, PopMessageResponseHeader

MAX_MESSAGES = 32
TOO_LATE_MS = 500
"""A request that comes this many ms after its client stopped waiting is not served."""

PopReply = Reply[PopMessageResponseHeader]


class PopMessageProcessor:
    """Serves pops."""

    def __init__(
        self,
        checks: PopChecks,
        filters: ConsumerFilters,
        queues: PopQueues,
        polling: PopPolling,
        attempts: Attempts,
        clock: Callable[[], int],
        steady_clock: Callable[[], int],
    ) -> None:
        self._checks = checks
        self._filters = filters
        self._queues = queues
        self._polling = polling
        self._attempts = attempts
        self._now_ms = clock
        self._steady_ms = steady_clock

    @serves(pop.POP_MESSAGE, vip=False)
    def pop_message(self, request: Request[PopMessageRequestHeader]) -> PendingReply:
        """Answers with messages, or with the reason for none; may wait for pollTime."""
        pending = PendingReply()
        born_ms = request.header.born_time or request.now_ms
        self._attempt(request, born_ms, pending)
        # The body is dropped, so that a large one is not kept while the request waits.
        request.command.body, request.command.ext_fields = b"", None
        return pending

    @serves(pop.POP_ROLLBACK)
    def roll_back(self, request: Request[NoHeader]) -> Reply[NoHeader]:
        """Does nothing: this broker has no such records."""
        return Reply()

    def _attempt(
        self, request: Request[PopMessageRequestHeader], born_ms: int, pending: PendingReply
    ) -> None:
        header = request.header
        attempt = partial(self._pop, request, born_ms, pending)
        place = Held(self._polling, header.topic, header.consumer_group, header.queue_id)
        self._attempts.begin(request.peer, attempt, pending, place)

    def _pop(
        self, request: Request[PopMessageRequestHeader], born_ms: int, pending: PendingReply
    ) -> Steps[PopReply | None]:
        """Pops for a request; returns None when the answer comes later."""
        header, now_ms = request.header, self._now_ms()
        if now_ms - born_ms - header.poll_time > TOO_LATE_MS:
            raise ResponseError(
                ResponseCode.POLLING_TIMEOUT, "the broker pop message is timeout too much"
            )
        self._checks.broker("pop")
        if header.max_msg_nums > MAX_MESSAGES:
            raise ResponseError(
                ResponseCode.INVALID_PARAMETER,
                f"the broker pop message's num is greater than {MAX_MESSAGES}",
            )
        topic = self._checks.readable(header.topic, header.queue_id, request.peer)
        group = self._checks.group(header.consumer_group)
        self._checks.invisible_time(header.invisible_time)
        if not header.order:
            self._checks.retry_topic(header.topic, header.consumer_group)
        wanted = Wanted(
            header.topic,
            header.consumer_group,
            max(header.queue_id, ANY_QUEUE),
            header.max_msg_nums,
            header.invisible_time,
            header.init_mode,
            header.order,
            header.attempt_id,
            self._filter(header),
            priority_factor(group.attributes),
        )
        self._checks.make_group(header.consumer_group)
        popped = yield from self._queues.pop(wanted, topic, now_ms)
        if popped.count:
            if popped.rest > 0:
                self._polling.notify(wanted.topic, wanted.group, wanted.queue_id)
            return _answer(popped, wanted, ResponseCode.SUCCESS, "FOUND")
        return self._hold(request, born_ms, pending, popped, wanted)

    def _hold(
        self,
        request: Request[PopMessageRequestHeader],
        born_ms: int,
        pending: PendingReply,
        popped: Popped,
        wanted: Wanted,
    ) -> PopReply | None:
        waiting = PopRequest(
            request.peer, wanted.topic, wanted.group, wanted.queue_id, 0,
            lambda: self._attempt(request, born_ms, pending),
        )  # fmt: skip
        result = self._polling.hold(
            waiting, born_ms, request.header.poll_time, self._now_ms(), self._steady_ms()
        )
        if result is PollingResult.POLLING_SUC:
            if popped.rest > 0 and popped.has_passed:
                self._polling.notify(wanted.topic, wanted.group, wanted.queue_id)
            return None
        full = result is PollingResult.POLLING_FULL
        code = ResponseCode.POLLING_FULL if full else ResponseCode.POLLING_TIMEOUT
        return _answer(popped, wanted, code, "NO_MESSAGE_IN_QUEUE")

    def _filter(self, header: PopMessageRequestHeader) -> MessageFilter:
        if not header.exp:
            return ALL
        try:
            subscription = build_subscription_data(header.topic, header.exp, header.exp_type)
            if subscription.expression_type in (TAG, ""):
                return filter_of(subscription)
            expression = self._filters.compile(
                subscription.sub_string, subscription.expression_type
            )
        except (SubscriptionError, ExpressionError):
            raise ResponseError(
                ResponseCode.SUBSCRIPTION_PARSE_FAILED, "parse the consumer's subscription failed"
            ) from None
        return filter_by(expression)


def _answer(popped: Popped, wanted: Wanted, code: ResponseCode, remark: str) -> PopReply:
    is_order = popped.revive_queue_id == ORDER_REVIVE_QUEUE
    header = PopMessageResponseHeader(
        pop_time=popped.pop_time,
        invisible_time=wanted.invisible_ms,
        revive_qid=popped.revive_queue_id,
        rest_num=popped.rest,
        start_offset_info=";".join(popped.start_offsets),
        msg_offset_info=";".join(popped.msg_offsets),
        order_count_info=";".join(popped.order_counts) if is_order else None,
    )
    return Reply(header, popped.buffers, code, remark)
