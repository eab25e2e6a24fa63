# SPDX-License-Identifier: Apache-2.0
"""The role of a broker among its replicas: it writes, or it follows the one that does.

This is asked in two places. A request that writes says so where it is declared
(`define(..., at_slave=...)`), and `refuse` is the guard of all of them. What the broker does by
itself with waiting messages asks before each tick (engine.py). So neither a handler nor an engine
has to know that there are slaves.

Java: BrokerRole, validateSlave, and the questions for SLAVE in processors and services.
"""

from __future__ import annotations

from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.remoting.call import CALLS, Peer
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.guards import Guard


class Role:
    """The role of a broker with this configuration."""

    def __init__(self, config: StoreConfig) -> None:
        self._config = config

    @property
    def writes(self) -> bool:
        """Whether the broker writes to its log, and changes topics and groups, by itself."""
        return not self._config.is_slave

    def guards(self) -> list[Guard]:
        """The guards that requests need: none for a master, so that it does not pay for them."""
        return [] if self.writes else [self.refuse]

    def refuse(self, peer: Peer, command: RemotingCommand) -> None:
        """Refuses requests that write, while this broker does not: raises ResponseError."""
        call = CALLS.get(command.code)
        if call is not None and call.at_slave is not None and not self.writes:
            raise ResponseError(
                call.at_slave,
                f"this broker is a slave: send {call.name} to its master, which the name server"
                " knows as the broker with the id 0",
            )
