# SPDX-License-Identifier: Apache-2.0
"""A live cluster as a reader and writer of messages sees it: topics, queues, offsets, pulls, sends.

    cluster = Cluster("10.0.0.1:9876;10.0.0.2:9876")
    queues = cluster.read_queues("orders")
    ends = cluster.max_offsets(queues)
    pulled = cluster.pull(queues[0], offset=0)

Questions about many queues are sent together. Questions that change nothing are repeated after a
failure: the route is asked for again, and then a slave is asked if the master does not answer. A
Cluster holds no sockets, so it can be pickled together with its known routes. Counterpart of
MQAdminImpl, PullAPIWrapper and MQClientInstance.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final, Protocol, TypeVar

from txrocketmq.remoting.call import Call, Reply
from txrocketmq.remoting.codes import PASSING, PULLED, SUCCESS, ResponseCode
from txrocketmq.remoting.errors import HeaderError
from txrocketmq.remoting.header import Header, NoHeader
from txrocketmq.remoting.message.message import MessageDecodeError, MessageQueue, decode_message
from txrocketmq.remoting.protocol import offset as offsets
from txrocketmq.remoting.protocol.body.base import Body
from txrocketmq.remoting.protocol.body.route import TopicConfig, TopicRouteData
from txrocketmq.remoting.protocol.body.topic import TopicList
from txrocketmq.remoting.protocol.offset import (
    GetMaxOffsetRequestHeader,
    GetMinOffsetRequestHeader,
    SearchOffsetRequestHeader,
)
from txrocketmq.remoting.protocol.pull import (
    PULL_MESSAGE,
    PullMessageRequestHeader,
    PullMessageResponseHeader,
)
from txrocketmq.remoting.protocol.route import GET_ROUTEINFO_BY_TOPIC, GetRouteInfoRequestHeader
from txrocketmq.remoting.protocol.topic import (
    GET_ALL_TOPIC_LIST_FROM_NAMESERVER,
    GET_TOPIC_CONFIG,
    GetTopicConfigRequestHeader,
)
from txrocketmq.remoting.routing.addresses import MASTER_ID
from txrocketmq.remoting.routing.known_routes import KnownRoutes
from txrocketmq.remoting.routing.queue_requests import commit_header, pull_header, queue_fields
from txrocketmq.spark.arrow.errors import ClusterError, OptionError
from txrocketmq.spark.live.wire.rpc import (
    DEFAULT_TIMEOUT_MS,
    Connection,
    Question,
    Refused,
    Unreachable,
    connection_to,
    host_and_port,
)
from txrocketmq.spark.live.wire.search import first_true
from txrocketmq.spark.live.wire.security import OPEN, Security

Q = TypeVar("Q", bound=Header)
R = TypeVar("R", bound=Header)
B = TypeVar("B", bound=Body)


class Asked(Protocol):
    """The subject of a question to a broker: a queue, or something else in a topic there."""

    @property
    def topic(self) -> str: ...

    @property
    def broker_name(self) -> str: ...


A = TypeVar("A", bound=Asked)

ATTEMPTS: Final = 5
QUESTIONS_AT_ONCE: Final = 256
"""Questions under way at once: brokers put them into a queue, and refuse them when it is full."""
PULL_MESSAGES: Final = 32
"""Messages asked for in one pull; with the default configuration brokers give no more."""
_FIRST_PAUSE_S: Final = 0.5

Pulled = Reply[PullMessageResponseHeader]
"""The answer to a pull; its body holds records end to end."""


class Cluster:
    """The cluster behind some name servers; `name_servers` as "host:port;host:port".

    `timeout_ms` is the time for one answer. `attempts` is how often a question is asked; the first
    pause between attempts is half a second, and each next one is twice as long. Raises OptionError
    for an invalid address.
    """

    def __init__(
        self,
        name_servers: str,
        *,
        timeout_ms: int = DEFAULT_TIMEOUT_MS,
        attempts: int = ATTEMPTS,
        security: Security = OPEN,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.name_servers = tuple(part.strip() for part in name_servers.split(";") if part.strip())
        self.timeout_ms = timeout_ms
        self._security = security
        self._attempts = attempts
        self._pause = pause
        self._routes = KnownRoutes()
        valid = "host:port, several separated by semicolons, such as 10.0.0.1:9876;10.0.0.2:9876"
        if not self.name_servers:
            raise OptionError.of("nameServer", name_servers, valid)
        for address in self.name_servers:
            try:
                host_and_port(address)
            except ClusterError:
                raise OptionError.of("nameServer", name_servers, valid) from None

    def __str__(self) -> str:
        return ";".join(self.name_servers)

    def connection(self, address: str) -> Connection:
        """Returns this thread's connection to a name server or broker of the cluster."""
        return connection_to(address, self._security)

    # ------------------------------------------------------------------ topics

    def topics(self) -> list[str]:
        """Returns the names of all topics, sorted, including retry topics and the brokers' own."""
        reply = self._ask_name_servers(
            GET_ALL_TOPIC_LIST_FROM_NAMESERVER, NoHeader(), SUCCESS, self._attempts
        )
        return sorted(_decoded(TopicList, reply).topic_list)

    def route(self, topic: str, *, again: bool = False) -> TopicRouteData | None:
        """Returns a topic's route, None if no broker has it; `again` asks even if it is known."""
        if again or topic not in self._routes:
            self._ask_route(topic, self._attempts)
        return self._routes.get(topic)

    def read_queues(self, topic: str, *, again: bool = False) -> list[MessageQueue]:
        """Returns all readable queues of a topic, sorted; none if no broker has the topic."""
        self.route(topic, again=again)
        return self._routes.subscribe_queues(topic) or []

    def cluster_of(self, broker_name: str) -> str | None:
        """Returns the name of the broker's cluster according to the known routes."""
        return self._routes.brokers.cluster_of(broker_name)

    def has_master(self, broker_name: str) -> bool:
        """Returns whether the broker has a master according to the known routes."""
        return self._routes.brokers.to_publish(broker_name) is not None

    def master(self, broker_name: str) -> str:
        """Returns the address to write to, the master's. Raises Unreachable if there is none."""
        address = self._routes.brokers.to_publish(broker_name)
        if address is None:
            raise Unreachable(f"broker {broker_name} has no master now")
        return address

    def masters(self, topic: str) -> dict[str, str]:
        """Returns the addresses of the masters that have a topic, by broker name."""
        route = self.route(topic)
        return {
            broker.broker_name: broker.broker_addrs[MASTER_ID]
            for broker in (route.broker_datas if route is not None else ())
            if MASTER_ID in broker.broker_addrs
        }

    # ----------------------------------------------------------------- offsets

    def max_offsets(
        self, queues: Iterable[MessageQueue], *, attempts: int | None = None
    ) -> dict[MessageQueue, int]:
        """Returns the offset after each queue's last message; asks only masters, if any."""
        headers = {queue: GetMaxOffsetRequestHeader(**queue_fields(queue)) for queue in queues}
        replies = self.ask_each(
            offsets.GET_MAX_OFFSET, headers, master_only=True, attempts=attempts
        )
        return {queue: header_of(reply).offset for queue, reply in replies.items()}

    def min_offsets(self, queues: Iterable[MessageQueue]) -> dict[MessageQueue, int]:
        """Returns the offset of each queue's first message, of the next one if it is empty."""
        headers = {queue: GetMinOffsetRequestHeader(**queue_fields(queue)) for queue in queues}
        replies = self.ask_each(offsets.GET_MIN_OFFSET, headers)
        return {queue: max(header_of(reply).offset, 0) for queue, reply in replies.items()}

    def offsets_at(
        self, queues: Iterable[MessageQueue], timestamp_ms: int
    ) -> dict[MessageQueue, int]:
        """Returns the offset of each queue's first message stored at a time or later, or its end.

        The result is exact, whatever the broker does: 4.9 answers with the message that is nearest
        in time, before or after it, and with any one of those with the same millisecond. So the
        answer is only the place where the search among the messages themselves begins.
        """
        headers = {
            queue: SearchOffsetRequestHeader(timestamp=timestamp_ms, **queue_fields(queue))
            for queue in queues
        }
        replies = self.ask_each(offsets.SEARCH_OFFSET_BY_TIMESTAMP, headers)
        first, end = self.min_offsets(headers), self.max_offsets(headers)
        return {
            queue: first_true(
                partial(self._is_stored_since, queue, timestamp_ms),
                first[queue],
                end[queue],
                header_of(reply).offset,
            )
            for queue, reply in replies.items()
        }

    def _is_stored_since(self, queue: MessageQueue, timestamp_ms: int, offset: int) -> bool:
        """Returns whether the message at an offset, or the next one, was stored since then."""
        while True:
            pulled = self.pull(queue, offset, max_messages=1)
            if pulled.body_bytes:
                try:
                    message, _ = decode_message(pulled.body_bytes, decompress_body=False)
                except MessageDecodeError as error:
                    raise ClusterError(f"{queue}, offset {offset}: {error}") from error
                return message.store_timestamp >= timestamp_ms
            to = header_of(pulled).next_begin_offset
            if to <= offset or pulled.code == ResponseCode.PULL_NOT_FOUND:
                return True  # at the end: whatever comes is younger
            offset = to

    def is_compacted(self, queue: MessageQueue) -> bool:
        """Returns whether the topic keeps only each key's last message (5.x), and so has holes."""
        header = GetTopicConfigRequestHeader(topic=queue.topic, bname=queue.broker_name)
        try:
            reply = self.ask_each(GET_TOPIC_CONFIG, {queue: header})[queue]
        except Refused:  # 4.9, or this account may not ask
            return False
        return _decoded(TopicConfig, reply).attributes.get("cleanup.policy") == "COMPACTION"

    def commit_offsets(
        self,
        group: str,
        next_offsets: Mapping[MessageQueue, int],
        *,
        attempts: int | None = None,
    ) -> None:
        """Commits the offsets of a group, which are those of the next messages to read."""
        headers = {
            queue: commit_header(group, queue, offset) for queue, offset in next_offsets.items()
        }
        self.ask_each(offsets.UPDATE_CONSUMER_OFFSET, headers, master_only=True, attempts=attempts)

    # ------------------------------------------------------------------- pulls

    def pull(self, queue: MessageQueue, offset: int, max_messages: int = PULL_MESSAGES) -> Pulled:
        """Returns the messages that a queue has from an offset on, without waiting for new ones.

        The offsets in the header of the answer are those of the queue.
        """
        header = pull_header(queue, offset, max_messages)
        return self.ask_each(PULL_MESSAGE, {queue: header}, PULLED)[queue]

    def start_pull(
        self, header: PullMessageRequestHeader, broker_name: str, attempt: int = 0
    ) -> Question[PullMessageResponseHeader]:
        """Sends a pull and does not wait; `question.wait(PULLED)` returns the answer."""
        connection = self.connection(self._address(broker_name, attempt))
        return connection.start(PULL_MESSAGE, header, timeout_ms=self.timeout_ms)

    # --------------------------------------------------------------- questions

    def ask_each(
        self,
        call: Call[Any, R],
        headers: Mapping[A, Header],
        accepted: Collection[int] = SUCCESS,
        *,
        body: bytes = b"",
        master_only: bool = False,
        attempts: int | None = None,
    ) -> dict[A, Reply[R]]:
        """Asks the brokers of some queues, many at a time; returns the answers by queue.

        Raises Refused for an answer that is not accepted, and Unreachable when one is missing.
        """
        replies: dict[A, Reply[R]] = {}
        for attempt in range(attempts or self._attempts):
            missing = [queue for queue in headers if queue not in replies]
            if attempt:
                self.recover({queue.topic for queue in missing}, attempt)
            troubles: list[ClusterError] = []
            for begin in range(0, len(missing), QUESTIONS_AT_ONCE):
                some = {queue: headers[queue] for queue in missing[begin:][:QUESTIONS_AT_ONCE]}
                slave = 0 if master_only else attempt
                for queue, outcome in self._ask_some(call, some, body, accepted, slave):
                    if isinstance(outcome, ClusterError):
                        troubles.append(outcome)
                    else:
                        replies[queue] = outcome
            if not troubles:
                break
        else:
            raise troubles[-1]
        return replies

    def _ask_some(
        self,
        call: Call[Any, R],
        headers: Mapping[A, Header],
        body: bytes,
        accepted: Collection[int],
        slave: int,
    ) -> Iterator[tuple[A, Reply[R] | ClusterError]]:
        """Sends all questions at once; yields each answer, or the passing error in its place."""
        questions: dict[A, Question[R]] = {}
        for queue, header in headers.items():
            try:
                connection = self.connection(self._address(queue.broker_name, slave))
                questions[queue] = connection.start(call, header, body, timeout_ms=self.timeout_ms)
            except Unreachable as error:
                yield queue, error
        for queue, question in questions.items():
            try:
                yield queue, question.wait(accepted)
            except (Unreachable, Refused) as error:
                if not is_passing(error):
                    raise
                yield queue, error

    def recover(self, topics: Iterable[str], attempt: int) -> None:
        """Waits before a further attempt (1, 2 ...), and asks whether the topics have moved."""
        self._pause(_FIRST_PAUSE_S * (1 << (attempt - 1)))
        for topic in sorted(topics):
            with suppress(ClusterError):  # then the known route is used again
                self._ask_route(topic, attempts=1)

    def _address(self, broker_name: str, slave: int) -> str:
        """Returns the master's address for 0, else that of the `slave`-th slave or the last."""
        address = self._routes.brokers.in_turn(broker_name, slave)
        if address is None:
            raise Unreachable(f"no broker {broker_name} is registered at {self}")
        return address

    def _ask_route(self, topic: str, attempts: int) -> None:
        header = GetRouteInfoRequestHeader(topic=topic, accept_standard_json_only=True)
        accepted = (ResponseCode.SUCCESS, ResponseCode.TOPIC_NOT_EXIST)
        reply = self._ask_name_servers(GET_ROUTEINFO_BY_TOPIC, header, accepted, attempts)
        self._routes.forget(topic)
        if reply.code == ResponseCode.TOPIC_NOT_EXIST:
            return
        found = _decoded(TopicRouteData, reply)
        if found.topic_queue_mapping_by_broker:
            raise ClusterError(
                f"{topic} is a static topic, whose queues move between brokers: these are not"
                " supported; read the stores of its brokers with storePath"
            )
        self._routes.take(topic, found)

    def _ask_name_servers(
        self, call: Call[Q, R], header: Q, accepted: Collection[int], attempts: int
    ) -> Reply[R]:
        """Returns the first answer that a name server gives."""
        for attempt in range(attempts):
            if attempt:
                self._pause(_FIRST_PAUSE_S * (1 << (attempt - 1)))
            troubles: list[str] = []
            for address in self.name_servers:
                try:
                    return self.connection(address).ask(
                        call, header, accepted=accepted, timeout_ms=self.timeout_ms
                    )
                except (Unreachable, Refused) as error:
                    if not is_passing(error):
                        raise
                    troubles.append(str(error))
        raise Unreachable("no name server is reachable: " + "; ".join(troubles))


def is_passing(error: ClusterError) -> bool:
    """Returns whether the same question may succeed in a moment, here or at another broker."""
    return isinstance(error, Unreachable) or (isinstance(error, Refused) and error.code in PASSING)


def header_of(reply: Reply[R]) -> R:
    """Returns the header of an accepted answer. Raises ClusterError if it has none."""
    if reply.header is None:  # only a successful answer is sure to have one
        raise ClusterError(f"the answer, of code {reply.code}, does not say where messages are")
    return reply.header


def _decoded(kind: type[B], reply: Reply[Any]) -> B:
    try:
        return kind.decode(reply.body_bytes)
    except HeaderError as error:
        raise ClusterError(f"an answer is no {kind.__name__}: {error}") from error
