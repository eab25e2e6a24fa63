# SPDX-License-Identifier: Apache-2.0
"""What brokers are told of popped messages: consumed, hidden for longer, or dead.

Java: ConsumerProcessor.ackMessage, changeInvisibleTime and forwardMessageToDeadLetterQueue.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from txrocketmq.client.base.errors import MQBrokerError, PopNotSupported
from txrocketmq.client.consumer.popping.pop_result import acks_of_handles
from txrocketmq.client.core.api import refusal
from txrocketmq.proxy.base.statuses import Refused
from txrocketmq.proxy.cluster.cluster import TIMEOUT_MS, Cluster
from txrocketmq.proxy.receives.handles import Handle
from txrocketmq.proxy.schema.codes import Code
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.frame.form import Form
from txrocketmq.remoting.message.message import decode_message
from txrocketmq.remoting.protocol import pop, query
from txrocketmq.remoting.protocol.pop import (
    AckMessageRequestHeader,
    ChangeInvisibleTimeRequestHeader,
)
from txrocketmq.remoting.protocol.query import ViewMessageRequestHeader
from txrocketmq.remoting.protocol.send import ConsumerSendMsgBackRequestHeader

_ACK_FIELDS: Final = ("consumer_group", "topic", "queue_id", "extra_info", "offset")
_DEAD: Final = -1
_OF_HANDLES: Final = frozenset(
    {ResponseCode.MESSAGE_ILLEGAL, ResponseCode.NO_MESSAGE, ResponseCode.INVALID_PARAMETER}
)
"""What brokers say when a handle leads to nothing."""


class Settlements:
    """Tells brokers; raises Refused for a handle that leads nowhere, and MQBrokerError."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._api = cluster.api
        self._forms: dict[str, Form] = {}
        """Headers of acknowledgements by brokers, which name servers tell; names of groups and
        topics are clients', and a form takes longer than many headers."""

    def ack_soon(
        self, group: str, topic: str, handle: Handle, settle: Callable[[Exception | None], None]
    ) -> bool:
        """Acknowledges a message without waiting for anything but the broker.

        `settle` is told of the error, or None. Returns False, and does nothing, if it is not known
        where the broker is.
        """
        address = self._cluster.known_address(handle.popped.broker_name, topic)
        if address is None:
            return False
        popped = handle.popped
        header = self._ack_form(popped.broker_name).filled(
            group,
            handle.topic(topic, group),
            popped.queue_id,
            str(popped),
            popped.queue_offset,
        )

        def answered(outcome: Reply[Any] | Exception) -> None:
            if isinstance(outcome, Exception):
                settle(outcome)
            elif outcome.code == ResponseCode.SUCCESS:
                settle(None)
            else:
                error = refusal(outcome, address, header)
                if error.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
                    error = PopNotSupported(error.code, error.remark, address, error.about)
                settle(_of_handle(error))

        self._cluster.invoke(address, pop.ACK_MESSAGE, header, b"", TIMEOUT_MS).then(answered)
        return True

    def _ack_form(self, broker_name: str) -> Form:
        form = self._forms.get(broker_name)
        if form is None:
            header = AckMessageRequestHeader(
                consumer_group="",
                topic="",
                queue_id=0,
                extra_info="",
                offset=0,
                bname=broker_name,
            )
            form = self._forms[broker_name] = Form(pop.ACK_MESSAGE, header, *_ACK_FIELDS)
        return form

    async def ack(self, group: str, topic: str, handle: Handle) -> None:
        """Acknowledges a message."""
        address = await self._address(handle, topic)
        try:
            await self._api.ack(address, _ack_of(group, topic, handle))
        except MQBrokerError as error:
            raise _of_handle(error) from None

    async def ack_together(self, group: str, topic: str, handles: Sequence[Handle]) -> None:
        """Acknowledges messages of one broker in one request.

        The broker answers for all of them at once, so a message that it does not have counts as
        acknowledged, as with the original (ConsumerProcessor.batchAckMessage).
        """
        address = await self._address(handles[0], topic)
        for body in acks_of_handles(group, ((topic, each.popped) for each in handles)).values():
            await self._api.ack_many(address, body)

    async def hide(
        self, group: str, topic: str, handle: Handle, invisible_ms: int, *, suspend: bool = False
    ) -> Handle:
        """Hides a message from now on, and returns its new handle.

        With `suspend`, the delivery that follows does not count as an attempt.
        """
        popped = handle.popped
        header = ChangeInvisibleTimeRequestHeader(
            consumer_group=group,
            topic=handle.topic(topic, group),
            queue_id=popped.queue_id,
            extra_info=str(popped),
            offset=popped.queue_offset,
            invisible_time=invisible_ms,
            suspend=suspend or None,
            bname=popped.broker_name,
        )
        address = await self._address(handle, topic)
        try:
            answer = await self._api.change_invisible_time(address, header)
        except MQBrokerError as error:
            raise _of_handle(error) from None
        return handle._replace(
            popped=popped._replace(
                start_offset=popped.queue_offset,
                pop_time=answer.pop_time,
                invisible_time=answer.invisible_time,
                revive_queue_id=answer.revive_qid,
            )
        )

    async def bury(self, group: str, topic: str, message_id: str, handle: Handle) -> None:
        """Makes a dead letter of a message, and acknowledges it."""
        if handle.log_offset < 0:
            raise Refused(
                Code.INVALID_RECEIPT_HANDLE, "the handle does not say where the message is stored"
            )
        header = ConsumerSendMsgBackRequestHeader(
            offset=handle.log_offset,
            group=group,
            delay_level=_DEAD,
            origin_msg_id=message_id,
            origin_topic=handle.topic(topic, group),
            max_reconsume_times=0,
            bname=handle.popped.broker_name,
        )
        await self._api.send_back(await self._address(handle, topic), header, TIMEOUT_MS)
        await self.ack(group, topic, handle)

    async def check_found(self, group: str, topic: str, handle: Handle) -> None:
        """Raises Refused if the message at the place in the log is one of another topic.

        A client could write any place into a handle, and the broker only sees the proxy's account,
        so that it would bring any message of any topic to the dead letters of the client's group.
        """
        header = ViewMessageRequestHeader(topic=topic, offset=max(handle.log_offset, 0))
        address = await self._address(handle, topic)
        try:
            reply = await self._api.ask(address, query.VIEW_MESSAGE_BY_ID, header, b"", TIMEOUT_MS)
        except MQBrokerError as error:
            if error.code != ResponseCode.SYSTEM_ERROR:
                raise
            raise Refused(
                Code.INVALID_RECEIPT_HANDLE, "the handle does not say where the message is stored"
            ) from None
        message, _ = decode_message(reply.body_bytes)
        if message.topic != handle.topic(topic, group):
            raise Refused(
                Code.INVALID_RECEIPT_HANDLE, f"the handle is none of a message of topic {topic}"
            )

    async def _address(self, handle: Handle, topic: str) -> str:
        name = handle.popped.broker_name
        address = await self._cluster.address(name, topic)
        if address is None:
            raise Refused(
                Code.INVALID_RECEIPT_HANDLE, f"there is no broker {name:.100}, which it names"
            )
        return address


def _ack_of(group: str, topic: str, handle: Handle) -> AckMessageRequestHeader:
    popped = handle.popped
    return AckMessageRequestHeader(
        consumer_group=group,
        topic=handle.topic(topic, group),
        queue_id=popped.queue_id,
        extra_info=str(popped),
        offset=popped.queue_offset,
        bname=popped.broker_name,
    )


def _of_handle(error: MQBrokerError) -> Exception:
    if error.code in _OF_HANDLES:
        return Refused(Code.INVALID_RECEIPT_HANDLE, error.remark or "the broker does not have it")
    return error
