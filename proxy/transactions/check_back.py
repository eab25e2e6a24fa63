# SPDX-License-Identifier: Apache-2.0
"""Brokers ask what became of transactions, and the proxy asks a producer of the topic.

So that brokers can ask somebody, they are told of the topics that have producers here, in
heartbeats in which each topic is a group of producers. A producer answers by ending the
transaction.

Java: TransactionServiceImpl, ProxyClientRemotingProcessor.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import islice
from typing import Any, Final

from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from txrocketmq.proxy.cluster.cluster import Cluster
from txrocketmq.proxy.cluster.topics import Topics
from txrocketmq.proxy.cluster.transaction_ids import TransactionId
from txrocketmq.proxy.receives.message_out import plain_message
from txrocketmq.proxy.schema.enums import MessageType
from txrocketmq.proxy.schema.messages import message_type
from txrocketmq.proxy.sessions.clients import Clients
from txrocketmq.remoting.call import Reply, Request
from txrocketmq.remoting.dispatch import serves
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.host.clock import Repeating
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.message import MessageDecodeError, decode_message
from txrocketmq.remoting.protocol import heartbeat, transaction
from txrocketmq.remoting.protocol.body.heartbeat import HeartbeatData, ProducerData
from txrocketmq.remoting.protocol.heartbeat import HeartbeatRequestHeader
from txrocketmq.remoting.protocol.transaction import CheckTransactionStateRequestHeader
from txrocketmq.remoting.transport.client import Connections

CLIENT_ID: Final = "rmq-proxy-producer-client"
MAX_TOPICS: Final = 10_000
"""How many topics with transactions brokers are told of."""
_COMMAND: Final = message_type("TelemetryCommand")

log = Logger()


class CheckBack:
    """Tells brokers of producers, and hands on their questions."""

    def __init__(self, clients: Clients, client_name: str) -> None:
        self._clients = clients
        self._client_id = f"{CLIENT_ID}@{client_name}"
        self._cluster: Cluster | None = None
        self._topics: Topics | None = None
        self._connections: Connections | None = None
        self._beating: Repeating | None = None

    def start(self, cluster: Cluster, topics: Topics, connections: Connections) -> None:
        """Begins to send heartbeats over the connections over which brokers will ask."""
        self._cluster, self._topics, self._connections = cluster, topics, connections
        period_ms = 1_000 * cluster.config.transaction_heartbeat_period_second
        self._beating = cluster.clock.every(period_ms, self._beat, first_ms=1_000)

    def stop(self) -> None:
        """Ends that."""
        if self._beating is not None:
            self._beating.cancel()

    def _beat(self) -> None:
        Deferred.fromCoroutine(self.beat()).addErrback(_log)

    async def beat(self) -> None:
        """Tells all brokers of the topics with transactions, so many in one heartbeat."""
        assert self._cluster is not None
        assert self._topics is not None
        topics = []
        for topic in list(islice(self._clients.published(), MAX_TOPICS)):
            if MessageType.TRANSACTION in await self._topics.types(topic):
                await self._cluster.routes.get(topic)
                topics.append(topic)
        most = self._cluster.config.transaction_heartbeat_batch_num
        for start in range(0, len(topics), most):
            self._tell(topics[start : start + most])
            await self._cluster.clock.pause(0)

    def _tell(self, topics: Sequence[str]) -> None:
        assert self._cluster is not None
        assert self._connections is not None
        data = HeartbeatData(
            client_id=self._client_id,
            producer_data_set=[ProducerData(group_name=topic) for topic in topics],
        ).encode()
        for address in self._cluster.brokers.masters():
            self._connections.invoke_oneway(
                address, heartbeat.HEART_BEAT, HeartbeatRequestHeader(), data
            )

    @serves(transaction.CHECK_TRANSACTION_STATE)
    def check_transaction_state(
        self, request: Request[CheckTransactionStateRequestHeader]
    ) -> Reply[NoHeader]:
        """Hands a broker's question on to a producer of the topic; it answers by a call."""
        try:
            message, _ = decode_message(request.body)
        except MessageDecodeError as error:
            log.warn("a broker asks about a transaction without its message: {e}", e=str(error))
            return Reply()
        topic = message.properties.get(names.PGROUP) or message.topic
        asked = [each for each in self._clients.producers(topic) if each.streams]
        broker_name = request.header.bname
        if not broker_name and self._cluster is not None:
            broker_name = self._cluster.name_of(request.peer.remote_address)
        if not asked or not broker_name:
            log.warn("a broker asks about a transaction of topic {topic}, but no producer of it is"
                     " here", topic=topic)  # fmt: skip
            return Reply()
        command = _COMMAND()
        recover = command.recover_orphaned_transaction_command
        recover.message.CopyFrom(plain_message(message, message.topic, request.now_ms))
        its = TransactionId(
            message.msg_id,
            broker_name,
            request.header.tran_state_table_offset,
            request.header.commit_log_offset,
        )
        recover.transaction_id = str(its)
        random.choice(asked).streams[-1].tell(command)
        return Reply()

    @serves(heartbeat.NOTIFY_CONSUMER_IDS_CHANGED)
    def notify_consumer_ids_changed(self, request: Request[Any]) -> Reply[NoHeader]:
        """Is passed over: the consumers of the proxy share no queues."""
        return Reply()


def _log(failure: Failure) -> None:
    log.warn("brokers do not get the outcomes of transactions: {e}", e=failure.getErrorMessage())
