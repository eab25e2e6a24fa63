# SPDX-License-Identifier: Apache-2.0
"""Queues with messages at a fake broker, for commands that read them."""

from __future__ import annotations

from typing import Any

from tests.client.fakes import BROKER_A, Scene, a_route
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.message.ids import Host
from txrocketmq.remoting.message.message import MessageExt, encode_message
from txrocketmq.remoting.protocol import offset, pull
from txrocketmq.remoting.protocol.offset import (
    GetMaxOffsetResponseHeader,
    GetMinOffsetResponseHeader,
    SearchOffsetResponseHeader,
)
from txrocketmq.remoting.protocol.pull import PullMessageResponseHeader

HOST = Host("10.0.1.1", 10911)


class Stored:
    """Topics at broker-a; `put` stores a message. Pulls give `at_once` messages and never wait."""

    def __init__(self, scene: Scene, at_once: int = 2) -> None:
        self.scene = scene
        self.at_once = at_once
        self.queues: dict[tuple[str, int], list[MessageExt]] = {}
        self.first: dict[tuple[str, int], int] = {}
        """The first offset of queues whose beginning has expired."""
        self.pulls = 0
        on = scene.connections.on
        on(BROKER_A, pull.PULL_MESSAGE, self._pull)
        on(BROKER_A, offset.GET_MIN_OFFSET, self._min)
        on(BROKER_A, offset.GET_MAX_OFFSET, self._max)
        on(BROKER_A, offset.SEARCH_OFFSET_BY_TIMESTAMP, self._search)

    def topic(self, name: str, queues: int) -> None:
        """Adds an empty topic."""
        self.scene.routes[name] = a_route({"broker-a": queues})
        self.queues.update({(name, n): [] for n in range(queues)})

    def put(
        self, topic: str, queue_id: int, body: bytes, time_ms: int, **properties: str
    ) -> MessageExt:
        """Stores a message."""
        queue = self.queues[topic, queue_id]
        message = MessageExt(
            topic,
            body,
            properties=properties,
            queue_id=queue_id,
            queue_offset=len(queue),
            store_timestamp=time_ms,
            store_host=HOST,
            commit_log_offset=1000 * queue_id + len(queue),
            broker_name="broker-a",
        )
        queue.append(message)
        return message

    def _min(self, _: str, header: Any, __: bytes) -> Reply[Any]:
        first = self.first.get((header.topic, header.queue_id), 0)
        return Reply(GetMinOffsetResponseHeader(offset=first))

    def _max(self, _: str, header: Any, __: bytes) -> Reply[Any]:
        queue = self.queues[header.topic, header.queue_id]
        return Reply(GetMaxOffsetResponseHeader(offset=len(queue)))

    def _search(self, _: str, header: Any, __: bytes) -> Reply[Any]:
        queue = self.queues[header.topic, header.queue_id]
        found = [each for each in queue if each.store_timestamp >= header.timestamp]
        place = found[0].queue_offset if found else len(queue)
        return Reply(SearchOffsetResponseHeader(offset=place))

    def _pull(self, _: str, header: Any, __: bytes) -> Reply[Any]:
        self.pulls += 1
        queue = self.queues[header.topic, header.queue_id]
        start = header.queue_offset
        found = queue[start : start + min(self.at_once, header.max_msg_nums)]
        answer = PullMessageResponseHeader(
            suggest_which_broker_id=0,
            next_begin_offset=start + len(found),
            min_offset=0,
            max_offset=len(queue),
        )
        if not found:
            return Reply(answer, code=ResponseCode.PULL_NOT_FOUND)
        return Reply(answer, b"".join(map(encode_message, found)))
