# SPDX-License-Identifier: Apache-2.0
"""POP: the official client of 5.4.0 as a push consumer that pops, and requests of POP one by one.

The remoting client has no way to pop in order (its service for that consumes nothing), and sends no
dead letters of popped messages: the official proxy does both. What the proxy asks for is asked here
with plain frames, of whichever server is under test.
"""

import json
import time
from pathlib import Path
from typing import Any, Final

import pytest

from compat_tests.java_client import ClientJvm, Json, message, text
from compat_tests.peers import Broker, NameServer, Origin
from compat_tests.pops import BACK_S, BATCH_ACK, NOTIFY, POLLING, POP, SETTINGS, Popped, text_of
from compat_tests.scene import Scene, poll

RELEASE: Final = "5.4.0"
INVISIBLE_MS: Final = 10_000
"""The shortest that the client allows."""


@pytest.fixture(autouse=True)
def only_5x(origin: Origin) -> None:
    if origin.behaves_as == "4.9.7":
        pytest.skip("4.9.7 has no POP")


def group_that_pops(scene: Scene, topic: str, share: int = 0) -> str:
    """A new group for which an administrator has set the mode."""
    group, broker = scene.unique("group"), scene.broker.address
    said = scene.mqadmin(f"updateSubGroup -g {group} -b {broker}")
    assert "success" in said, said
    mode = f"setConsumeMode -b {broker} -t {topic} -g {group} -m POP -q {share}"
    said = scene.mqadmin(mode)
    assert "success" in said, said
    return group


def consumer_of(scene: Scene, topic: str, group: str, **settings: Any) -> Any:
    settings.setdefault("pop_invisible_ms", INVISIBLE_MS)
    return scene.push_consumer(topic, group, pop=True, **settings)


def progress(scene: Scene, topic: str, group: str) -> int:
    """What the group has consumed of the topic, of all its queues."""
    said = scene.mqadmin(f"consumerProgress -g {group} -t {topic}")
    rows = [line.split() for line in said.splitlines() if line.startswith(topic)]
    return sum(int(row[4]) for row in rows)


def test_pushed_messages_are_popped(pops: Scene) -> None:
    """Those that fail come back with a count, the others do not; the group's offsets follow."""
    topic = pops.topic(queues=4)
    group = group_that_pops(pops, topic)
    producer = pops.producer()
    early = [message(topic, f"early-{n}", tags="a", keys=f"k{n}") for n in range(20)]
    producer.send(early)
    consumer = consumer_of(pops, topic, group, expression="a", times_later=0)
    consumer.wait_for(20, BACK_S)
    late = [message(topic, f"late-{n}", tags="ab"[n % 2]) for n in range(20)]
    producer.send(late)
    consumer.wait_for(30, BACK_S)
    received = consumer.messages()
    expected = {f"early-{n}" for n in range(20)} | {f"late-{n}" for n in range(0, 20, 2)}
    assert {text(item) for item in received} == expected
    assert all(item["topic"] == topic for item in received)
    assert {len(item["properties"]["POP_CK"].split(" ")) for item in received} == {8}
    poll(lambda: progress(pops, topic, group) == 40, "the offsets follow", 60)
    time.sleep(INVISIBLE_MS / 1000 + 8)
    assert len(consumer.messages()) == 30  # acknowledged, so they stay away


def test_what_fails_comes_back(pops: Scene) -> None:
    """Twice: after another invisible time, which the client asks for."""
    topic = pops.topic(queues=2)
    group = group_that_pops(pops, topic)
    consumer = consumer_of(pops, topic, group, times_later=1)
    producer = pops.producer()
    producer.send([message(topic, f"m{n}", tags="t", keys="k") for n in range(3)])
    received = consumer.wait_for(6, BACK_S)
    assert sorted(text(item) for item in received) == ["m0", "m0", "m1", "m1", "m2", "m2"]
    again = [item for item in received if item["reconsume_times"] == 1]
    assert sorted(text(item) for item in again) == ["m0", "m1", "m2"]
    for item in again:
        assert (item["topic"], item["tags"], item["keys"]) == (topic, "t", "k")
        assert item["properties"]["ORIGIN_GROUP"] == group
        assert item["properties"]["1ST_POP_TIME"].isdigit()
    first = [item["msg_id"] for item in received if item["reconsume_times"] == 0]
    assert sorted(first) == sorted(item["msg_id"] for item in again)


def test_what_takes_too_long_comes_back(pops: Scene) -> None:
    """The client acknowledges nothing after the invisible time."""
    topic = pops.topic(queues=1)
    group = group_that_pops(pops, topic)
    consumer = consumer_of(pops, topic, group, hold_ms=INVISIBLE_MS + 2_000)
    pops.producer().send([message(topic, "slow")])
    consumer.wait_for(2, BACK_S)
    first, again = consumer.events()
    assert again["at_ms"] - first["at_ms"] >= INVISIBLE_MS - 500
    assert again["message"]["reconsume_times"] == 1


