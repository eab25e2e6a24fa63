# SPDX-License-Identifier: Apache-2.0
"""A slave that acts as master, in groups of ours and of 5.4.0: official clients go on reading.

Each group is a name server, a master and a slave. What the master would have to write, such as a
delayed message that is due, waits until it is back, unless enableRemoteEscape is on and there is
another master.
"""

import itertools
import json
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from compat_tests import probe
from compat_tests.engine import Engine
from compat_tests.java_client import ClientJvm, JavaError, Producer, PushConsumer, message, text
from compat_tests.peers import Broker, NameServer, Origin, Original, Ours
from compat_tests.scene import Scene, poll
from compat_tests.test_our_slave import end_of

SEND_MESSAGE, UPDATE_BROKER_CONFIG = 10, 25
QUERY_CONSUMER_OFFSET, GET_BROKER_RUNTIME_INFO, LOCK_BATCH_MQ = 14, 28, 41
OURS, RELEASE = "ours", "5.4.0"
TOPIC, QUEUES, COUNT = "kept", 2, 20
KNOWN_TOPIC = {"topicName": TOPIC, "readQueueNums": QUEUES, "writeQueueNums": QUEUES, "perm": 6}
DELAY_LEVEL = 3
"""Ten seconds."""
WAIT_S = 60.0
GROUP = {
    "enableSlaveActingMaster": "true",
    "totalReplicas": "2",
    "slaveReadEnable": "true",
    "brokerIP2": "127.0.0.1",  # slaves are looked for by the host that they connect from
    "flushConsumerOffsetInterval": "200",
}

Kinds = tuple[str, str, str]


def make_topic(broker: Broker) -> None:
    """Has a broker begin with the topic."""
    config = broker.store / "config"
    config.mkdir(parents=True)
    table = {"topicConfigTable": {TOPIC: KNOWN_TOPIC}}
    (config / "topics.json").write_text(json.dumps(table))


class Group:
    """A name server, a master and a slave that acts for it."""

    def __init__(self, kinds: Kinds, engine: Engine, folder: Path, **more: str) -> None:
        def origin(kind: str) -> Origin:
            return Ours() if kind == OURS else Original(kind, engine)

        names, master, slave = map(origin, kinds)
        self.names = NameServer(names, folder / "names")
        self.names.settings |= {
            "supportActingMaster": "true",
            "notifyMinBrokerIdChanged": "true",
        }
        own = {**GROUP, **more}
        self.master = Broker(
            master, folder / "master", self.names, "group", {"brokerRole": "ASYNC_MASTER", **own}
        )
        self.slave = Broker(
            slave, folder / "slave", self.names, "group",
            {"brokerRole": "SLAVE", "brokerId": "1", **own},
        )  # fmt: skip
        for broker in (self.master, self.slave):  # slaves of 5.4.0 copy it after a minute only
            make_topic(broker)

    def start(self) -> None:
        for server in (self.names, self.master, self.slave):
            server.start()

    def close(self) -> None:
        for server in (self.slave, self.master, self.names):
            server.close()

    def in_sync(self) -> bool:
        return end_of(self.slave) == end_of(self.master)

    def acts(self) -> bool:
        """Whether the slave says that it does what a master does by itself."""
        body = probe.request(self.slave.port, GET_BROKER_RUNTIME_INFO)[1]
        # An original answers without a body in its first second, as it has not counted anything.
        return bool(body) and json.loads(body)["table"]["brokerActive"] == "true"


def groups() -> list[Any]:
    """All groups. In those that always run, each two kinds meet in each two places."""
    return [
        pytest.param(each, marks=[pytest.mark.whole_matrix] * (each.count(RELEASE) % 2))
        for each in itertools.product((OURS, RELEASE), repeat=3)
    ]


@pytest.fixture(params=groups(), ids="-".join)
def kinds(request: pytest.FixtureRequest) -> Kinds:
    found: Kinds = request.param
    return found


@pytest.fixture
def group(kinds: Kinds, engine: Engine, test_folder: Path) -> Iterator[Group]:
    made = Group(kinds, engine, test_folder)
    try:
        made.start()
        yield made
    finally:
        made.close()


def committed(broker: Broker, group: str) -> int:
    """The sum of a group's offsets at a broker."""
    total = 0
    for queue in range(QUEUES):
        asked = {"consumerGroup": group, "topic": TOPIC, "queueId": str(queue)}
        answer, _ = probe.request(broker.port, QUERY_CONSUMER_OFFSET, asked)
        total += int((answer.get("extFields") or {}).get("offset", 0))
    return total


