# SPDX-License-Identifier: Apache-2.0
"""Our slave under masters of ours and of the original: the same bytes, the same answers."""

import json
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Thread

import pytest

from compat_tests import probe
from compat_tests.engine import Engine
from compat_tests.jars import RELEASES
from compat_tests.peers import Broker, NameServer, Origin, Original, Ours
from compat_tests.scene import poll
from compat_tests.test_replication import (
    FLUSH_SLAVE_TIMEOUT,
    MESSAGES,
    SENDERS,
    SLAVE_NOT_AVAILABLE,
    STORED,
    content,
    send,
    status,
    units,
    wait_until,
)

PULL_MESSAGE, QUERY_MESSAGE, UPDATE_CONSUMER_OFFSET = 11, 12, 15
GET_BROKER_RUNTIME_INFO = 28
GET_MAX_OFFSET = 30
WITHOUT_WAITING = "WAIT\x01false\x02"
SUSPEND, SUBSCRIPTION = 2, 4
KNOWN_TOPIC = {"topicName": "Copied", "readQueueNums": 4, "writeQueueNums": 4, "perm": 6}


def end_of(broker: Broker) -> int:
    """Where the log of a broker ends. An original fails to say so in its first second, before
    it has counted anything.
    """
    bodies: list[bytes] = []

    def has_said() -> bool:
        bodies.append(probe.request(broker.port, GET_BROKER_RUNTIME_INFO)[1])
        return bool(bodies[-1]) or isinstance(broker.origin, Ours)

    poll(has_said, "the broker says where its log ends")
    return int(json.loads(bodies[-1])["table"]["commitLogMaxOffset"])


def pulled(
    broker: Broker, queue: int, offset: int, flags: int = SUBSCRIPTION
) -> tuple[int, dict[str, str], bytes]:
    """Code, fields and messages of a pull."""
    fields = {
        "consumerGroup": "readers", "topic": "Copied", "queueId": str(queue),
        "queueOffset": str(offset), "maxMsgNums": "32", "sysFlag": str(flags),
        "commitOffset": "0", "suspendTimeoutMillis": "20000", "subscription": "*",
        "subVersion": "0", "expressionType": "TAG",
    }  # fmt: skip
    answer, body = probe.request(broker.port, PULL_MESSAGE, fields)
    return int(answer["code"]), dict(answer["extFields"]), body


def all_pulled(broker: Broker) -> list[bytes]:
    """All messages, as pulls return them, of each queue of the topic that has any. How many come at
    once depends on whether they are in memory.
    """
    found = []
    for queue in range(4):
        offset, messages = 0, b""
        while (answer := pulled(broker, queue, offset))[0] == STORED:
            messages += answer[2]
            offset = int(answer[1]["nextBeginOffset"])
        found += [messages] if messages else []
    return found


def queried(broker: Broker, number: int) -> bytes:
    fields = {
        "topic": "Copied", "key": f"key{number}", "maxNum": "64", "beginTimestamp": "0",
        "endTimestamp": str(1 << 50),
    }  # fmt: skip
    return probe.request(broker.port, QUERY_MESSAGE, fields)[1]


class Pair:
    """A master of some origin, and a slave of ours that is not started yet."""

    def __init__(self, origin: Origin, folder: Path) -> None:
        self.names = NameServer(Ours(), folder / "names")
        self.counts = origin.behaves_as == "5.4.0" and not isinstance(origin, Ours)
        """Whether the master waits for a number of slaves, as in 5.x, and not for any."""
        more = {"inSyncReplicas": "2"} if self.counts else {}
        self.master = Broker(
            origin, folder / "master", self.names, "pair",
            {"brokerRole": "SYNC_MASTER", **more},
        )  # fmt: skip
        self.slave = Broker(
            Ours(), folder / "slave", self.names, "pair",
            {"brokerRole": "SLAVE", "brokerId": "1", "slaveReadEnable": "true"},
        )  # fmt: skip
        config = self.slave.store / "config"
        config.mkdir(parents=True)
        (config / "topics.json").write_text(
            json.dumps({"topicConfigTable": {"Copied": KNOWN_TOPIC}})
        )

    @property
    def alone(self) -> int:
        """What a sender is told while there is no slave."""
        return FLUSH_SLAVE_TIMEOUT if self.counts else SLAVE_NOT_AVAILABLE

    def in_sync(self) -> bool:
        return end_of(self.slave) == end_of(self.master)

    def same(self) -> bool:
        end = end_of(self.master)
        return content(self.slave.store, end) == content(self.master.store, end)


