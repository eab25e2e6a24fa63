# SPDX-License-Identifier: Apache-2.0
"""QUERY_ASSIGNMENT, SET_MESSAGE_REQUEST_MODE, GET_ALL_MESSAGE_REQUEST_MODE (5.x).

The broker rebalances for a consumer that asks: it shares out the topic's queues on all brokers
among the group's members here. When a group pops a topic, a client may get queues of others, too:
those of the next clients in the list, or all queues of all brokers, which queue id -1 stands for.
The answer has no assignments when the topic is unknown, the group has no members here, or the
strategy is unknown; the consumer then keeps its queues. Codes: 16 for retry topics, 17, 26. Java:
QueryAssignmentProcessor.
"""

from __future__ import annotations

from dataclasses import replace

from txrocketmq.broker.cluster.topic_routes import QueueList, TopicRoutes
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.disk.steps import Steps
from txrocketmq.broker.store.queues.light_queues import QUEUE_ID, is_light
from txrocketmq.broker.tables.clients import BROADCASTING, Consumers
from txrocketmq.broker.tables.message_request_mode import MessageRequestModes
from txrocketmq.broker.tables.subscription import SubscriptionGroups
from txrocketmq.broker.tables.topic import Topics
from txrocketmq.broker.work.walks import BodyPieces, Walk, Walks
from txrocketmq.remoting.call import PendingReply, Reply, Request
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.dispatch import serves
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.message.allocation import (
    STRATEGIES,
    Strategy,
    consistent_hash,
    consistent_hash_in_steps,
)
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.message.topics import RETRY_PREFIX
from txrocketmq.remoting.protocol import pull
from txrocketmq.remoting.protocol.body.base import SHORT_BYTES
from txrocketmq.remoting.protocol.body.pop import (
    MessageQueueAssignment,
    MessageRequestModeSerializeWrapper,
    QueryAssignmentRequestBody,
    QueryAssignmentResponseBody,
    SetMessageRequestModeRequestBody,
)
from txrocketmq.remoting.serialize.json import HOLE, encode_member

PULL = "PULL"
POP = "POP"
_QUEUES_A_STEP = 16


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
        walks: Walks,
    ) -> None:
        self._config = config
        self._topics = topics
        self._groups = groups
        self._consumers = consumers
        self._routes = routes
        self._modes = modes
        self._walks = walks

    @serves(pull.QUERY_ASSIGNMENT)
    def assignment(self, request: Request[NoHeader]) -> PendingReply:
        """Returns the queues of one consumer."""
        wanted = QueryAssignmentRequestBody.decode(request.body, SHORT_BYTES)
        pending = PendingReply()

        def found(queues: QueueList | None) -> None:
            self._walks.begin(self._assigned(wanted, queues), pending.resolve)

        topic = wanted.topic or ""
        if is_light(topic) and self._topics.get(topic) is not None:
            # No name server has a light queue: it is on the broker that has its messages.
            found([MessageQueue(topic, self._config.broker_name, QUEUE_ID)])
        else:
            self._routes.find(topic, found)
        return pending

    def _assigned(
        self, wanted: QueryAssignmentRequestBody, queues: QueueList | None
    ) -> Steps[Reply[NoHeader]]:
        mode = self._mode(wanted.topic or "", wanted.consumer_group or "")
        shared = None if queues is None else (yield from self._shared(wanted, queues, mode))
        if shared is None:
            return Reply(body=QueryAssignmentResponseBody().encode())
        body = BodyPieces({"messageQueueAssignments": HOLE}, "[]")
        for count, queue in enumerate(dict.fromkeys(shared), 1):
            body.add(MessageQueueAssignment(message_queue=queue, mode=mode.mode).encode())
            if count % _QUEUES_A_STEP == 0:
                yield
        return Reply(body=body.end())

    def _mode(self, topic: str, group: str) -> SetMessageRequestModeRequestBody:
        """Returns how a group consumes a topic; retry topics are always pulled."""
        mode = self._modes.get(topic, group)
        if mode is not None:
            return mode
        if topic.startswith(RETRY_PREFIX):
            return SetMessageRequestModeRequestBody(mode=PULL)
        config = self._config
        return SetMessageRequestModeRequestBody(
            mode=config.default_message_request_mode,
            pop_share_queue_num=config.default_pop_share_queue_num,
        )

    def _shared(
        self,
        wanted: QueryAssignmentRequestBody,
        queues: QueueList,
        mode: SetMessageRequestModeRequestBody,
    ) -> Steps[QueueList | None]:
        if wanted.message_model == BROADCASTING or not self._config.server_load_balancer_enable:
            return queues
        group = self._consumers.group(wanted.consumer_group or "")
        strategy = STRATEGIES.get(wanted.strategy_name or "")
        if group is None or strategy is None or not wanted.client_id or not queues:
            return None
        if mode.mode == POP:
            return (
                yield from _shared_for_pop(
                    strategy, wanted.client_id, queues, group.client_ids(), mode.pop_share_queue_num
                )
            )
        return (yield from _allocated(strategy, wanted.client_id, queues, group.client_ids()))

    @serves(pull.SET_MESSAGE_REQUEST_MODE)
    def set_mode(self, request: Request[NoHeader]) -> Reply[NoHeader] | PendingReply:
        """Sets how a group is to consume a topic."""
        wanted = SetMessageRequestModeRequestBody.decode(request.body, SHORT_BYTES)
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
        self._modes.set(wanted)
        return self._modes.saving.answer(Reply())

    @serves(pull.GET_ALL_MESSAGE_REQUEST_MODE)
    def all_modes(self, request: Request[NoHeader]) -> Reply[NoHeader] | PendingReply:
        """Returns all modes, for slaves."""
        return self._walks.answer(self._all_modes())

    def _all_modes(self) -> Walk:
        body = BodyPieces(
            {**MessageRequestModeSerializeWrapper().to_json(), "messageRequestModeMap": HOLE}, "{}"
        )
        for topic, modes in self._modes.entries():
            body.add(encode_member(topic, modes))
            yield
        return Reply(body=body.end())


def _shared_for_pop(
    strategy: Strategy, client_id: str, queues: QueueList, client_ids: list[str], share: int
) -> Steps[QueueList]:
    """The queues of a client that pops, and those of `share` other clients (allocate4Pop)."""
    if share <= 0 or share >= len(client_ids) - 1:
        return [replace(queue, queue_id=-1) for queue in queues]
    if client_id not in client_ids:
        return []
    at = client_ids.index(client_id)
    if len(client_ids) > len(queues):
        return [queues[at % len(queues)]]
    ids = [client_ids[(at + each) % len(client_ids)] for each in range(share + 1)]
    found: list[MessageQueue] = []
    for each in ids:
        found += yield from _allocated(strategy, each, queues, client_ids)
        yield
    return found


def _allocated(
    strategy: Strategy, client_id: str, queues: QueueList, client_ids: list[str]
) -> Steps[list[MessageQueue]]:
    """The queues of a client; the only strategy with much to do takes small steps."""
    if strategy is consistent_hash:
        return (yield from consistent_hash_in_steps(client_id, queues, client_ids))
    return strategy(client_id, queues, client_ids)
