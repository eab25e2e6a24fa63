# SPDX-License-Identifier: Apache-2.0
"""What a slave that acts as master sends to another master, besides delayed messages.

Each group is a name server, a master and a slave; the other master is elsewhere in the cluster.
"""

import json
import struct
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from compat_tests import probe
from compat_tests.engine import Engine
from compat_tests.java_client import ClientJvm, text
from compat_tests.peers import Broker, Origin, Original, Ours
from compat_tests.pops import SETTINGS as POP_SETTINGS
from compat_tests.pops import Popped
from compat_tests.scene import Scene, poll
from compat_tests.test_acting_master import (
    OURS,
    QUERY_CONSUMER_OFFSET,
    QUEUES,
    RELEASE,
    TOPIC,
    WAIT_S,
    Group,
    has,
    make_topic,
)
from compat_tests.test_java_transaction import PATIENT, producer_of
from compat_tests.test_our_slave import end_of
from compat_tests.transactions import transactional

ALL_GROUPS, GET_MAX_OFFSET, CREATE_TOPIC = 201, 30, 17
GET_TIMER_CHECK_POINT = 60
INVISIBLE_MS = 20_000
TIMER_DELAY_MS = 25_000
HALVES, REVIVE = "RMQ_SYS_TRANS_HALF_TOPIC", "rmq_sys_REVIVE_LOG_DefaultCluster"


class Brokers:
    """A master and its slave, and another master."""

    def __init__(
        self, engine: Engine, folder: Path, slave: str, other: str, master: str = OURS
    ) -> None:
        self.group = Group((OURS, master, slave), engine, folder, enableRemoteEscape="true")
        origin: Origin = Ours() if other == OURS else Original(other, engine)
        self.elsewhere = Broker(origin, folder / "other", self.group.names, "elsewhere", {})
        make_topic(self.elsewhere)

    def close(self) -> None:
        self.elsewhere.close()
        self.group.close()

    def master_is_lost(self) -> int:
        """Returns where the log of the slave ends, when it has all that the master had."""
        poll(self.group.in_sync, "the slave has the log", WAIT_S)
        end = end_of(self.group.slave)
        self.group.master.kill()
        poll(self.group.acts, "the slave acts as master", WAIT_S)
        return end

    def master_is_back(self) -> None:
        self.group.master.start()
        poll(lambda: not self.group.acts(), "the slave acts no more", WAIT_S)

    def progress(self, group: str, topic: str) -> int:
        """The offset that the master keeps for itself."""
        asked = {"consumerGroup": group, "topic": topic, "queueId": "0"}
        answer, _ = probe.request(self.group.master.port, QUERY_CONSUMER_OFFSET, asked)
        return int((answer.get("extFields") or {}).get("offset", -1))


@pytest.fixture(
    params=[(OURS, RELEASE), (RELEASE, OURS), (OURS, OURS)], ids="-".join, name="brokers"
)
def brokers_(
    request: pytest.FixtureRequest, engine: Engine, test_folder: Path
) -> Iterator[Brokers]:
    made = Brokers(engine, test_folder, *request.param)
    try:
        yield made
    finally:
        made.close()