@pytest.mark.parametrize("end", [pytest.param("stop", marks=pytest.mark.whole_matrix), "kill"])
def test_acks_hold_and_nothing_is_lost(
    origin: Origin, jvms: dict[str, ClientJvm], test_folder: Path, end: str
) -> None:
    """Over a restart, and over a kill."""
    names = NameServer(origin, test_folder / f"pop-{end}-namesrv")
    broker = Broker(origin, test_folder / f"pop-{end}", names, "broker-e", SETTINGS)
    try:
        names.start()
        broker.start()
        scene = Scene(jvms[RELEASE], broker)
        topic, group = scene.topic(queues=1), scene.unique("group")
        scene.producer().send([message(topic, f"m{n}") for n in range(6)])
        scene.read(topic, 6)
        popped = Popped(broker, topic, group)
        assert len(popped.ask(invisibleTime=15_000)) == 6
        for offset in (0, 2, 4):
            assert popped.ack(offset)["code"] == 0
        assert [text_of(item) for item in popped.ask()] == []
        time.sleep(12)  # the original keeps offsets every 5 s
        getattr(broker, end)()
        broker.start()
        found: list[str] = []

        def is_back() -> bool:
            found.extend(text_of(item) for item in popped.ask())
            return {"m1", "m3", "m5"} <= set(found)

        poll(is_back, "what was not acknowledged is back", BACK_S)
        time.sleep(5)
        is_back()
        assert sorted(found) == ["m1", "m3", "m5"]
        scene.close()
    finally:
        broker.close()
        names.close()


def test_in_order(pops: Scene) -> None:
    """A queue is closed until its messages are acknowledged or visible again, and counts."""
    topic, group = pops.topic(queues=1), pops.unique("group")
    pops.producer().send([message(topic, f"m{n}") for n in range(5)])
    pops.read(topic, 5)
    popped = Popped(pops.broker, topic, group)
    first = popped.ask(order="true", maxMsgNums=2, invisibleTime=8_000)
    assert [text_of(item) for item in first] == ["m0", "m1"]
    assert popped.header["reviveQid"] == "999"
    assert popped.header["orderCountInfo"] == "0 0 0"
    assert popped.ask(order="true", maxMsgNums=2) == []
    assert popped.ack(0)["code"] == 0
    assert popped.ask(order="true", maxMsgNums=2) == []
    assert popped.ack(1)["code"] == 0
    second = popped.ask(order="true", maxMsgNums=2, invisibleTime=3_000)
    assert [text_of(item) for item in second] == ["m2", "m3"]
    again = popped.until("it is open", order="true", maxMsgNums=3)
    assert again == ["m2", "m3", "m4"]
    counts = sorted(popped.header["orderCountInfo"].split(";"))
    assert counts == ["0 0 0", "0 qo0%2 1", "0 qo0%3 1"]
    assert popped.hide(2, 2_000)["code"] == 0
    assert popped.ack(99)["code"] == 208
    assert popped.ack(3)["code"] == 0
    assert popped.ack(4)["code"] == 0
    assert popped.until("it is open again", order="true") == ["m2", "m3", "m4"]


def test_a_waiting_pop_is_answered(pops: Scene) -> None:
    topic, group = pops.topic(queues=3), pops.unique("group")
    popped = Popped(pops.broker, topic, group)
    began = time.monotonic()
    assert popped.ask(pollTime=3_000) == []
    assert popped.code == 210
    assert time.monotonic() - began > 2
    assert popped.call(POLLING, popped.fields(queueId=-1))["code"] == 0
    assert popped.header["pollingNum"] == "0"
    fields = popped.fields(pollTime=1_000, bornTime=int(time.time() * 1000), queueId=-1)
    assert popped.call(NOTIFY, fields)["code"] == 0
    assert popped.header["hasMsg"] == "false"
    pops.producer().send([message(topic, "there")])
    pops.read(topic, 1)
    assert popped.call(NOTIFY, fields)["code"] == 0
    assert popped.header["hasMsg"] == "true"
    assert [text_of(item) for item in popped.ask(pollTime=20_000)] == ["there"]


def test_what_is_wrong_is_answered_alike(pops: Scene) -> None:
    """What was never popped, handles that are none, queues that there are not."""
    topic, group = pops.topic(queues=1), pops.unique("group")
    pops.producer().send([message(topic, f"m{n}") for n in range(3)])
    pops.read(topic, 3)
    popped = Popped(pops.broker, topic, group)
    assert len(popped.ask()) == 3
    handle = popped.handles[0].split(" ")
    codes = {
        "never popped": popped.ack(1, extraInfo=" ".join(["77", *handle[1:]])),
        "no handle": popped.ack(0, extraInfo="nonsense"),
        "no numbers": popped.ack(0, extraInfo="a b c d e f"),
        "no queue": popped.ack(0, queueId=7),
        "no offset": popped.ack(4711),
        "no topic": popped.ack(0, topic="no-such-topic"),
        "too many": popped.call(POP, _pop_fields(popped, maxMsgNums=33)),
        # With time to poll, so that it is not late on a machine that is busy for half a second.
        "bad expression": popped.call(
            POP, _pop_fields(popped, exp="a >", expType="SQL92", pollTime=10_000)
        ),
        "nothing to ack": popped.call(BATCH_ACK, {}, json.dumps({"acks": []}).encode()),
        "late": popped.call(POP, _pop_fields(popped, bornTime=1)),
    }
    assert {what: answer["code"] for what, answer in codes.items()} == {
        "never popped": 0,
        "no handle": 1,
        "no numbers": 1,
        "no queue": 13,
        "no offset": 208,
        "no topic": 17,
        "too many": 29,
        "bad expression": 23,
        "nothing to ack": 208,
        "late": 210,
    }


