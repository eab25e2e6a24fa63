# SPDX-License-Identifier: Apache-2.0
"""Ends transactions, and recalls delayed messages.

The id of a transaction says which broker has its half message, and where. A broker is told without
an answer, as it is by every producer.

Java: EndTransactionActivity, TransactionProcessor, RecallMessageActivity.
"""

from __future__ import annotations

from typing import Any, Final

from txrocketmq.proxy.base.names import topic_of
from txrocketmq.proxy.base.rights import publishing
from txrocketmq.proxy.base.statuses import Refused, answered, set_status
from txrocketmq.proxy.cluster.cluster import TIMEOUT_MS, Cluster
from txrocketmq.proxy.cluster.topics import Topics
from txrocketmq.proxy.cluster.transaction_ids import TransactionId
from txrocketmq.proxy.grpc.call import Call
from txrocketmq.proxy.grpc.service import rpc
from txrocketmq.proxy.schema.codes import Code
from txrocketmq.proxy.schema.enums import MessageType, TransactionResolution, TransactionSource
from txrocketmq.proxy.schema.messages import message_type
from txrocketmq.proxy.sessions.clients import Clients
from txrocketmq.proxy.sessions.metadata import client_id_of
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.recall_handle import RecallHandle, RecallHandleError
from txrocketmq.remoting.protocol.send import RecallMessageRequestHeader
from txrocketmq.remoting.protocol.transaction import EndTransactionRequestHeader

_ENDS: Final = {
    TransactionResolution.COMMIT: MessageSysFlag.TRANSACTION_COMMIT_TYPE,
    TransactionResolution.ROLLBACK: MessageSysFlag.TRANSACTION_ROLLBACK_TYPE,
}


def _topic(request: Any) -> str:
    return str(request.topic.name)


class Ends:
    """Serves EndTransaction and RecallMessage."""

    def __init__(self, cluster: Cluster, topics: Topics, clients: Clients) -> None:
        self._cluster = cluster
        self._topics = topics
        self._clients = clients

    @rpc("EndTransaction", rights=publishing(_topic))
    @answered("EndTransactionResponse")
    async def end_transaction(self, call: Call, request: Any) -> Any:
        """Tells the broker of a half message how its transaction has ended."""
        self._clients.get(client_id_of(call))
        topic = topic_of(request.topic)
        if not request.transaction_id.strip():
            raise Refused(Code.INVALID_TRANSACTION_ID, "transaction id has not been set")
        its = TransactionId.parse(request.transaction_id)
        address = await self._cluster.address(its.broker_name, topic)
        if address is None:
            raise Refused(Code.INVALID_TRANSACTION_ID, f"there is no broker {its.broker_name:.100}")
        header = EndTransactionRequestHeader(
            topic=topic,
            producer_group=topic,
            tran_state_table_offset=its.queue_offset,
            commit_log_offset=its.commit_log_offset,
            commit_or_rollback=_ENDS.get(request.resolution, MessageSysFlag.TRANSACTION_NOT_TYPE),
            from_transaction_check=request.source == TransactionSource.SOURCE_SERVER_CHECK,
            msg_id=request.message_id,
            transaction_id=its.message_id,
            bname=its.broker_name,
        )
        self._cluster.api.end_transaction(address, header)
        return set_status(message_type("EndTransactionResponse")(), Code.OK)

    @rpc("RecallMessage", rights=publishing(_topic))
    @answered("RecallMessageResponse")
    async def recall_message(self, call: Call, request: Any) -> Any:
        """Withdraws a delayed message, and answers with its id."""
        self._clients.get(client_id_of(call))
        topic = topic_of(request.topic)
        types = await self._topics.types(topic)
        if self._cluster.config.enable_topic_message_type_check and MessageType.DELAY not in types:
            raise Refused(
                Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE,
                f"messages of topic {topic} cannot be recalled: it takes none that are delayed",
            )
        try:
            broker_name = RecallHandle.decode(request.recall_handle).broker_name
        except RecallHandleError as error:
            raise Refused(Code.BAD_REQUEST, str(error)) from None
        address = await self._cluster.address(broker_name, topic)
        if address is None:
            raise Refused(Code.BAD_REQUEST, f"there is no broker {broker_name:.100}")
        header = RecallMessageRequestHeader(
            topic=topic, recall_handle=request.recall_handle, bname=broker_name
        )
        answer = message_type("RecallMessageResponse")()
        answer.message_id = await self._cluster.api.recall(address, header, TIMEOUT_MS)
        return set_status(answer, Code.OK)
