# SPDX-License-Identifier: Apache-2.0
"""The header with which load balancers begin a connection to say whose it is, versions 1 and 2.

Version 1 is a line of text, such as "PROXY TCP4 10.0.0.1 10.0.0.2 50000 10911"; version 2 is
binary, see `formats.PROXY_HEAD`. Neither can be confused with a frame, whose first byte is 0 or 1.
The protocol is HAProxy's; Java: NettyRemotingServer.HandshakeHandler and HAProxyMessageHandler of
5.x, which use Netty's HAProxyMessageDecoder.
"""

from __future__ import annotations

from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Final, NamedTuple

from txrocketmq.remoting import formats
from txrocketmq.remoting.errors import FrameError
from txrocketmq.remoting.primitives.packing import fixed

_LINE: Final = b"PROXY"
_LINE_END: Final = b"\r\n"
_MAX_LINE_BYTES: Final = 108
"""The length of the longest line, with its end."""
_MAX_BINARY_BYTES: Final = 4096
"""The length of the longest binary header; what it adds to the addresses is passed over. It is held
until it is complete, and anybody may begin one."""
_SIGNATURE: Final = b"\r\n\r\n\0\r\nQUIT\n"
_HEAD: Final = fixed(formats.PROXY_HEAD)
_VERSION: Final = 2
_LOCAL, _PROXY = 0, 1
_ADDRESSES: Final = {
    0x11: (fixed(formats.PROXY_IPV4), IPv4Address),
    0x12: (fixed(formats.PROXY_IPV4), IPv4Address),
    0x21: (fixed(formats.PROXY_IPV6), IPv6Address),
    0x22: (fixed(formats.PROXY_IPV6), IPv6Address),
}
_MAX_PORT: Final = 65_535


class ProxyHeader(NamedTuple):
    """A header, and the address and port of the client that the load balancer speaks for.

    The address is empty if the header names none, for example in a check by the load balancer.
    """

    length_bytes: int
    host: str = ""
    port: int = 0


def may_begin_header(first: bytes) -> bool:
    """Returns whether a connection that begins with these bytes may begin with a header.

    They may also be the beginning of another protocol: HTTP/2 begins with "PRI", for example.
    """
    return bool(first) and any(
        first.startswith(each) or each.startswith(first) for each in (_LINE, _SIGNATURE)
    )


def read_header(data: bytes) -> ProxyHeader | None:
    """Returns the header at the beginning of the data; None if more bytes are needed for it.

    The data may begin a header, see `may_begin_header`. Raises FrameError if that header is wrong.
    """
    if data.startswith(_SIGNATURE):
        return _binary(data)
    return _line(data) if data.startswith(_LINE) else None


def _line(data: bytes) -> ProxyHeader | None:
    end = data.find(_LINE_END, 0, _MAX_LINE_BYTES)
    if end < 0:
        if len(data) >= _MAX_LINE_BYTES:
            raise FrameError(f"its PROXY line has no end within {_MAX_LINE_BYTES} bytes")
        return None
    length = end + len(_LINE_END)
    _, *words = data[:end].decode("latin-1").split(" ")
    if words[:1] == ["UNKNOWN"]:
        return ProxyHeader(length)
    kinds = {"TCP4": IPv4Address, "TCP6": IPv6Address}
    try:
        family, source, destination, source_port, port = words
        kind = kinds[family]
        kind(destination)
        _port(port)
        return ProxyHeader(length, str(kind(source)), _port(source_port))
    except (ValueError, KeyError, AddressValueError):
        raise FrameError(f"its PROXY line is wrong: {data[:end]!r}") from None


def _port(text: str) -> int:
    port = int(text) if text.isascii() and text.isdecimal() else -1
    if not 0 <= port <= _MAX_PORT:
        raise ValueError(text)
    return port


class Beginning:
    """The beginning of a connection, which may be a header.

    Only the first bytes can be one: what follows comes from the client, who must not pretend to be
    another.
    """

    def __init__(self) -> None:
        self._begun: bytes | None = b""
        """What has arrived of a header; None once it cannot come any more."""

    def behind_header(self, data: bytes) -> tuple[bytes, ProxyHeader | None]:
        """Returns what has arrived behind the header, if there is one, and the header once.

        Nothing is returned as long as the header is not complete. Raises FrameError.
        """
        if self._begun is None:
            return data, None
        data = self._begun + data
        header = None
        if may_begin_header(data):
            header = read_header(data)
            if header is None:
                self._begun = data
                return b"", None
            data = data[header.length_bytes :]
        self._begun = None
        return data, header


def _binary(data: bytes) -> ProxyHeader | None:
    if len(data) < _HEAD.size:
        return None
    _, version_and_command, family, length = _HEAD.struct.unpack_from(data)
    version, command = divmod(version_and_command, 16)
    if version != _VERSION or command not in (_LOCAL, _PROXY):
        raise FrameError(f"its PROXY header has version {version} and command {command}")
    end = _HEAD.size + length
    if end > _MAX_BINARY_BYTES:
        raise FrameError(f"its PROXY header has {end} bytes, of {_MAX_BINARY_BYTES} at most")
    if len(data) < end:
        return None
    if command == _LOCAL or family not in _ADDRESSES:
        return ProxyHeader(end)
    layout, kind = _ADDRESSES[family]
    if length < layout.size:
        raise FrameError(f"its PROXY header has {length} bytes of addresses, not {layout.size}")
    source, _, port, _ = layout.struct.unpack_from(data, _HEAD.size)
    return ProxyHeader(end, str(kind(source)), port)
