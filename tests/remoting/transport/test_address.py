# SPDX-License-Identifier: Apache-2.0
"""Our own address as seen on the way to a name server."""

from __future__ import annotations

import pytest

from txrocketmq.remoting.transport.address import LOOPBACK, address_facing


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
