# SPDX-License-Identifier: Apache-2.0
"""The port for gRPC in a process that also does other things: it is open at once, and what serves
it is imported when the first client comes.

So a server that nobody talks gRPC to starts as fast, and takes as little memory, as without it. A
thread does the import; until it is over, clients wait in the backlog of the port.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from twisted.internet.defer import Deferred, maybeDeferred, succeed
from twisted.internet.protocol import ServerFactory
from twisted.logger import Logger
from twisted.python.failure import Failure

from txrocketmq.remoting.host.clock import Clock

if TYPE_CHECKING:
    from txrocketmq.proxy.service import Proxy

_SERVICE: Final = "txrocketmq.proxy.service"
_BACKLOG: Final = 1024

log = Logger()


class Door:
    """Opens a port, and has what `make` returns serve it from the first client on.

    `make` is called when the service is imported.
    """

    def __init__(self, clock: Clock, make: Callable[[], Proxy]) -> None:
        self._clock = clock
        self._make = make
        self._listening: Any = None
        self.proxy: Proxy | None = None
        """What serves, once a client has come."""
        self.port = 0
        """The number of the port while it is open."""

    def open(self, port: int, interface: str) -> None:
        """Listens. Raises CannotListenError."""
        factory = ServerFactory()
        factory.noisy = False
        listening = self._clock.reactor.listenTCP(port, factory, _BACKLOG, interface)
        listening.doRead = self._someone_came
        self._listening = listening
        self.port = listening.getHost().port

    def close(self) -> Deferred[Any]:
        """Stops listening, and ends what is served."""
        listening, self._listening = self._listening, None
        self.port = 0
        if self.proxy is not None:
            return self.proxy.stop()
        return succeed(None) if listening is None else maybeDeferred(listening.stopListening)

    def _someone_came(self) -> None:
        self._listening.stopReading()
        self._clock.in_thread(lambda: import_module(_SERVICE)).addCallbacks(
            self._serve, self._failed
        ).addErrback(self._failed)

    def _serve(self, _: object) -> None:
        listening = self._listening
        if listening is None:
            return  # closed meanwhile
        del listening.doRead
        self.proxy = self._make()
        self.proxy.start(listening)
        listening.startReading()

    def _failed(self, failure: Failure) -> None:
        log.failure("the port for gRPC cannot be served", failure)
        if self._listening is not None:
            self._listening.stopListening()
            self._listening = None
