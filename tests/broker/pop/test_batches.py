# SPDX-License-Identifier: Apache-2.0
"""Popping topics whose queues are of batches (BatchCQ): as if each message had been sent alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.broker.pop.scene import GROUP, INVISIBLE_MS, REVIVE_TOPIC, Scene
from tests.broker.store.batches import batched, plain
from tests.counted import lines_of
from tests.fakes import outcome_of, reply_of, request
from txrocketmq.broker.pop import messages
from txrocketmq.broker.pop.records import MergeKey, check_point
from txrocketmq.broker.pop.waiting import MAX_BATCH
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.message.message import decode_message
from txrocketmq.remoting.protocol.body.pop import (
    BatchAck,
    BatchAckMessageRequestBody,
    encode_bit_set,
)

RETRY = f"%RETRY%{GROUP}_B"


@pytest.fixture(params=[False, True], ids=["written", "merged"], name="scene")
def scene_(request: pytest.FixtureRequest, tmp_path: Path) -> Scene:
    scene = Scene(tmp_path, enable_pop_buffer_merge=request.param)
    scene.parts.topic("B", 1, queue_type="BatchCQ")
    return scene


def put(scene: Scene, *records: str) -> None:
    """A batch of each word's letters; a letter is a message alone."""
    for word in records:
        message = plain("B", word.encode())
        if len(word) > 1:
            message = batched(message, [each.encode() for each in word])
        scene.parts.store.put([message], scene.parts.now_ms)


def bodies(scene: Scene, **wanted: object) -> str:
    return "".join(scene.bodies(topic="B", **wanted))


def test_a_pop_gives_no_more_than_was_asked_for(scene: Scene) -> None:
    put(scene, "abcde", "f", "ghi")
    assert [bodies(scene, max_msg_nums=3) for _ in range(5)] == ["abc", "de", "f", "ghi", ""]
    put(scene, "jk")
    assert bodies(scene) == "jk"


def test_the_answer_names_each_message(scene: Scene) -> None:
    put(scene, "abcde", "f")
    header = scene.reply(topic="B", max_msg_nums=2).header
    assert header is not None
    assert (header.start_offset_info, header.msg_offset_info) == ("0 0 0", "0 0 0,1")
    assert header.rest_num == 4
    header = scene.reply(topic="B").header
    assert header is not None
    assert (header.start_offset_info, header.msg_offset_info) == ("0 0 2", "0 0 2,3,4,5")
    assert header.rest_num == 0


def test_a_batch_of_many_messages(scene: Scene) -> None:
    letters = [b"%d" % each for each in range(1_000)]
    scene.parts.store.put([batched(plain("B"), letters)], scene.parts.now_ms)
    found = []
    for _ in range(32):
        popped = scene.pop(topic="B")
        assert len(popped) <= 32
        for each in popped[::2]:
            scene.ack(each)
        found += [each.body.encode() for each in popped]
    assert found == letters
    scene.advance(INVISIBLE_MS + 5_000)
    again = []
    while popped := scene.pop(topic="B"):
        again += [int(each.body) for each in popped]
    assert sorted(again) == [*range(1, 1_000, 2)]


def test_each_message_is_acknowledged_and_comes_back_alone(scene: Scene) -> None:
    put(scene, "abcde", "f")
    popped = scene.pop(topic="B")
    for at in (0, 2, 5):
        scene.ack(popped[at])
    assert bodies(scene) == ""
    scene.advance(INVISIBLE_MS + 5_000)
    again = scene.pop(topic="B")
    assert "".join(each.body for each in again) == "bde"
    assert {each.topic() for each in again} == {RETRY}
    first = again[0].stored
    assert (first.topic, first.sys_flag, first.reconsume_times) == ("B", 0, 1)
    assert first.properties["1ST_POP_TIME"] == str(popped[0].handle.pop_time)
    for each in again:
        scene.ack(each)
    scene.advance(2 * INVISIBLE_MS)
    assert bodies(scene) == ""
    assert scene.offset("B") == 6
    assert not scene.parts.pop.revive


