# SPDX-License-Identifier: Apache-2.0
"""Pairs of all origins whose brokers are killed in turn while messages are sent.

One rule is the judge. What a SYNC_MASTER has acknowledged is in the log of the other broker at the
moment of a kill; both logs consist of whole messages with right checksums; and when both brokers
run again, their logs are the same, with all that was ever acknowledged.

Each side is killed five times, or as often as REPLICA_KILLS says. With --all-releases it is killed
a hundred times, and there are all pairs: also those of the original, which show that the judge is
fair. Otherwise each release is there once, as master or as slave; tests/crash/test_replicas.py has
pairs of ours.
"""

import itertools
import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

import pytest

from compat_tests import probe
from compat_tests.engine import Engine
from compat_tests.jars import RELEASES
from compat_tests.peers import Broker, NameServer, Origin, Original, Ours
from compat_tests.test_our_slave import end_of
from compat_tests.test_replication import STORED, send, wait_until
from txrocketmq.remoting.message.message import body_crc, decode_message

OURS = "ours"
KINDS = (OURS, *RELEASES)
USUAL_PAIRS = [(OURS, RELEASES[0]), (RELEASES[-1], OURS)]
ROUNDS, MANY_ROUNDS = 5, 100
SENDERS, MESSAGES = 4, 60
BLANK_MAGIC = 0xCBD43194
_BODY_CRC_AT = 8
_KEY = re.compile(rb"KEYS\x01key(\d+)\x02")
TIMEOUT_S = 7_200

Kinds = tuple[str, str]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    is_long = metafunc.config.getoption("--all-releases")
    pairs = list(itertools.product(KINDS, repeat=2)) if is_long else USUAL_PAIRS
    metafunc.parametrize("kinds", pairs, ids="-".join)
    rounds = int(os.environ.get("REPLICA_KILLS", MANY_ROUNDS if is_long else ROUNDS))
    metafunc.parametrize("rounds", [rounds], ids=[""])


class Pair:
    """A synchronous master and its slave; `acknowledged` has the numbers of messages."""

    def __init__(self, kinds: Kinds, engine: Engine, folder: Path) -> None:
        def origin(kind: str) -> Origin:
            return Ours() if kind == OURS else Original(kind, engine)

        master, slave = map(origin, kinds)
        self.names = NameServer(Ours(), folder / "names")
        counts = {"inSyncReplicas": "2"} if kinds[0] == RELEASES[-1] else {}
        self.master = Broker(
            master, folder / "master", self.names, "pair", {"brokerRole": "SYNC_MASTER", **counts}
        )
        self.slave = Broker(
            slave, folder / "slave", self.names, "pair", {"brokerRole": "SLAVE", "brokerId": "1"}
        )
        self.acknowledged: set[int] = set()
        self._next = 0
        self._is_over = Event()
        self._senders: list[Thread] = []

    def in_sync(self) -> bool:
        with suppress(OSError, ValueError):
            return end_of(self.slave) == end_of(self.master)
        return False

    def begin_sending(self) -> None:
        self._is_over.clear()
        first, self._next = self._next, self._next + 1_000_000
        self._senders = [Thread(target=self._send, args=(first + each,)) for each in range(SENDERS)]
        for each in self._senders:
            each.start()

    def _send(self, first: int) -> None:
        with suppress(OSError, ValueError):
            for number in itertools.count(first, SENDERS):
                if self._is_over.is_set():
                    return
                if send(self.master, number) == STORED:
                    self.acknowledged.add(number)
                else:
                    time.sleep(0.05)

    def end_sending(self) -> None:
        self._is_over.set()
        for each in self._senders:
            each.join(60)

    def more_acknowledged(self) -> None:
        before = len(self.acknowledged)
        wait_until(lambda: len(self.acknowledged) > before + MESSAGES, "sends are acknowledged")

    def close(self) -> None:
        self._is_over.set()
        for server in (self.slave, self.master, self.names):
            server.close()


@pytest.fixture
def pair(kinds: Kinds, engine: Engine, test_folder: Path) -> Iterator[Pair]:
    made = Pair(kinds, engine, test_folder)
    try:
        made.names.start()
        made.master.start()
        made.slave.start()
        yield made
    finally:
        made.close()


def log_of(broker: Broker) -> bytes:
    """The log of a broker, without what follows its last message: zeros, if all is well.

    AssertionError if something else is in it than whole messages with right checksums.
    """
    files = sorted((broker.store / "commitlog").iterdir())
    data = b"".join(each.read_bytes() for each in files)
    view, at = memoryview(data), 0
    while at + 8 <= len(data) and (size := int.from_bytes(data[at : at + 4], "big")):
        if int.from_bytes(data[at + 4 : at + 8], "big") == BLANK_MAGIC:
            at += size
            continue
        message = decode_message(view[at : at + size], decompress_body=False)[0]
        assert message.commit_log_offset == at
        crc = int.from_bytes(data[at + _BODY_CRC_AT : at + _BODY_CRC_AT + 4], "big")
        assert crc == body_crc(message.body), f"the message at {at} is damaged"
        at += size
    return data[:at]


def lost_in(log: bytes, numbers: set[int]) -> list[int]:
    return sorted(numbers - {int(each) for each in _KEY.findall(log)})


@pytest.mark.timeout(TIMEOUT_S)
def test_what_was_acknowledged_survives_each_kill(pair: Pair, rounds: int) -> None:
    for _ in range(rounds):
        for killed, survivor in ((pair.slave, pair.master), (pair.master, pair.slave)):
            pair.begin_sending()
            pair.more_acknowledged()
            killed.kill()
            pair.end_sending()
            acknowledged = set(pair.acknowledged)
            assert lost_in(log_of(survivor), acknowledged) == []
            killed.start()
            pair.begin_sending()
            pair.more_acknowledged()
            pair.end_sending()
            wait_until(pair.in_sync, "both have the same log again")
            log = log_of(pair.master)
            assert log_of(pair.slave) == log
            assert lost_in(log, pair.acknowledged) == []
    assert probe.request(pair.master.port, probe.GET_BROKER_CONFIG)[0]["code"] == 0
