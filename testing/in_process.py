# SPDX-License-Identifier: Apache-2.0
"""A name server and a broker inside the running reactor, for tests with Twisted.

server = InProcessServer()
yield server.start()
server.faults.refuse("SYSTEM_BUSY", times=1)
self.addCleanup(server.stop)
"""

from __future__ import annotations

import shutil
import tempfile
from typing import Any

from twisted.internet.defer import Deferred

from txrocketmq.cli.servers.standalone import Options, Standalone
from txrocketmq.proxy.needs import missing
from txrocketmq.remoting.arguments.arguments import checked_class
from txrocketmq.testing.broker_state import BrokerState
from txrocketmq.testing.clock import HurriedClock
from txrocketmq.testing.faults import Faults
from txrocketmq.testing.settings import broker_settings

__all__ = ["InProcessServer"]


@checked_class
class InProcessServer:
    """Name server and broker on free ports of loopback, with a temporary store.

    The arguments are settings of the broker, under their names in broker.conf.
    """

    def __init__(self, **settings: object) -> None:
        self._folder = tempfile.mkdtemp(prefix="rocketmq-")
        self.clock = HurriedClock()
        """The broker's clock."""
        self.service = Standalone(
            Options(
                namesrv_port=0,
                settings=broker_settings(self._folder, settings),
                grpc_port=None if missing() else 0,
            ),
            self.clock,
        )
        """The name server and the broker."""
        self.state = BrokerState(self.service, self.clock.unhurried)
        """Looks up the state of the broker, once it has started."""
        self.faults: Faults
        """The faults of the broker; it exists once the broker has started."""

    @property
    def namesrv_addr(self) -> str:
        """The address of the name server, as "host:port"."""
        return self.service.namesrv_addr

    @property
    def broker_addr(self) -> str:
        """The address of the broker."""
        return self.service.broker_addr

    @property
    def grpc_endpoint(self) -> str:
        """The address for gRPC clients, as "host:port"; empty without txrocketmq[grpc]."""
        return self.service.grpc_endpoint

    def start(self) -> Deferred[None]:
        """Starts both servers; fires when clients can find the broker.

        Raises ValueError or OSError if they cannot start.
        """
        try:
            self.service.start()
        except Exception:
            self._remove(None)
            raise
        assert self.service.broker is not None
        self.faults = Faults(self.service.broker, self.clock.unhurried)
        return self.service.ready

    def advance(self, ms: int) -> None:
        """Moves the broker's clock forward; what is due by then happens in the next turns."""
        self.clock.advance(ms)

    def stop(self) -> Deferred[Any]:
        """Stops both in order and removes the store."""
        return self.service.stop().addBoth(self._remove)

    def _remove(self, outcome: Any) -> Any:
        shutil.rmtree(self._folder, ignore_errors=True)
        return outcome
