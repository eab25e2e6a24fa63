# SPDX-License-Identifier: Apache-2.0
"""Original slaves under our master: they copy its log, byte for byte, and confirm its sends."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Thread

import pytest

from compat_tests import probe
from compat_tests.engine import Engine
from compat_tests.jars import RELEASES
from compat_tests.peers import Broker, NameServer, Original, Ours
from compat_tests.scene import poll

SEND_MESSAGE = 10
GET_ALL_TOPIC_CONFIG = 21
UPDATE_BROKER_CONFIG = 25
GET_BROKER_HA_STATUS = 907
STORED, FLUSH_SLAVE_TIMEOUT, SLAVE_NOT_AVAILABLE = 0, 12, 11
TOPIC = "TBW102"  # exists everywhere
MESSAGES = 300
SENDERS = 4


def send(broker: Broker, number: int, size: int = 700, wait: str = "") -> int:
    """Sends a message; returns the code of the answer."""
    properties = f"KEYS\x01key{number}\x02TAGS\x01tag{number % 3}\x02{wait}"
    fields = {
        "producerGroup": "writers", "topic": "Copied", "defaultTopic": TOPIC,
        "defaultTopicQueueNums": "4", "queueId": str(number % 4), "sysFlag": "0",
        "bornTimestamp": "1", "flag": "0", "properties": properties, "reconsumeTimes": "0",
        "unitMode": "false", "batch": "false",
    }  # fmt: skip
    answer, _ = probe.request(broker.port, SEND_MESSAGE, fields, bytes([number % 256]) * size)
    return int(answer["code"])


def status(broker: Broker) -> dict[str, object]:
    return dict(json.loads(probe.request(broker.port, GET_BROKER_HA_STATUS)[1]))


def content(store: Path, size: int) -> bytes:
    """The beginning of a log."""
    return (store / "commitlog" / "00000000000000000000").read_bytes()[:size]


def units(store: Path) -> list[bytes]:
    """The units of the topic's queues, as far as they are written."""
    return [
        (store / "consumequeue" / "Copied" / str(queue) / "00000000000000000000")
        .read_bytes()
        .rstrip(b"\0")
        for queue in range(4)
    ]


class Pair:
    """A master of ours, and a slave of the original that is not started yet."""

    def __init__(self, engine: Engine, folder: Path, release: str) -> None:
        self.names = NameServer(Ours(), folder / "names")
        self.master = Broker(
            Ours(), folder / "master", self.names, "pair", {"brokerRole": "SYNC_MASTER"}
        )
        self.slave = Broker(
            Original(release, engine), folder / "slave", self.names, "pair",
            {"brokerRole": "SLAVE", "brokerId": "1", "slaveReadEnable": "true"},
        )  # fmt: skip

    def in_sync(self) -> bool:
        end = status(self.master)["masterCommitLogMaxOffset"]
        shown = status(self.master)["haConnectionInfo"]
        assert isinstance(shown, list)
        return [each["slaveAckOffset"] for each in shown] == [end]


@pytest.fixture(params=RELEASES)
def pair(engine: Engine, test_folder: Path, request: pytest.FixtureRequest) -> Iterator[Pair]:
    made = Pair(engine, test_folder, request.param)
    try:
        made.names.start()
        made.master.start()
        yield made
    finally:
        made.slave.close()
        made.master.close()
        made.names.close()


def wait_until(ready: Callable[[], bool], what: str) -> None:
    poll(ready, what, timeout_s=100)


def test_a_slave_has_all_and_confirms_it(pair: Pair) -> None:
    master, slave = pair.master, pair.slave
    assert {send(master, number) for number in range(MESSAGES)} == {SLAVE_NOT_AVAILABLE}
    slave.start()
    wait_until(pair.in_sync, "the slave has the log")
    assert {send(master, number) for number in range(MESSAGES)} == {STORED}
    assert send(master, 1, size=3_000_000) == STORED
    wait_until(pair.in_sync, "the slave has the log")
    end = status(master)["masterCommitLogMaxOffset"]
    assert isinstance(end, int)
    assert content(slave.store, end) == content(master.store, end)
    wait_until(lambda: units(slave.store) == units(master.store), "the queues are the same")
    assert status(master)["inSyncSlaveNums"] == 1

    slave.kill()
    wait_until(lambda: status(master)["haConnectionInfo"] == [], "the master notices")
    assert send(master, 1) == SLAVE_NOT_AVAILABLE
    assert send(master, 1, wait="WAIT\x01false\x02") == STORED
    probe.request(master.port, UPDATE_BROKER_CONFIG, body=b"inSyncReplicas=2\n")
    began = time.monotonic()
    assert send(master, 1) == FLUSH_SLAVE_TIMEOUT
    assert 3 <= time.monotonic() - began < 4.5

    slave.start()
    wait_until(pair.in_sync, "the slave goes on where it was")
    assert send(master, 1) == STORED
    end = status(master)["masterCommitLogMaxOffset"]
    assert isinstance(end, int)
    wait_until(
        lambda: content(slave.store, end) == content(master.store, end), "the logs are the same"
    )


def test_a_master_that_is_killed_goes_on_with_its_slave(pair: Pair) -> None:
    master, slave = pair.master, pair.slave
    slave.start()
    wait_until(pair.in_sync, "the slave has the log")
    stored: set[int] = set()

    def send_until_it_ends(first: int) -> None:
        with suppress(OSError, ValueError):
            for number in range(first, 1_000_000, SENDERS):
                assert send(master, number) == STORED
                stored.add(number)

    senders = [Thread(target=send_until_it_ends, args=(first,)) for first in range(SENDERS)]
    for each in senders:
        each.start()
    wait_until(lambda: len(stored) > MESSAGES, "the slave confirms messages")
    master.kill()
    for each in senders:
        each.join(60)
    log = (slave.store / "commitlog" / "00000000000000000000").read_bytes()
    assert [each for each in stored if b"KEYS\x01key%d\x02" % each not in log] == []

    master.start()
    wait_until(pair.in_sync, "the slave goes on under the master that has come back")
    assert send(master, 1) == STORED
    end = status(master)["masterCommitLogMaxOffset"]
    assert isinstance(end, int)
    wait_until(
        lambda: content(slave.store, end) == content(master.store, end), "the logs are the same"
    )


def test_a_slave_copies_what_the_master_knows(pair: Pair) -> None:
    send(pair.master, 1)
    pair.slave.start()

    def copied() -> bool:
        said = probe.request(pair.slave.port, GET_ALL_TOPIC_CONFIG)[1]
        return "Copied" in json.loads(said)["topicConfigTable"]

    wait_until(copied, "the slave knows the topic")
