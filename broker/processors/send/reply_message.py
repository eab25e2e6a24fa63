# SPDX-License-Identifier: Apache-2.0
"""SEND_REPLY_MESSAGE, SEND_REPLY_MESSAGE_V2: passes a reply on to the client that asked.

The reply names the client that has asked (REPLY_TO_CLIENT). If a producer of that id is connected
here, it is told at once (PUSH_REPLY_MESSAGE_TO_CLIENT), and whoever replies is answered as soon as
it has said that it has the reply: success, or 1 when there is no such client, or it does not say so
in 10 s. With storeReplyMessageEnable the reply is stored all the same, as it was sent. Codes: 0, 1,
and those of the checks of a send.

The original stores the reply when the other client has answered, and without the flag that its body
is compressed; here it is stored at once, and with the flag. Java: ReplyMessageProcessor.
"""

from __future__ import annotations

import random
from typing import Any

from txrocketmq.broker.intake.inner_message import InnerMessage, Way
from txrocketmq.broker.intake.intake import Intake
from txrocketmq.broker.intake.transform import NotTaken
from txrocketmq.broker.intake.transforms.own_properties import own_properties
from txrocketmq.broker.processors.send.send_answers import message_ids
from txrocketmq.broker.processors.send.send_checks import SendChecks
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.tables.clients import Producers
from txrocketmq.remoting.call import PendingReply, Reply, Request
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.dispatch import serves
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.properties import decode_properties, encode_properties
from txrocketmq.remoting.protocol import send
from txrocketmq.remoting.protocol.send import (
    ReplyMessageRequestHeader,
    SendMessageRequestHeader,
    SendMessageResponseHeader,
)

PUSH_TIMEOUT_MS = 10_000
_TRANSACTION_BITS = MessageSysFlag.TRANSACTION_ROLLBACK_TYPE


class ReplyMessageProcessor:
    """Hands replies on; `address` and `store_host` are the broker's address, as text and packed."""

    def __init__(
        self,
        config: BrokerConfig,
        checks: SendChecks,
        intake: Intake,
        producers: Producers,
        address: str,
        store_host: bytes,
    ) -> None:
        self._config = config
        self._checks = checks
        self._intake = intake
        self._producers = producers
        self._address = address
        self._store_host = store_host
        self._host = store_host.hex().upper().encode()

    @serves(send.SEND_REPLY_MESSAGE, send.SEND_REPLY_MESSAGE_V2)
    def reply(
        self, request: Request[SendMessageRequestHeader]
    ) -> Reply[SendMessageResponseHeader] | PendingReply:
        """Passes a reply on to the client that asked, and stores it."""
        header = request.header
        self._checks.check_time(request.now_ms)
        drafts = self._checks.topics.drafts
        drafts.clear()
        topic = self._checks.topic_of(header, request.peer)
        drafts.end(0, 1)
        queue_id = header.queue_id
        if queue_id < 0:
            queue_id = random.randrange(topic.write_queue_nums or 1)
        properties = decode_properties(header.properties or "")
        asker = properties.get(names.REPLY_TO_CLIENT)
        stored = self._store(request, queue_id, dict(properties))
        if not asker:
            return self._failed(
                stored, f"reply message properties[{names.REPLY_TO_CLIENT}] is null"
            )
        peer = self._producers.find(asker)
        if peer is None:
            return self._failed(stored, f"push reply message fail, channel of <{asker}> not found.")
        pending = PendingReply()

        def pushed(outcome: Reply[Any] | Exception) -> None:
            if isinstance(outcome, Reply) and outcome.code == ResponseCode.SUCCESS:
                pending.resolve(Reply(stored, ext_fields=self._told()))
            else:
                pending.resolve(self._failed(stored, f"push reply message to {asker}fail."))

        properties[names.PUSH_REPLY_TIME] = str(request.now_ms)
        peer.invoke(
            send.PUSH_REPLY_MESSAGE_TO_CLIENT,
            self._push_header(request, properties),
            request.body,
            timeout_ms=PUSH_TIMEOUT_MS,
        ).then(pushed)
        return pending

    def _told(self) -> dict[str, str]:
        own = own_properties(self._config)
        return {name: own[name] for name in (names.MSG_REGION, names.TRACE_ON)}

    def _failed(
        self, stored: SendMessageResponseHeader, remark: str
    ) -> Reply[SendMessageResponseHeader]:
        return Reply(stored, code=ResponseCode.SYSTEM_ERROR, remark=remark, ext_fields=self._told())

    def _push_header(
        self, request: Request[SendMessageRequestHeader], properties: dict[str, str]
    ) -> ReplyMessageRequestHeader:
        header = request.header
        return ReplyMessageRequestHeader(
            producer_group=header.producer_group,
            topic=header.topic,
            default_topic=header.default_topic,
            default_topic_queue_nums=header.default_topic_queue_nums,
            queue_id=header.queue_id,
            sys_flag=header.sys_flag,
            born_timestamp=header.born_timestamp,
            flag=header.flag,
            properties=encode_properties(properties),
            reconsume_times=header.reconsume_times,
            unit_mode=bool(header.unit_mode),
            born_host=request.peer.remote_address,
            store_host=self._address,
            store_timestamp=request.now_ms,
        )

    def _store(
        self,
        request: Request[SendMessageRequestHeader],
        queue_id: int,
        properties: dict[str, str],
    ) -> SendMessageResponseHeader:
        """Stores the reply if that is enabled; returns where it is, with an id of 0 if not."""
        header = request.header
        nowhere = SendMessageResponseHeader(msg_id="0", queue_id=queue_id, queue_offset=0)
        if not self._config.store_reply_message_enable:
            return nowhere
        message = InnerMessage(
            header.topic,
            queue_id,
            request.body,
            header.born_timestamp,
            request.peer.remote_host,
            self._store_host,
            properties,
            header.flag,
            header.sys_flag & ~_TRANSACTION_BITS,
            header.reconsume_times or 0,
            way=Way.REPLY,
        )
        try:
            self._intake.admit(message, request.now_ms)
        except NotTaken:
            return nowhere
        batch = self._intake.put([message.to_put()], request.now_ms)
        self._checks.topics.drafts.make(batch.refused)
        if batch.refused:
            return nowhere
        physical_offset, _, queue_offset = batch.places[0]
        return SendMessageResponseHeader(
            msg_id=message_ids(self._host, (physical_offset,)).decode(),
            queue_id=queue_id,
            queue_offset=queue_offset,
        )
