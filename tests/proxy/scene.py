# SPDX-License-Identifier: Apache-2.0
"""A proxy whose brokers are fakes: answers are prepared, and time stands until it is advanced."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock as ReactorClock
from twisted.python.failure import Failure

from tests.client.fakes import BROKER_A, BROKER_B, NAME_SERVER, FakeConnections, a_route, refusal
from txrocketmq.proxy.accounts.config import AccountsConfig
from txrocketmq.proxy.accounts.sources import AccountsHere
from txrocketmq.proxy.config import MessagingConfig
from txrocketmq.proxy.grpc.call import Call
from txrocketmq.proxy.grpc.service import Kind
from txrocketmq.proxy.grpc.status import GrpcError
from txrocketmq.proxy.messaging import Messaging
from txrocketmq.proxy.schema.codes import Code
from txrocketmq.proxy.schema.enums import ClientType
from txrocketmq.proxy.schema.messages import SERVICE, message_type
from txrocketmq.remoting.call import PendingReply, Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.message import MessageExt, encode_message
from txrocketmq.remoting.protocol import pop, send, topic
from txrocketmq.remoting.protocol.body.route import TopicConfig, TopicRouteData
from txrocketmq.remoting.protocol.body.topic import SubscriptionGroupConfig
from txrocketmq.remoting.protocol.pop import (
    ChangeInvisibleTimeResponseHeader,
    PopMessageResponseHeader,
)
from txrocketmq.remoting.protocol.route import GET_ROUTEINFO_BY_TOPIC
from txrocketmq.remoting.protocol.send import SendMessageResponseHeader
from txrocketmq.remoting.transport.client import Connections

__all__ = ["BROKER_A", "BROKER_B", "NAME_SERVER", "a_route", "refusal"]
CLUSTER = "DefaultCluster"
OFFSET_ID = "0A00010100002A9F00000000000003E8"
"""The id of a message at 10.0.1.1:10911 and offset 1000."""
START_MS = 1_000_000


class FakeSink:
    """Keeps what a call writes; there is room for so many messages."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.error: GrpcError | None = None
        self.is_ended = False
        self.room = 1_000_000
        self.held_bytes = 0

    def send(self, data: bytes) -> bool:
        self.sent.append(data)
        self.room -= 1
        return self.room > 0

    def end(self, error: GrpcError | None) -> None:
        self.is_ended = True
        self.error = error

    def hold(self, size_bytes: int) -> None:
        self.held_bytes += size_bytes


class Outcome:
    """What a call has come to, so far."""

    def __init__(self, call: Call, sink: FakeSink) -> None:
        self.call = call
        self.sink = sink
        self.answers: list[Any] = []
        self.waits: Deferred[Any] | PendingReply | None = None

    @property
    def answer(self) -> Any:
        """The answer, which must be there."""
        assert self.answers, "it still waits"
        if isinstance(self.answers[0], Failure):
            self.answers[0].raiseException()
        if isinstance(self.answers[0], Exception):
            raise self.answers[0]
        return self.answers[0]

    @property
    def code(self) -> Code:
        """The code of the answer."""
        return Code(self.answer.status.code)

    def cancel(self) -> None:
        """Ends the call, which waits for its answer, as its client does."""
        assert self.waits is not None
        self.call.cancel()
        if isinstance(self.waits, Deferred):
            self.waits.cancel()

    def written(self, name: str) -> list[Any]:
        """What was written, as messages of this type."""
        return [message_type(name).FromString(data) for data in self.sink.sent]


