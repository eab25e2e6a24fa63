# SPDX-License-Identifier: Apache-2.0
"""Strangers: anybody may connect to a server, and so they share what it has for all of them.

Peers that speak another protocol to our ports are recognized by their first bytes. Otherwise each
of them would be reported as a frame of impossible size, which helps nobody.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from twisted.logger import Logger

from txrocketmq.remoting.primitives.networks import Networks
from txrocketmq.remoting.process.log_limit import Seldom, and_more
from txrocketmq.remoting.transport.held_bytes import HeldBytes
from txrocketmq.remoting.transport.turns import Turns

_HTTP: Final = tuple(
    f"{method} ".encode()
    for method in ("GET", "POST", "PUT", "HEAD", "DELETE", "OPTIONS", "PATCH", "CONNECT", "TRACE")
)
HTTP_ADVICE: Final = (
    "clients that speak gRPC want the proxy, whose port is 8081 by default (txrocketmq proxy, or"
    " --grpc-port of txrocketmq standalone), and metrics have a port of their own"
)
NOBODY: Final = Networks()
"""The load balancers of a server that has none."""
_STRANGERS: Final = (
    ((b"PRI * HTTP/2",), "HTTP/2", HTTP_ADVICE),
    (_HTTP, "HTTP", HTTP_ADVICE),
)

log = Logger()


def stranger(data: bytes) -> str:
    """Says in words which protocol begins with these bytes, and what to do; empty if unknown."""
    for beginnings, name, advice in _STRANGERS:
        if data.startswith(beginnings):
            return f"it speaks {name} to the remoting port; {advice}"
    return ""


@dataclass(frozen=True, slots=True)
class Shared:
    """What the peers of a server share, since they are strangers to it."""

    turns: Turns
    """How long the requests of one are served while others wait."""
    held: HeldBytes
    """Counts the bytes that are held. The transports of the peers call `has_sent` whenever they
    have sent some."""
    seldom: Seldom
    """Limits how often the log says that peers are closed because of what they have sent."""
    balancers: Networks = NOBODY
    """Those who are believed when they say for whom they have opened a connection."""

    def believes(self, host: str, other: str, steady_ms: int) -> bool:
        """Returns whether a peer at `host` is believed when it says that it speaks for another
        address; logs if it is not.
        """
        if host in self.balancers:
            return True
        more = self.seldom.more(steady_ms, Networks)
        if more is not None:
            log.warn(
                "{peer} says that it is a load balancer and speaks for {other}; it is not believed,"
                " and its requests count as its own. If it is one of yours, add it to"
                " proxyProtocolFrom{more}",
                peer=host,
                other=other,
                more=and_more(more),
            )
        return False
