# SPDX-License-Identifier: Apache-2.0
"""The visitors of an HTTP port: how many there may be, and for how long.

Anybody may connect, and a server has other things to do. So there are few connections, each of
which has a limited time until its request has come and its answer has been read, and requests have
no body. When one more comes, another has to go: of the host with the most connections the one that
was served longest ago. So many connections from one host do not keep the others away.

Java: PrometheusHttpServer has the limits of com.sun.net.httpserver.
"""

from __future__ import annotations

from collections import Counter
from io import BytesIO
from typing import Any, Final

from twisted.internet.interfaces import IAddress
from twisted.python.failure import Failure
from twisted.web.http import HTTPChannel
from twisted.web.resource import IResource
from twisted.web.server import Request, Site

MOST_VISITORS: Final = 64
"""How many connections there are at most."""
PATIENCE_S: Final = 60
"""For how many seconds a connection stays open in which no answer has been read."""


class _Visitor(HTTPChannel):
    """A connection."""

    host = ""
    site: Visitors

    def connectionMade(self) -> None:
        """Waits for a request, but not for ever."""
        super().connectionMade()  # type: ignore[no-untyped-call]
        transport: Any = self.transport
        self.host = str(getattr(transport.getPeer(), "host", ""))
        self._patience = self.callLater(PATIENCE_S, self.leave)  # type: ignore[no-untyped-call]
        self.site.came(self)

    def connectionLost(self, reason: Failure = Failure(Exception("lost"))) -> None:  # noqa: B008
        """Waits no more."""
        if self._patience.active():
            self._patience.cancel()
        self.site.left(self)
        super().connectionLost(reason)  # type: ignore[no-untyped-call]

    def requestDone(self, request: Any) -> None:  # noqa: N802 - Twisted's
        """Waits for the next request as long as for the first."""
        if self._patience.active():
            self._patience.reset(PATIENCE_S)
            self.site.left(self)
            self.site.came(self)
        super().requestDone(request)  # type: ignore[no-untyped-call]

    def rawDataReceived(self, data: bytes) -> None:  # noqa: N802
        """Refuses a body, which no request here has; other requests wait for their turn."""
        if self._handlingRequest:
            super().rawDataReceived(data)
        else:
            self._respondToBadRequestAndDisconnect()  # type: ignore[no-untyped-call]

    def leave(self) -> None:
        """Ends the connection at once."""
        transport: Any = self.transport
        transport.abortConnection()


class _Request(Request):
    """A request, for whose body no file is made."""

    def gotLength(self, length: int | None) -> None:  # noqa: N802
        """Expects no body, whatever is announced."""
        self.content = BytesIO()


class Visitors(Site):
    """Answers HTTP requests from a tree of resources."""

    protocol: Any = _Visitor

    def __init__(self, root: IResource, reactor: Any) -> None:
        untyped: Any = super().__init__
        untyped(root, _Request, timeout=None, reactor=reactor)
        self.noisy = False
        self.displayTracebacks = False
        self._all: dict[_Visitor, None] = {}
        """The connections; those that were served longest ago come first."""

    def buildProtocol(self, addr: IAddress | None) -> Any:
        """Makes room for one more, and returns it."""
        if len(self._all) >= MOST_VISITORS:
            host, _ = Counter(each.host for each in self._all).most_common(1)[0]
            first = next(each for each in self._all if each.host == host)
            self.left(first)
            first.leave()
        return super().buildProtocol(addr)  # type: ignore[no-untyped-call]

    def came(self, visitor: _Visitor) -> None:
        """Counts a connection, as the one that was served last."""
        self._all[visitor] = None

    def left(self, visitor: _Visitor) -> None:
        """Counts a connection no more."""
        self._all.pop(visitor, None)
