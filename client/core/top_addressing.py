# SPDX-License-Identifier: Apache-2.0
"""Addresses of name servers that an HTTP server returns in the first line of its answer.

It is asked only when no address is given. Counterpart of DefaultTopAddressing.
"""

from __future__ import annotations

from typing import Any, Final

from twisted.internet.abstract import isIPAddress
from twisted.internet.defer import Deferred
from twisted.internet.endpoints import HostnameEndpoint, TCP4ClientEndpoint, connectProtocol
from twisted.internet.protocol import Protocol
from twisted.python.failure import Failure

from txrocketmq.client.base.config import ClientConfig
from txrocketmq.client.base.errors import NoNameServer
from txrocketmq.remoting.host.clock import Clock

TIMEOUT_MS: Final = 3_000
FIRST_MS: Final = 10_000
PERIOD_MS: Final = 120_000
MAX_BYTES: Final = 64 * 1024
_HTTP_PORT: Final = 80
_OK: Final = 200


def host_and_path(config: ClientConfig) -> tuple[str, int, str]:
    """Where to ask: host, port and path, the latter with the name of the unit."""
    host, _, port = config.namesrv_domain.partition(":")
    path = f"/rocketmq/{config.namesrv_domain_subgroup}"
    if config.unit_name:
        path += f"-{config.unit_name}?nofix=1"
    return host, int(port) if port.isdecimal() else _HTTP_PORT, path


async def fetch(config: ClientConfig, clock: Clock) -> str:
    """Returns the addresses from the server. Raises NoNameServer if there are none."""
    host, port, path = host_and_path(config)
    url = f"http://{host}:{port}{path}"
    request = f"GET {path} HTTP/1.0\r\nHost: {host}:{port}\r\nAccept: */*\r\n\r\n".encode("ascii")
    make: Any = TCP4ClientEndpoint if isIPAddress(host) else HostnameEndpoint
    endpoint = make(clock.reactor, host, port, timeout=TIMEOUT_MS / 1000)
    page = _Page(request)
    done = page.done
    done.addTimeout(TIMEOUT_MS / 1000, clock.reactor)
    try:
        await connectProtocol(endpoint, page).addTimeout(TIMEOUT_MS / 1000, clock.reactor)
        answer = await done
    except Exception as error:
        raise NoNameServer(
            f"no name server is given, and {url}, which is to tell them, cannot be read: {error}"
        ) from error
    return first_line(answer, url)


def first_line(answer: bytes, url: str) -> str:
    """The first line of the body of an HTTP answer. Raises NoNameServer."""
    head, _, body = answer.partition(b"\r\n\r\n")
    status = head.split(b"\r\n", 1)[0].split(b" ")
    if len(status) < 2 or status[1] != str(_OK).encode():
        said = head.split(b"\r\n", 1)[0].decode("latin-1")
        raise NoNameServer(f"{url} does not name any name servers: it answered {said!r:.80}")
    lines = body.decode("utf-8", "replace").strip().splitlines()
    if not lines or not lines[0].strip():
        raise NoNameServer(f"{url} does not name any name servers: its answer is empty")
    return lines[0].strip()


class _Page(Protocol):
    """One request; `done` fires with the whole answer when the server closes the connection."""

    def __init__(self, request: bytes) -> None:
        self.done: Deferred[bytes] = Deferred(lambda _: self._abort())
        self._request = request
        self._answer = b""

    def connectionMade(self) -> None:
        assert self.transport is not None
        self.transport.write(self._request)

    def dataReceived(self, data: bytes) -> None:
        self._answer += data
        if len(self._answer) > MAX_BYTES:
            self._abort()

    def connectionLost(self, reason: Failure | None = None) -> None:
        if not self.done.called:
            self.done.callback(self._answer)

    def _abort(self) -> None:
        if self.transport is not None:
            self.transport.abortConnection()  # type: ignore[attr-defined]