class ProxyScene:
    """The proxy; `routes`, `types` and `groups` are what the brokers know.

    With `accounts`, calls need an account: one of those `here`, or of the brokers.
    """

    def __init__(
        self,
        accounts: AccountsConfig | None = None,
        here: AccountsHere | None = None,
        **settings: Any,
    ) -> None:
        self.time = ReactorClock()
        self.time.advance(START_MS / 1_000)
        self.clock = Clock(self.time)
        self.config = MessagingConfig(**settings)
        self.connections = FakeConnections()
        self.routes: dict[str, TopicRouteData] = {
            CLUSTER: a_route({"broker-a": 1}),
            "T": a_route({"broker-a": 2, "broker-b": 2}),
        }
        self.types: dict[str, str] = {}
        self.groups: dict[str, SubscriptionGroupConfig] = {}
        self.connections.on(NAME_SERVER, GET_ROUTEINFO_BY_TOPIC, self._route)
        self.on(topic.GET_TOPIC_CONFIG, self._topic)
        self.on(topic.GET_SUBSCRIPTIONGROUP_CONFIG, self._group)
        self.on(pop.ACK_MESSAGE, Reply())
        self.on(send.CONSUMER_SEND_MSG_BACK, Reply())
        self.on(pop.CHANGE_MESSAGE_INVISIBLETIME, self._hidden)
        self.on(send.SEND_MESSAGE_V2, stored())
        self.messaging = Messaging(
            self.clock,
            self.config,
            [NAME_SERVER],
            CLUSTER,
            cast(Connections, self.connections),
            accounts=accounts,
            here=here,
        )
        self.messaging.start()

    def on(self, call: Any, answer: Any) -> None:
        """Sets the answer of both brokers."""
        for address in (BROKER_A, BROKER_B):
            self.connections.on(address, call, answer)

    def asked(self, call: Any) -> list[Any]:
        """The headers of all requests by a call."""
        return [header for _, header in self.connections.questions(call)]

    def advance(self, ms: int, step_ms: int = 100) -> None:
        """Lets time pass."""
        for _ in range(0, ms, step_ms):
            self.time.advance(step_ms / 1_000)

    def new_call(
        self,
        method: str,
        *,
        client_id: str = "client-1",
        deadline_ms: int | None = 30_000,
        headers: Mapping[str, str] | None = None,
        peer: str = "10.1.1.1:5000",
    ) -> tuple[Call, FakeSink]:
        """A call of a client."""
        sink = FakeSink()
        its = {"x-mq-client-id": client_id, "x-mq-language": "JAVA", "x-mq-client-version": "5.2.1"}
        call = Call(
            method,
            {**its, **(headers or {})},
            sink,
            self.clock.steady_ms,
            peer=peer,
            local="10.0.0.9:8081",
            deadline_ms=None if deadline_ms is None else self.clock.steady_ms() + deadline_ms,
        )
        return call, sink

    def call(self, method: str, request: Any = None, **options: Any) -> Outcome:
        """Calls a method; `request` may be the fields of its request."""
        served = self.messaging.rpcs.find(f"/{SERVICE}/{method}")
        assert served is not None, method
        call, sink = self.new_call(method, **options)
        outcome = Outcome(call, sink)
        if served.rpc.kind is Kind.CONVERSATION:
            outcome.answers.append(served.method(call))
            return outcome
        request = message_type(served.rpc.request_name)(**(request or {}))
        answer = served.method(call, request)
        if isinstance(answer, Deferred):
            outcome.waits = answer
            answer.addBoth(outcome.answers.append)
        elif isinstance(answer, PendingReply):
            outcome.waits = answer
            answer.then(outcome.answers.append)
        else:
            outcome.answers.append(answer)
        return outcome

    def heartbeat(
        self, kind: int = ClientType.PUSH_CONSUMER, group: str = "G", **options: Any
    ) -> Any:
        """Makes a client known."""
        request = {"client_type": kind, "group": {"name": group} if group else None}
        return self.call("Heartbeat", request, **options)

    def receive(self, **fields: Any) -> Outcome:
        """Receives of topic T for group G."""
        options = {
            name: fields.pop(name) for name in ("client_id", "deadline_ms") if name in fields
        }
        request = {
            "group": {"name": "G"},
            "message_queue": {"topic": {"name": "T"}, "broker": {"name": "broker-a"}},
            "batch_size": 32,
            "invisible_duration": {"seconds": 30},
            **fields,
        }
        return self.call("ReceiveMessage", request, **options)

    def _route(self, address: str, header: Any, body: bytes) -> Reply[Any]:
        route = self.routes.get(header.topic)
        if route is None:
            return refusal(ResponseCode.TOPIC_NOT_EXIST, "No topic route info")
        return Reply(body=route.encode())

    def _topic(self, address: str, header: Any, body: bytes) -> Reply[Any]:
        if header.topic not in self.routes:
            return refusal(ResponseCode.TOPIC_NOT_EXIST)
        kind = self.types.get(header.topic)
        attributes = {} if kind is None else {"message.type": kind}
        return Reply(body=TopicConfig(topic_name=header.topic, attributes=attributes).encode())

    def _group(self, address: str, header: Any, body: bytes) -> Reply[Any]:
        config = self.groups.get(header.group)
        if config is None:
            return refusal(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST)
        return Reply(body=config.encode())

    def _hidden(self, address: str, header: Any, body: bytes) -> Reply[Any]:
        return Reply(
            ChangeInvisibleTimeResponseHeader(
                pop_time=self.clock.now_ms(), invisible_time=header.invisible_time, revive_qid=3
            )
        )

    def popped(self, *messages: MessageExt, invisible_ms: int = 60_000) -> Reply[Any]:
        """The answer of a broker that gives messages."""
        return Reply(
            PopMessageResponseHeader(
                pop_time=self.clock.now_ms(),
                invisible_time=invisible_ms,
                revive_qid=1,
                rest_num=0,
                start_offset_info="0 0 0",
                msg_offset_info="0 0 " + ",".join(str(each.queue_offset) for each in messages),
            ),
            b"".join(encode_message(each) for each in messages),
        )


def stored(**fields: Any) -> Reply[Any]:
    """The answer of a broker that has stored a message."""
    fields = {"msg_id": OFFSET_ID, "queue_id": 1, "queue_offset": 7, **fields}
    return Reply(SendMessageResponseHeader(**fields))


def a_message(body: bytes = b"body", offset: int = 0, **fields: Any) -> MessageExt:
    """A message in queue 0 of topic T."""
    own = {names.UNIQ_KEY: f"ID{offset}", **fields.pop("properties", {})}
    return MessageExt(
        fields.pop("topic", "T"),
        body,
        properties=own,
        queue_offset=offset,
        commit_log_offset=1_000 + offset,
        born_timestamp=1_500,
        store_timestamp=2_500,
        **fields,
    )
