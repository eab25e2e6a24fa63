# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import pytest

from txrocketmq.broker.cluster import topic_routes
from txrocketmq.broker.cluster.topic_routes import QueueList, TopicRoutes, readable_queues
from txrocketmq.broker.store.disk.steps import Steps, finished
from txrocketmq.remoting.call import PendingReply, Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import ConnectError
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.protocol.body.route import QueueData, TopicRouteData


def route(*queues: QueueData) -> Reply[Any]:
    return Reply(body=TopicRouteData(queue_datas=queues).encode_standard())


ONE_QUEUE = QueueData(broker_name="b", read_queue_nums=1, write_queue_nums=1, perm=6)
QUEUE = MessageQueue("T", "b", 0)


class NameServers:
    """Keeps what is asked, to be answered by the test."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, PendingReply]] = []

    def ask(self, topic: str) -> PendingReply:
        pending = PendingReply()
        self.asked.append((topic, pending))
        return pending


def test_queues_of_all_brokers_in_order_if_they_may_be_read() -> None:
    data = TopicRouteData(
        queue_datas=[
            QueueData(broker_name="c", read_queue_nums=1, write_queue_nums=9, perm=4),
            QueueData(broker_name="b", read_queue_nums=2, write_queue_nums=0, perm=6),
            QueueData(broker_name="a", read_queue_nums=1, write_queue_nums=1, perm=2),
        ]
    )
    assert readable_queues("T", data) == [
        MessageQueue("T", "b", 0),
        MessageQueue("T", "b", 1),
        MessageQueue("T", "c", 0),
    ]


def test_a_topic_is_asked_for_once() -> None:
    servers, found = NameServers(), list[QueueList | None]()
    routes = TopicRoutes(servers.ask)
    routes.find("T", found.append)
    assert found == []
    servers.asked[0][1].resolve(route(ONE_QUEUE))
    routes.find("T", found.append)
    assert found == [[QUEUE], [QUEUE]]
    assert [topic for topic, _ in servers.asked] == ["T"]


def test_those_who_wait_for_the_same_route_are_told_one_after_another() -> None:
    servers, found, begun = NameServers(), list[QueueList | None](), list[Steps[None]]()
    routes = TopicRoutes(servers.ask, begun.append)
    for _ in range(100):
        routes.find("T", found.append)
    assert len(servers.asked) == 1
    servers.asked[0][1].resolve(route(ONE_QUEUE))
    assert found == []
    next(begun[0])
    next(begun[0])
    assert found == [[QUEUE]] * 2
    assert [*begun[0]] == [None] * 98
    assert found == [[QUEUE]] * 100


@pytest.mark.parametrize(
    "answer",
    [
        ConnectError("nobody"),
        Reply(code=ResponseCode.TOPIC_NOT_EXIST),
        Reply(code=ResponseCode.SYSTEM_ERROR),
        Reply(body=b"{broken"),
    ],
)
def test_without_a_route_there_are_no_queues(answer: Reply[Any] | Exception) -> None:
    servers, found = NameServers(), list[QueueList | None]()
    routes = TopicRoutes(servers.ask)
    for turn in range(2):
        routes.find("T", found.append)
        servers.asked[turn][1].resolve(answer)
    assert found == [None, None]


def test_a_refresh_takes_what_is_new_and_keeps_what_cannot_be_asked() -> None:
    servers, found = NameServers(), list[QueueList | None]()
    routes = TopicRoutes(servers.ask)
    for topic in ("T", "U", "V"):
        routes.find(topic, lambda _: None)
        servers.asked[-1][1].resolve(route(ONE_QUEUE))
    finished(routes.refresh())
    t, u, v = (pending for _, pending in servers.asked[3:])
    t.resolve(route())
    u.resolve(ConnectError("nobody"))
    v.resolve(Reply(code=ResponseCode.TOPIC_NOT_EXIST))
    routes.find("U", found.append)
    assert found == [[MessageQueue("U", "b", 0)]]
    routes.find("T", found.append)
    routes.find("V", found.append)
    assert [topic for topic, _ in servers.asked[6:]] == ["T", "V"]


def test_only_so_many_topics_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_routes, "MAX_TOPICS", 1)
    servers, found = NameServers(), list[QueueList | None]()
    routes = TopicRoutes(servers.ask)
    for topic in ("T", "U"):
        routes.find(topic, found.append)
        servers.asked[-1][1].resolve(route(ONE_QUEUE))
    assert found == [[QUEUE], None]


def test_a_step_asks_for_one_topic() -> None:
    servers = NameServers()
    routes = TopicRoutes(servers.ask)
    for number in range(3):
        routes.find(f"T{number}", lambda _: None)
        servers.asked[number][1].resolve(route(ONE_QUEUE))
    for asked, _ in enumerate(routes.refresh(), 4):
        assert len(servers.asked) == asked
    assert asked == 6


def test_one_who_raises_does_not_keep_the_others_waiting() -> None:
    servers, found = NameServers(), list[QueueList | None]()
    routes = TopicRoutes(servers.ask)

    def fails(_: QueueList | None) -> None:
        raise ValueError("a defect")

    for then in (found.append, fails, found.append, fails, found.append):
        routes.find("T", then)
    with pytest.raises(ValueError, match="a defect"):
        servers.asked[0][1].resolve(route(ONE_QUEUE))
    assert found == [[QUEUE]] * 3
    routes.find("T", found.append)
    assert len(found) == 4
