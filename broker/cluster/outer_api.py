# SPDX-License-Identifier: Apache-2.0
"""A broker's requests to its name servers: to register, and to unregister at the end.

Each name server is called by itself; one that does not answer does not delay the others. A
registration carries all topics, so its text is made in a thread, of the texts of topics that were
made before. With enableSplitRegistration, or if it does not fit in a frame, it goes in parts, each
after the answer to the one before; a name server that deletes topics which a registration lacks
(deleteTopicWithBrokerRegistration) cannot be told so. A topic that is new or has changed is told
alone to name servers of 5.x, which keep the others (REGISTER_TOPIC_IN_NAMESRV); those of 4.9 do not
support that request, and are told everything.
Counterpart of BrokerOuterAPI, and of registerBrokerAll and registerSingleTopicAll in
BrokerController.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from twisted.logger import Logger

from txrocketmq.broker.tables.encoded_table import EncodedTable
from txrocketmq.broker.work.in_thread import InThread, at_once
from txrocketmq.remoting.call import Call, PendingReply, Reply
from txrocketmq.remoting.codes import MQVersion, ResponseCode
from txrocketmq.remoting.errors import ConnectError, HeaderError
from txrocketmq.remoting.formats import MAX_BODY_BYTES
from txrocketmq.remoting.header import Header, NoHeader
from txrocketmq.remoting.message.flags import PermName
from txrocketmq.remoting.message.message import body_crc
from txrocketmq.remoting.protocol import route
from txrocketmq.remoting.protocol import topic as topic_calls
from txrocketmq.remoting.protocol.body.route import (
    DataVersion,
    KVTable,
    QueueData,
    RegisterBrokerBody,
    TopicConfig,
    TopicConfigAndMappingSerializeWrapper,
    TopicRouteData,
)
from txrocketmq.remoting.protocol.operations.admin import GET_BROKER_RUNTIME_INFO
from txrocketmq.remoting.protocol.operations.ha import (
    EXCHANGE_BROKER_HA_INFO,
    ExchangeHAInfoRequestHeader,
)
from txrocketmq.remoting.protocol.route import (
    GetRouteInfoRequestHeader,
    QueryDataVersionRequestHeader,
    RegisterBrokerRequestHeader,
    RegisterBrokerResponseHeader,
    UnRegisterBrokerRequestHeader,
)
from txrocketmq.remoting.protocol.topic import RegisterTopicRequestHeader
from txrocketmq.remoting.serialize.json import HOLE, encode_around, encode_member
from txrocketmq.remoting.transport.client import Connections

UNREGISTER_TIMEOUT_MS = 3_000
QUERY_TIMEOUT_MS = 3_000
LOCK_TIMEOUT_MS = 1_000
FIRST_PAUSE_MS = 1_000
MAX_PAUSE_MS = 60_000
"""The longest pause between two attempts to register, in ms; not below the longest period."""
NEVER_MS = 1 << 62
_READ_WRITE = PermName.READ | PermName.WRITE

log = Logger()


@dataclass(frozen=True, slots=True)
class Identity:
    """How a broker is known to name servers."""

    cluster: str
    name: str
    broker_id: int
    address: str
    ha_address: str
    silent_ms: int | None = None
    """After which silence the broker is gone, with enableSlaveActingMaster; None without it."""


class TopicTable(NamedTuple):
    """What is registered: the topics, their data version, and the permission of the broker.

    If it has to be told in parts, or is to be with `is_split`, each part has `part_size` topics.
    """

    topics: Mapping[str, TopicConfig]
    data_version: DataVersion
    permission: int
    part_size: int = 800
    is_split: bool = False


class NameServers:
    """All name servers of a broker.

    `topic_table` returns the topics as they are when it is called. `on_order_topics` is called with
    the topics that are order topics, and `on_master` with the addresses of a slave's master, that
    for replication first, as the first name server gives them that has any.
    """

    def __init__(
        self,
        connections: Connections,
        identity: Identity,
        timeout_ms: Callable[[], int],
        topic_table: Callable[[], TopicTable],
        on_order_topics: Callable[[set[str]], None],
        in_thread: InThread = at_once,
        steady_ms: Callable[[], int] = lambda: 0,
        on_master: Callable[[str | None, str | None], None] = lambda *_: None,
    ) -> None:
        self._on_master = on_master
        self._masters: dict[str, RegisterBrokerResponseHeader] = {}
        """What the name servers said of the master, by name server."""
        self._connections = connections
        self._identity = identity
        self._timeout_ms = timeout_ms
        self._topic_table = topic_table
        self._on_order_topics = on_order_topics
        self._in_thread = in_thread
        self.addresses: tuple[str, ...] = ()
        self._has_left = False
        self._registered: dict[str, bool] = {}
        self._take_single: set[str] = set()
        """The name servers that can be told of one topic alone."""
        self._due: dict[str, None] = {}
        """The name servers that are to be told everything, in order."""
        self._again: dict[str, tuple[int, int]] = {}
        """The name servers that refused the registration: the steady time of the next attempt, and
        the pause before it."""
        self._steady_ms = steady_ms
        self._is_encoding = False
        self._parts: dict[str, list[bytes]] = {}
        """The parts of a registration that are yet to be told, by name server."""
        self._registration = _RegistrationText()

    def set_addresses(self, text: str) -> None:
        """Sets the addresses, given as "host:port" separated by semicolons."""
        self.addresses = tuple(part.strip() for part in text.split(";") if part.strip())

    def register(self, *, force: bool) -> None:
        """Registers all topics at every name server, or without `force` where some are missing."""
        for address in self.addresses:
            if force or not self._registered.get(address):
                self._due[address] = None
            else:
                self._register_if_changed(address)
        self._register_due()

    @property
    def is_registered(self) -> bool:
        """Whether a name server has registered the broker, or there is none that could do so."""
        if self._has_left:
            return False
        return not self.addresses or any(map(self._registered.get, self.addresses))

    def tick(self) -> None:
        """Tries again to register where this failed; called every second.

        It tries after 1, 2, 4 ... seconds, up to the period of all registrations.
        """
        steady_ms = self._steady_ms()
        for address, (due_ms, _) in list(self._again.items()):
            if steady_ms >= due_ms:
                self._again[address] = NEVER_MS, self._again[address][1]
                self._due[address] = None
        self._register_due()

    def register_topics(self, topics: Iterable[TopicConfig]) -> None:
        """Tells every name server of topics that are new or have changed."""
        if self._has_left:
            return
        permission = self._topic_table().permission
        told = [_permitted(topic, permission) for topic in topics]
        for address in self.addresses:
            # A registration that is being made may lack these topics, so it must not arrive after
            # them.
            is_under_way = self._is_encoding or self._parts.get(address)
            if address in self._take_single and not is_under_way:
                for topic in told:
                    self._register_topic(address, topic)
            else:
                self._due[address] = None
        self._register_due()

    def unregister(self, then: Callable[[], None]) -> None:
        """Unregisters at every name server; `then` is called when all have answered or failed.

        After that the name servers are told nothing more.
        """
        self._has_left = True
        waiting = set(self.addresses)
        it = self._identity
        header = UnRegisterBrokerRequestHeader(
            broker_name=it.name,
            broker_addr=it.address,
            cluster_name=it.cluster,
            broker_id=it.broker_id,
        )
        if not waiting:
            then()
        for address in self.addresses:

            def answered(_: Any, address: str = address) -> None:
                waiting.discard(address)
                if not waiting:
                    then()

            self._connections.invoke(
                address, route.UNREGISTER_BROKER, header, timeout_ms=UNREGISTER_TIMEOUT_MS
            ).then(answered)

    def ask_route(self, topic: str) -> PendingReply:
        """Asks for a topic's route: resolves to the first answer, or to the last server's error."""
        promise = PendingReply()
        header = GetRouteInfoRequestHeader(topic=topic)
        left = list(self.addresses)

        def ask_next(outcome: Reply[Any] | Exception) -> None:
            if isinstance(outcome, Exception) and left:
                self._connections.invoke(
                    left.pop(0), route.GET_ROUTEINFO_BY_TOPIC, header, timeout_ms=QUERY_TIMEOUT_MS
                ).then(ask_next)
            else:
                promise.resolve(outcome)

        ask_next(ConnectError("no name server is configured"))
        return promise

    def _register_if_changed(self, address: str) -> None:
        it = self._identity
        header = QueryDataVersionRequestHeader(
            broker_name=it.name,
            broker_addr=it.address,
            cluster_name=it.cluster,
            broker_id=it.broker_id,
        )

        def answered(outcome: Reply[Any] | Exception) -> None:
            if (
                isinstance(outcome, Reply)
                and outcome.code == ResponseCode.SUCCESS
                and outcome.header is not None
                and not outcome.header.changed
            ):
                return
            self._due[address] = None
            self._register_due()

        self._connections.invoke(
            address,
            route.QUERY_DATA_VERSION,
            header,
            self._topic_table().data_version.encode(),
            timeout_ms=QUERY_TIMEOUT_MS,
        ).then(answered)

    def _register_topic(self, address: str, topic: TopicConfig) -> None:
        queues = QueueData(
            broker_name=self._identity.name,
            read_queue_nums=topic.read_queue_nums,
            write_queue_nums=topic.write_queue_nums,
            perm=topic.perm,
            topic_sys_flag=topic.topic_sys_flag,
        )

        def answered(outcome: Reply[Any] | Exception) -> None:
            if not isinstance(outcome, Reply) or outcome.code != ResponseCode.SUCCESS:
                self._take_single.discard(address)
                self._due[address] = None
                self._register_due()

        self._connections.invoke(
            address,
            topic_calls.REGISTER_TOPIC_IN_NAMESRV,
            RegisterTopicRequestHeader(topic=topic.topic_name or ""),
            TopicRouteData(queue_datas=[queues]).encode(),
            timeout_ms=self._timeout_ms(),
        ).then(answered)

    def _register_due(self) -> None:
        """Makes a registration for all name servers that wait, and for those added since."""
        addresses = [each for each in self._due if not self._parts.get(each)]
        if self._is_encoding or not addresses or self._has_left:
            return
        self._is_encoding = True
        for address in addresses:
            del self._due[address]
        table = self._topic_table()
        bodies: list[list[bytes]] = []

        def encoded(error: Exception | None) -> None:
            self._is_encoding = False
            if error is not None:
                log.error("the registration could not be made: {error}", error=error)
                return
            for address in addresses:
                if address in self.addresses and not self._has_left:
                    parts = self._parts[address] = bodies[0][::-1]
                    self._register(address, parts)
            self._register_due()

        self._in_thread(lambda: bodies.append(self._registration.encode(table)), encoded)

    def _register(self, address: str, parts: list[bytes]) -> None:
        """Tells the last of these parts, and the others when that is registered."""
        it, body = self._identity, parts.pop()

        def answered(outcome: Reply[Any] | Exception) -> None:
            is_good = isinstance(outcome, Reply) and outcome.code == ResponseCode.SUCCESS
            if parts and is_good and not self._has_left:
                self._register(address, parts)
                return
            parts.clear()
            self._answered(address, outcome)
            self._register_due()

        header = RegisterBrokerRequestHeader(
            broker_name=it.name,
            broker_addr=it.address,
            cluster_name=it.cluster,
            ha_server_addr=it.ha_address,
            broker_id=it.broker_id,
            enable_acting_master=it.silent_ms is not None,
            heartbeat_timeout_millis=it.silent_ms,
            body_crc32=body_crc(body),
        )
        self._connections.invoke(
            address, route.REGISTER_BROKER, header, body, timeout_ms=self._timeout_ms()
        ).then(answered)

    def _answered(self, address: str, outcome: Reply[Any] | Exception) -> None:
        before = self._registered.get(address)
        if isinstance(outcome, Reply) and outcome.code == ResponseCode.SUCCESS:
            self._registered[address] = True
            self._again.pop(address, None)
            if outcome.version >= MQVersion.V5_0_0:
                self._take_single.add(address)
            if not before:
                log.info("registered with name server {address}", address=address)
            self._take_order_topics(address, outcome.body_bytes)
            self._take_master(address, outcome.header)
            return
        self._registered[address] = False
        self._take_single.discard(address)
        self._masters.pop(address, None)
        pause_ms = min(2 * self._again.get(address, (0, FIRST_PAUSE_MS // 2))[1], MAX_PAUSE_MS)
        self._again[address] = self._steady_ms() + pause_ms, pause_ms
        if before is not False:
            why = outcome.remark if isinstance(outcome, Reply) else outcome
            log.warn(
                "name server {address} refused the registration: {why}", address=address, why=why
            )

    def _take_master(self, address: str, header: RegisterBrokerResponseHeader | None) -> None:
        if self._identity.broker_id == 0 or header is None:
            return
        self._masters[address] = header
        known = [self._masters[each] for each in self.addresses if each in self._masters]
        found = next((each for each in known if each.master_addr), header)
        self._on_master(found.ha_server_addr or None, found.master_addr or None)

    def _take_order_topics(self, address: str, body: bytes) -> None:
        if not body:
            return
        try:
            table = KVTable.decode(body).table
        except HeaderError as error:
            log.warn(
                "name server {address} sent order topics that are not valid: {error}",
                address=address,
                error=error,
            )
            return
        self._on_order_topics(set(table))


def ask_log_end(connections: Connections, address: str, then: Callable[[int], None]) -> None:
    """Asks another broker where its log ends, and calls `then` with that, if it answers."""

    def answered(outcome: Reply[Any] | Exception) -> None:
        if not isinstance(outcome, Reply) or outcome.code != ResponseCode.SUCCESS:
            return
        try:
            end = int(KVTable.decode(outcome.body_bytes).table.get("commitLogMaxOffset", ""))
        except (HeaderError, ValueError):
            return
        then(end)

    connections.invoke(
        address, GET_BROKER_RUNTIME_INFO, NoHeader(), timeout_ms=QUERY_TIMEOUT_MS
    ).then(answered)


def ask_ha_info(
    connections: Connections, address: str, header: ExchangeHAInfoRequestHeader
) -> PendingReply:
    """Exchanges with another broker where slaves are served."""
    return connections.invoke(address, EXCHANGE_BROKER_HA_INFO, header, timeout_ms=QUERY_TIMEOUT_MS)


def ask_locks(
    connections: Connections, address: str, call: Call[Any, Any], header: Header, body: bytes
) -> PendingReply:
    """Asks another broker of the name to lock or unlock queues, for which it has a second."""
    return connections.invoke(address, call, header, body, timeout_ms=LOCK_TIMEOUT_MS)


def ask_another(
    connections: Connections, address: str, call: Call[Any, Any], header: Header, body: bytes
) -> PendingReply:
    """Asks another broker to store a message, or for messages."""
    return connections.invoke(address, call, header, body, timeout_ms=QUERY_TIMEOUT_MS)


class _RegistrationText:
    """Makes the text of registrations, in any thread; texts of topics are kept for the next one."""

    def __init__(self) -> None:
        self._permission = -1
        self._topics: EncodedTable[TopicConfig] = EncodedTable(self._encode_topic)

    def encode(self, table: TopicTable) -> list[bytes]:
        """The bodies of REGISTER_BROKER, as RegisterBrokerBody encodes them: one, or parts.

        A name server takes a part for news because its data version differs from that of the part
        before. The last one has the version of the whole.
        """
        if table.permission != self._permission:
            self._permission = table.permission
            self._topics = EncodedTable(self._encode_topic)
        texts = self._topics.texts(table.topics)
        size = table.part_size
        if not table.is_split and sum(map(len, texts)) + len(texts) < MAX_BODY_BYTES:
            size = len(texts)
        parts = [texts[at : at + size] for at in range(0, len(texts), max(size, 1))] or [[]]
        bodies: list[bytes] = []
        for number, part in enumerate(parts, 1):
            version = table.data_version
            if number < len(parts):
                version = replace(version, timestamp=version.timestamp + number)
            content = RegisterBrokerBody(
                topic_config_serialize_wrapper=TopicConfigAndMappingSerializeWrapper(
                    data_version=version
                )
            ).to_json()
            content["topicConfigSerializeWrapper"]["topicConfigTable"] = HOLE
            before, after = encode_around(content)
            bodies.append(before + b"{" + b",".join(part) + b"}" + after)
        return bodies

    def _encode_topic(self, name: str, topic: TopicConfig) -> bytes:
        return encode_member(name, _permitted(topic, self._permission).to_json())


def _permitted(topic: TopicConfig, permission: int) -> TopicConfig:
    """Returns the topic with no more than the broker's permission."""
    if permission & _READ_WRITE == _READ_WRITE:
        return topic
    return replace(topic, perm=topic.perm & permission)