def has(consumer: PushConsumer, bodies: set[str]) -> bool:
    return set(consumer.bodies()) >= bodies


def is_sent(producer: Producer, body: str) -> bool:
    with suppress(JavaError):
        producer.send([message(TOPIC, body)])
        return True
    return False


@pytest.mark.timeout(400)
def test_consumers_go_on_with_the_slave_and_with_the_master_when_it_is_back(
    group: Group, first_jvm: ClientJvm
) -> None:
    master, slave = group.master, group.slave
    scene = Scene(first_jvm, master)
    try:
        scene.wait_for_route(TOPIC)
        producer = scene.producer()
        names = scene.unique("before"), scene.unique("late"), scene.unique("ordered")
        before = scene.push_consumer(TOPIC, names[0], heartbeat_ms=1000)
        wanted = {f"a{number}" for number in range(COUNT)}
        producer.send([message(TOPIC, each) for each in sorted(wanted)])
        before.wait_for(COUNT)
        producer.send([message(TOPIC, "delayed", delay_level=DELAY_LEVEL)])
        poll(group.in_sync, "the slave has the log", WAIT_S)
        assert not group.acts()

        master.kill()
        poll(group.acts, "the slave acts as master", WAIT_S)
        brokers = scene.admin().topic_route(TOPIC)
        assert brokers == {"group": {"0": slave.address}}
        late = scene.push_consumer(TOPIC, names[1], heartbeat_ms=1000)
        late.wait_for(COUNT, timeout_s=WAIT_S)
        ordered = scene.push_consumer(TOPIC, names[2], heartbeat_ms=1000, orderly=True)
        ordered.wait_for(COUNT, timeout_s=WAIT_S)
        assert set(late.bodies()) == set(ordered.bodies()) == wanted
        poll(lambda: committed(slave, names[1]) == COUNT, "the slave keeps their offsets", WAIT_S)
        assert not is_sent(scene.producer(), "lost")
        scene.stopped(late)

        master.start()
        poll(lambda: not group.acts(), "the slave acts no more", WAIT_S)
        assert committed(master, names[1]) == COUNT, "the master took the offsets over"
        poll(lambda: is_sent(producer, "back"), "the producer goes on", WAIT_S)
        after = {*wanted, "back", "delayed"}
        for each in (before, ordered):
            first_jvm.wait_for(partial(has, each, after), "the rest", WAIT_S)
        again = scene.push_consumer(TOPIC, names[1], heartbeat_ms=1000)
        again.wait_for(2, timeout_s=WAIT_S)
        assert set(again.bodies()) == {"back", "delayed"}
    finally:
        scene.close()


def locked(broker: Broker, client: str, **more: object) -> bool:
    queue = {"topic": TOPIC, "brokerName": "group", "queueId": 0}
    body = json.dumps({"consumerGroup": "g", "clientId": client, "mqSet": [queue], **more})
    header, answer = probe.request(broker.port, LOCK_BATCH_MQ, body=body.encode())
    assert header["code"] == 0, header
    return bool(json.loads(answer)["lockOKMQSet"])


def pairs() -> list[Any]:
    """Masters and slaves. Mixed pairs show an original in each place, so two are for long runs."""
    return [
        pytest.param(each, marks=[pytest.mark.whole_matrix] * (OURS not in each))
        for each in itertools.product((OURS, RELEASE), repeat=2)
    ]


@pytest.mark.timeout(400)
@pytest.mark.parametrize("pair", pairs(), ids="-".join)
def test_most_brokers_have_to_agree_to_a_strict_lock(
    pair: tuple[str, str], engine: Engine, test_folder: Path
) -> None:
    group = Group((OURS, *pair), engine, test_folder, lockInStrictMode="true")
    try:
        group.start()
        poll(lambda: locked(group.master, "one"), "master and slave agree", WAIT_S)
        assert not locked(group.slave, "two", onlyThisBroker=True), (
            "the slave has locked it as well"
        )
        assert locked(group.slave, "one"), "and asks the master"
        group.master.kill()
        poll(group.acts, "the slave acts as master", WAIT_S)
        assert not locked(group.slave, "one"), "one of two is not more than half"
        assert locked(group.slave, "one", onlyThisBroker=True)
    finally:
        group.close()


