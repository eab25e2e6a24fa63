# SPDX-License-Identifier: Apache-2.0
"""Peers behind load balancers, which begin connections with a header of the PROXY protocol."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from twisted.internet.task import Clock as TaskClock
from twisted.logger import capturedLogs, formatEvent

from tests.remoting.transport.wires import FarEnd
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.frame.frame import encode_frame
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.primitives.networks import Networks
from txrocketmq.remoting.process.log_limit import Seldom
from txrocketmq.remoting.settings.tls import TlsConfig
from txrocketmq.remoting.transport.held_bytes import HeldBytes
from txrocketmq.remoting.transport.peer import TcpPeer
from txrocketmq.remoting.transport.peer_state import CLOSING, OPEN
from txrocketmq.remoting.transport.strangers import Shared
from txrocketmq.remoting.transport.tls.encryption import Encryption
from txrocketmq.remoting.transport.turns import ENDLESS

LINE = b"PROXY TCP4 10.1.2.3 10.0.0.1 4242 10911\r\n"
FRAME = b"".join(bytes(part) for part in encode_frame(RemotingCommand(9, opaque=1)))


class Scene:
    """A server's peer, and where it was known to be when its requests came."""

    def __init__(
        self,
        mode: str = "permissive",
        *,
        chooses: bool = True,
        balancers: Sequence[str] = ("127.0.0.0/8",),
    ) -> None:
        self.served: list[str] = []
        choose = Encryption(TlsConfig(server_mode=mode)).choose if chooses else None
        clock, seldom = Clock(TaskClock()), Seldom(5)
        held = HeldBytes(lambda: 1 << 20, seldom, clock.steady_ms)
        shared = Shared(ENDLESS, held, seldom, Networks(balancers))
        self.peer = TcpPeer(clock, self.serve, choose=choose, shared=shared)
        self.end = FarEnd(self.peer)

    def serve(self, peer: Any, commands: Sequence[RemotingCommand], _: object) -> int:
        self.served += [peer.remote_address for _ in commands]
        return len(commands)

    def hear(self, *pieces: bytes) -> list[str]:
        for piece in pieces:
            self.peer.dataReceived(piece)
        return self.served


@pytest.mark.parametrize("size", [1, 5, 7, len(LINE), 1_000])
def test_requests_come_from_the_address_in_the_header(size: int) -> None:
    scene, said = Scene(), LINE + FRAME + FRAME
    pieces = [said[at : at + size] for at in range(0, len(said), size)]
    assert scene.hear(*pieces) == ["10.1.2.3:4242"] * 2
    assert scene.peer.remote_host[:4] == bytes([127, 0, 0, 1]), "records name who has connected"


def test_an_address_of_ipv6_is_written_as_others_are() -> None:
    assert Scene().hear(b"PROXY TCP6 2001:db8::1 ::1 4242 10911\r\n" + FRAME) == [
        "[2001:db8::1]:4242"
    ]


def test_a_header_that_names_nobody_changes_nothing() -> None:
    assert Scene().hear(b"PROXY UNKNOWN\r\n", FRAME) == ["127.0.0.1:50000"]


@pytest.mark.parametrize("before", [LINE, LINE + FRAME, FRAME])
def test_a_client_cannot_pretend_to_be_another(before: bytes) -> None:
    """What follows the first bytes is the client's, though it may look like a header."""
    scene = Scene()
    scene.hear(before)
    address = scene.peer.remote_address
    scene.hear(b"PROXY TCP4 10.9.9.9 10.0.0.1 1 10911\r\n" + FRAME)
    assert scene.peer.remote_address == address
    assert scene.peer.state is CLOSING


@pytest.mark.parametrize("balancers", [(), ("10.0.0.0/8",), ("127.0.0.2",)])
def test_who_is_no_load_balancer_of_ours_is_not_believed(balancers: Sequence[str]) -> None:
    """Else anybody could be known, and let in, by the address of another."""
    scenes = [Scene(balancers=balancers) for _ in range(2)]
    scenes[1].peer._shared = scenes[0].peer._shared
    with capturedLogs() as events:
        for scene in scenes:
            assert scene.hear(LINE, FRAME) == ["127.0.0.1:50000"], "but it is served"
    said = [formatEvent(event) for event in events]
    assert len(said) == 2
    assert said[0] == (
        "127.0.0.1 says that it is a load balancer and speaks for 10.1.2.3:4242; it is not"
        " believed, and its requests count as its own. If it is one of yours, add it to"
        " proxyProtocolFrom"
    )


def test_it_is_said_a_few_times_a_minute() -> None:
    first = Scene(balancers=())
    with capturedLogs() as events:
        for _ in range(20):
            scene = Scene(balancers=())
            scene.peer._shared = first.peer._shared
            scene.hear(LINE, FRAME)
    assert len(events) == 5


def test_the_rules_about_tls_hold_behind_a_header() -> None:
    scene = Scene("enforcing")
    with capturedLogs() as events:
        assert scene.hear(LINE, FRAME) == []
    (said,) = map(formatEvent, events)
    assert said.startswith("closing 10.1.2.3:4242: it does not encrypt")
    begun = Scene()
    begun.hear(LINE)
    begun.hear(b"\x16")  # a handshake, of which more has to come
    assert begun.peer.state is OPEN


def test_what_is_no_header_is_said() -> None:
    scene = Scene()
    with capturedLogs() as events:
        assert scene.hear(b"PROXY TCP4 10.1.2.3 nobody 1 2\r\n", FRAME) == []
    (said,) = map(formatEvent, events)
    assert said.startswith("closing 127.0.0.1:50000: its PROXY line is wrong: ")
    assert scene.peer.state is CLOSING


def test_a_client_reads_no_headers() -> None:
    scene = Scene(chooses=False)
    with capturedLogs():
        assert scene.hear(LINE + FRAME) == []
    assert scene.peer.state is CLOSING
