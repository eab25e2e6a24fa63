# SPDX-License-Identifier: Apache-2.0
"""The clients of the proxy: known by settings over telemetry, heartbeats, or what they ask for.

What is kept of a client is little, and bounded for each address and for all. A client lives as long
as it has a stream of telemetry, and for some time after it was last heard of; whoever keeps
something for it is told when it goes. It is forgotten at once when it takes its leave.

Java: GrpcClientSettingsManager, GrpcChannelManager, ConsumerManager, ProducerManager.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Protocol

from twisted.internet.defer import Deferred

from txrocketmq.proxy.base.statuses import Refused
from txrocketmq.proxy.schema.codes import Code
from txrocketmq.proxy.schema.enums import ClientType
from txrocketmq.remoting.host.clock import Clock, Repeating
from txrocketmq.remoting.primitives.listeners import tell_all

MAX_CLIENTS: Final = 20_000
MAX_CLIENTS_OF_HOST: Final = 5_000
MAX_TOPICS: Final = 1_000
"""How many topics a client may publish to."""
MAX_STREAMS: Final = 8
"""How many streams of telemetry a client may have; the oldest is ended when there are more."""
MAX_ID: Final = 512
EXPIRY_MS: Final = 60_000
"""After which silence a client without a stream is gone."""
LOOK_MS: Final = 1_000
AT_ONCE: Final = 500
"""How many clients are looked at in one turn."""
DEFAULT_TIMEOUT_MS: Final = 3_000
PRODUCERS: Final = frozenset({ClientType.PRODUCER})
CONSUMERS: Final = frozenset({ClientType.PUSH_CONSUMER, ClientType.SIMPLE_CONSUMER})


def kind_name(kind: int) -> str:
    """Returns the name of a ClientType, or its number if there is no such type."""
    return ClientType(kind).name if kind in list(ClientType) else str(kind)


class ClientStream(Protocol):
    """The way to ask a client something."""

    def tell(self, command: Any) -> None:
        """Sends a command."""

    def close(self, why: str) -> None:
        """Ends the stream."""


class Client:
    """A client; `kind` is a ClientType, `group` that of a consumer, `topics` a producer's."""

    __slots__ = (
        "group",
        "host",
        "id",
        "kind",
        "request_timeout_ms",
        "seen_ms",
        "streams",
        "topics",
    )

    def __init__(self, client_id: str, host: str, kind: int, group: str) -> None:
        self.id = client_id
        self.host = host
        self.kind = kind
        self.group = group
        self.topics: tuple[str, ...] = ()
        self.request_timeout_ms = DEFAULT_TIMEOUT_MS
        self.streams: list[ClientStream] = []
        self.seen_ms = 0


