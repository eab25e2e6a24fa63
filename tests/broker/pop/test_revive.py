# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import pytest

from tests.broker.jumps import lost_before, told_jumps
from tests.broker.pop.scene import GROUP, INVISIBLE_MS, REVIVE_TOPIC, Scene
from txrocketmq.broker.intake.new_queues import ENOUGH
from txrocketmq.broker.pop import revive
from txrocketmq.broker.pop.records import MergeKey, check_point
from txrocketmq.broker.store.get.jumps import POPPED, REVIVAL, Jump
from txrocketmq.remoting.message.pop import REVIVE_GROUP

RETRY = f"%RETRY%{GROUP}_T"


@pytest.fixture(params=[False, True], ids=["written", "merged"], name="scene")
def scene_(request: pytest.FixtureRequest, tmp_path: Path) -> Scene:
    return Scene(tmp_path, enable_pop_buffer_merge=request.param)


def test_a_suspension_is_no_attempt(scene: Scene) -> None:
    """As by 5.5, whose proxy asks for it; an acknowledged one does not come back at all."""
    for each in "abc":
        scene.parts.put("T", body=each.encode())
    suspended, hidden, done = scene.pop()
    scene.hide(suspended, INVISIBLE_MS, suspend=True)
    scene.hide(hidden, INVISIBLE_MS, suspend=False)
    scene.hide(done, INVISIBLE_MS, suspend=True)
    scene.ack(done)
    scene.advance(INVISIBLE_MS + 5_000)
    again = {each.body: each for each in scene.pop()}
    assert {body: each.stored.reconsume_times for body, each in again.items()} == {"a": 0, "b": 1}
    scene.hide(again["b"], INVISIBLE_MS, suspend=True)
    scene.ack(again["a"])
    scene.advance(INVISIBLE_MS + 5_000)
    (last,) = scene.pop()
    assert (last.body, last.stored.reconsume_times) == ("b", 1)


def test_what_is_not_acknowledged_comes_back(scene: Scene) -> None:
    for each in "abc":
        scene.parts.put("T", body=each.encode(), TAGS=f"t{each}")
    popped = scene.pop()
    assert [each.body for each in popped] == ["a", "b", "c"]
    scene.ack(popped[1])
    assert scene.pop() == []
    scene.advance(INVISIBLE_MS - 2_000)
    assert scene.pop() == []
    scene.advance(5_000)
    again = scene.pop()
    assert [each.body for each in again] == ["a", "c"]
    first = again[0].stored
    assert first.topic == "T"  # as the consumer subscribed to it
    assert again[0].handle.retry == "1"
    assert first.reconsume_times == 1
    assert first.properties["TAGS"] == "ta"
    assert first.properties["ORIGIN_GROUP"] == GROUP
    assert first.properties["1ST_POP_TIME"] == str(popped[0].handle.pop_time)
    scene.ack(again[0])
    scene.advance(INVISIBLE_MS + 5_000)
    (last,) = scene.pop()
    assert (last.body, last.stored.reconsume_times) == ("c", 2)
    assert last.stored.properties["1ST_POP_TIME"] == str(popped[0].handle.pop_time)
    assert last.topic() == RETRY
    scene.ack(last)
    scene.advance(2 * INVISIBLE_MS)
    assert scene.pop() == []
    assert scene.offset() == 3
    assert scene.offset(RETRY) == 3
    assert not scene.parts.pop.revive
    assert scene.revived() == len(scene.records())


