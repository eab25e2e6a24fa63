# SPDX-License-Identifier: Apache-2.0
"""Housekeeping: brokers that come and go are logged, and those whom it concerns are notified.

A broker is gone when its connection ends, or when it has been silent for too long. Counterpart of
BrokerHousekeepingService, and of the scan for brokers in NamesrvController.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from twisted.logger import Logger

from txrocketmq.namesrv.config import NamesrvConfig
from txrocketmq.namesrv.routes.route_events import Event, MinIdChanged, TwoOfOneId
from txrocketmq.namesrv.routes.route_table import RouteTable
from txrocketmq.namesrv.turns import Own, Turns
from txrocketmq.remoting.call import Peer
from txrocketmq.remoting.host.life import AtStop, Gauge, Life, Tick
from txrocketmq.remoting.process.log_limit import Seldom, and_more
from txrocketmq.remoting.protocol.operations import ha
from txrocketmq.remoting.protocol.operations.ha import NotifyMinBrokerIdChangeRequestHeader
from txrocketmq.remoting.settings.config_file import Configuration
from txrocketmq.remoting.transport.client import Connections
from txrocketmq.remoting.transport.peer import TcpPeer

FIRST_SCAN_MS: Final = 5_000
_TOLD_AT_ONCE: Final = 16
"""How many events of brokers are told at once."""
TWO_MS: Final = 600_000
"""How often, in ms, there is a warning that two brokers have one name and id."""

log = Logger()


class BrokerHousekeeping:
    """Looks after the brokers of a table; `connect` makes the connections to them, if need be."""

    def __init__(
        self,
        table: RouteTable,
        configuration: Configuration,
        steady_clock: Callable[[], int],
        turns: Turns,
        connect: Callable[[], Connections],
    ) -> None:
        self._table = table
        self._configuration = configuration
        self._steady_ms = steady_clock
        self._turns = turns
        self._connect = connect
        self._connections: Connections | None = None
        self._events: deque[Event] = deque()
        """What happened to brokers and was not told yet."""
        self._is_tidying = self._is_expiring = False
        self._two = Seldom(1, TWO_MS)

    def life(self) -> Life:
        """Silent brokers are looked for; those whose connection has ended are gone."""
        table = self._table
        period_ms = self._config.scan_not_active_broker_interval
        scan = Tick(period_ms, lambda _, steady_ms: self.expire(steady_ms), FIRST_SCAN_MS)
        return Life(
            "brokers",
            beats=(scan,),
            forgets=self._disconnected,
            at_stop=(AtStop("closing the connections to brokers", lambda _: self._close()),),
            gauges=(
                Gauge(
                    "txrocketmq_namesrv_brokers", lambda: table.live_brokers, "brokers that live"
                ),
                Gauge(
                    "txrocketmq_namesrv_topics",
                    lambda: table.topic_count,
                    "topics that some broker has",
                ),
            ),
        )

    @property
    def _config(self) -> NamesrvConfig:
        return self._configuration.get(NamesrvConfig)

    def expire(self, steady_ms: int) -> None:
        """Begins to look for brokers that have been silent, and closes their connections."""
        if not self._is_expiring:
            self._is_expiring = True
            self._turns.run(self._expiring(steady_ms), _failed)

    def _expiring(self, steady_ms: int) -> Own:
        try:
            for live in self._table.expiring(steady_ms):
                if live is not None:
                    self.tell()
                    if isinstance(live.channel, TcpPeer):
                        live.channel.close()
                yield
        finally:
            self._is_expiring = False
        return True

    def _disconnected(self, peer: Peer, _: int) -> None:
        self._table.channel_closed(peer)
        self.tell()

    def tell(self) -> None:
        """Tells what happened to brokers, and cleans up after those that left.

        A part of it is done at once. What is left when thousands have left together is done in
        turns with all requests.
        """
        at_once = 0 if self._events else _TOLD_AT_ONCE
        self._events += self._table.take_events()
        for _ in range(min(at_once, len(self._events))):
            self._tell_of(self._events.popleft())
        if not self._is_tidying and (self._events or self._table.is_to_clean):
            self._is_tidying = True
            self._turns.run(self._tidying(), _failed)

    def _tidying(self) -> Own:
        try:
            while self._events or self._table.is_to_clean:
                yield from self._table.cleaning()
                self._events += self._table.take_events()
                while self._events:
                    self._tell_of(self._events.popleft())
                    yield
        finally:
            self._is_tidying = False
        return True

    def _tell_of(self, event: Event) -> None:
        """Logs an event, and notifies the brokers concerned."""
        if isinstance(event, TwoOfOneId):
            self._warn_of_two(event)
            return
        log.info("{event}", event=event)
        if isinstance(event, MinIdChanged):
            self._tell_brokers(event)

    def _warn_of_two(self, event: TwoOfOneId) -> None:
        """Warns every ten minutes, although both brokers register twice a minute."""
        kind = (event.broker_name, event.broker_id)
        more = self._two.more(self._steady_ms(), kind)
        if more is not None:
            log.warn("{event}{more}", event=event, more=and_more(more))

    def _tell_brokers(self, event: MinIdChanged) -> None:
        if not self._config.notify_min_broker_id_changed:
            return
        if self._connections is None:
            self._connections = self._connect()
        header = NotifyMinBrokerIdChangeRequestHeader(
            min_broker_id=event.min_id,
            broker_name=event.broker_name,
            min_broker_addr=event.min_address,
            offline_broker_addr=event.offline_address,
            ha_broker_addr=event.ha_address,
        )
        for address in event.told:
            self._connections.invoke_oneway(address, ha.NOTIFY_MIN_BROKER_ID_CHANGE, header)

    def _close(self) -> None:
        if self._connections is not None:
            self._connections.close()


def _failed(error: Exception) -> None:
    log.error("the entries of brokers that have left cannot be removed: {error!r}", error=error)
