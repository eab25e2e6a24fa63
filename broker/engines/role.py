# SPDX-License-Identifier: Apache-2.0
"""The role of a broker among its replicas: it writes, or it follows the one that does.

The settings are asked for it here only. A request that writes says so where it is declared
(`define(..., at_slave=...)`), and `refuse` is the guard of all of them. What the broker does by
itself with waiting messages asks before each tick (engine.py). So neither a handler nor an engine
has to know that there are slaves. Whoever else does something different on a slave asks `writes`;
the store, which knows nothing of this module, asks its own settings whose log it has.

A slave refuses pulls as long as slaveReadEnable is off, as in 5.x; in 4.9 it serves them all the
same.

Java: BrokerRole, validateSlave, and the questions for SLAVE in processors and services.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.remoting.call import CALLS, Peer
from txrocketmq.remoting.codes import RequestCode, ResponseCode
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.guards import Guard

_PULLS: Final = frozenset({RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE})


class Role:
    """The role of a broker with this configuration; `is_read` says whether a slave serves pulls."""

    def __init__(self, config: StoreConfig, is_read: Callable[[], bool] = lambda: True) -> None:
        self._config = config
        self._is_read = is_read

    @property
    def writes(self) -> bool:
        """Whether the broker writes to its log, and changes topics and groups, by itself."""
        return not self._config.is_slave

    def guards(self) -> list[Guard]:
        """The guards that requests need: none for a master, so that it does not pay for them."""
        return [] if self.writes else [self.refuse, self.refuse_pull]

    def refuse(self, peer: Peer, command: RemotingCommand) -> None:
        """Refuses requests that write, while this broker does not: raises ResponseError."""
        call = CALLS.get(command.code)
        if call is not None and call.at_slave is not None and not self.writes:
            raise ResponseError(
                call.at_slave,
                f"this broker is a slave: send {call.name} to its master, which the name server"
                " knows as the broker with the id 0",
            )

    def refuse_pull(self, peer: Peer, command: RemotingCommand) -> None:
        """Refuses pulls while nobody is to read from this slave: raises ResponseError."""
        if command.code in _PULLS and not self._is_read():
            raise ResponseError(
                ResponseCode.SYSTEM_BUSY,
                "[REJECTREQUEST]system busy, start flow control for a while: this broker is a slave"
                " that nobody reads from (slaveReadEnable=false)",
            )