def _pop_fields(popped: Popped, **other: Any) -> Json:
    fields = {
        "queueId": -1, "maxMsgNums": 1, "invisibleTime": 60_000, "pollTime": 0,
        "bornTime": int(time.time() * 1000), "initMode": 0, **other,
    }  # fmt: skip
    return popped.fields(**fields)


def test_batches_are_acknowledged(pops: Scene) -> None:
    topic, group = pops.topic(queues=1), pops.unique("group")
    pops.producer().send([message(topic, f"m{n}") for n in range(4)])
    pops.read(topic, 4)
    popped = Popped(pops.broker, topic, group)
    assert len(popped.ask(invisibleTime=6_000)) == 4
    head, start = popped.header, popped.handles[0].split(" ")[0]
    ack = {
        "c": group, "t": topic, "r": "0", "so": int(start), "q": 0, "rq": int(head["reviveQid"]),
        "pt": int(head["popTime"]), "it": int(head["invisibleTime"]), "b": "Cw==",
    }  # fmt: skip
    body = json.dumps({"brokerName": pops.broker.name, "acks": [ack]}).encode()
    assert popped.call(BATCH_ACK, {}, body)["code"] == 0
    assert popped.until("the third is back") == ["m2"]
    assert b"1 " + pops.broker.name.encode() in popped.body  # its handle is in it


def test_clients_share_queues(pops: Scene) -> None:
    """A client has queues of its own and of others, or all of them at once."""
    topic = pops.topic(queues=4)
    shared, alone = group_that_pops(pops, topic, 1), group_that_pops(pops, topic, 0)
    pops.producer().send([message(topic, f"m{n}") for n in range(16)])
    groups = [consumer_of(pops, topic, shared) for _ in range(4)]
    one = consumer_of(pops, topic, alone)

    def all_there() -> bool:
        return len({text(item) for each in groups for item in each.messages()}) == 16

    poll(all_there, "all are there", BACK_S)
    assert {text(item) for item in one.wait_for(16, BACK_S)} == {f"m{n}" for n in range(16)}


def test_a_group_goes_from_pull_to_pop_and_back(pops: Scene) -> None:
    """Nothing is lost on the way; the offsets are the same."""
    topic, group = pops.topic(queues=2), pops.unique("group")
    producer = pops.producer()
    producer.send([message(topic, f"pulled-{n}") for n in range(6)])
    puller = pops.push_consumer(topic, group)
    puller.wait_for(6, BACK_S)
    pops.stopped(puller)
    poll(lambda: progress(pops, topic, group) == 6, "the offsets are known", 60)
    broker = pops.broker.address
    pops.mqadmin(f"setConsumeMode -b {broker} -t {topic} -g {group} -m POP -q 0")
    producer.send([message(topic, f"popped-{n}") for n in range(6)])
    popper = consumer_of(pops, topic, group)
    popper.wait_for(6, BACK_S)
    assert {text(item) for item in popper.messages()} == {f"popped-{n}" for n in range(6)}
    poll(lambda: progress(pops, topic, group) == 12, "the offsets go on", 60)
    pops.stopped(popper)
    pops.mqadmin(f"setConsumeMode -b {broker} -t {topic} -g {group} -m PULL")
    producer.send([message(topic, f"again-{n}") for n in range(6)])
    again = pops.push_consumer(topic, group)
    again.wait_for(6, BACK_S)
    assert {text(item) for item in again.messages()} == {f"again-{n}" for n in range(6)}


@pytest.mark.parametrize("order", ["false", "true"])
def test_an_administrator_sends_a_group_back(pops: Scene, order: str) -> None:
    """What was popped, acknowledged or not, is popped from there again."""
    topic = pops.topic(queues=1)
    group = group_that_pops(pops, topic)
    pops.producer().send([message(topic, f"m{n}") for n in range(5)])
    popped = Popped(pops.broker, topic, group)
    assert len(popped.ask(order=order, maxMsgNums=3)) == 3
    for offset in (0, 1):
        assert popped.ack(offset)["code"] == 0
    said = pops.mqadmin(f"resetOffsetByTime -g {group} -t {topic} -s 0")
    assert topic in said or "reset" in said, said
    again = [text_of(item) for item in popped.ask(order=order)]
    assert again == [f"m{n}" for n in range(5)]
