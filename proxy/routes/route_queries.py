# SPDX-License-Identifier: Apache-2.0
"""Answers which queues a topic has, and which of them a consumer receives from.

Queues are not shared out: every consumer of a group receives from all of them, and POP divides the
messages. A topic that nobody has is made only if `auto_create_topic_enable` says so.

Java: RouteActivity.
"""

from __future__ import annotations

from typing import Any, Final

from txrocketmq.proxy.base.names import group_of, topic_of
from txrocketmq.proxy.base.rights import consuming, finding
from txrocketmq.proxy.base.statuses import Refused, answered, set_status
from txrocketmq.proxy.cluster.groups import Groups
from txrocketmq.proxy.cluster.topics import Topics
from txrocketmq.proxy.grpc.call import Call
from txrocketmq.proxy.grpc.service import rpc
from txrocketmq.proxy.routes.queues import QueueView, checked_endpoints
from txrocketmq.proxy.schema.codes import Code
from txrocketmq.proxy.schema.messages import message_type
from txrocketmq.proxy.sessions.metadata import client_id_of
from txrocketmq.remoting.host.clock import Clock

IN_A_TURN: Final = 256
"""How many queues of an answer are made in one turn of the reactor."""


class RouteQueries:
    """Serves them."""

    def __init__(self, clock: Clock, topics: Topics, groups: Groups) -> None:
        self._clock = clock
        self._topics = topics
        self._groups = groups

    @rpc("QueryRoute", rights=finding(lambda request: str(request.topic.name)))
    @answered("QueryRouteResponse")
    async def query_route(self, call: Call, request: Any) -> Any:
        """Returns all queues of a topic."""
        client_id_of(call)
        topic = topic_of(request.topic)
        view = await self._view(call, topic, request)
        answer = message_type("QueryRouteResponse")()
        for number, queue in enumerate(view.all(), 1):
            answer.message_queues.append(queue)
            if number % IN_A_TURN == 0:
                await self._clock.pause(0)
        return set_status(answer, Code.OK)

    @rpc("QueryAssignment", rights=consuming())
    @answered("QueryAssignmentResponse")
    async def query_assignment(self, call: Call, request: Any) -> Any:
        """Returns what a consumer receives from."""
        client_id_of(call)
        topic, group = topic_of(request.topic), group_of(request.group)
        view = await self._view(call, topic, request)
        config = await self._groups.config(group)
        answer = message_type("QueryAssignmentResponse")()
        queues = view.assigned(is_orderly=config.consume_message_orderly)
        for number, queue in enumerate(queues, 1):
            answer.assignments.add().message_queue.CopyFrom(queue)
            if number % IN_A_TURN == 0:
                await self._clock.pause(0)
        if not answer.assignments:
            raise Refused(Code.FORBIDDEN, f"no readable queue: topic {topic}")
        return set_status(answer, Code.OK)

    async def _view(self, call: Call, topic: str, request: Any) -> QueueView:
        endpoints = checked_endpoints(request.endpoints, call.local)
        route = await self._topics.route(topic, call)
        types = await self._topics.types(topic)
        return QueueView(route, request.topic, endpoints, types)
