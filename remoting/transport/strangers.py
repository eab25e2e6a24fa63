# SPDX-License-Identifier: Apache-2.0
"""Recognizes peers that speak another protocol to our ports by their first bytes.

Otherwise each of them would be reported as a frame of impossible size, which helps nobody.
"""

from __future__ import annotations

from typing import Final

_HTTP: Final = tuple(
    f"{method} ".encode()
    for method in ("GET", "POST", "PUT", "HEAD", "DELETE", "OPTIONS", "PATCH", "CONNECT", "TRACE")
)
_HTTP_ADVICE: Final = "gRPC and HTTP are for a proxy, and metrics have a port of their own"
_STRANGERS: Final = (
    ((b"PRI * HTTP/2",), "HTTP/2", _HTTP_ADVICE),
    (_HTTP, "HTTP", _HTTP_ADVICE),
)


def stranger(data: bytes) -> str:
    """Says in words which protocol begins with these bytes, and what to do; empty if unknown."""
    for beginnings, name, advice in _STRANGERS:
        if data.startswith(beginnings):
            return f"it speaks {name} to the remoting port; {advice}"
    return ""
