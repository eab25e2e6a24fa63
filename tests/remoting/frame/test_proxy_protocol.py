# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.remoting import formats
from txrocketmq.remoting.errors import FrameError
from txrocketmq.remoting.frame.proxy_protocol import (
    Beginning,
    ProxyHeader,
    may_begin_header,
    read_header,
)

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
PORTS = st.integers(0, 65_535)
ADDRESSES = {4: st.ip_addresses(v=4), 6: st.ip_addresses(v=6)}


def binary(family: int, content: bytes, command: int = 0x21) -> bytes:
    head = {"signature": SIGNATURE, "command": command, "family": family, "length": len(content)}
    return bytes(formats.PROXY_HEAD.build(head)) + content


def addresses(source: IPv4Address | IPv6Address, port: int) -> bytes:
    layout = formats.PROXY_IPV4 if source.version == 4 else formats.PROXY_IPV6
    packed = source.packed
    ports = {"source_port": port, "port": 1}
    return bytes(layout.build({"source": packed, "destination": packed, **ports}))


@st.composite
def headers(draw: st.DrawFn) -> tuple[bytes, ProxyHeader]:
    """A header, and what it says."""
    version = draw(st.sampled_from([4, 6]))
    source, port = draw(ADDRESSES[version]), draw(PORTS)
    if draw(st.booleans()):
        data = f"PROXY TCP{version} {source} {source} {port} 10911\r\n".encode()
    else:
        family = draw(st.sampled_from([1, 2])) + (16 if version == 4 else 32)
        data = binary(family, addresses(source, port) + draw(st.binary(max_size=300)))
    return data, ProxyHeader(len(data), str(source), port)


@given(headers(), st.binary(max_size=20))
def test_a_header_says_whose_the_connection_is(
    header: tuple[bytes, ProxyHeader], more: bytes
) -> None:
    data, said = header
    assert may_begin_header(data)
    assert read_header(data + more) == said
    assert all(read_header(data[:end]) is None for end in range(1, len(data)))


@pytest.mark.parametrize(
    "data",
    [
        b"PROXY UNKNOWN\r\n",
        b"PROXY UNKNOWN ffff:f...f 65535\r\n",
        binary(0x11, addresses(IPv4Address("10.0.0.1"), 1), command=0x20),
        binary(0x00, b""),
        binary(0x31, b"/run/socket".ljust(216, b"\0")),
    ],
)
def test_a_header_may_name_nobody(data: bytes) -> None:
    assert read_header(data + b"frame") == ProxyHeader(len(data))


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"PROXY TCP4 10.0.0.1 10.0.0.2 1\r\n", "line is wrong"),
        (b"PROXY TCP4 10.0.0.1 10.0.0.2 1 65536\r\n", "line is wrong"),
        (b"PROXY TCP4 10.0.0.1 10.0.0.2 x 2\r\n", "line is wrong"),
        (b"PROXY TCP4 10.0.0.1 10.0.0.2 \xb2 2\r\n", "line is wrong"),
        (b"PROXY TCP4 ::1 10.0.0.2 1 2\r\n", "line is wrong"),
        (b"PROXY TCP6 10.0.0.1 ::1 1 2\r\n", "line is wrong"),
        (b"PROXY TCP5 10.0.0.1 10.0.0.2 1 2\r\n", "line is wrong"),
        (b"PROXY\r\n", "line is wrong"),
        (b"PROXY TCP4 " + b"1" * 100, "no end within 108 bytes"),
        (binary(0x11, b"short"), "5 bytes of addresses, not 12"),
        (binary(0x11, b"", command=0x11), "version 1 and command 1"),
        (binary(0x11, b"", command=0x22), "version 2 and command 2"),
        (binary(0x11, bytes(4_081)), "has 4097 bytes, of 4096 at most"),
        (binary(0x11, bytes(65_535))[:20], "has 65551 bytes, of 4096 at most"),
    ],
)
def test_what_is_no_header_is_said(data: bytes, why: str) -> None:
    with pytest.raises(FrameError, match=why):
        read_header(data)


@pytest.mark.parametrize("first", [b"", b"\0\0\0\x10", b"\x16\3\1", b"GET / HTTP/1.1", b"\1"])
def test_frames_and_handshakes_begin_otherwise(first: bytes) -> None:
    assert not may_begin_header(first)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_header_or_too_few_or_an_error(data: bytes) -> None:
    for beginning in (b"", b"PROXY ", SIGNATURE):
        try:
            found = read_header(beginning + data)
        except FrameError:
            continue
        assert found is None or found.length_bytes <= len(beginning + data)


@given(headers(), st.binary(min_size=1, max_size=20), st.data())
def test_a_beginning_has_one_header_in_whatever_pieces(
    header: tuple[bytes, ProxyHeader], more: bytes, data: st.DataObject
) -> None:
    encoded, said = header
    cut = data.draw(st.integers(1, len(encoded) - 1))
    beginning = Beginning()
    assert beginning.behind_header(encoded[:cut]) == (b"", None)
    assert beginning.behind_header(encoded[cut:] + more) == (more, said)
    assert beginning.behind_header(encoded) == (encoded, None), "a client cannot be another"


def test_a_beginning_without_a_header_is_what_it_is() -> None:
    beginning = Beginning()
    assert beginning.behind_header(b"\0\0\0\x08") == (b"\0\0\0\x08", None)
