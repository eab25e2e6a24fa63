# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing

import pytest

from txrocketmq.testing.replication.link import Link


@pytest.fixture
def master() -> Iterator[socket.socket]:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        listener.settimeout(10)
        yield listener


def connected(link: Link) -> socket.socket:
    host, _, port = link.address.rpartition(":")
    return socket.create_connection((host, int(port)), 10)


def test_it_passes_on_both_ways_until_it_is_cut_and_again_when_it_is_joined(
    master: socket.socket,
) -> None:
    with closing(Link(master.getsockname()[1])) as link:
        for _ in range(2):
            with connected(link) as slave:
                its, _ = master.accept()
                its.settimeout(10)
                slave.sendall(b"report")
                assert its.recv(6) == b"report"
                its.sendall(b"log")
                assert slave.recv(3) == b"log"
                link.cut()
                assert its.recv(1) == b""
                assert slave.recv(1) == b""
                its.close()
            with connected(link) as slave:
                assert slave.recv(1) == b"", "none is let be while it is cut"
            master.accept()[0].close()
            link.join()


def test_it_ends_when_one_side_does(master: socket.socket) -> None:
    with closing(Link(master.getsockname()[1])) as link, connected(link) as slave:
        master.accept()[0].close()
        assert slave.recv(1) == b""


def test_a_master_that_is_down_ends_the_connection(master: socket.socket) -> None:
    port = master.getsockname()[1]
    master.close()
    with closing(Link(port)) as link, connected(link) as slave:
        assert slave.recv(1) == b""
    with pytest.raises(ConnectionRefusedError):
        connected(link)
