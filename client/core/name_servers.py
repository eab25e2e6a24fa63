# SPDX-License-Identifier: Apache-2.0
"""The name servers of a client: it asks the same one as long as that answers, then the next.

The order is shuffled once, so that many clients spread over the name servers. Counterpart of
getAndCreateNameserverChannel in NettyRemotingClient and of the route call in MQClientAPIImpl.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final, TypeVar

from txrocketmq.client.base.config import ClientConfig
from txrocketmq.client.base.errors import MQBrokerError, NoNameServer
from txrocketmq.remoting.call import Call, Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import RemotingError
from txrocketmq.remoting.header import Header
from txrocketmq.remoting.protocol import route
from txrocketmq.remoting.protocol.body.route import TopicRouteData
from txrocketmq.remoting.protocol.route import GetRouteInfoRequestHeader
from txrocketmq.remoting.transport.client import Connections, as_deferred, parse_address

NOT_ONE: Final = (
    "it answers, but is not a name server; if it is a broker (10911), give the address of its name"
    " server (9876)"
)
Q = TypeVar("Q", bound=Header)
R = TypeVar("R", bound=Header)


def check_addresses(config: ClientConfig) -> None:
    """Raises ValueError unless the addresses of name servers look like addresses."""
    for address in config.name_servers:
        try:
            parse_address(address)
        except ValueError:
            raise ValueError(
                "namesrv_addr must be addresses of name servers as HOST:PORT, separated by"
                f" semicolons, not {config.namesrv_addr!r:.200}"
            ) from None


class NameServers:
    """Asks one of some name servers."""

    def __init__(self, connections: Connections, addresses: Sequence[str], timeout_ms: int) -> None:
        self._connections = connections
        self._timeout_ms = timeout_ms
        self.addresses: list[str] = []
        self._current = 0
        self.update(addresses)

    def update(self, addresses: Sequence[str]) -> None:
        """Replaces the list of name servers; the one in use stays in use if it is in the list."""
        if sorted(addresses) == sorted(self.addresses):
            return
        asked = self.addresses[self._current] if self.addresses else None
        self.addresses = random.sample(list(addresses), len(addresses))
        self._current = self.addresses.index(asked) if asked in self.addresses else 0

    async def route(self, topic: str) -> TopicRouteData | None:
        """Returns the route of a topic, or None if no broker has it.

        Raises NoNameServer, MQBrokerError, and BodyError for an answer that is no route.
        """
        header = GetRouteInfoRequestHeader(topic=topic, accept_standard_json_only=True)
        reply = await self.ask(route.GET_ROUTEINFO_BY_TOPIC, header)
        if reply.code == ResponseCode.TOPIC_NOT_EXIST:
            return None
        if reply.code != ResponseCode.SUCCESS:
            address = self.addresses[self._current]
            raise MQBrokerError(reply.code, reply.remark, address, f"topic {topic}")
        return TopicRouteData.decode(reply.body_bytes)

    async def ask(self, call: Call[Q, R], header: Q) -> Reply[R]:
        """Returns the answer of the first name server that gives one. Raises NoNameServer."""
        if not self.addresses:
            raise NoNameServer("no name server is given: set namesrv_addr or $NAMESRV_ADDR")
        failures: list[str] = []
        count = len(self.addresses)
        start = self._current
        for step in range(count):
            index = (start + step) % count
            address = self.addresses[index]
            try:
                reply: Reply[R] = await as_deferred(
                    self._connections.invoke(address, call, header, timeout_ms=self._timeout_ms)
                )
            except RemotingError as error:
                failures.append(f"{address} ({error})")
                continue
            if reply.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
                failures.append(f"{address} ({NOT_ONE})")
                continue
            self._current = index
            return reply
        raise NoNameServer("no name server is reachable: " + ", ".join(failures))
