# SPDX-License-Identifier: Apache-2.0
"""QUERY_ASSIGNMENT, SET_MESSAGE_REQUEST_MODE, GET_ALL_MESSAGE_REQUEST_MODE (5.x).

The broker rebalances for a consumer that asks: the queues of the topic in all brokers, shared out
among the group's members here. Without assignments in the answer the consumer keeps what it has:
the topic is unknown, the group has no members here, or the strategy is none of ours. Modes other
than PULL are refused (16): POP is not served. Codes else: 16 for retry topics, 17, 26. Java:
QueryAssignmentProcessor.
"""

from __future__ import annotations

from txrocketmq.broker.clients import BROADCASTING, Consumers
from txrocketmq.broker.config import BrokerConfig
from txrocketmq.broker.message_request_mode import MessageRequestModes
from txrocketmq.broker.subscription import SubscriptionGroups
from txrocketmq.broker.topic import Topics
from txrocketmq.broker.topic_routes import Queues, TopicRoutes
from txrocketmq.remoting.call import PendingReply, Reply, Request
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.dispatch import serves
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.message.allocate import STRATEGIES
from txrocketmq.remoting.message.topics import RETRY_PREFIX
from txrocketmq.remoting.protocol import pull
from txrocketmq.remoting.protocol.body.pop import (
    MessageQueueAssignment,
    QueryAssignmentRequestBody,
    QueryAssignmentResponseBody,
    SetMessageRequestModeRequestBody,
)

PULL = "PULL"


class AssignmentProcessor:
    """Shares out queues."""

    def __init__(
        self,
        config: BrokerConfig,
        topics: Topics,
        groups: SubscriptionGroups,
        consumers: Consumers,
        routes: TopicRoutes,
        modes: MessageRequestModes,
    ) -> None:
        self._config = config
        self._topics = topics
        self._groups = groups
        self._consumers = consumers
        self._routes = routes
        self._modes = modes

    @serves(pull.QUERY_ASSIGNMENT)
    def assignment(self, request: Request[NoHeader]) -> PendingReply:
        """The queues of one consumer."""
        wanted = QueryAssignmentRequestBody.decode(request.body)
        pending = PendingReply()

        def found(queues: Queues | None) -> None:
            shared = None if queues is None else self._shared(wanted, queues)
            body = QueryAssignmentResponseBody(
                message_queue_assignments=None
                if shared is None
                else [MessageQueueAssignment(message_queue=queue, mode=PULL) for queue in shared]
            )
            pending.resolve(Reply(body=body.encode()))

        self._routes.find(wanted.topic or "", found)
        return pending

    def _shared(self, wanted: QueryAssignmentRequestBody, queues: Queues) -> Queues | None:
        if wanted.message_model == BROADCASTING or not self._config.server_load_balancer_enable:
            return queues
        group = self._consumers.group(wanted.consumer_group or "")
        strategy = STRATEGIES.get(wanted.strategy_name or "")
        if group is None or strategy is None or not wanted.client_id or not queues:
            return None
        return strategy(wanted.client_id, queues, group.client_ids())

    @serves(pull.SET_MESSAGE_REQUEST_MODE)
    def set_mode(self, request: Request[NoHeader]) -> Reply[NoHeader]:
        """How a group is to consume a topic."""
        wanted = SetMessageRequestModeRequestBody.decode(request.body)
        topic, group = wanted.topic or "", wanted.consumer_group or ""
        if topic.startswith(RETRY_PREFIX):
            raise ResponseError(
                ResponseCode.NO_PERMISSION, "retry topic is not allowed to set mode"
            )
        if self._topics.get(topic) is None:
            raise ResponseError(ResponseCode.TOPIC_NOT_EXIST, f"topic[{topic}] not exist")
        if self._groups.find(group) is None:
            raise ResponseError(
                ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, "subscription group does not exist"
            )
        if wanted.mode != PULL:
            raise ResponseError(
                ResponseCode.NO_PERMISSION, f"mode {wanted.mode} is not served by this broker"
            )
        self._modes.set(wanted)
        return Reply()

    @serves(pull.GET_ALL_MESSAGE_REQUEST_MODE)
    def all_modes(self, request: Request[NoHeader]) -> Reply[NoHeader]:
        """All modes, for slaves."""
        return Reply(body=self._modes.table().encode())
