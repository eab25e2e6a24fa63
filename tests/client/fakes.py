# SPDX-License-Identifier: Apache-2.0
"""A client without a network: answers are prepared, and time stands until it is advanced."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, TypeVar, cast

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock as ReactorClock
from twisted.python.failure import Failure

from txrocketmq.client.base.config import ClientConfig
from txrocketmq.client.core.instance import ClientInstance
from txrocketmq.remoting.call import Call, PendingReply, Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import ConnectError
from txrocketmq.remoting.header import Header
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.protocol.body.route import BrokerData, QueueData, TopicRouteData
from txrocketmq.remoting.protocol.route import GET_ROUTEINFO_BY_TOPIC
from txrocketmq.remoting.transport.client import Connections

T = TypeVar("T")
NAME_SERVER = "10.0.0.1:9876"
BROKER_A = "10.0.1.1:10911"
BROKER_B = "10.0.1.2:10911"

Outcome = Reply[Any] | Exception | PendingReply
Answer = Outcome | Callable[[str, Any, bytes], Outcome]


def given(outcome: Outcome) -> PendingReply:
    """Returns a pending reply resolved with the outcome, or the outcome if it is pending."""
    if isinstance(outcome, PendingReply):
        return outcome
    pending = PendingReply()
    pending.resolve(outcome)
    return pending


class FakeConnections:
    """Answers calls as prepared by `on`; other addresses and calls refuse the connection."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Call[Any, Any], Any, bytes, int]] = []
        self.told: list[tuple[str, Call[Any, Any], Any, bytes]] = []
        self.full: set[str] = set()
        """Addresses of brokers that do not read, so that `when_free` is called."""
        self.waiting: list[Callable[[], None]] = []
        self.closed = False
        self._answers: dict[tuple[str, int], Answer] = {}

    def on(self, address: str, call: Call[Any, Any], answer: Answer) -> None:
        """Sets the answer of an address to a call, from now on."""
        self._answers[address, call.code] = answer

    def invoke(
        self,
        address: str,
        call: Call[Any, Any],
        header: Header,
        body: bytes = b"",
        *,
        timeout_ms: int,
    ) -> PendingReply:
        self.asked.append((address, call, header, body, timeout_ms))
        answer = self._answers.get((address, call.code))
        if answer is None:
            return given(ConnectError(f"connect to {address} failed: nobody there"))
        return given(answer(address, header, body) if callable(answer) else answer)

    def invoke_oneway(
        self, address: str, call: Call[Any, Any], header: Header, body: bytes = b""
    ) -> bool:
        self.told.append((address, call, header, body))
        return address not in self.full

    def takes_more(self, address: str) -> bool:
        return address not in self.full

    def when_free(self, address: str, then: Callable[[], None]) -> None:
        self.waiting.append(then)

    def close(self) -> None:
        self.closed = True

    def questions(self, call: Call[Any, Any]) -> list[tuple[str, Any]]:
        """Returns addresses and headers of all questions by a call."""
        return [(address, header) for address, its, header, _, _ in self.asked if its is call]


class Scene:
    """A client whose connections are fakes; `routes` are what the name server knows."""

    def __init__(self) -> None:
        self.time = ReactorClock()
        self.connections = FakeConnections()
        self.routes: dict[str, TopicRouteData] = {}
        self.connections.on(NAME_SERVER, GET_ROUTEINFO_BY_TOPIC, self._route)
        self.client = ClientInstance(
            ClientConfig(namesrv_addr=NAME_SERVER, client_ip="10.0.0.9"),
            Clock(self.time),
            cast(Connections, self.connections),
        )

    def _route(self, address: str, header: Any, body: bytes) -> Reply[Any]:
        route = self.routes.get(header.topic)
        if route is None:
            return refusal(ResponseCode.TOPIC_NOT_EXIST, "No topic route info")
        return Reply(body=route.encode())


def refusal(code: int, remark: str = "no") -> Reply[Any]:
    """Returns an answer that is not success."""
    return Reply(code=code, remark=remark)


def a_route(
    queues: Mapping[str, int],
    *,
    perm: int = 6,
    addresses: Mapping[str, Mapping[int, str]] | None = None,
    order: str | None = None,
) -> TopicRouteData:
    """Returns a route with so many queues on each broker, by default masters at two addresses."""
    known = {"broker-a": {0: BROKER_A}, "broker-b": {0: BROKER_B}}
    return TopicRouteData(
        order_topic_conf=order,
        queue_datas=tuple(
            QueueData(broker_name=name, read_queue_nums=n, write_queue_nums=n, perm=perm)
            for name, n in queues.items()
        ),
        broker_datas=tuple(
            BrokerData(cluster="c", broker_name=name, broker_addrs=dict((addresses or known)[name]))
            for name in queues
        ),
    )


def started(awaited: Awaitable[T]) -> Deferred[T]:
    """Starts a coroutine."""
    if isinstance(awaited, Deferred):
        return awaited
    return Deferred.fromCoroutine(cast(Coroutine[Deferred[Any], Any, T], awaited))


def result_of(awaited: Awaitable[T]) -> T:
    """Returns the result of a coroutine, which must be done. Raises what it raised."""
    outcomes: list[Any] = []
    started(awaited).addBoth(outcomes.append)
    assert outcomes, "it still waits"
    if isinstance(outcomes[0], Failure):
        outcomes[0].raiseException()
    result: T = outcomes[0]
    return result
