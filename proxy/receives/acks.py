# SPDX-License-Identifier: Apache-2.0
"""What consumers say of received messages: consumed, to be hidden for longer, or dead.

The entries of an acknowledgement are told to brokers side by side, and answered in their order.

Java: AckMessageActivity, ChangeInvisibleDurationActivity, ForwardMessageToDLQActivity.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final

from twisted.internet.defer import Deferred, DeferredList

from txrocketmq.proxy.base.names import group_of, topic_of
from txrocketmq.proxy.base.rights import consuming
from txrocketmq.proxy.base.statuses import Refused, answered, set_status, set_total, told
from txrocketmq.proxy.config import MessagingConfig
from txrocketmq.proxy.grpc.call import Call
from txrocketmq.proxy.grpc.service import rpc
from txrocketmq.proxy.receives.handles import Handle
from txrocketmq.proxy.receives.receives import checked_invisible_ms
from txrocketmq.proxy.receives.renewals import Hidden, Renewals
from txrocketmq.proxy.receives.settlements import Settlements
from txrocketmq.proxy.schema.codes import Code
from txrocketmq.proxy.schema.messages import message_type
from txrocketmq.proxy.sessions.clients import Clients
from txrocketmq.proxy.sessions.metadata import client_id_of
from txrocketmq.remoting.call import PendingReply
from txrocketmq.remoting.host.clock import Clock

MAX_ENTRIES: Final = 1_024
_ACKED: Final = message_type("AckMessageResponse")


class Acks:
    """Serves AckMessage, ChangeInvisibleDuration and ForwardMessageToDeadLetterQueue."""

    def __init__(
        self,
        clock: Clock,
        clients: Clients,
        settlements: Settlements,
        renewals: Renewals,
        config: MessagingConfig,
    ) -> None:
        self._clock = clock
        self._clients = clients
        self._settlements = settlements
        self._renewals = renewals
        self._config = config

    @rpc("AckMessage", rights=consuming())
    def ack_message(self, call: Call, request: Any) -> Any:
        """Acknowledges messages, each by itself."""
        entries = request.entries
        if len(entries) == 1:
            sent = self._sent(call, request, entries[0])
            if sent is not None:  # as nearly always
                return sent
        return self._ack_all(call, request)

    def _sent(self, call: Call, request: Any, entry: Any) -> PendingReply | None:
        """Acknowledges the only message of a request, if that waits for nothing but the broker.

        Returns the answer; or None, and does nothing, if there is more to it, or it is refused.
        """
        text = entry.receipt_handle
        try:
            client_id = self._caller(call)
            topic, group = topic_of(request.topic), group_of(request.group)
            if self._renewals.keeps(client_id, group, text):
                return None
            handle = Handle.parse(text, self._clock.now_ms())
        except Refused:
            return None  # which is said in another place
        result = PendingReply()

        def settle(error: Exception | None) -> None:
            result.resolve(_answer_of_one(entry, error))

        return result if self._settlements.ack_soon(group, topic, handle, settle) else None

    @answered("AckMessageResponse")
    async def _ack_all(self, call: Call, request: Any) -> Any:
        client_id = self._caller(call)
        topic, group = topic_of(request.topic), group_of(request.group)
        entries = request.entries
        if not entries or len(entries) > MAX_ENTRIES:
            raise Refused(
                Code.BAD_REQUEST, f"1 to {MAX_ENTRIES} messages are acknowledged at a time"
            )
        texts = [each.receipt_handle for each in entries]
        if self._config.enable_batch_ack and len(texts) > 1:
            outcomes = await self._ack_together(client_id, group, topic, texts)
        else:
            outcomes = await self._ack_each(client_id, group, topic, texts)
        answer = _ACKED()
        codes = []
        for entry, (is_done, outcome) in zip(entries, outcomes, strict=True):
            code, text = (Code.OK, "") if is_done else _status(outcome)
            codes.append(code)
            _add(answer, entry, code, text)
        return set_total(answer, codes)

    async def _ack_each(
        self, client_id: str, group: str, topic: str, texts: Sequence[str]
    ) -> list[tuple[bool, Any]]:
        acks = [Deferred.fromCoroutine(self._ack(client_id, group, topic, text)) for text in texts]
        outcomes: list[tuple[bool, Any]] = await DeferredList(acks, consumeErrors=True)
        return outcomes

    async def _ack_together(
        self, client_id: str, group: str, topic: str, texts: Sequence[str]
    ) -> list[tuple[bool, Any]]:
        """Acknowledges messages with one request to each broker; those that cannot be, alone."""
        found: Any = await DeferredList(
            [Deferred.fromCoroutine(self._newest(client_id, group, text)) for text in texts],
            consumeErrors=True,
        )
        by_broker: dict[str, list[int]] = defaultdict(list)
        alone = []
        for number, (is_found, newest) in enumerate(found):
            if is_found and newest[1].may_be_together and _is_still(*newest):
                by_broker[newest[1].popped.broker_name].append(number)
            else:
                alone.append(number)
        together = []
        for numbers in by_broker.values():
            handles = [found[number][1][1] for number in numbers]
            work = self._settlements.ack_together(group, topic, handles)
            hidden = (found[number][1][0] for number in numbers)
            together.append(Deferred.fromCoroutine(self._renewals.settle(work, *hidden)))
        outcomes = list(found)
        left = await self._ack_each(client_id, group, topic, [texts[each] for each in alone])
        for number, outcome in zip(alone, left, strict=True):
            outcomes[number] = outcome
        ended: Any = await DeferredList(together, consumeErrors=True)
        for numbers, outcome in zip(by_broker.values(), ended, strict=True):
            for number in numbers:
                outcomes[number] = outcome
        return outcomes

    async def _ack(self, client_id: str, group: str, topic: str, text: str) -> None:
        hidden, handle = await self._newest(client_id, group, text)
        await self._renewals.settle(self._settlements.ack(group, topic, handle), hidden)

    @rpc("ChangeInvisibleDuration", rights=consuming())
    @answered("ChangeInvisibleDurationResponse")
    async def change_invisible_duration(self, call: Call, request: Any) -> Any:
        """Hides a message for a time from now on, and answers with its new handle."""
        client_id = self._caller(call)
        topic, group = topic_of(request.topic), group_of(request.group)
        most_ms = self._config.max_invisible_time_mills
        invisible_ms = checked_invisible_ms(request.invisible_duration, 0, most_ms)
        hidden, handle = await self._newest(client_id, group, request.receipt_handle)

        async def hide() -> Handle:
            new = await self._settlements.hide(
                group, topic, handle, invisible_ms, suspend=request.suspend
            )
            if hidden is not None:
                self._renewals.changed(hidden, new)
            return new

        new = await self._renewals.settle(hide(), hidden, forgets=False)
        answer = message_type("ChangeInvisibleDurationResponse")()
        answer.receipt_handle = str(new)
        return set_status(answer, Code.OK)

    @rpc("ForwardMessageToDeadLetterQueue", rights=consuming())
    @answered("ForwardMessageToDeadLetterQueueResponse")
    async def forward_message_to_dead_letter_queue(self, call: Call, request: Any) -> Any:
        """Makes a dead letter of a message."""
        client_id = self._caller(call)
        topic, group = topic_of(request.topic), group_of(request.group)
        hidden, handle = await self._newest(client_id, group, request.receipt_handle)
        if call.account:
            await self._settlements.check_found(group, topic, handle)
        bury = self._settlements.bury(group, topic, request.message_id, handle)
        await self._renewals.settle(bury, hidden)
        return set_status(message_type("ForwardMessageToDeadLetterQueueResponse")(), Code.OK)

    def _caller(self, call: Call) -> str:
        client_id = client_id_of(call)
        self._clients.get(client_id)
        return client_id

    async def _newest(self, client_id: str, group: str, text: str) -> tuple[Hidden | None, Handle]:
        """Returns what is kept of a message, and its newest handle. Raises Refused."""
        hidden = await self._renewals.find(client_id, group, text)
        newest = text if hidden is None else str(hidden.handle)
        return hidden, Handle.parse(newest, self._clock.now_ms())


def _add(answer: Any, entry: Any, code: Code, text: str) -> None:
    """Adds the result of an entry to an answer."""
    result = set_status(answer.entries.add(), code, text)
    result.message_id = entry.message_id
    result.receipt_handle = entry.receipt_handle


def _answer_of_one(entry: Any, error: Exception | None) -> Any:
    """Returns the answer to a request with one entry, or the error if it is a defect."""
    code, text = Code.OK, ""
    if error is not None:
        status = told(error)
        if status is None:
            return error
        code, text = status
    answer = _ACKED()
    _add(answer, entry, code, text)
    return set_status(answer, code)


def _is_still(hidden: Hidden | None, handle: Handle) -> bool:
    """Returns whether nothing has happened with a message since its handle was looked for."""
    return hidden is None or (hidden.busy is None and hidden.handle == handle)


def _status(failure: Any) -> tuple[Code, str]:
    status = told(failure.value)
    if status is None:
        failure.raiseException()
    assert status is not None
    return status