@pytest.mark.timeout(400)
@pytest.mark.parametrize("others", [(OURS, RELEASE), (RELEASE, OURS), (OURS, OURS)], ids="-".join)
def test_delayed_messages_and_retries_come_by_way_of_another_master(
    others: tuple[str, str], engine: Engine, test_folder: Path, first_jvm: ClientJvm
) -> None:
    slave, other = others
    group = Group((OURS, OURS, slave), engine, test_folder, enableRemoteEscape="true")
    origin: Origin = Ours() if other == OURS else Original(other, engine)
    elsewhere = Broker(origin, test_folder / "other", group.names, "elsewhere", {})
    make_topic(elsewhere)
    scene = Scene(first_jvm, group.master)
    try:
        group.start()
        elsewhere.start()
        scene.wait_for_route(TOPIC)
        consumer = scene.push_consumer(TOPIC, scene.unique("group"), heartbeat_ms=1000)
        here = {"topic": TOPIC, "broker": "group", "queue_id": 0}
        producer = scene.producer()
        producer.send([message(TOPIC, "first")], queue=here)
        consumer.wait_for(1, timeout_s=WAIT_S)
        producer.send([message(TOPIC, "delayed", delay_level=DELAY_LEVEL)], queue=here)
        poll(group.in_sync, "the slave has the log", WAIT_S)
        end = end_of(group.slave)
        group.master.kill()
        poll(group.acts, "the slave acts as master", WAIT_S)
        first_jvm.wait_for(partial(has, consumer, {"delayed"}), "it comes", WAIT_S)
        (delayed,) = [each for each in consumer.messages() if text(each) == "delayed"]
        assert delayed["broker"] == "elsewhere"
        assert end_of(group.slave) == end, "nothing is written to the log of the slave"
    finally:
        scene.close()
        elsewhere.close()
        group.close()


def answer_of(broker: Broker, wait: str = "") -> tuple[int, str | None]:
    """Code and remark of the answer to a send."""
    fields = {
        "producerGroup": "writers", "topic": TOPIC, "defaultTopic": "TBW102", "queueId": "0",
        "defaultTopicQueueNums": "4", "sysFlag": "0", "bornTimestamp": "1", "flag": "0",
        "properties": wait, "reconsumeTimes": "0", "unitMode": "false", "batch": "false",
    }  # fmt: skip
    answer, _ = probe.request(broker.port, SEND_MESSAGE, fields, b"body")
    return int(answer["code"]), answer.get("remark")


@pytest.mark.parametrize("kind", [OURS, RELEASE])
def test_a_master_refuses_sends_while_too_few_brokers_are_in_sync(
    kind: str, engine: Engine, test_folder: Path
) -> None:
    more = {"totalReplicas": "1", "brokerRole": "SYNC_MASTER", "inSyncReplicas": "2"}
    group = Group((OURS, kind, OURS), engine, test_folder)
    group.master.settings |= more
    group.slave.settings |= {"totalReplicas": "1"}
    master = group.master

    def comes(code: int) -> None:
        poll(lambda: answer_of(master)[0] == code, f"sends are answered with {code}", WAIT_S)

    def change(settings: str) -> None:
        probe.request(master.port, UPDATE_BROKER_CONFIG, body=settings.encode())

    try:
        group.names.start()
        master.start()
        assert answer_of(master) == (1, "in-sync replicas not enough")
        assert answer_of(master, "WAIT\x01false\x02")[0] == 0
        change("enableAutoInSyncReplicas=true\n")
        assert answer_of(master)[0] == 0
        change("minInSyncReplicas=2\n")
        assert answer_of(master) == (1, "in-sync replicas not enough")
        group.slave.start()
        comes(0)
        group.slave.kill()
        comes(1)
    finally:
        group.close()


@pytest.mark.parametrize("kind", [OURS, RELEASE])
def test_the_least_number_of_brokers_counts_alone(
    kind: str, engine: Engine, test_folder: Path
) -> None:
    """Without inSyncReplicas, which is 1 in the original then."""
    more = {"totalReplicas": "1", "brokerRole": "SYNC_MASTER"}
    more |= {"enableAutoInSyncReplicas": "true", "minInSyncReplicas": "2"}
    group = Group((OURS, kind, OURS), engine, test_folder)
    group.master.settings |= more
    group.slave.settings |= {"totalReplicas": "1"}
    master = group.master
    try:
        group.names.start()
        master.start()
        assert answer_of(master) == (1, "in-sync replicas not enough")
        group.slave.start()
        poll(lambda: answer_of(master)[0] == 0, "sends are taken", WAIT_S)
        assert answer_of(master) == (0, None)
    finally:
        group.close()
