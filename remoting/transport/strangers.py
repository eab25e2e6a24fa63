# SPDX-License-Identifier: Apache-2.0
"""Peers that speak another protocol to a port of ours: what it is, by its first bytes.

Each of them would else be a frame of impossible size, which tells nobody what to do.
"""

from __future__ import annotations

from typing import Final

_HTTP: Final = tuple(
    f"{method} ".encode()
    for method in ("GET", "POST", "PUT", "HEAD", "DELETE", "OPTIONS", "PATCH", "CONNECT", "TRACE")
)
_HTTP_ADVICE: Final = "gRPC and HTTP are for a proxy, and metrics have a port of their own"
_TLS_ADVICE: Final = "TLS is not served, so the client must not use it (tls.enable=false)"
_STRANGERS: Final = (
    ((b"\x16\x03",), "TLS", _TLS_ADVICE),
    ((b"PRI * HTTP/2",), "HTTP/2", _HTTP_ADVICE),
    (_HTTP, "HTTP", _HTTP_ADVICE),
    ((b"PROXY ", b"\r\n\r\n\0\r\nQUIT\n"), "the PROXY protocol", "it is not served"),
)


def stranger(data: bytes) -> str:
    """What whoever begins like this speaks, and what to do, in words; empty when it is unknown."""
    for beginnings, name, advice in _STRANGERS:
        if data.startswith(beginnings):
            return f"it speaks {name} to the remoting port; {advice}"
    return ""