class Clients:
    """The known clients by id, those that were not heard of for longest first."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._clients: OrderedDict[str, Client] = OrderedDict()
        self._of_host: Counter[str] = Counter()
        self._of_topic: dict[str, dict[str, Client]] = {}
        self._waiting: dict[str, list[Deferred[None]]] = {}
        self._looking: Repeating | None = None
        self.on_gone: list[Callable[[Client], object]] = []

    def start(self) -> None:
        """Begins to forget clients that are gone."""
        self._looking = self._clock.every(LOOK_MS, self._look)

    def stop(self) -> None:
        """Ends that."""
        if self._looking is not None:
            self._looking.cancel()

    def __len__(self) -> int:
        return len(self._clients)

    def __iter__(self) -> Iterator[Client]:
        return iter(self._clients.values())

    @property
    def streams(self) -> int:
        """How many streams of telemetry are open."""
        return sum(len(its.streams) for its in self._clients.values())

    def get(self, client_id: str) -> Client | None:
        """Returns a client, which was heard of now, or None."""
        client = self._clients.get(client_id)
        if client is not None:
            client.seen_ms = self._clock.steady_ms()
            self._clients.move_to_end(client_id)
        return client

    def register(self, client_id: str, peer: str, kind: int, group: str = "") -> Client:
        """Returns a client of this kind, the known one if there is one. Raises Refused."""
        client = self.get(client_id)
        if client is not None and (client.kind, client.group) == (kind, group):
            return client
        if client is not None:
            streams, client.streams = client.streams, []
            self.remove(client_id)
            client = self._add(client_id, peer, kind, group)
            client.streams = streams
            return client
        return self._add(client_id, peer, kind, group)

    def _add(self, client_id: str, peer: str, kind: int, group: str) -> Client:
        host = peer.rpartition(":")[0]
        if len(client_id) > MAX_ID:
            raise Refused(Code.CLIENT_ID_REQUIRED, f"client id has more than {MAX_ID} characters")
        if len(self._clients) >= MAX_CLIENTS or self._of_host[host] >= MAX_CLIENTS_OF_HOST:
            raise Refused(
                Code.TOO_MANY_REQUESTS,
                f"too many clients: at most {MAX_CLIENTS_OF_HOST} of one address and"
                f" {MAX_CLIENTS} in all",
            )
        client = self._clients[client_id] = Client(client_id, host, kind, group)
        client.seen_ms = self._clock.steady_ms()
        self._of_host[host] += 1
        for waiting in self._waiting.pop(client_id, ()):
            if not waiting.called:
                waiting.callback(None)
        return client

    async def wait(self, client_id: str, timeout_ms: int) -> Client | None:
        """Returns a client as soon as it is known, or None if that takes too long."""
        client = self.get(client_id)
        if client is not None or timeout_ms <= 0:
            return client
        waiting: Deferred[None] = Deferred()
        its = self._waiting.setdefault(client_id, [])
        its.append(waiting)
        late = self._clock.later(timeout_ms, waiting.callback, None)
        try:
            await waiting
        finally:
            if late.active():
                late.cancel()
            its.remove(waiting)
            if not its and self._waiting.get(client_id) is its:
                del self._waiting[client_id]
        return self.get(client_id)

    def publishes(self, client: Client, topics: Iterable[str]) -> None:
        """Notes the topics that a producer may be asked about."""
        new = tuple(topics)
        if new == client.topics:
            return
        self._forget_topics(client)
        client.topics = new
        for topic in new:
            self._of_topic.setdefault(topic, {})[client.id] = client

    def add_topic(self, client: Client, topic: str) -> None:
        """Notes one topic more."""
        if topic not in client.topics and len(client.topics) < MAX_TOPICS:
            client.topics += (topic,)
            self._of_topic.setdefault(topic, {})[client.id] = client

    def producers(self, topic: str) -> Iterable[Client]:
        """Returns the producers of a topic."""
        return self._of_topic.get(topic, {}).values()

    def published(self) -> Iterable[str]:
        """Returns the topics that have producers."""
        return self._of_topic

    def attach(self, client: Client, stream: ClientStream) -> None:
        """Adds a stream to a client; commands take the newest."""
        if stream not in client.streams:
            client.streams.append(stream)
        if len(client.streams) > MAX_STREAMS:
            client.streams.pop(0).close("the client has opened others since")

    def detach(self, client_id: str, stream: ClientStream) -> None:
        """Removes a stream that has ended."""
        client = self._clients.get(client_id)
        if client is not None and stream in client.streams:
            client.streams.remove(stream)

    def remove(self, client_id: str) -> Client | None:
        """Forgets a client, and tells those who keep something for it."""
        client = self._clients.pop(client_id, None)
        if client is None:
            return None
        self._of_host[client.host] -= 1
        if not self._of_host[client.host]:
            del self._of_host[client.host]
        self._forget_topics(client)
        tell_all(self.on_gone, client)
        return client

    def _forget_topics(self, client: Client) -> None:
        for topic in client.topics:
            its = self._of_topic[topic]
            its.pop(client.id, None)
            if not its:
                del self._of_topic[topic]
        client.topics = ()

    def _look(self) -> None:
        now_ms = self._clock.steady_ms()
        for _ in range(min(AT_ONCE, len(self._clients))):
            client = next(iter(self._clients.values()))
            if now_ms - client.seen_ms < EXPIRY_MS:
                break
            if client.streams:
                self.get(client.id)
            else:
                self.remove(client.id)
