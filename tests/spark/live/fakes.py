# SPDX-License-Identifier: Apache-2.0
"""A name server and brokers without sockets: they answer as brokers do, and fail when told to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from txrocketmq.remoting.call import Call, PendingReply, Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import SendError
from txrocketmq.remoting.message.ids import Host
from txrocketmq.remoting.message.message import MessageExt, MessageQueue, encode_message
from txrocketmq.remoting.message.tags import build_subscription_data
from txrocketmq.remoting.protocol import heartbeat, offset, pull, query, route, send, topic
from txrocketmq.remoting.protocol.body.route import (
    BrokerData,
    QueueData,
    TopicConfig,
    TopicRouteData,
)
from txrocketmq.remoting.protocol.body.topic import TopicList
from txrocketmq.spark.live.wire.cluster import Cluster
from txrocketmq.spark.live.wire.rpc import Question, Unreachable
from txrocketmq.spark.live.wire.security import OPEN, Security

NAME_SERVER = "10.0.0.1:9876"
BORN_MS = 1_700_000_000_000
HOST = Host("10.0.1.1", 10911)
Outcome = Reply[Any] | Exception


def message(topic_name: str, queue_id: int, at: int, *, tags: str = "A", **more: Any) -> MessageExt:
    """Returns the message at an offset of a queue, stored a second after the one before it."""
    fields: dict[str, Any] = {
        "topic": topic_name,
        "body": f"body {queue_id}/{at}".encode(),
        "properties": {"TAGS": tags, "UNIQ_KEY": f"{topic_name}-{queue_id}-{at}"},
        "queue_id": queue_id,
        "queue_offset": at,
        "born_timestamp": BORN_MS,
        "store_timestamp": BORN_MS + 1000 * at,
        "born_host": HOST,
        "store_host": HOST,
        "commit_log_offset": 1000 * at,
    }
    return MessageExt(**(fields | more))


@dataclass
class FakeQueue:
    """The messages of a queue; the first one has the offset `first`."""

    messages: list[MessageExt] = field(default_factory=list)
    first: int = 0
    deleted: frozenset[int] = frozenset()
    """Offsets that the queue still has, but the log does not."""

    @property
    def end(self) -> int:
        return self.first + len(self.messages)


@dataclass
class FakeBroker:
    """A broker name with a master, and perhaps a slave."""

    name: str
    queues: dict[tuple[str, int], FakeQueue] = field(default_factory=dict)
    group_offsets: dict[tuple[str, str, int], int] = field(default_factory=dict)
    addresses: dict[int, str] = field(default_factory=dict)
    most_messages: int = 32
    write_queues: int = 4
    attributes: dict[str, str] = field(default_factory=dict)
    """The attributes of all its topics."""
    checked: Reply[Any] | None = None
    """The answer to a check of an expression; None: success."""

    def fill(
        self, topic_name: str, counts: Iterable[int], *, first: int = 0, life_ms: int = 0
    ) -> None:
        """Gives queues 0, 1 ... of a topic so many messages each, with offsets from `first` on.

        In a later life of the queue they are stored `life_ms` later.
        """
        for queue_id, count in enumerate(counts):
            messages = [
                message(topic_name, queue_id, at, store_timestamp=BORN_MS + life_ms + 1000 * at)
                for at in range(first, first + count)
            ]
            self.queues[topic_name, queue_id] = FakeQueue(messages, first)

    def add(self, topic_name: str, queue_id: int, count: int = 1, *, tags: str = "A") -> None:
        """Adds messages at the end of a queue."""
        queue = self.queues.setdefault((topic_name, queue_id), FakeQueue())
        for _ in range(count):
            queue.messages.append(message(topic_name, queue_id, queue.end, tags=tags))


class FakeConnection:
    """Stands for rpc.Connection."""

    def __init__(self, world: World, address: str) -> None:
        self.world = world
        self.address = address

    def start(
        self, call: Call[Any, Any], header: Any, body: bytes = b"", *, timeout_ms: int = 0
    ) -> Question[Any]:
        outcome = self.world.answer(self.address, call, header, body)
        if isinstance(outcome, Unreachable):
            raise outcome
        pending = PendingReply()
        pending.resolve(outcome)
        return Question(self, call, pending, 0)  # type: ignore[arg-type]  # it has what is used

    def ask(
        self,
        call: Call[Any, Any],
        header: Any,
        body: bytes = b"",
        accepted: Any = (0,),
        *,
        timeout_ms: int = 0,
    ) -> Reply[Any]:
        return self.start(call, header, body).wait(accepted)


class World:
    """All servers. `fail` may replace an answer by another outcome."""

    def __init__(self, *brokers: FakeBroker) -> None:
        self.brokers = {broker.name: broker for broker in brokers}
        for number, broker in enumerate(brokers, 1):
            broker.addresses = broker.addresses or {0: f"10.0.1.{number}:10911"}
        self.down: set[str] = set()
        self.pauses: list[float] = []
        self.asked: Counter[tuple[str, str]] = Counter()
        self.fail: Callable[[str, Call[Any, Any], Any], Outcome | None] = lambda *_: None

    def cluster(self, **more: Any) -> Cluster:
        return Cluster(NAME_SERVER, pause=self.pauses.append, **more)

    def connection_to(self, address: str, security: Security = OPEN) -> FakeConnection:
        return FakeConnection(self, address)

    def answer(self, address: str, call: Call[Any, Any], header: Any, body: bytes) -> Outcome:
        self.asked[address, call.name] += 1
        failure = self.fail(address, call, header)
        if failure is not None:
            return failure
        if address in self.down:
            return Unreachable(f"no connection to {address}")
        if address == NAME_SERVER:
            return self._of_name_server(call, header)
        broker = next(each for each in self.brokers.values() if address in each.addresses.values())
        return _of_broker(broker, call, header, body)

    def _of_name_server(self, call: Call[Any, Any], header: Any) -> Outcome:
        if call is topic.GET_ALL_TOPIC_LIST_FROM_NAMESERVER:
            names = {name for broker in self.brokers.values() for name, _ in broker.queues}
            return Reply(body=TopicList(topic_list=sorted(names)).encode())
        assert call is route.GET_ROUTEINFO_BY_TOPIC
        counts = {
            broker.name: sum(name == header.topic for name, _ in broker.queues)
            for broker in self.brokers.values()
        }
        if not any(counts.values()):
            return Reply(code=ResponseCode.TOPIC_NOT_EXIST, remark="No topic route info")
        found = TopicRouteData(
            queue_datas=[
                QueueData(
                    broker_name=name,
                    read_queue_nums=count,
                    write_queue_nums=self.brokers[name].write_queues,
                    perm=6,
                )
                for name, count in counts.items()
                if count
            ],
            broker_datas=[
                BrokerData(cluster="C", broker_name=name, broker_addrs=self.brokers[name].addresses)
                for name, count in counts.items()
                if count
            ],
        )
        return Reply(body=found.encode())


def _of_broker(broker: FakeBroker, call: Call[Any, Any], header: Any, body: bytes) -> Outcome:
    if call is send.SEND_MESSAGE_V2 or call is send.SEND_BATCH_MESSAGE:
        answer = send.SendMessageResponseHeader(
            msg_id="A,B", queue_id=header.queue_id, queue_offset=7
        )
        return Reply(answer)
    if call is heartbeat.CHECK_CLIENT_CONFIG:
        return broker.checked or Reply()
    if call is query.QUERY_MESSAGE:
        return _of_index(broker, header)
    if call is topic.GET_TOPIC_CONFIG:
        return Reply(
            body=TopicConfig(topic_name=header.topic, attributes=broker.attributes).encode()
        )
    queue = broker.queues.get((header.topic, header.queue_id), FakeQueue())
    key = (getattr(header, "consumer_group", ""), header.topic, header.queue_id)
    if call is offset.GET_MAX_OFFSET:
        return Reply(offset.GetMaxOffsetResponseHeader(offset=queue.end))
    if call is offset.GET_MIN_OFFSET:
        return Reply(offset.GetMinOffsetResponseHeader(offset=queue.first))
    if call is offset.SEARCH_OFFSET_BY_TIMESTAMP:
        return Reply(offset.SearchOffsetResponseHeader(offset=_nearest(queue, header.timestamp)))
    if call is offset.UPDATE_CONSUMER_OFFSET:
        broker.group_offsets[key] = header.commit_offset
        return Reply(header=None)
    assert call is pull.PULL_MESSAGE
    return _pulled(broker, queue, header)


def _nearest(queue: FakeQueue, timestamp_ms: int) -> int:
    """Returns the message that is nearest in time, as 4.9 does."""
    places = range(len(queue.messages))
    away = [abs(queue.messages[at].store_timestamp - timestamp_ms) for at in places]
    return queue.first + min(places, key=away.__getitem__, default=0)


def _pulled(broker: FakeBroker, queue: FakeQueue, header: Any) -> Outcome:
    at, code, remark = header.queue_offset, ResponseCode.PULL_OFFSET_MOVED, "OFFSET_TOO_SMALL"
    found: list[MessageExt] = []
    if at < queue.first:
        after = queue.first
    elif at >= queue.end:
        after = queue.end
        remark = "OFFSET_OVERFLOW_BADLY"
        if at == queue.end:
            code, remark = ResponseCode.PULL_NOT_FOUND, "OFFSET_OVERFLOW_ONE"
    else:
        wanted = build_subscription_data(header.topic, header.subscription, header.expression_type)
        after = at
        code, remark = ResponseCode.SUCCESS, "FOUND"
        why = "NO_MATCHED_MESSAGE"
        for each in queue.messages[at - queue.first :]:
            if len(found) == min(header.max_msg_nums, broker.most_messages):
                break
            after += 1
            if not wanted.accepts_tags(each.tags):
                continue
            if header.expression_type == "SQL92" and each.tags != header.subscription[-2:-1]:
                continue  # it is TAGS = 'A', or another letter
            if each.queue_offset in queue.deleted:
                why = "MESSAGE_WAS_REMOVING"
            else:
                found.append(each)
        if not found:
            code, remark = ResponseCode.PULL_RETRY_IMMEDIATELY, why
    answer = pull.PullMessageResponseHeader(
        suggest_which_broker_id=0,
        next_begin_offset=after,
        min_offset=queue.first,
        max_offset=queue.end,
    )
    return Reply(answer, b"".join(map(encode_message, found)), code, remark)


def _of_index(broker: FakeBroker, header: Any) -> Outcome:
    found = [
        each
        for (name, _), queue in broker.queues.items()
        for each in queue.messages
        if name == header.topic and each.unique_key == header.key
    ]
    answer = query.QueryMessageResponseHeader(
        index_last_update_timestamp=0, index_last_update_phyoffset=0
    )
    if not found:
        return Reply(answer, code=ResponseCode.QUERY_NOT_FOUND)
    return Reply(answer, b"".join(map(encode_message, found)))


def lost_connection() -> SendError:
    """Returns the error of a question whose connection is lost."""
    return SendError("it closed the connection")


def queue(topic_name: str, broker_name: str, queue_id: int) -> MessageQueue:
    return MessageQueue(topic_name, broker_name, queue_id)
