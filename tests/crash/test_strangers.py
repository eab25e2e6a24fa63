# SPDX-License-Identifier: Apache-2.0
"""Whole brokers, killed while strangers do what they like and a client sends.

Strangers write garbage, requests without end whose answers they do not read, parts of frames, and
sends that are refused. What the client was told to be stored is served by the next broker.
"""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random

import pytest

from tests.crash.judge import judge
from tests.crash.ledger import Ledger, Shape
from tests.crash.rounds import Round
from tests.crash.test_wire import SETTINGS
from tests.crash.wire import WireStore
from tests.process.conftest import Standalone
from tests.process.test_bad_peers import frame, message, pull_of
from txrocketmq.broker.store.formats.config import ASYNC_FLUSH, SYNC_FLUSH
from txrocketmq.remoting.protocol import heartbeat
from txrocketmq.remoting.protocol.heartbeat import HeartbeatRequestHeader

LIVES = 3
STRANGERS = 12
_AT_ONCE = 200


def garbage(random: Random) -> bytes:
    """What a stranger writes in one go."""
    what = random.randrange(6)
    if what == 0:
        return random.randbytes(random.randrange(1, 4_000))
    if what == 1:  # the beginning of a frame
        return (15 << 20).to_bytes(4, "big") + random.randbytes(random.randrange(20_000))
    if what == 2:  # answers that are not read
        return pull_of("Topic0") * random.randrange(1, _AT_ONCE)
    if what == 3:  # too large, to a topic that is there and to ones that are not
        topic = random.choice(("Topic0", f"Strange{random.randrange(1_000)}"))
        return message(topic, bytes(5 << 20))
    if what == 4:
        return message(f"a/b{random.randrange(99)}", b"x") * random.randrange(1, _AT_ONCE)
    body = random.choice((b"{}", b'{"clientID":"c","consumerDataSet":[{}]}', b"[" * 5_000))
    return frame(heartbeat.HEART_BEAT, HeartbeatRequestHeader(), body)


class Strangers:
    """Connections that write and never read; whoever is thrown out comes again."""

    def __init__(self, address: str, random: Random) -> None:
        host, _, port = address.rpartition(":")
        self._address = host, int(port)
        self._random = random
        self._sockets: list[socket.socket] = []

    def write(self) -> None:
        """One of them writes as much as the broker takes at once."""
        with suppress(OSError):
            if len(self._sockets) < STRANGERS:
                connection = socket.create_connection(self._address, 5)
                connection.setblocking(False)
                self._sockets.append(connection)
            one = self._random.choice(self._sockets)
            try:
                one.send(garbage(self._random))
            except BlockingIOError:
                return
            except OSError:
                self._sockets.remove(one)
                one.close()

    def close(self) -> None:
        for each in self._sockets:
            each.close()


@pytest.mark.share(0.02)
def test_what_a_client_was_told_survives_strangers_and_kills(
    crash_round: Round, tmp_path: Path, standalone: Callable[..., Standalone]
) -> None:
    random = crash_round.random
    conf = tmp_path / "broker.conf"
    conf.write_text(SETTINGS.format(flush=random.choice((SYNC_FLUSH, ASYNC_FLUSH)), ext="false"))
    ledger = Ledger(Shape(crash_round.seed, topics=2, delayed=False))
    for life in range(LIVES):
        server = standalone("-c", str(conf))
        store = WireStore(server.broker)
        strangers = Strangers(server.broker, random)
        if life:
            crash_round.judge(partial(judge, store, ledger))
        acknowledged, wanted = 0, random.randrange(20, 200)
        with suppress(OSError):
            while acknowledged < wanted:
                for _ in range(random.randrange(3)):
                    strangers.write()
                if store.waits < 8:
                    store.send(ledger, random.choice((1, 10)))
                acknowledged += store.acknowledge(ledger)
            server.command.signal(signal.SIGKILL)
            while store.waits:
                store.acknowledge(ledger)
        assert acknowledged >= wanted, "strangers do not keep the client from sending"
        store.close()
        strangers.close()
        server.command.end()
    store = WireStore(standalone("-c", str(conf)).broker)
    crash_round.judge(partial(judge, store, ledger))
    crash_round.acknowledged(ledger)
    store.close()
