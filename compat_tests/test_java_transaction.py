# SPDX-License-Identifier: Apache-2.0
"""Transactions of official producers: both phases, checks, crashes, stores that change brokers."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from compat_tests.engine import Engine
from compat_tests.jars import RELEASES
from compat_tests.java_client import ClientJvm, Json, text
from compat_tests.peers import Broker, NameServer, Origin, Original, Ours
from compat_tests.scene import Scene, poll
from compat_tests.transactions import TransactionProducer, transactional

SETTINGS: Final = {
    "transactionCheckInterval": "1500",
    "transactionTimeOut": "2000",
    "transactionCheckMax": "3",
    "transactionOpBatchInterval": "200",  # of 5.x, which else asks for what is ended already
}
"""The half messages are looked at soon, and few questions are asked."""
PATIENT: Final = {**SETTINGS, "transactionCheckMax": "100"}
"""Nothing is given up while no producer is there to be asked, however slowly one comes."""
GIVEN_UP: Final = "TRANS_CHECK_MAX_TIME_TOPIC"


@pytest.fixture(scope="module")
def transaction_broker(
    origin: Origin, name_server: NameServer, work_folder: Path
) -> Iterator[Broker]:
    broker = Broker(origin, work_folder / "transactions", name_server, "broker-t", SETTINGS)
    broker.start()
    yield broker
    broker.close()


@pytest.fixture
def transaction_scene(jvm: ClientJvm, transaction_broker: Broker) -> Iterator[Scene]:
    scene = Scene(jvm, transaction_broker)
    yield scene
    scene.close()


def producer_of(scene: Scene, group: str | None = None) -> TransactionProducer:
    name = scene.unique("transactions")
    settings = {} if group is None else {"group": group}
    made = TransactionProducer(scene.jvm, name, scene.namesrv, heartbeat_ms=1000, **settings)
    scene._clients.append(made)
    return made


def bodies(messages: list[Json]) -> list[str]:
    return sorted(text(item) for item in messages)


@pytest.mark.both_releases
def test_commit_and_rollback(transaction_scene: Scene) -> None:
    scene = transaction_scene
    topic = scene.topic(queues=2)
    producer = producer_of(scene)
    consumer = scene.push_consumer(topic, scene.unique("group"), expression="a")
    properties = {"größe": "漢字"}
    sent = [
        transactional(
            topic, f"m{n}", ("commit", "rollback")[n % 2], tags="a", keys=f"k{n}", flag=n,
            properties=properties,
        )
        for n in range(8)
    ]  # fmt: skip
    results = producer.send(sent)
    assert [each["status"] for each in results] == ["SEND_OK"] * 8
    assert [each["state"] for each in results] == ["COMMIT_MESSAGE", "ROLLBACK_MESSAGE"] * 4
    assert {each["queue"]["queue_id"] for each in results} == {0, 1}
    if scene.broker.origin.behaves_as != "4.9.7":  # which does not tell
        for each in results:
            assert each["transaction_id"] == each["msg_id"]
    received = consumer.wait_for(4)
    assert bodies(received) == ["m0", "m2", "m4", "m6"]
    for item in received:
        number = int(text(item)[1:])
        assert (item["keys"], item["flag"]) == (f"k{number}", number)
        assert item["properties"]["größe"] == "漢字"
        assert item["properties"]["TRAN_MSG"] == "true"
        keeps_real = item["properties"].keys() >= {"REAL_TOPIC", "REAL_QID"}
        assert keeps_real == (scene.broker.origin.behaves_as == "4.9.7")
        assert item["properties"]["PGROUP"] == f"transactions-{producer.name}"
        assert item["msg_id"] == results[number]["msg_id"]
        assert item["queue_id"] == results[number]["queue"]["queue_id"]
        assert item["sys_flag"] & 12 == 8
    assert producer.checks() == []
    assert bodies(scene.read(topic, 4)) == ["m0", "m2", "m4", "m6"]


@pytest.mark.both_releases
def test_the_producer_is_asked(transaction_scene: Scene) -> None:
    """Until it says what became of it; and what it never says goes to a topic of its own."""
    scene = transaction_scene
    topic = scene.topic(queues=2)
    producer = producer_of(scene)
    producer.send(
        [
            transactional(topic, "late commit", "unknown", "commit", keys="k1", tags="t1"),
            transactional(topic, "late rollback", "unknown", "rollback"),
            transactional(topic, "never", "unknown", "unknown", keys="k3"),
        ]
    )
    checks = producer.wait_for_checks(3)
    asked = {text(check["message"]): check for check in checks[:3]}
    assert set(asked) == {"late commit", "late rollback", "never"}
    first = asked["late commit"]["message"]
    assert (first["topic"], first["keys"], first["tags"]) == (topic, "k1", "t1")
    assert first["properties"]["TRANSACTION_CHECK_TIMES"] == "1"
    assert asked["late commit"]["transaction_id"] == first["properties"]["UNIQ_KEY"]
    assert bodies(scene.read(topic, 1)) == ["late commit"]

    def given_up() -> list[Json]:
        try:
            found = scene.read(GIVEN_UP, 1)
        except Exception:  # noqa: BLE001 - the topic is made with the first message
            return []
        return [item for item in found if item["properties"]["REAL_TOPIC"] == topic]

    poll(lambda: bool(given_up()), f"a message in {GIVEN_UP}", 60)
    (lost,) = given_up()
    assert (text(lost), lost["keys"]) == ("never", "k3")
    assert lost["properties"]["TRANSACTION_CHECK_TIMES"] == "3"
    times = [
        check["message"]["properties"]["TRANSACTION_CHECK_TIMES"]
        for check in producer.checks()
        if text(check["message"]) == "never"
    ]
    assert times == ["1", "2", "3"]
    assert bodies(scene.read(topic, 1)) == ["late commit"]
    before = len(producer.checks())
    scene.admin().resume_check(GIVEN_UP, lost["offset_msg_id"])
    again = producer.wait_for_checks(before + 1)[-1]["message"]
    assert text(again) == "never"
    assert again["properties"]["TRANSACTION_CHECK_TIMES"] == "1"


def test_the_first_question_may_be_late(transaction_scene: Scene) -> None:
    scene = transaction_scene
    topic = scene.topic(queues=1)
    producer = producer_of(scene)
    later = {"CHECK_IMMUNITY_TIME_IN_SECONDS": "3"}
    producer.send([transactional(topic, "slow", "unknown", "commit", properties=later)])
    check = producer.wait_for_checks(1)[0]
    assert check["at_ms"] - check["message"]["born_timestamp"] >= 3_000
    assert set(bodies(scene.read(topic, 1))) == {"slow"}


def test_another_producer_of_the_group_is_asked(
    transaction_scene: Scene, second_jvm: ClientJvm
) -> None:
    """The first is killed between the phases."""
    scene = transaction_scene
    topic, group = scene.topic(queues=1), scene.unique("transactions")
    doomed = Scene(second_jvm, scene.broker)
    producer_of(doomed, group).begin(transactional(topic, "orphan", "hang", "commit"))
    half = "RMQ_SYS_TRANS_HALF_TOPIC"

    def is_stored() -> bool:
        return any(item["properties"]["REAL_TOPIC"] == topic for item in scene.read(half, 1))

    poll(is_stored, "the half message is stored", 60)
    second_jvm.kill()
    heir = producer_of(scene, group)
    heir.send([transactional(topic, "hello", "rollback")])  # 5.x tells brokers of itself with that
    (check,) = heir.wait_for_checks(1)[:1]
    assert text(check["message"]) == "orphan"
    assert bodies(scene.read(topic, 1)) == ["orphan"]


OPS = "RMQ_SYS_TRANS_OP_HALF_TOPIC"


class Handed:
    """A broker's store that goes from one origin to another with open transactions."""

    def __init__(self, broker: Broker, jvm: ClientJvm, topic: str, group: str) -> None:
        self.broker, self.jvm, self.topic, self.group = broker, jvm, topic, group

    def begin(self, word: str, *, is_killed: bool = False) -> None:
        """Ends some transactions and leaves others open, for whoever comes next.

        A broker that is to be killed gets the time to write down what is ended.
        """
        scene = Scene(self.jvm, self.broker)
        scene.admin().create_topic(self.broker.address, self.topic, 2)
        scene.wait_for_route(self.topic)
        producer = producer_of(scene, self.group)
        ended = len(scene.read(OPS, 0)) if is_killed else 0
        producer.send(
            [
                transactional(self.topic, f"{word} committed", "commit"),
                transactional(self.topic, f"{word} rolled back", "rollback"),
                transactional(self.topic, f"{word} to be committed", "unknown", "commit"),
                transactional(self.topic, f"{word} to be rolled back", "unknown", "rollback"),
            ]
        )
        poll(lambda: f"{word} committed" in self.seen(scene), "the first is committed", 30)
        if is_killed:
            scene.read(OPS, ended + 2)
        scene.stopped(producer)

    def seen(self, scene: Scene) -> list[str]:
        return bodies(scene.read(self.topic, 0))

    def go_on(self, word: str, expected: list[str]) -> None:
        """The producer is asked for what was left open, and for nothing else."""
        scene = Scene(self.jvm, self.broker)
        producer = producer_of(scene, self.group)
        producer.send([transactional(self.topic, "hello", "rollback")])
        producer.wait_for_checks(2)
        poll(lambda: len(self.seen(scene)) >= len(expected), f"{expected} in the end", 30)
        asked = {text(check["message"]) for check in producer.checks()}
        assert asked == {f"{word} to be committed", f"{word} to be rolled back"}
        assert self.seen(scene) == sorted(expected)
        scene.close()