def test_another_invisible_time(scene: Scene) -> None:
    put(scene, "abc")
    popped = scene.pop(topic="B")
    for each in popped[:2]:
        scene.hide(each, 5_000)
    scene.advance(10_000)
    assert bodies(scene) == "ab"
    scene.ack(popped[2])
    scene.advance(INVISIBLE_MS // 2)
    assert bodies(scene) == ""


@pytest.mark.parametrize("is_killed", [False, True])
def test_nothing_is_lost_by_an_end(scene: Scene, is_killed: bool) -> None:
    put(scene, "abcd", "ef")
    popped = scene.pop(topic="B", max_msg_nums=5)
    for at in (0, 3):
        scene.ack(popped[at])
    scene.save()
    if is_killed:
        scene.kill()
    else:
        scene.restart()
    found = ""
    for _ in range(20):
        found += bodies(scene)
        scene.advance(INVISIBLE_MS // 5)
    assert set(found) >= set("bcef")
    if not is_killed:
        assert set(found) == set("bcef")


def test_in_order(scene: Scene) -> None:
    put(scene, "abcde", "f")
    popped = scene.pop(topic="B", order=True, max_msg_nums=3)
    assert "".join(each.body for each in popped) == "abc"
    assert bodies(scene, order=True) == ""
    for each in popped[1:]:
        scene.ack(each)
    assert scene.offset("B") == 0
    scene.ack(popped[0])
    assert scene.offset("B") == 3
    assert bodies(scene, order=True) == "def"
    scene.advance(INVISIBLE_MS)
    assert bodies(scene, order=True) == "def"


def test_offsets_within_a_batch(scene: Scene) -> None:
    put(scene, "abcde", "f")
    scene.pop(topic="B")
    scene.parts.offsets.reset(GROUP, "B", 0, 3)
    assert bodies(scene) == "def"
    scene.parts.set(init_pop_offset_by_check_msg_in_mem=False)
    put(scene, "ghi")
    assert bodies(scene, consumer_group="other", init_mode=1) == "i"


def test_filters_look_at_batches(scene: Scene) -> None:
    """A batch has no tags, whatever its messages have."""
    put(scene, "abc")
    scene.parts.put("B", body=b"d", TAGS="t")
    put(scene, "ef")
    assert bodies(scene, exp="t") == "d"
    assert bodies(scene, consumer_group="h", exp="TAGS = 't'", exp_type="SQL92") == "d"
    scene.advance()
    assert bodies(scene) == ""


def test_batches_of_acks(scene: Scene) -> None:
    put(scene, "abcdef")
    popped = scene.pop(topic="B")
    assert scene.parts.pop.in_flight.get("B", GROUP, 0) == 6
    handle = popped[0].handle
    ack = BatchAck(
        consumer_group=GROUP, topic="B", retry="0", start_offset=handle.start_offset, queue_id=0,
        revive_queue_id=handle.revive_queue_id, pop_time=handle.pop_time,
        invisible_time=handle.invisible_time, bit_set=encode_bit_set(range(1, 5)),
    )  # fmt: skip
    body = BatchAckMessageRequestBody(broker_name="DEFAULT_BROKER", acks=[ack]).encode()
    assert reply_of(scene.acks().batch_ack(request(NoHeader(), body))).code == 0
    assert scene.parts.pop.in_flight.get("B", GROUP, 0) == 2
    scene.advance(INVISIBLE_MS + 5_000)
    assert bodies(scene) == "af"


def test_check_points_of_the_original_stand_for_records(scene: Scene) -> None:
    """It has one distance for each record, and an ack of that is one of all."""
    put(scene, "abc", "d", "efg", "hi")
    topic, now_ms = scene.parts.pop.revive_topic, scene.parts.now_ms
    key = MergeKey("B", GROUP, 0, 1, now_ms, scene.parts.config.broker_name)
    point = check_point(key, 1_000, (-1, 2, 3, 6))
    records = [topic.check_point(point, 0, now_ms), topic.ack(key, 4, now_ms, 0, now_ms)]
    scene.parts.intake.take(records, now_ms)
    scene.parts.offsets.commit(GROUP, "B", 0, 9)
    scene.advance(5_000)
    again = scene.pop(topic="B")
    assert "".join(each.body for each in again) == "abcdhi"
    assert [each.stored.sys_flag for each in again] == [0] * 6
    assert {tag for tag, _ in scene.records()} == {"ck", "ack"}
    assert scene.parts.store.max_offset(REVIVE_TOPIC, 0) >= 2


def original_point(scene: Scene, start: int, distances: tuple[int, ...]) -> None:
    """What was popped of B by an original broker that has ended, and is due."""
    topic, now_ms = scene.parts.pop.revive_topic, scene.parts.now_ms
    key = MergeKey("B", GROUP, 0, start, now_ms, scene.parts.config.broker_name)
    point = check_point(key, 1_000, distances)
    scene.parts.intake.take([topic.check_point(point, 0, now_ms)], now_ms)
    scene.parts.offsets.commit(GROUP, "B", 0, scene.parts.store.max_offset("B", 0))
    scene.parts.now_ms += 10_000


def test_whole_batches_come_back_in_slices(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """A check point of the original may stand for 32 batches of 32,767 messages."""
    monkeypatch.setattr(messages, "AT_ONCE", 256)
    store, revive = scene.parts.store, scene.parts.pop.revive
    numbers = [b"%d" % each for each in range(2_000)]
    store.put([batched(plain("B"), numbers[:1_999])], scene.parts.now_ms)
    store.put([plain("B", numbers[1_999])], scene.parts.now_ms)
    original_point(scene, 0, (0, 1_999))
    now_ms = scene.parts.now_ms

    def tick() -> None:
        revive.tick(now_ms, now_ms, lambda: True)

    lines, before = [lines_of(tick)], 0
    while revive.is_behind:
        lines.append(lines_of(tick))
        count = store.max_offset(RETRY, 0)
        assert count - before <= 2 * MAX_BATCH
        before = count
    assert before == 2_000
    assert len(lines) > 2_000 // (2 * MAX_BATCH)
    assert max(lines) < 20_000, max(lines)
    assert not revive
    found: list[str] = []
    while popped := scene.bodies(topic="B"):
        found += popped
    assert sorted(map(int, found)) == [*range(2_000)]


def test_what_cannot_be_put_of_a_batch_comes_back_later(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, revive = scene.parts.store, scene.parts.pop.revive
    numbers = [b"%d" % each for each in range(100)]
    store.put([batched(plain("B"), numbers)], scene.parts.now_ms)
    original_point(scene, 0, (0,))
    revive.tick(scene.parts.now_ms, scene.parts.now_ms, lambda: True)  # reads
    revive.tick(scene.parts.now_ms, scene.parts.now_ms, lambda: True)
    assert store.max_offset(RETRY, 0) == MAX_BATCH
    with monkeypatch.context() as context:
        context.setattr(type(store), "writeable", False)
        scene.advance()
    assert len(revive) == 1
    scene.advance(20_000)
    assert not revive
    found: list[str] = []
    while popped := scene.bodies(topic="B"):
        found += popped
    assert sorted(map(int, found)) == [*range(100)]


def test_a_batch_that_was_begun_with_may_be_acknowledged(scene: Scene) -> None:
    store, revive = scene.parts.store, scene.parts.pop.revive
    numbers = [b"%d" % each for each in range(200)]
    store.put([batched(plain("B"), numbers[:100])], scene.parts.now_ms)
    store.put([batched(plain("B"), numbers[100:])], scene.parts.now_ms)
    original_point(scene, 0, (0, 100))
    now_ms = scene.parts.now_ms
    for _ in range(2):
        revive.tick(now_ms, now_ms, lambda: True)
    key = MergeKey("B", GROUP, 0, 0, now_ms - 10_000, scene.parts.config.broker_name)
    ack = scene.parts.pop.revive_topic.ack(key, 0, now_ms, 0, now_ms)
    scene.parts.intake.take([ack], now_ms)
    scene.advance()
    found: list[str] = []
    while popped := scene.bodies(topic="B"):
        found += popped
    assert sorted(map(int, found)) == [*range(MAX_BATCH), *range(100, 200)]


def test_what_is_popped_already_is_handed_out_before_a_refusal(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.parts.topic("C", 2, queue_type="BatchCQ")
    for queue_id in range(2):
        message = plain("C", b"%d" % queue_id)._replace(queue_id=queue_id)
        scene.parts.store.put([message], scene.parts.now_ms)
    queues = scene.parts.pop.queues
    monkeypatch.setattr(queues, "_chance", lambda _: 0)
    of = queues._batches.of

    def full(record: memoryview) -> messages.SoundBatch | None:
        if decode_message(record)[0].queue_id == 0:
            raise ResponseError(ResponseCode.SYSTEM_BUSY, "too many wait")
        return of(record)

    monkeypatch.setattr(queues._batches, "of", full)
    assert scene.bodies(topic="C") == ["1"]
    refusal = outcome_of(scene.ask(topic="C"))
    assert isinstance(refusal, ResponseError)
    assert refusal.remark == "too many wait"


def test_a_long_batch_is_looked_through_in_steps(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "AT_ONCE", 256)
    numbers = [b"%d" % each for each in range(1_000)]
    scene.parts.store.put([batched(plain("B"), numbers)], scene.parts.now_ms)
    scene.parts.offsets.reset(GROUP, "B", 0, 960)
    popped = scene.pop(topic="B")
    assert [each.body.encode() for each in popped] == numbers[960:992]
    assert len(scene.parts.pop.queues._batches._known) == 1
    scene.advance(INVISIBLE_MS + 5_000)
    again = scene.pop(topic="B") + scene.pop(topic="B")
    assert sorted(int(each.body) for each in again) == [*range(960, 1_000)]