@pytest.mark.timeout(600)
def test_another_master_asks_what_became_of_a_transaction(
    brokers: Brokers, first_jvm: ClientJvm
) -> None:
    group = brokers.group
    group.slave.settings |= PATIENT
    brokers.elsewhere.settings |= PATIENT
    scene = Scene(first_jvm, group.master)
    try:
        group.start()
        scene.wait_for_route(TOPIC)
        producer = producer_of(scene)
        (sent,) = producer.send([transactional(TOPIC, "half", "unknown", "commit")])
        assert sent["queue"]["broker"] == "group"
        brokers.elsewhere.start()
        end = brokers.master_is_lost()
        consumer = scene.push_consumer(TOPIC, scene.unique("group"), heartbeat_ms=1000)
        first_jvm.wait_for(partial(has, consumer, {"half"}), "it is committed", 2 * WAIT_S)
        (half,) = consumer.messages()
        assert (half["broker"], half["sys_flag"] & 12) == ("elsewhere", 8)
        assert half["msg_id"] == sent["msg_id"]
        assert {text(each["message"]) for each in producer.checks()} == {"half"}
        assert end_of(group.slave) == end, "nothing is written to the log of the slave"
        brokers.master_is_back()
        assert brokers.progress("CID_RMQ_SYS_TRANS", HALVES) == 1, "it is not asked for again"
    finally:
        scene.close()


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "brokers",
    [(OURS, RELEASE), (OURS, OURS), (OURS, RELEASE, RELEASE), (OURS, OURS, RELEASE)],
    ids="-".join,
    indirect=True,
)
def test_popped_messages_come_back_at_another_master(brokers: Brokers) -> None:
    """A master of the original, which is named last, keeps check points as timers."""
    group, elsewhere = brokers.group, brokers.elsewhere
    settings = {**POP_SETTINGS, "reviveQueueNum": "1"}
    for broker in (group.master, group.slave, elsewhere):
        broker.settings |= settings
    group.start()
    elsewhere.start()
    fields = {
        "topic": f"%RETRY%poppers_{TOPIC}", "defaultTopic": "TBW102", "readQueueNums": "1",
        "writeQueueNums": "1", "perm": "6", "topicFilterType": "SINGLE_TAG", "topicSysFlag": "0",
        "order": "false",
    }  # fmt: skip
    assert probe.request(elsewhere.port, CREATE_TOPIC, fields)[0]["code"] == 0
    send(group.master, "taken")
    popped = Popped(group.master, TOPIC, "poppers")
    assert [each.text for each in popped.take(invisibleTime=INVISIBLE_MS)] == ["taken"]
    poll(lambda: knows(group.slave, "poppers"), "the slave knows the group", WAIT_S)
    is_ours = group.master.origin.name == OURS
    poll(lambda: is_ours or timers_read(group.slave) > 0, "and what was popped", WAIT_S)
    end = brokers.master_is_lost()
    retry = {"topic": f"%RETRY%poppers_{TOPIC}", "queueId": "0"}

    def comes_back() -> bool:
        answer = probe.request(elsewhere.port, GET_MAX_OFFSET, retry)[0]
        return (answer.get("extFields") or {}).get("offset") == "1"

    poll(comes_back, "it comes back", 2 * WAIT_S)
    (again,) = Popped(elsewhere, TOPIC, "poppers").take()
    assert again.text == "taken"
    assert end_of(group.slave) == end, "nothing is written to the log of the slave"
    brokers.master_is_back()
    if is_ours:
        assert brokers.progress("CID_RMQ_SYS_REVIVE_GROUP", REVIVE) == 0, "it is done with"


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "brokers",
    [(RELEASE, OURS, RELEASE), (RELEASE, RELEASE, RELEASE)],
    ids="-".join,
    indirect=True,
)
def test_another_master_fetches_what_an_original_slave_names(brokers: Brokers) -> None:
    """An original slave sends check points and acknowledgements when they are due; the messages are
    fetched from it.
    """
    group, elsewhere = brokers.group, brokers.elsewhere
    settings = {**POP_SETTINGS, "reviveQueueNum": "1"}
    for broker in (group.master, group.slave, elsewhere):
        broker.settings |= settings
    group.start()
    elsewhere.start()
    for text_ in ("done", "taken", "taken as well"):
        send(group.master, text_)
    send(elsewhere, "another at the same place")
    popped = Popped(group.master, TOPIC, "poppers")
    taken = popped.take(invisibleTime=INVISIBLE_MS)
    assert [each.text for each in taken] == ["done", "taken", "taken as well"]
    assert popped.ack_taken(taken[0])["code"] == 0
    first = Popped(elsewhere, TOPIC, "poppers")
    (own,) = first.take()
    assert first.ack_taken(own)["code"] == 0
    poll(lambda: timers_read(group.slave) >= 2, "the slave knows what was popped, and done", WAIT_S)
    brokers.master_is_lost()
    retry = {"topic": f"%RETRY%poppers_{TOPIC}", "queueId": "0"}

    def comes_back() -> bool:
        answer = probe.request(elsewhere.port, GET_MAX_OFFSET, retry)[0]
        return (answer.get("extFields") or {}).get("offset") == "2"

    poll(comes_back, "it comes back", 3 * WAIT_S)
    again = Popped(elsewhere, TOPIC, "poppers").take()
    # An original master fetches each of them by itself, and puts them as they come.
    assert sorted(each.text for each in again) == ["taken", "taken as well"]
    brokers.master_is_back()


@pytest.mark.timeout(600)
def test_timer_messages_come_by_way_of_another_master(brokers: Brokers) -> None:
    group, elsewhere = brokers.group, brokers.elsewhere
    group.start()
    elsewhere.start()
    send(group.master, "due", f"TIMER_DELAY_MS\x01{TIMER_DELAY_MS}\x02")
    send(group.master, "later", f"TIMER_DELAY_MS\x01{600 * 1000}\x02")
    poll(lambda: timers_read(group.slave) == 2, "the slave knows of them", WAIT_S)
    end = brokers.master_is_lost()
    poll(lambda: stored(elsewhere) == 1, "it comes when it is due", WAIT_S)
    assert end_of(group.slave) == end, "nothing is written to the log of the slave"
    brokers.master_is_back()
    if group.slave.origin.name == OURS:
        poll(lambda: timers_are_at(group.master) > timers_are_at(group.slave), "it has gone on", 30)
        assert stored(group.master) == 0, "the master passes over it"
    assert stored(elsewhere) == 1


def timer_check(broker: Broker) -> tuple[int, ...]:
    body = probe.request(broker.port, GET_TIMER_CHECK_POINT)[1]
    return struct.unpack_from(">qqqq", body) if len(body) >= 32 else (0, 0, 0, 0)


def timers_read(broker: Broker) -> int:
    """How many timer messages the master has read, as a slave knows it."""
    return timer_check(broker)[3]


def timers_are_at(broker: Broker) -> int:
    """Up to which time timer messages are delivered, in ms."""
    return timer_check(broker)[0]


def stored(broker: Broker) -> int:
    """How many messages a broker has in the topic."""
    total = 0
    for queue in range(QUEUES):
        asked = {"topic": TOPIC, "queueId": str(queue)}
        answer, _ = probe.request(broker.port, GET_MAX_OFFSET, asked)
        total += int((answer.get("extFields") or {}).get("offset", 0))
    return total


def knows(broker: Broker, group: str) -> bool:
    body = probe.request(broker.port, ALL_GROUPS)[1]
    return group in json.loads(body)["subscriptionGroupTable"]


def send(broker: Broker, body: str, properties: str = "") -> None:
    fields = {
        "producerGroup": "writers", "topic": TOPIC, "defaultTopic": "TBW102", "queueId": "0",
        "defaultTopicQueueNums": "4", "sysFlag": "0", "bornTimestamp": "1", "flag": "0",
        "properties": properties, "reconsumeTimes": "0", "unitMode": "false", "batch": "false",
    }  # fmt: skip
    poll(lambda: probe.request(broker.port, 10, fields, body.encode())[0]["code"] == 0, "sent", 30)
