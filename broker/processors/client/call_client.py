# SPDX-License-Identifier: Apache-2.0
"""Questions to consumers that the broker passes on: 307, 309, 223.

GET_CONSUMER_RUNNING_INFO and CONSUME_MESSAGE_DIRECTLY go to one consumer, whose answer is handed on
as it is. Where there are accounts, a message that is to be consumed needs Sub of its own topic. A
consumer that is not there or too old is SYSTEM_ERROR (1), one that does not answer in 10 s
CONSUME_MSG_TIMEOUT (207). INVOKE_BROKER_TO_GET_CONSUMER_STATUS asks all of a group and leaves out
those that do not answer in 5 s. Java: AdminBrokerProcessor.callConsumer, Broker2Client.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import partial
from typing import Any

from txrocketmq.broker.accounts.access import CheckFound
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.disk.steps import Steps
from txrocketmq.broker.store.message_store import MessageStore
from txrocketmq.broker.tables.clients import Client, Consumers
from txrocketmq.broker.tables.subscription import SubscriptionGroups
from txrocketmq.broker.tables.topic import Topics
from txrocketmq.broker.work.patience import Patience
from txrocketmq.broker.work.walks import BodyPieces, Walk, Walks
from txrocketmq.remoting.call import Call, PendingReply, Reply, Request
from txrocketmq.remoting.codes import MQVersion, ResponseCode
from txrocketmq.remoting.dispatch import serves
from txrocketmq.remoting.errors import HeaderError, RequestTimeout, ResponseError
from txrocketmq.remoting.header import Header, NoHeader
from txrocketmq.remoting.message.ids import MessageIdError, decode_message_id
from txrocketmq.remoting.message.message import MessageQueue, decode_message
from txrocketmq.remoting.protocol import offset
from txrocketmq.remoting.protocol.body.offset import GetConsumerStatusBody
from txrocketmq.remoting.protocol.offset import GetConsumerStatusRequestHeader
from txrocketmq.remoting.protocol.operations import admin
from txrocketmq.remoting.protocol.operations.admin import (
    ConsumeMessageDirectlyResultRequestHeader,
    GetConsumerRunningInfoRequestHeader,
)
from txrocketmq.remoting.serialize.json import HOLE, encode_member

CALL_TIMEOUT_MS = 10_000
STATUS_TIMEOUT_MS = 5_000


class CallClientProcessor:
    """Relays questions to consumers."""

    def __init__(
        self,
        config: BrokerConfig,
        topics: Topics,
        groups: SubscriptionGroups,
        consumers: Consumers,
        store: MessageStore,
        patience: Patience,
        walks: Walks,
        check_consumed: CheckFound | None = None,
    ) -> None:
        self._check_consumed = check_consumed
        self._config = config
        self._topics = topics
        self._groups = groups
        self._consumers = consumers
        self._store = store
        self._patience = patience
        self._walks = walks

    @serves(admin.GET_CONSUMER_RUNNING_INFO)
    def running_info(self, request: Request[GetConsumerRunningInfoRequestHeader]) -> PendingReply:
        """Asks a consumer what it is doing."""
        header = request.header
        return self._call(
            admin.GET_CONSUMER_RUNNING_INFO, header, b"", header.consumer_group, header.client_id
        )

    @serves(admin.CONSUME_MESSAGE_DIRECTLY)
    def consume_directly(
        self, request: Request[ConsumeMessageDirectlyResultRequestHeader]
    ) -> Reply[Any] | PendingReply:
        """Has a consumer consume a stored message now."""
        return self._patience.answer(request.peer, partial(self._consume, request))

    def _consume(self, request: Request[ConsumeMessageDirectlyResultRequestHeader]) -> PendingReply:
        header = request.header
        topic = self._topics.get(header.topic or "")
        group = self._groups.expected(header.consumer_group)
        told = dataclasses.replace(
            header,
            broker_name=self._config.broker_name,
            topic_sys_flag=header.topic_sys_flag if topic is None else topic.topic_sys_flag,
            group_sys_flag=header.group_sys_flag if group is None else group.group_sys_flag,
        )
        return self._call(
            admin.CONSUME_MESSAGE_DIRECTLY,
            told,
            self._record(request, header.msg_id or ""),
            header.consumer_group,
            header.client_id or "",
        )

    def _record(self, request: Request[Any], msg_id: str) -> bytes:
        try:
            at = decode_message_id(msg_id).commit_log_offset
        except MessageIdError as error:
            raise ResponseError(ResponseCode.SYSTEM_ERROR, str(error)) from None
        record = self._store.message_at(at)
        if record is None:
            raise ResponseError(
                ResponseCode.SYSTEM_ERROR, f"can not find message by the offset, {at}"
            )
        if self._check_consumed is not None:
            # The request may name another topic than that of the message, or none.
            topic = decode_message(record, decompress_body=False)[0].topic
            self._check_consumed(request.peer, request.command, topic)
        return bytes(record)

    def _call(
        self, call: Call[Any, Any], header: Header, body: bytes, group: str, client_id: str
    ) -> PendingReply:
        found = self._consumers.group(group)
        client = found.find(client_id) if found is not None else None
        if client is None:
            raise ResponseError(
                ResponseCode.SYSTEM_ERROR, f"The Consumer <{group}> <{client_id}> not online"
            )
        if client.version < MQVersion.V3_1_8_SNAPSHOT:
            raise ResponseError(
                ResponseCode.SYSTEM_ERROR,
                f"The Consumer <{client_id}> Version <{client.version}> too low to finish, please"
                " upgrade it to V3_1_8_SNAPSHOT",
            )
        pending = PendingReply()

        def answered(outcome: Reply[Any] | Exception) -> None:
            if isinstance(outcome, RequestTimeout):
                pending.resolve(
                    ResponseError(
                        ResponseCode.CONSUME_MSG_TIMEOUT,
                        f"consumer <{group}> <{client_id}> Timeout: {outcome}",
                    )
                )
            elif isinstance(outcome, Exception):
                pending.resolve(
                    ResponseError(
                        ResponseCode.SYSTEM_ERROR,
                        f"invoke consumer <{group}> <{client_id}> Exception: {outcome}",
                    )
                )
            else:
                pending.resolve(
                    Reply(
                        body=outcome.body,
                        code=outcome.code,
                        remark=outcome.remark,
                        ext_fields=outcome.ext_fields,
                    )
                )

        client.peer.invoke(call, header, body, timeout_ms=CALL_TIMEOUT_MS).then(answered)
        return pending

    @serves(offset.INVOKE_BROKER_TO_GET_CONSUMER_STATUS)
    def status(
        self, request: Request[GetConsumerStatusRequestHeader]
    ) -> Reply[NoHeader] | PendingReply:
        """Asks each consumer of a group how far it has come in a topic."""
        return self._walks.answer(self._status(request.header))

    def _status(self, header: GetConsumerStatusRequestHeader) -> Walk:
        group = self._consumers.group(header.group)
        members = list(group.members.values()) if group is not None else []
        if not members:
            raise ResponseError(
                ResponseCode.SYSTEM_ERROR,
                f"No Any Consumer online in the consumer group: [{header.group}]",
            )
        for client in members:
            yield
            if client.version < MQVersion.V3_0_7_SNAPSHOT:
                raise ResponseError(
                    ResponseCode.SYSTEM_ERROR,
                    f"the client does not support this feature. version={client.version}",
                )
        wanted = header.client_addr
        clients = [c for c in members if wanted in (None, "", c.client_id)]
        return (yield from self._ask_all(header, clients))

    def _ask_all(self, header: GetConsumerStatusRequestHeader, clients: list[Client]) -> Walk:
        pending = PendingReply(is_work=True)
        table: dict[str, Mapping[MessageQueue, int]] = {}
        waiting = {id(client) for client in clients}

        def answered(client: Client, outcome: Reply[Any] | Exception) -> None:
            waiting.discard(id(client))
            if isinstance(outcome, Reply) and outcome.code == ResponseCode.SUCCESS and outcome.body:
                try:
                    body = GetConsumerStatusBody.decode(outcome.body_bytes)
                    table[client.client_id] = body.message_queue_table
                except HeaderError:
                    pass  # as one that did not answer
            if not waiting:
                self._walks.begin(_tables(table), pending.resolve)

        told = GetConsumerStatusRequestHeader(topic=header.topic, group=header.group)
        for client in clients:
            client.peer.invoke(
                offset.GET_CONSUMER_STATUS_FROM_CLIENT, told, timeout_ms=STATUS_TIMEOUT_MS
            ).then(partial(answered, client))
            yield
        if not clients:
            pending.resolve(Reply(body=GetConsumerStatusBody().encode()))
        return pending


def _tables(table: Mapping[str, Mapping[MessageQueue, int]]) -> Steps[Reply[NoHeader]]:
    """Puts the answers of all clients together."""
    body = BodyPieces({**GetConsumerStatusBody().to_json(), "consumerTable": HOLE}, "{}")
    for client_id, offsets in table.items():
        body.add(encode_member(client_id, offsets))
        yield
    return Reply(body=body.end())