@pytest.mark.timeout(400)
@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("end", ["stop", "kill"])
def test_open_transactions_go_from_hand_to_hand(
    origin: Origin,
    engine: Engine,
    test_folder: Path,
    first_jvm: ClientJvm,
    release: str,
    end: str,
) -> None:
    """What an original has left open is asked for by ours, and the other way round."""
    if not isinstance(origin, Ours):
        pytest.skip("one of both sides is ours")
    folder = test_folder / f"handed-{release}-{end}"
    names = NameServer(origin, folder / "namesrv")
    slow = {**PATIENT, "transactionTimeOut": "3600000"}
    ours = Broker(origin, folder, names, "broker-h", slow)
    official = ours.under(Original(release, engine))
    topic = f"handed-{release.replace('.', '_')}-{end}"
    names.start()
    try:
        for word, one, other in (("theirs", official, ours), ("ours", ours, official)):
            one.settings.update(slow)
            one.start()
            is_killed = word == "ours" and end == "kill"
            Handed(one, first_jvm, f"{topic}-{word}", topic).begin(word, is_killed=is_killed)
            if is_killed:
                one.kill()
            else:
                one.stop()  # 5.x that is killed may not have written what is ended, and asks again
            other.settings.update(PATIENT)
            other.start()
            expected = [f"{word} committed", f"{word} to be committed"]
            Handed(other, first_jvm, f"{topic}-{word}", topic).go_on(word, expected)
            other.stop()
    finally:
        ours.close()
        official.close()
        names.close()


def test_the_broker_is_killed_between_the_phases(
    origin: Origin, test_folder: Path, first_jvm: ClientJvm
) -> None:
    names = NameServer(origin, test_folder / "killed-namesrv")
    broker = Broker(origin, test_folder / "killed-transactions", names, "broker-k", PATIENT)
    names.start()
    try:
        broker.start()
        scene = Scene(first_jvm, broker)
        topic = scene.topic("killed", queues=1)
        producer = producer_of(scene)
        producer.send([transactional(topic, "open", "unknown", "commit")])
        producer.send([transactional(topic, "closed", "commit")])
        poll(lambda: bodies(scene.read(topic, 0)) == ["closed"], "the second is committed", 30)
        if isinstance(origin, Ours):
            scene.read(OPS, 1)  # ours begins to sync 50 ms later; who is killed before asks again
        broker.kill()
        broker.start()
        poll(lambda: bodies(scene.read(topic, 0)) == ["closed", "open"], "both are committed", 90)
        scene.close()
    finally:
        broker.close()
        names.close()
