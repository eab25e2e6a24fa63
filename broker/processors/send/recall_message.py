# SPDX-License-Identifier: Apache-2.0
"""RECALL_MESSAGE: a producer withdraws a timer message that is not due yet.

The answer to the send of such a message contains the handle for this. A second timer message of the
same time is stored, which cancels the first (TIMER_DEL_UNIQKEY); it is not checked whether the
first exists. Codes: 0, 1, 11, 14, 16, 17, 604. Served with recallMessageEnable.

Java: RecallMessageProcessor.
"""

from __future__ import annotations

from typing import Final

from txrocketmq.broker.intake.inner_message import InnerMessage
from txrocketmq.broker.intake.intake import Intake
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.log.commit_point import Ticket
from txrocketmq.broker.store.message_store import PutStatus
from txrocketmq.broker.tables.topic import Topics
from txrocketmq.remoting.call import PendingReply, Reply, Request
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.dispatch import serves
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.flags import is_writable
from txrocketmq.remoting.message.recall_handle import RecallHandle, RecallHandleError
from txrocketmq.remoting.protocol import send
from txrocketmq.remoting.protocol.send import (
    RecallMessageRequestHeader,
    RecallMessageResponseHeader,
)

_TAG: Final = "_RECALL_TAG_"
_NOT_NOW: Final = "recall failed, broker service not available"


class RecallMessageProcessor:
    """Withdraws timer messages; `store_host` is the broker's address, packed as in records."""

    def __init__(
        self, config: BrokerConfig, topics: Topics, intake: Intake, store_host: bytes
    ) -> None:
        self._config = config
        self._topics = topics
        self._intake = intake
        self._store_host = store_host

    @serves(send.RECALL_MESSAGE)
    def recall(
        self, request: Request[RecallMessageRequestHeader]
    ) -> Reply[RecallMessageResponseHeader] | PendingReply:
        """Stores the message that cancels; answered when it is confirmed, as a send is."""
        header, now_ms = request.header, request.now_ms
        self._check(header.topic, now_ms)
        handle = self._handle(header, now_ms)
        message = InnerMessage(
            handle.topic,
            0,
            b"0",
            now_ms,
            request.peer.remote_host,
            self._store_host,
            _properties(header.producer_group, handle, self._delete_key(handle), now_ms),
        )
        (status,) = self._intake.take([message], now_ms)
        if status is not PutStatus.PUT_OK:
            raise ResponseError(ResponseCode.SYSTEM_ERROR, "recall failed, execute error")
        reply = Reply(
            RecallMessageResponseHeader(msg_id=handle.message_id),
            ext_fields={names.MSG_REGION: self._config.region_id},
        )
        outcome = self._intake.store.commit.outcome(self._intake.store.max_physical_offset)
        if not isinstance(outcome, Ticket):
            return reply
        pending = PendingReply()
        outcome.then(lambda _: pending.resolve(reply))
        return pending

    def _check(self, topic: str, now_ms: int) -> None:
        """Raises ResponseError when no message of the topic can be withdrawn now."""
        config = self._config
        if not config.recall_message_enable:
            raise ResponseError(ResponseCode.NO_PERMISSION, "recall failed, operation is forbidden")
        if now_ms < config.start_accept_send_request_time_stamp or not (
            is_writable(config.broker_permission) or config.allow_recall_when_broker_not_writeable
        ):
            raise ResponseError(ResponseCode.SERVICE_NOT_AVAILABLE, _NOT_NOW)
        if self._topics.get(topic) is None:
            raise ResponseError(
                ResponseCode.TOPIC_NOT_EXIST, f"recall failed, the topic[{topic}] not exist"
            )

    def _handle(self, header: RecallMessageRequestHeader, now_ms: int) -> RecallHandle:
        try:
            handle = RecallHandle.decode(header.recall_handle)
        except RecallHandleError as error:
            raise ResponseError(ResponseCode.ILLEGAL_OPERATION, str(error)) from None
        wrong = ""
        if handle.topic != header.topic:
            wrong = "recall failed, topic not match"
        elif handle.broker_name != self._config.broker_name:
            wrong = _NOT_NOW
        else:
            left_ms = handle.time_ms - now_ms
            if not 0 < left_ms < self._intake.store.config.timer_max_delay_sec * 1000:
                wrong = "recall failed, timestamp invalid"
        if wrong:
            raise ResponseError(ResponseCode.ILLEGAL_OPERATION, wrong)
        return handle

    def _delete_key(self, handle: RecallHandle) -> str:
        if self._intake.store.config.append_topic_for_timer_delete_key:
            return f"{handle.topic}+{handle.message_id}"
        return handle.message_id


def _properties(
    group: str | None, handle: RecallHandle, delete_key: str, now_ms: int
) -> dict[str, str]:
    properties = {
        names.TAGS: _TAG,
        names.TIMER_DEL_UNIQKEY: delete_key,
        names.UNIQ_KEY: handle.message_id,
        names.TIMER_DELIVER_MS: handle.time,
        names.BORN_TIMESTAMP: str(now_ms),
    }
    if group:
        properties[names.PGROUP] = group
    return properties
