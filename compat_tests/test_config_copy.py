# SPDX-License-Identifier: Apache-2.0
"""What our slave knows of topics and groups is what its master knows, of ours or the original."""

import json
import re
import struct
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from compat_tests import probe
from compat_tests.engine import Engine
from compat_tests.jars import RELEASES
from compat_tests.peers import Original, Ours
from compat_tests.test_our_slave import Pair
from compat_tests.test_replication import send, wait_until

SEND_MESSAGE, CREATE_TOPIC, ALL_TOPICS, DELETE_TOPIC = 10, 17, 21, 215
COMMIT, ALL_OFFSETS, DELAYS = 15, 43, 45
CREATE_GROUP, ALL_GROUPS = 200, 201
SET_MODE, ALL_MODES, COUNTS, PROGRESS = 401, 402, 61, 60
TABLES = {
    ALL_TOPICS: "topicConfigTable",
    ALL_GROUPS: "subscriptionGroupTable",
    ALL_OFFSETS: "offsetTable",
}
MANY = 2_500
"""More topics than a page has."""


class Servers:
    """A pair, and what is asked of its brokers; `is_5` says whether the master is of 5.x."""

    def __init__(self, pair: Pair, *, is_5: bool) -> None:
        self.pair = pair
        self.is_5 = is_5

    def tell(self, code: int, fields: dict[str, str], body: bytes = b"") -> None:
        """Sends the master a request that it has to serve."""
        answer, _ = probe.request(self.pair.master.port, code, fields, body)
        assert answer["code"] == 0, answer

    def create_topic(self, name: str, queues: int = 4) -> None:
        fields = {
            "topic": name, "defaultTopic": "TBW102", "readQueueNums": str(queues),
            "writeQueueNums": str(queues), "perm": "6", "topicFilterType": "SINGLE_TAG",
            "topicSysFlag": "0", "order": "false",
        }  # fmt: skip
        self.tell(CREATE_TOPIC, fields)

    def delete_topic(self, name: str) -> None:
        self.tell(DELETE_TOPIC, {"topic": name})

    def create_group(self, name: str) -> None:
        self.tell(CREATE_GROUP, {}, json.dumps({"groupName": name, "retryMaxTimes": 3}).encode())

    def commit(self, group: str, topic: str, queue: int, offset: int) -> None:
        fields = {"consumerGroup": group, "topic": topic, "queueId": str(queue)}
        self.tell(COMMIT, {**fields, "commitOffset": str(offset)})

    def table(self, code: int, *, of_slave: bool) -> dict[str, Any]:
        """A table without what each broker has for itself."""
        server = self.pair.slave if of_slave else self.pair.master
        _, body = probe.request(server.port, code)
        found: dict[str, Any] = read_json(body)[TABLES[code]]
        return {name: value for name, value in found.items() if "-made" in name}

    def is_copied(self, code: int) -> bool:
        here, there = (self.table(code, of_slave=of_slave) for of_slave in (True, False))
        return bool(there) and names(here) == names(there)

    def await_copies(self) -> None:
        """Waits until the slave knows what the master knows."""
        for code, table in TABLES.items():
            wait_until(partial(self.is_copied, code), f"{table} is copied")


def read_json(body: bytes) -> Any:
    """Reads JSON as fastjson writes it: numbers as keys have no quotes."""
    return json.loads(re.sub(rb"([{,])(-?\d+):", rb'\1"\2":', body))


def names(table: dict[str, Any]) -> dict[str, Any]:
    """What matters of each entry: releases write different defaults."""
    kept = ("readQueueNums", "writeQueueNums", "perm", "retryMaxTimes")
    return {
        name: {key: value for key, value in its.items() if key in kept or key.isdigit()}
        for name, its in table.items()
    }


@pytest.fixture(params=["ours", *RELEASES])
def servers(engine: Engine, test_folder: Path, request: pytest.FixtureRequest) -> Iterator[Servers]:
    origin = Ours() if request.param == "ours" else Original(request.param, engine)
    pair = Pair(origin, test_folder)
    try:
        pair.names.start()
        pair.master.start()
        yield Servers(pair, is_5=origin.behaves_as == "5.4.0")
    finally:
        pair.slave.close()
        pair.master.close()
        pair.names.close()


@pytest.mark.timeout(600)
def test_our_slave_knows_what_its_master_knows(servers: Servers) -> None:
    master, slave = servers.pair.master, servers.pair.slave
    for number in range(MANY):
        servers.create_topic(f"t{number}-made", queues=1 + number % 5)
    servers.create_group("g-made")
    for queue in range(3):
        send(master, queue)
        servers.commit("g-made", "t3-made", queue, queue)
    if servers.is_5:
        mode = {"topic": "t3-made", "consumerGroup": "g-made", "mode": "POP"}
        servers.tell(SET_MODE, {}, json.dumps({**mode, "popShareQueueNum": 1}).encode())
    slave.start()
    servers.await_copies()
    if servers.is_5:
        wait_until(
            lambda: b'"t3-made"' in probe.request(slave.port, ALL_MODES)[1], "modes are copied"
        )

        def has_time_of_master() -> bool:
            its, here = (
                struct.unpack_from(">q", probe.request(each.port, PROGRESS)[1])[0]
                for each in (master, slave)
            )
            return abs(int(its) - int(here)) <= 10_000

        wait_until(has_time_of_master, "the progress of timers is copied")
    servers.delete_topic("t7-made")
    servers.create_topic("t8-made", queues=16)
    servers.create_topic("new-made")
    servers.commit("g-made", "t3-made", 0, 1)
    servers.await_copies()
    assert "t7-made" not in servers.table(ALL_TOPICS, of_slave=True)
    log = slave.log_tail(400)
    assert "copied the topics of the master" in log
    assert "failed" not in log
    assert ("does not tell the modes of groups" in log) is not servers.is_5


@pytest.mark.timeout(600)
def test_our_slave_removes_the_queues_of_topics_that_its_master_deletes(servers: Servers) -> None:
    slave = servers.pair.slave
    for name in ("kept-made", "gone-made"):
        servers.create_topic(name)
        fields = {
            "producerGroup": "p", "topic": name, "defaultTopic": "TBW102", "queueId": "0",
            "defaultTopicQueueNums": "4", "sysFlag": "0", "bornTimestamp": "1", "flag": "0",
            "properties": "WAIT\x01false\x02", "reconsumeTimes": "0", "unitMode": "false",
            "batch": "false",
        }  # fmt: skip
        servers.tell(SEND_MESSAGE, fields, b"body")
    slave.start()
    queues = slave.store / "consumequeue"
    wait_until(
        lambda: all((queues / each).exists() for each in ("kept-made", "gone-made")),
        "the slave has the queues",
    )
    servers.delete_topic("gone-made")
    wait_until(lambda: not (queues / "gone-made").exists(), "the queues are removed")
    assert (queues / "kept-made").exists()
    assert "removed the queues of 1 topics that the master has deleted" in slave.log_tail(400)
