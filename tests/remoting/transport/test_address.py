# SPDX-License-Identifier: Apache-2.0
"""Our own address as seen on the way to a name server."""

from __future__ import annotations

import pytest

from txrocketmq.remoting.transport.address import (
    LOOPBACK,
    address_facing,
    address_here,
    address_of,
    address_text,
    host_bytes,
)


def test_loopback_faces_loopback() -> None:
    assert address_facing("127.0.0.1:9876") == "127.0.0.1"
    assert address_facing("127.0.0.2:9876;10.0.0.1:9876") in {"127.0.0.1", "127.0.0.2"}


def test_the_first_name_server_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int]] = []

    def getaddrinfo(host: str, port: int, type: int) -> list[object]:  # noqa: A002
        asked.append((host, port))
        raise OSError("no such host")

    monkeypatch.setattr("socket.getaddrinfo", getaddrinfo)
    assert address_facing(" first:1 ; second:2") == LOOPBACK
    assert asked == [("first", 1)]


@pytest.mark.parametrize(
    "text", ["", "host", "host:", ":9876", "host:http", "host:\N{SUPERSCRIPT TWO}", "a..b:1"]
)
def test_without_an_address_it_is_loopback(text: str) -> None:
    assert address_facing(text) == LOOPBACK


@pytest.mark.parametrize(
    ("host", "address"),
    [("10.0.0.7", "10.0.0.7"), ("::1", "::1"), ("fe80::1%lo", "fe80::1"), ("localhost", LOOPBACK)],
)
def test_a_host_has_an_address(monkeypatch: pytest.MonkeyPatch, host: str, address: str) -> None:
    def getaddrinfo(host: str, *_: object, **__: object) -> list[object]:
        assert host == "localhost", "only names are looked up"
        return [(2, 1, 6, "", (LOOPBACK, 0))]

    monkeypatch.setattr("socket.getaddrinfo", getaddrinfo)
    assert address_of(host, "key") == address


def test_a_host_of_both_kinds_is_known_by_ipv4(monkeypatch: pytest.MonkeyPatch) -> None:
    six, four = (10, 1, 6, "", ("2001:db8::1", 0, 0, 0)), (2, 1, 6, "", ("10.0.0.7", 0))
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: [six, four])
    assert address_of("broker", "key") == "10.0.0.7"
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: [six])
    assert address_of("broker", "key") == "2001:db8::1"


@pytest.mark.parametrize("host", ["", "a..b", "no such host", "x" * 300])
def test_a_name_without_an_address_is_named(monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    def getaddrinfo(*_: object, **__: object) -> list[object]:
        raise OSError("not known")

    monkeypatch.setattr("socket.getaddrinfo", getaddrinfo)
    with pytest.raises(ValueError, match="brokerIP1 is .*, which has no address: not known"):
        address_of(host, "brokerIP1")


def test_what_listens_everywhere_is_found_on_loopback() -> None:
    for each in ("", "0.0.0.0", "::"):
        assert address_here(each) == "127.0.0.1"
    assert address_here("10.0.0.1") == "10.0.0.1"


@pytest.mark.parametrize(
    ("host", "text", "packed"),
    [
        ("10.0.0.7", "10.0.0.7:258", "0a000007 00000102"),
        ("::1", "[::1]:258", "00000000000000000000000000000001 00000102"),
        ("::ffff:10.0.0.7", "[::ffff:10.0.0.7]:258", "0a000007 00000102"),
        ("fe80::1%eth0", "[fe80::1%eth0]:258", "fe800000000000000000000000000001 00000102"),
    ],
)
def test_addresses(host: str, text: str, packed: str) -> None:
    assert address_text(host, 258) == text
    assert host_bytes(host, 258) == bytes.fromhex(packed)