@pytest.mark.parametrize("is_killed", [False, True])
def test_nothing_is_lost_by_an_end(scene: Scene, is_killed: bool) -> None:
    for each in "abcd":
        scene.parts.put("T", body=each.encode())
    popped = scene.pop()
    scene.ack(popped[0])
    scene.save()
    if is_killed:
        scene.kill()
    else:
        scene.restart()
    found: set[str] = set()
    for _ in range(20):
        found.update(scene.bodies())
        scene.advance(INVISIBLE_MS // 5)
    assert found >= {"b", "c", "d"}
    if not is_killed:
        assert found == {"b", "c", "d"}


def test_offsets_wait_for_the_disk(scene: Scene) -> None:
    """What the log may lose is not consumed."""
    scene.parts.put("T")
    scene.pop()
    scene.parts.pop.check_points.write_all(scene.parts.now_ms)
    scene.parts.pop.check_points.settle()
    assert scene.offset() == 0
    assert scene.pop() == []
    scene.parts.store.flush.flush_all()
    scene.parts.pop.check_points.settle()
    assert scene.offset() == 1


def test_progress_waits_for_the_disk(scene: Scene) -> None:
    scene.parts.put("T")
    scene.pop()
    scene.advance(INVISIBLE_MS)
    scene.parts.now_ms += 2_000
    pop, now_ms = scene.parts.pop, scene.parts.now_ms
    pop.revive.tick(now_ms, now_ms)
    assert scene.parts.store.max_offset(RETRY, 0) == 1
    pop.revive.settle()
    assert scene.revived() == 0
    scene.parts.store.flush.flush_all()
    pop.revive.settle()
    pop.revive.settle()
    assert scene.revived() == len(scene.records())


def test_a_record_of_another_kind_is_passed_over(scene: Scene) -> None:
    heard: list[tuple[int, int]] = []
    scene.parts.pop.revive.on_unreadable.append(
        lambda told: heard.append((told.queue_id, told.offset))
    )
    scene.parts.put(REVIVE_TOPIC, 3, body=b'{"so":', TAGS="ck")
    scene.parts.put(REVIVE_TOPIC, 3, body=b"3-17", TAGS="ck")
    scene.parts.put(REVIVE_TOPIC, 3, body=b'{"t":"T","c":"g","n":"many"}', TAGS="ck")
    scene.parts.put(REVIVE_TOPIC, 3, body=b'{"t":"T","c":"g","n":5000,"d":[-1,0]}', TAGS="ck")
    scene.parts.put(REVIVE_TOPIC, 3, body=b"{}", TAGS="else")
    scene.parts.put("T", body=b"a")
    scene.pop()
    scene.advance(INVISIBLE_MS + 5_000)
    assert scene.bodies() == ["a"] * 2  # the last check point, though odd, is one
    assert heard[:3] == [(3, 0), (3, 1), (3, 2)]
    assert heard[3:] == [(3, 4)]


@pytest.mark.parametrize("late_ms", [0, 400, 60_000])
def test_what_a_timer_delivers_waits_for_its_acknowledgements(scene: Scene, late_ms: int) -> None:
    """A timer of the original delivers a check point a second before its time, and acks at it."""
    pop, parts = scene.parts.pop, scene.parts
    for body in (b"a", b"b"):
        parts.put("T", body=body)
    key = MergeKey("T", GROUP, 0, 0, parts.now_ms, "b")
    point = check_point(key, INVISIBLE_MS, (0, 1))
    scene.advance(INVISIBLE_MS - 1_000 + late_ms)
    parts.intake.take([pop.revive_topic.check_point(point, 0, parts.now_ms)], parts.now_ms)
    scene.advance(2_500)
    assert len(pop.revive) == 1
    parts.intake.take([pop.revive_topic.ack(key, 0, parts.now_ms, 0, parts.now_ms)], parts.now_ms)
    scene.advance(2_000)
    assert not pop.revive
    assert scene.bodies() == ["a", "b", "b"]


def test_check_points_of_what_is_gone_end(scene: Scene) -> None:
    """Their topic was deleted, or the log has lost the message."""
    record = scene.parts.pop.revive_topic.check_point
    now_ms = scene.parts.now_ms
    for topic, offset in (("no topic", 0), ("T", 1_000_000)):
        point = check_point(MergeKey(topic, GROUP, 0, offset, now_ms, "b"), 1_000, (0, 1))
        scene.parts.intake.take([record(point, 0, now_ms)], now_ms)
    scene.advance(5_000)
    assert not scene.parts.pop.revive
    assert scene.revived() == 2


def test_what_the_log_has_lost_is_told(scene: Scene) -> None:
    for body in (b"a", b"b", b"c"):
        scene.parts.put("T", body=body)
    scene.pop()
    scene.advance(5_000)
    lost_before(scene.parts, "T", 0, 2)
    scene.advance(INVISIBLE_MS)
    assert scene.bodies() == ["c"]
    assert told_jumps(scene.parts) == [(Jump(POPPED, "T", 0, 0, 2, 2, GROUP), 0)]


def test_lost_records_of_the_revive_topic_are_told(scene: Scene) -> None:
    now_ms = scene.parts.now_ms
    for offset in range(4):
        point = check_point(MergeKey("no topic", GROUP, 0, offset, now_ms, "b"), 1_000, (0, 1))
        record = scene.parts.pop.revive_topic.check_point(point, 3, now_ms)
        scene.parts.intake.take([record], now_ms)
    scene.parts.offsets.commit(REVIVE_GROUP, REVIVE_TOPIC, 3, 0)
    lost_before(scene.parts, REVIVE_TOPIC, 3, 4)
    scene.advance(5_000)
    assert told_jumps(scene.parts) == [(Jump(REVIVAL, REVIVE_TOPIC, 3, 1, 4, 3), 0)]


def test_records_that_it_has_never_read_are_told_too(scene: Scene) -> None:
    """The broker's reader is not new to a queue of its own, however late it begins."""
    now_ms = scene.parts.now_ms
    for offset in range(4):
        point = check_point(MergeKey("no topic", GROUP, 0, offset, now_ms, "b"), 1_000, (0, 1))
        record = scene.parts.pop.revive_topic.check_point(point, 3, now_ms)
        scene.parts.intake.take([record], now_ms)
    lost_before(scene.parts, REVIVE_TOPIC, 3, 3)
    scene.advance(5_000)
    assert told_jumps(scene.parts) == [
        (Jump(REVIVAL, REVIVE_TOPIC, 3, 0, 3, 3, is_known=False), 0),
    ]
    assert scene.parts.offsets.query(REVIVE_GROUP, REVIVE_TOPIC, 3) == 3


def test_many_refused_messages_are_one_line(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[tuple[int, str, str]] = []
    scene.parts.pop.revive.on_refused.append(
        lambda told: heard.append((told.number, told.topic, told.why))
    )
    for _ in range(20):
        scene.parts.put("T", body=b"a")
        scene.pop()
    scene.advance(20_000)
    monkeypatch.setattr(type(scene.parts.store), "writeable", False)
    scene.advance(INVISIBLE_MS)
    assert heard[0] == (20, "T", "SERVICE_NOT_AVAILABLE")
    assert len(heard) <= 5


def test_what_cannot_be_put_is_tried_later(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the store takes nothing; nothing is forgotten meanwhile."""
    heard: list[tuple[int, str, str]] = []
    scene.parts.pop.revive.on_refused.append(
        lambda told: heard.append((told.number, told.topic, told.why))
    )
    scene.parts.put("T", body=b"a")
    scene.pop()
    scene.advance(20_000)
    with monkeypatch.context() as context:
        context.setattr(type(scene.parts.store), "writeable", False)
        scene.advance(INVISIBLE_MS)
        assert heard
        assert heard[0] == (1, "T", "SERVICE_NOT_AVAILABLE")
        assert len(heard) <= 5
    assert scene.pop() == []
    scene.advance(revive.RETRY_MS + 2_000)
    assert scene.bodies() == ["a"]


def test_a_message_that_is_never_taken_is_tried_ever_less(scene: Scene) -> None:
    """Its properties leave no room for one more; so did the original."""
    scene.parts.put("T", body=b"a", key="x" * 32_740)
    scene.pop()
    scene.advance(INVISIBLE_MS + 5_000)
    points = [body for tag, body in scene.records() if tag == "ck"]
    assert '"rp":"1"' in points[-1]
    assert f'"it":{INVISIBLE_MS + 10_000}' in points[-1]
    scene.advance(10_000)
    points = [body for tag, body in scene.records() if tag == "ck"]
    assert '"rp":"2"' in points[-1]
    assert f'"it":{INVISIBLE_MS + 30_000}' in points[-1]
    assert len(points) == 3
    scene.parts.set(skip_when_ck_re_put_reach_max_times=True)
    for _ in range(30):
        scene.advance(600_000)
    assert not scene.parts.pop.revive


def test_what_waits_is_limited(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(revive, "MAX_WAITING", 3)
    monkeypatch.setattr(revive, "MAX_READ", 1)
    for number in range(40):
        scene.parts.put("T", body=b"%d" % number)
        scene.pop()
    scene.advance(15_000)
    assert len(scene.parts.pop.revive) == 3
    found: list[str] = []
    for _ in range(60):
        scene.advance(5_000)
        found += scene.bodies(invisible_time=10_000_000)
    assert sorted(found, key=int) == [str(number) for number in range(40)]


def test_a_slice_ends_when_the_time_is_up(scene: Scene) -> None:
    for _ in range(200):
        scene.parts.put("T")
        scene.pop(invisible_time=5_000)
    scene.parts.pop.check_points.write_all(scene.parts.now_ms)
    scene.parts.now_ms += 20_000
    now_ms, service = scene.parts.now_ms, scene.parts.pop.revive
    slices = 0
    while slices == 0 or service.is_behind:
        service.tick(now_ms, now_ms, lambda: True)
        slices += 1
    assert slices > 5
    assert scene.parts.store.max_offset(RETRY, 0) == 200


def test_a_slice_makes_few_queues(scene: Scene) -> None:
    count = 2 * ENOUGH
    scene.parts.put("T")
    for number in range(count):
        scene.pop(consumer_group=f"g{number}", invisible_time=5_000)
    scene.parts.pop.check_points.write_all(scene.parts.now_ms)
    scene.parts.now_ms += 20_000
    now_ms, store = scene.parts.now_ms, scene.parts.store
    made: list[int] = []
    while not made or scene.parts.pop.revive.is_behind:
        before = len(store.topics())
        scene.parts.pop.revive.tick(now_ms, now_ms, lambda: True)
        made.append(len(store.topics()) - before)
    assert (sum(made), max(made)) == (count, ENOUGH)


def test_a_slice_reads_one_queue_after_another(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(revive, "MAX_READ", 4)
    for _ in range(64):
        scene.parts.put("T")
        scene.pop()
    scene.parts.pop.check_points.write_all(scene.parts.now_ms)
    service, now_ms, read = scene.parts.pop.revive, scene.parts.now_ms, []
    while len(service) < 64:
        before = len(service)
        service.tick(now_ms, now_ms, lambda: True)
        read.append(len(service) - before)
    assert max(read) == 4
    store = scene.parts.store
    lengths = [store.max_offset(REVIVE_TOPIC, each) for each in store.queue_ids(REVIVE_TOPIC)]
    # No queue waits until another one is done.
    assert len(lengths) > 1
    assert sum(read[: len(lengths)]) == sum(min(each, 4) for each in lengths)


def test_a_slave_brings_nothing_back(scene: Scene) -> None:
    scene.parts.put("T")
    scene.pop()
    scene.advance(15_000)
    object.__setattr__(scene.parts.store.config, "broker_role", "SLAVE")
    scene.advance(2 * INVISIBLE_MS)
    assert scene.parts.store.max_offset(RETRY, 0) == 0


def test_v2_names(scene: Scene) -> None:
    """What came back under the older name is popped as well."""
    scene.parts.put("T", body=b"a")
    scene.pop()
    scene.advance(INVISIBLE_MS + 5_000)
    scene.parts.set(enable_retry_topic_v2=True)
    scene.parts.put("T", body=b"b")
    (fresh,) = scene.pop(queue_id=0, max_msg_nums=1)
    assert fresh.body == "b"
    scene.advance(INVISIBLE_MS + 5_000)
    found = {each.body: each for _ in range(50) for each in scene.pop()}
    assert found["a"].topic() == f"%RETRY%{GROUP}_T"
    assert found["b"].topic() == f"%RETRY%{GROUP}+T"
    assert found["b"].handle.retry == "2"
    for each in found.values():
        scene.ack(each)
    scene.advance(2 * INVISIBLE_MS)
    assert [each for _ in range(20) for each in scene.bodies()] == []
