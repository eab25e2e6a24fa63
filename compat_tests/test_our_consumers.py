# SPDX-License-Identifier: Apache-2.0
"""Our consumers with the official Java ones: in one group, one after the other, side by side."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from compat_tests.java_client import ClientJvm, PushConsumer, body, message, text
from compat_tests.our_consumer import OurConsumer, OurError
from compat_tests.peers import Broker, NameServer, Origin, running
from compat_tests.scene import Scene, poll
from compat_tests.test_java_orderly import assert_in_order, locked, try_lock

pytestmark = pytest.mark.timeout(600)

HANDED_OVER_S = 120.0

Make = Callable[..., OurConsumer]


@pytest.fixture
def ours(scene: Scene) -> Iterator[Make]:
    """Makes consumers of ours, and ends them."""
    made: list[OurConsumer] = []

    def make(
        kind: str, topic: str, group: str, *, scene: Scene = scene, **settings: Any
    ) -> OurConsumer:
        made.append(OurConsumer(scene, kind, topic, group, **settings))
        return made[-1]

    yield make
    for each in made:
        each.kill()


def send_keys(scene: Scene, topic: str, steps: range, keys: int = 12) -> None:
    scene.producer().send(
        [message(topic, f"k{key}/{step}", shard=f"k{key}") for step in steps for key in range(keys)]
    )


# -------------------------------------------------------------------------------------- in order


def test_each_key_is_consumed_in_order(scene: Scene, ours: Make) -> None:
    topic = scene.topic(queues=4)
    consumer = ours("orderly", topic, scene.unique("group"))
    send_keys(scene, topic, range(20))
    consumer.wait_for(240)
    assert len(set(consumer.bodies())) == 240
    assert_in_order(consumer.events())
    assert consumer.locked() == {0, 1, 2, 3}


@pytest.mark.both_releases
def test_java_and_ours_exclude_each_other(scene: Scene, ours: Make) -> None:
    topic, group = scene.topic(queues=4), scene.unique("group")
    java = scene.push_consumer(topic, group, orderly=True)
    poll(lambda: locked(java) == {0, 1, 2, 3}, "Java has locked all queues", 60)
    send_keys(scene, topic, range(10))
    python = ours("orderly", topic, group)
    send_keys(scene, topic, range(10, 20))

    def halved() -> bool:
        left, right = locked(java), python.locked()
        if len(left) == len(right) == 2 and not left & right:
            return True
        time.sleep(0.3)
        java.rebalance()
        return False

    poll(halved, "each has locked two queues", HANDED_OVER_S)
    send_keys(scene, topic, range(20, 30))
    python.wait_for(1)
    scene.stopped(java)
    send_keys(scene, topic, range(30, 40))
    poll(lambda: python.locked() == {0, 1, 2, 3}, "ours has locked all queues", HANDED_OVER_S)
    send_keys(scene, topic, range(40, 50))

    def bodies() -> set[str]:
        return {*java.bodies(), *python.bodies()}

    poll(lambda: len(bodies()) == 600, "all messages at one of the two", 60)
    merged = sorted(
        [*java.events(), *python.events()],
        key=lambda event: (event["at_ms"], event["message"]["queue_offset"]),
    )
    assert_in_order(merged)


def test_java_takes_over_from_ours(scene: Scene, ours: Make) -> None:
    topic, group = scene.topic(queues=4), scene.unique("group")
    python = ours("orderly", topic, group)
    send_keys(scene, topic, range(10))
    python.wait_for(120)
    python.stop()
    java = scene.push_consumer(topic, group, orderly=True)
    poll(lambda: locked(java) == {0, 1, 2, 3}, "Java has locked all queues", 60)
    send_keys(scene, topic, range(10, 20))
    java.wait_for(120)
    assert not set(java.bodies()) & set(python.bodies())
    assert_in_order([*python.events(), *java.events()])


def test_a_lock_of_somebody_else_is_waited_for_and_unlocked_at_the_end(
    scene: Scene, ours: Make
) -> None:
    topic, group = scene.topic(queues=1), scene.unique("group")
    consumer = ours("orderly", topic, group)
    poll(lambda: consumer.locked() == {0}, "ours has locked the queue", 60)
    assert try_lock(scene, group, consumer.client_id, topic, 0)
    assert not try_lock(scene, group, "10.0.0.1@other", topic, 0)
    consumer.stop()
    assert try_lock(scene, group, "10.0.0.1@other", topic, 0)
    waiting = ours("orderly", topic, group)
    send_keys(scene, topic, range(1), keys=1)
    time.sleep(1)
    assert (waiting.events(), waiting.locked()) == ([], set())


def test_what_fails_in_order_comes_again_before_the_next(scene: Scene, ours: Make) -> None:
    topic = scene.topic(queues=1)
    send_keys(scene, topic, range(3), keys=1)
    config = {"suspend_current_queue_ms": 50}
    consumer = ours("orderly", topic, scene.unique("group"), config=config, times_later=2)
    consumer.wait_for(9)
    assert consumer.bodies() == ["k0/0"] * 3 + ["k0/1"] * 3 + ["k0/2"] * 3
    assert [each["reconsume_times"] for each in consumer.messages()] == [0, 1, 2] * 3


def test_what_fails_too_often_in_order_is_a_dead_letter(scene: Scene, ours: Make) -> None:
    topic, group = scene.topic(queues=1), scene.unique("group")
    send_keys(scene, topic, range(2), keys=1)
    config = {"suspend_current_queue_ms": 50, "max_reconsume_times": 1}
    consumer = ours("orderly", topic, group, config=config, times_later=9)
    consumer.wait_for(4)
    scene.wait_for_route(f"%DLQ%{group}")
    dead = scene.read(f"%DLQ%{group}", 2, timeout_s=60)
    assert {text(each) for each in dead} == {"k0/0", "k0/1"}
    assert consumer.bodies() == ["k0/0", "k0/0", "k0/1", "k0/1"]


# ---------------------------------------------------------------------- whatever Java has sent


@pytest.mark.both_releases
@pytest.mark.parametrize("kind", ["push", "orderly", "lite"])
def test_whatever_java_sends_reaches_ours(scene: Scene, ours: Make, kind: str) -> None:
    topic = scene.topic(queues=1)
    large = os.urandom(64) * 1000
    compressions = ["ZLIB"] if scene.jvm.release == "4.9.7" else ["ZLIB", "LZ4", "ZSTD"]
    bodies = [bytes(range(256)), "größe 漢字 \U0001f680".encode(), b"\x00"]
    words = {"tags": "tägs", "keys": "k1 漢字", "properties": {"own": "größe"}}
    scene.producer().send([message(topic, each, **words) for each in bodies])
    for each in compressions:
        settings = {} if each == "ZLIB" else {"compression": each}
        scene.producer(**settings).send([message(topic, large)])
    scene.producer().send_batch([message(topic, f"batch {n}", tags=f"t{n}") for n in range(3)])
    wanted = [*bodies, *[large] * len(compressions), *(f"batch {n}".encode() for n in range(3))]
    consumer = ours(kind, topic, scene.unique("group"))
    got = consumer.poll_until(len(wanted)) if kind == "lite" else consumer.wait_for(len(wanted))
    in_order = sorted(got, key=lambda each: int(each["queue_offset"]))
    assert [body(each) for each in in_order] == wanted
    first = in_order[0]
    assert (first["tags"], first["keys"], first["own"]) == ("tägs", "k1 漢字", "größe")
    assert [each["tags"] for each in in_order[-3:]] == ["t0", "t1", "t2"]


@pytest.mark.parametrize("kind", ["push", "orderly", "lite"])
def test_tags_are_filtered_by_the_broker_and_compared_here(
    scene: Scene, ours: Make, kind: str
) -> None:
    """Brokers compare hashes, which "Aa", "BB" and "C#" have in common."""
    topic = scene.topic(queues=1)
    consumer = ours(kind, topic, scene.unique("group"), expression="Aa || other")
    tags = ["Aa", "BB", "C#", "other", "third", "Aa", None]
    scene.producer().send(
        [message(topic, f"{n}", **({"tags": tag} if tag else {})) for n, tag in enumerate(tags)]
    )
    wanted = ["0", "3", "5"]
    if kind == "lite":
        assert [text(each) for each in consumer.poll_until(3)] == wanted
        assert consumer.call("poll", timeout_ms=500) == []
        return
    consumer.wait_for(3)
    scene.producer().send([message(topic, "last", tags="other")])
    consumer.wait_for(4)
    assert sorted(consumer.bodies()) == [*wanted, "last"]


# ---------------------------------------------------------------------------------- broadcasting


def test_broadcasting_reaches_each_of_ours_and_goes_on_by_the_file_of_offsets(
    scene: Scene, ours: Make, tmp_path: Path
) -> None:
    topic, group = scene.topic(queues=4), scene.unique("group")
    send_keys(scene, topic, range(2), keys=10)
    folders = [tmp_path / "a", tmp_path / "b"]
    made = [
        ours(
            "push", topic, group, model="BROADCASTING", config={"local_offset_store_dir": str(each)}
        )
        for each in folders
    ]
    for each in made:
        each.wait_for(20)
        each.stop()
        assert len(set(each.bodies())) == len(each.bodies()) == 20
    (path,) = folders[0].rglob("offsets.json")
    assert path.parts[-2] == group
    assert path.parts[-3].endswith("@DEFAULT")
    send_keys(scene, topic, range(2, 3), keys=10)
    again = ours(
        "push", topic, group, model="BROADCASTING",
        config={"local_offset_store_dir": str(folders[0])},
    )  # fmt: skip
    again.wait_for(10)
    assert {body.partition("/")[2] for body in again.bodies()} == {"2"}
    again.stop()
    assert path.with_name("offsets.json.bak").exists()


@pytest.mark.both_releases
def test_broadcasting_goes_on_by_the_file_of_offsets_of_the_other(
    scene: Scene, ours: Make, work_folder: Path
) -> None:
    """A member is who has its client id: first Java's, then ours, then Java's again."""
    topic, group, name = scene.topic(queues=4), scene.unique("group"), scene.unique("member")
    folder = work_folder / f"java-{scene.jvm.release}" / "offsets"
    java: Any = {"topic": topic, "group": group, "model": "BROADCASTING"}
    send_keys(scene, topic, range(2), keys=10)
    first = PushConsumer(scene.jvm, name, scene.namesrv, **java)
    first.wait_for(20)
    first.stop()
    send_keys(scene, topic, range(2, 3), keys=10)
    python = ours(
        "push", topic, group, model="BROADCASTING", client_ip="127.0.0.1", instance=name,
        config={"local_offset_store_dir": str(folder)},
    )  # fmt: skip
    newest = {f"k{key}/2" for key in range(10)}
    poll(lambda: newest <= set(python.bodies()), "ours has all that is new", 60)
    python.stop()
    # What Java's listener had at the moment of its end may come again, and nothing else.
    assert len(set(python.bodies()) - newest) < 20
    send_keys(scene, topic, range(3, 4), keys=10)
    again = PushConsumer(scene.jvm, name, scene.namesrv, **java)
    assert {text(each) for each in again.wait_for(30)[20:]} == {f"k{key}/3" for key in range(10)}
    again.stop()


# -------------------------------------------------------------------------------- lite and groups


@pytest.mark.both_releases
def test_lite_pull_shares_with_java_and_commits(
    scene: Scene, ours: Make, origin: Origin, jvm: ClientJvm
) -> None:
    if (jvm.release, origin.behaves_as) == ("5.4.0", "4.9.7"):
        pytest.skip("the lite pull consumer of 5.4.0 asks brokers of 4.9.7 what they do not know")
    topic, group = scene.topic(queues=4), scene.unique("group")
    send_keys(scene, topic, range(5), keys=8)
    python = ours("lite", topic, group, config={"auto_commit": False})
    first = python.poll_until(40)
    assert len({text(each) for each in first}) == 40
    python.call("commit")
    python.stop()
    java = scene.lite_consumer(group, topic=topic)
    poll(lambda: len(java.assignment()) == 4, "Java has all queues", 60)
    send_keys(scene, topic, range(5, 6), keys=8)
    assert {text(each) for each in java.poll_until(8)} == {f"k{key}/5" for key in range(8)}


def test_lite_pull_seeks_pauses_and_is_assigned(scene: Scene, ours: Make) -> None:
    topic, group = scene.topic(queues=2), scene.unique("group")
    queue = scene.queue(topic, 0)
    scene.producer().send([message(topic, f"m{n}") for n in range(6)], queue=queue)
    config = {"auto_commit": False, "pull_batch_size": 2}
    python = ours("lite", topic, group, assigns=True, config=config)
    python.call("assign", queues=[queue])
    assert [text(each) for each in python.poll_until(6)] == [f"m{n}" for n in range(6)]
    python.call("seek", queue=queue, to=4)
    assert [text(each) for each in python.poll_until(2)] == ["m4", "m5"]
    python.call("seek", queue=queue, to="begin")
    assert [text(each) for each in python.poll_until(6)] == [f"m{n}" for n in range(6)]
    python.call("seek", queue=queue, to="end")
    assert python.call("poll", timeout_ms=300) == []
    python.call("seek_to_time", queue=queue, to=0)
    assert [text(each) for each in python.poll_until(6)] == [f"m{n}" for n in range(6)]
    with pytest.raises(OurError, match="OffsetIllegal"):
        python.call("seek", queue=queue, to=7)
    with pytest.raises(OurError, match="NotAssigned"):
        python.call("seek", queue=scene.queue(topic, 1), to=0)
    python.call("commit")
    assert python.call("committed", queue=queue) == 6


def test_a_group_of_java_and_several_of_ours_loses_nothing_when_some_are_killed(
    scene: Scene, ours: Make
) -> None:
    topic, group = scene.topic(queues=6), scene.unique("group")
    java = scene.push_consumer(topic, group)
    members = [ours("push", topic, group) for _ in range(2)]
    everybody: list[Any] = [java, *members]

    def shared() -> bool:
        own = [{each["queue_id"] for each in member.assignment()} for member in everybody]
        return sorted(map(len, own)) == [2, 2, 2] and len(set.union(*own)) == 6

    poll(shared, "each of the three has two queues", HANDED_OVER_S)
    send_keys(scene, topic, range(20))
    members[0].kill()
    send_keys(scene, topic, range(20, 40))
    wanted = {f"k{key}/{step}" for step in range(40) for key in range(12)}

    def consumed() -> set[str]:
        return {body for member in everybody for body in member.bodies()}

    poll(lambda: consumed() >= wanted, "all messages were consumed", HANDED_OVER_S)


def test_what_fails_comes_again_and_is_a_dead_letter_in_the_end(scene: Scene, ours: Make) -> None:
    topic, group = scene.topic(queues=1), scene.unique("group")
    scene.producer().send([message(topic, "bad")])
    consumer = ours("push", topic, group, times_later=9, config={"max_reconsume_times": 1})
    consumer.wait_for(2)
    assert [each["reconsume_times"] for each in consumer.messages()] == [0, 1]
    assert {each["topic"] for each in consumer.messages()} == {topic}
    scene.wait_for_route(f"%DLQ%{group}")
    assert [text(each) for each in scene.read(f"%DLQ%{group}", 1, timeout_s=60)] == ["bad"]


@pytest.fixture(scope="module")
def filtering(origin: Origin, work_folder: Path) -> Iterator[Broker]:
    """A broker that filters by expressions, with a name server of its own."""
    names = NameServer(origin, work_folder / "our-filter-namesrv")
    settings = {"enablePropertyFilter": "true"}
    server = Broker(origin, work_folder / "our-filter-broker", names, "broker-sql", settings)
    with running(names, server):
        yield server


@pytest.mark.parametrize("kind", ["push", "orderly"])
def test_sql_is_filtered_by_the_broker(
    jvm: ClientJvm, filtering: Broker, ours: Make, kind: str
) -> None:
    scene = Scene(jvm, filtering)
    topic, group = scene.topic(queues=1), scene.unique("group")
    consumer = ours(kind, topic, group, scene=scene, sql="n > 2")
    with pytest.raises(OurError, match="PARSE_FAILED"):
        ours(kind, topic, scene.unique("group"), scene=scene, sql="n > > 2")
    scene.producer().send([message(topic, f"m{n}", properties={"n": str(n)}) for n in range(5)])
    consumer.wait_for(2)
    assert consumer.bodies() == ["m3", "m4"]
    scene.close()


# -------------------------------------------------------------------------------- administrators


@pytest.mark.both_releases
@pytest.mark.parametrize("kind", ["push", "orderly", "lite"])
def test_mqadmin_sees_our_consumers(scene: Scene, ours: Make, kind: str) -> None:
    topic, group = scene.topic(queues=2), scene.unique("group")
    consumer = ours(kind, topic, group)
    poll(lambda: len(consumer.assignment()) == 2, "ours has both queues", 60)
    seen = scene.mqadmin(f"consumerStatus -g {group} -i {consumer.client_id} -s")
    assert "pullThresholdForQueue" in seen, seen
    assert f"{topic}" in seen
    assert "MainThread" in seen
    assert consumer.client_id in scene.mqadmin(f"consumerConnection -g {group}")


def test_mqadmin_gives_a_message_to_our_consumer_and_sets_it_back(scene: Scene, ours: Make) -> None:
    topic, group = scene.topic(queues=1), scene.unique("group")
    scene.producer().send([message(topic, f"m{n}") for n in range(3)])
    consumer = ours("push", topic, group)
    (first, *_) = consumer.wait_for(3)
    line = f"queryMsgByUniqueKey -t {topic} -i {first['msg_id']} -g {group} -d {consumer.client_id}"
    said = scene.mqadmin(line)
    poll(lambda: len(consumer.events()) == 4, f"it was consumed once more: {said}", 60)
    scene.mqadmin(f"resetOffsetByTime -g {group} -t {topic} -s 0 -f true")
    consumer.wait_for(7, timeout_s=120)
    assert consumer.bodies()[4:] == ["m0", "m1", "m2"]
