# SPDX-License-Identifier: Apache-2.0
"""Delivers messages of a slave that acts as master by way of other masters (enableRemoteEscape).

A slave cannot write to its log. So a delayed message that is due there, also one that a consumer
gets again, is sent to another master of the cluster, as a producer would send it. So are timer
messages, open half messages, which wait there to be ended, and popped messages that were not
acknowledged in time. The topic has to exist there; for popped messages that is the retry topic of
their group. A message that no other master takes is tried again later. Each may come twice: when an
answer is lost, or when the master of this slave has come back and has not heard of it.

Routes are remembered for half a minute. What is under way is a batch of each delay level, and one
each of timer messages, half messages and popped messages.

Java: EscapeBridge.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from txrocketmq.broker.replication.acting import MASTER_ID
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.formats.put_message import MULTI_DISPATCH, PutMessage
from txrocketmq.remoting.call import PendingReply, Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import HeaderError
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.flags import MessageSysFlag, is_writable
from txrocketmq.remoting.message.properties import decode_properties, encode_properties
from txrocketmq.remoting.message.topics import DEFAULT_TOPIC
from txrocketmq.remoting.primitives.networks import is_host_and_port
from txrocketmq.remoting.protocol.body.route import TopicRouteData
from txrocketmq.remoting.protocol.send import SEND_MESSAGE, SendMessageRequestHeader

ROUTE_MS: Final = 30_000
MAX_TOPICS: Final = 1_000
"""How many routes are remembered; beyond that all are asked for again."""
_QUEUES: Final = 8
_TYPES: Final = MessageSysFlag.TRANSACTION_ROLLBACK_TYPE
"""The bits that say what a message is in a transaction."""
_OF_LEVELS: Final = frozenset({names.DELAY, names.REAL_TOPIC, names.REAL_QID})
"""Properties with which another master would delay the message once more."""
_OF_HALVES: Final = _OF_LEVELS - {names.DELAY}
"""The same of a half message, which is not delayed before its transaction is committed."""
_STORED: Final = frozenset(
    {
        ResponseCode.SUCCESS,
        ResponseCode.FLUSH_DISK_TIMEOUT,
        ResponseCode.FLUSH_SLAVE_TIMEOUT,
        ResponseCode.SLAVE_NOT_AVAILABLE,
    }
)

Send = Callable[[str, Any, Any, bytes], PendingReply]
"""Sends a request to an address: the call, its header and its body."""


class _Place(NamedTuple):
    address: str
    queues: int


class Escape:
    """Sends messages to other masters; `ask_route` asks a name server for the route of a topic."""

    def __init__(
        self,
        config: BrokerConfig,
        ask_route: Callable[[str], PendingReply],
        steady_clock: Callable[[], int],
    ) -> None:
        self._config = config
        self._ask_route = ask_route
        self._steady_ms = steady_clock
        self._send: Send | None = None
        self._routes: dict[str, tuple[int, list[_Place]]] = {}
        """By topic: until when they are believed, and where it can be written."""
        self._next = 0

    def begin(self, send: Send) -> None:
        """Sends by this from now on."""
        self._send = send

    def put(self, messages: Sequence[PutMessage], then: Callable[[list[bool]], None]) -> None:
        """Sends messages; `then` gets which of them other masters have, when all are answered."""
        has = [False] * len(messages)
        left = [len(messages)]

        def answered(at: int, outcome: Reply[Any] | Exception) -> None:
            has[at] = isinstance(outcome, Reply) and outcome.code in _STORED
            left[0] -= 1
            if not left[0]:
                then(has)

        for at, message in enumerate(messages):
            self._find(message.topic, partial(self._put, message, partial(answered, at)))

    def _put(
        self,
        message: PutMessage,
        answered: Callable[[Reply[Any] | Exception], None],
        places: list[_Place],
    ) -> None:
        if not places or self._send is None:
            answered(HeaderError("no other master takes messages of the topic"))
            return
        self._next += 1
        place = places[self._next % len(places)]
        properties = decode_properties(message.properties.decode("utf-8", "replace"))
        is_half = message.sys_flag & _TYPES == MessageSysFlag.TRANSACTION_PREPARED_TYPE
        left_out = _OF_HALVES if is_half else _OF_LEVELS
        kept = {name: value for name, value in properties.items() if name not in left_out}
        config = self._config
        header = SendMessageRequestHeader(
            producer_group=kept.get(names.PGROUP)
            or f"InnerProducerGroup_{config.broker_name}_{config.broker_id}",
            topic=message.topic,
            default_topic=DEFAULT_TOPIC,
            default_topic_queue_nums=_QUEUES,
            queue_id=self._next // len(places) % place.queues,
            sys_flag=message.sys_flag & ~MULTI_DISPATCH,
            born_timestamp=message.born_timestamp_ms,
            flag=message.flag,
            properties=encode_properties({**kept, names.WAIT: "false"}),
            reconsume_times=message.reconsume_times,
            unit_mode=False,
            batch=False,
        )
        self._send(place.address, SEND_MESSAGE, header, bytes(message.body)).then(answered)

    def _find(self, topic: str, then: Callable[[list[_Place]], None]) -> None:
        until_ms, places = self._routes.get(topic, (0, []))
        if self._steady_ms() < until_ms:
            then(places)
            return

        def answered(outcome: Reply[Any] | Exception) -> None:
            found = self._places(outcome)
            if found:
                if len(self._routes) >= MAX_TOPICS:
                    self._routes.clear()
                self._routes[topic] = self._steady_ms() + ROUTE_MS, found
            then(found)

        self._ask_route(topic).then(answered)

    def _places(self, outcome: Reply[Any] | Exception) -> list[_Place]:
        """The other masters of a route at which a topic can be written."""
        if isinstance(outcome, Exception) or outcome.code != ResponseCode.SUCCESS:
            return []
        try:
            route = TopicRouteData.decode(outcome.body_bytes)
        except HeaderError:
            return []
        addresses = {each.broker_name: each.broker_addrs for each in route.broker_datas}
        found = []
        for queues in route.queue_datas:
            name = queues.broker_name
            address = addresses.get(name, {}).get(MASTER_ID)
            if (
                address
                and is_host_and_port(address)
                and name != self._config.broker_name
                and is_writable(queues.perm)
                and queues.write_queue_nums > 0
            ):
                found.append(_Place(address, queues.write_queue_nums))
        return found