@pytest.fixture(params=["ours", *RELEASES])
def pair(engine: Engine, test_folder: Path, request: pytest.FixtureRequest) -> Iterator[Pair]:
    origin = Ours() if request.param == "ours" else Original(request.param, engine)
    made = Pair(origin, test_folder)
    try:
        made.names.start()
        made.master.start()
        yield made
    finally:
        made.slave.close()
        made.master.close()
        made.names.close()


@pytest.mark.timeout(400)
def test_our_slave_has_all_answers_alike_and_confirms_it(pair: Pair) -> None:
    master, slave = pair.master, pair.slave
    assert {send(master, number, wait=WITHOUT_WAITING) for number in range(MESSAGES)} == {STORED}
    slave.start()
    wait_until(pair.in_sync, "the slave has the log")
    assert {send(master, number) for number in range(MESSAGES)} == {STORED}
    assert send(master, 1, size=3_000_000) == STORED
    wait_until(pair.in_sync, "the slave has the log")
    assert pair.same()
    wait_until(lambda: units(slave.store) == units(master.store), "the queues are the same")
    assert all_pulled(slave) == all_pulled(master) != []
    assert queried(slave, 7) == queried(master, 7) != b""
    shown = status(slave)["haClientRuntimeInfo"]
    assert isinstance(shown, dict)
    assert shown["masterAddr"].endswith(f":{master.port + 1}")  # at brokerIP2, if it is original
    assert shown["maxOffset"] == end_of(master)

    slave.stop()
    assert send(master, 2) == pair.alone
    slave.start()
    wait_until(pair.in_sync, "the slave goes on where it was")
    slave.kill()
    assert send(master, 3) == pair.alone
    slave.start()
    wait_until(pair.in_sync, "the slave goes on after a crash")
    assert send(master, 4) == STORED
    assert pair.same()


@pytest.mark.timeout(400)
def test_our_slave_refuses_what_a_slave_must(pair: Pair) -> None:
    pair.slave.start()
    send(pair.master, 0, wait=WITHOUT_WAITING)
    wait_until(pair.in_sync, "the slave has the log")
    slave = pair.slave
    assert send(slave, 1) == 14
    code, fields, _ = pulled(slave, 0, 99)
    assert (code, fields["nextBeginOffset"], fields["suggestWhichBrokerId"]) == (20, "99", "0")
    began = time.monotonic()
    code, fields, _ = pulled(slave, 0, 1, SUBSCRIPTION | SUSPEND)
    assert (code, fields["suggestWhichBrokerId"]) == (20, "0"), "the master is there"
    assert time.monotonic() - began < 10
    commit = {"consumerGroup": "readers", "topic": "Copied", "queueId": "0", "commitOffset": "1"}
    assert probe.request(slave.port, UPDATE_CONSUMER_OFFSET, commit)[0]["code"] == STORED


@pytest.mark.timeout(400)
def test_what_was_confirmed_survives_the_master_and_our_slave_takes_over(pair: Pair) -> None:
    master, slave = pair.master, pair.slave
    slave.start()
    send(master, 0, wait=WITHOUT_WAITING)
    wait_until(pair.in_sync, "the slave has the log")
    stored: set[int] = set()

    def send_until_it_ends(first: int) -> None:
        with suppress(OSError, ValueError):
            for number in range(first, 1_000_000, SENDERS):
                if send(master, number) == STORED:
                    stored.add(number)
                else:
                    time.sleep(0.05)  # without a slave, thousands would be refused in a second

    senders = [Thread(target=send_until_it_ends, args=(first,)) for first in range(SENDERS)]
    for each in senders:
        each.start()
    wait_until(lambda: len(stored) > MESSAGES, "the slave confirms messages")
    slave.kill()
    slave.start()
    confirmed = len(stored)
    wait_until(lambda: len(stored) > confirmed + MESSAGES, "it does so again")
    master.kill()
    for each in senders:
        each.join(60)

    slave.stop()
    slave.settings |= {"brokerRole": "ASYNC_MASTER", "brokerId": "0"}
    slave.start()
    log = (slave.store / "commitlog" / "00000000000000000000").read_bytes()
    assert [each for each in stored if b"KEYS\x01key%d\x02" % each not in log] == []
    before = b"".join(all_pulled(slave))
    assert [each for each in stored if b"KEYS\x01key%d\x02" % each not in before] == []
    assert send(slave, 1_000_001) == STORED
    assert b"KEYS\x01key1000001\x02" in b"".join(all_pulled(slave))
