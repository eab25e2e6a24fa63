# SPDX-License-Identifier: Apache-2.0
"""POP of topics of batches (BatchCQ), with the official client and with plain frames.

The original hands out whole records, with the offset of the first message of each. Clients that pop
do not take them apart: the listener gets one message, whose body is the batch. If it fails, that
never comes back. Ours hands out each message by itself.
"""

import time
from pathlib import Path
from typing import Final

import pytest

from compat_tests.engine import Engine
from compat_tests.java_client import ClientJvm, body, message, text
from compat_tests.peers import Broker, NameServer, Origin, Original, Ours
from compat_tests.pops import BACK_S, SETTINGS, Popped, text_of
from compat_tests.scene import Scene, poll

RELEASE: Final = "5.4.0"
HIDDEN_MS: Final = 120_000
"""Longer than it takes until the next broker but one is there."""
KEPT_S: Final = 12.0
"""The original keeps offsets every 5 s, and its timers every second."""
SIZES: Final = (5, 1, 3)


@pytest.fixture(autouse=True)
def only_5x(origin: Origin) -> None:
    if origin.behaves_as == "4.9.7":
        pytest.skip("4.9 has no such queues")


def create(scene: Scene, topic: str) -> str:
    update = f"updateTopic -t {topic} -r 1 -w 1 -a +queue.type=BatchCQ"
    assert "success" in scene.mqadmin_here(update)
    scene.wait_for_route(topic)
    return topic


def write(scene: Scene, topic: str, word: str) -> list[str]:
    """Batches and a message alone; the texts of all messages."""
    producer = scene.producer()
    texts: list[str] = []
    for size in SIZES:
        new = [f"{word}{len(texts) + n}" for n in range(size)]
        made = [message(topic, each, tags="t") for each in new]
        sent = producer.send_batch(made) if size > 1 else producer.send(made)[0]
        assert "," not in sent["msg_id"], "a batch is one record"
        texts += new
    return texts


def test_the_client_pops_batches(pops: Scene, origin: Origin) -> None:
    """What fails comes back by itself; from the original's broker only what was sent alone."""
    topic, group = create(pops, pops.unique("batches")), pops.unique("group")
    assert "success" in pops.mqadmin_here(f"updateSubGroup -g {group}")
    assert "success" in pops.mqadmin_here(f"setConsumeMode -t {topic} -g {group} -m POP -q 0")
    texts = write(pops, topic, "m")
    consumer = pops.push_consumer(topic, group, pop=True, pop_invisible_ms=10_000, times_later=1)
    if not isinstance(origin, Ours):
        time.sleep(60)
        received = consumer.messages()
        first = {each["queue_offset"]: each for each in received if not each["reconsume_times"]}
        assert sorted(first) == [0, 5, 6]
        assert body(first[0]).count(b"TAGS") == SIZES[0]
        assert [text(each) for each in received if each["reconsume_times"]] == ["m5"]
        return
    received = consumer.wait_for(2 * len(texts), BACK_S)
    assert sorted(text(each) for each in received) == sorted(2 * texts)
    assert {each["topic"] for each in received} == {topic}
    again = [each for each in received if each["reconsume_times"] == 1]
    assert sorted(text(each) for each in again) == texts
    assert {each["tags"] for each in again} == {"t"}
    time.sleep(20)
    assert len(consumer.messages()) == 2 * len(texts)  # acknowledged, so they stay away


def test_what_an_answer_has(pops: Scene, origin: Origin) -> None:
    topic = create(pops, pops.unique("batches"))
    popped = Popped(pops.broker, topic, pops.unique("group"))
    texts = write(pops, topic, "m")
    if not isinstance(origin, Ours):
        assert len(popped.ask(invisibleTime=3_000)) == len(SIZES)
        assert popped.header["msgOffsetInfo"] == "0 0 0,5,6"
        time.sleep(20)
        back = [text_of(each) for each in popped.ask()]
        assert back == ["m5"]  # the retry topic takes no batches
        return
    first = popped.ask(maxMsgNums=3, invisibleTime=600_000)
    assert [text_of(each) for each in first] == texts[:3]
    assert popped.header["msgOffsetInfo"] == "0 0 0,1,2"
    rest = popped.ask(invisibleTime=5_000)
    assert [text_of(each) for each in rest] == texts[3:]
    assert popped.header["startOffsetInfo"] == "0 0 3"
    for offset in (4, 5, 8):
        assert popped.ack(offset)["code"] == 0
    assert popped.hide(7, 25_000)["code"] == 0
    found = popped.until("the others are back", invisibleTime=600_000)
    assert sorted(found) == ["m3", "m6"]
    assert popped.until("so is the last", invisibleTime=600_000) == ["m7"]


def test_in_order(pops: Scene, origin: Origin) -> None:
    if not isinstance(origin, Ours):
        pytest.skip("the original orders records, which its client cannot read")
    topic = create(pops, pops.unique("batches"))
    popped = Popped(pops.broker, topic, pops.unique("group"))
    texts = write(pops, topic, "m")
    first = popped.ask(order="true", maxMsgNums=3, invisibleTime=8_000)
    assert [text_of(each) for each in first] == texts[:3]
    assert popped.ask(order="true") == []
    for offset in (0, 2, 1):
        assert popped.ack(offset)["code"] == 0
    second = popped.ask(order="true", maxMsgNums=6, invisibleTime=3_000)
    assert [text_of(each) for each in second] == texts[3:6]
    assert popped.until("it is open", order="true", maxMsgNums=2) == texts[3:5]


@pytest.mark.timeout(600)
def test_popped_batches_go_from_hand_to_hand(
    origin: Origin, engine: Engine, test_folder: Path, jvms: dict[str, ClientJvm]
) -> None:
    """Nothing is lost when brokers are killed, and what ours has acknowledged stays away.

    How they stop in order makes no difference to batches: test_pop_exchange.py.
    """
    if not isinstance(origin, Ours):
        pytest.skip("one of both sides is ours")
    folder, topic, group = test_folder / "pop-batches", "batches", "popped"
    names = NameServer(origin, folder / "namesrv")
    ours = Broker(origin, folder, names, "broker-r", SETTINGS)
    official = ours.under(Original(RELEASE, engine))
    names.start()
    try:
        ours.start()
        scene = Scene(jvms[RELEASE], ours)
        create(scene, topic)
        write(scene, topic, "a")
        popped = Popped(ours, topic, group)
        assert len(popped.ask(maxMsgNums=7, invisibleTime=HIDDEN_MS)) == 6
        for offset in (0, 1, 3):
            assert popped.ack(offset)["code"] == 0
        assert popped.hide(4, HIDDEN_MS)["code"] == 0
        time.sleep(KEPT_S)
        ours.kill()
        official.start()
        write(scene, topic, "b")
        popped = Popped(official, topic, group)
        records = popped.ask(invisibleTime=HIDDEN_MS)
        assert len(records) == 4  # one of the first three, which nobody has popped, and these
        assert popped.ack(9)["code"] == 0  # the first batch of the second three
        time.sleep(KEPT_S)
        official.kill()
        ours.start()
        popped = Popped(ours, topic, group)
        expected = {"a2", "a4", "a5", "a6", "a7", "a8", "b5", "b6", "b7", "b8"}
        found: list[str] = []

        def are_back() -> bool:
            found.extend(text_of(each) for each in popped.ask(invisibleTime=600_000))
            return expected <= set(found)

        poll(are_back, "all of them are back", 2 * BACK_S)
        time.sleep(10)
        are_back()
        assert sorted(found) == sorted(expected)
        scene.close()
    finally:
        ours.close()
        official.close()
        names.close()
