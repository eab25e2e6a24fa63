# SPDX-License-Identifier: Apache-2.0
"""Popped messages of a slave that acts as master, with enableRemoteEscape: revive.py."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker.elsewhere import Elsewhere
from tests.broker.pop.scene import GROUP, INVISIBLE_MS, Scene
from txrocketmq.broker.pop import revive as module
from txrocketmq.broker.pop.revive import RETRY_MS
from txrocketmq.remoting.message.pop import REVIVE_GROUP
from txrocketmq.remoting.message.properties import decode_properties

RETRY = f"%RETRY%{GROUP}_T"


class Acting(Scene):
    """A broker that becomes a slave which acts as master."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, enable_pop_buffer_merge=False)
        self.other = Elsewhere()
        self.acts = True

    def popped(self, *bodies: str) -> None:
        for each in bodies:
            self.parts.put("T", body=each.encode())
        found = self.pop()
        assert [each.body for each in found] == list(bodies)
        self.ack(found[0])

    def is_slave_now(self) -> None:
        """As if all that is there had been copied."""
        self.tick()
        self.save()
        self.restart()
        self.parts.set(broker_role="SLAVE")
        revive = self.parts.pop.revive
        revive.escape, revive.escapes = self.other, lambda: self.acts

    def after(self, ms: int = 1_000) -> None:
        self.parts.now_ms += ms
        self.parts.pop.revive.tick(self.parts.now_ms, self.parts.now_ms)


@pytest.fixture(name="scene")
def scene_(tmp_path: Path) -> Iterator[Acting]:
    made = Acting(tmp_path)
    yield made
    made.close()


def test_what_is_not_acknowledged_is_sent_elsewhere(scene: Acting) -> None:
    scene.popped("a", "b", "c")
    scene.is_slave_now()
    end, before = scene.parts.store.max_physical_offset, scene.revived()
    scene.after()
    assert not scene.other.asked
    scene.after(INVISIBLE_MS + 5_000)
    ((bodies, then),) = scene.other.asked
    assert bodies == [b"b", b"c"]
    for sent in scene.other.sent:
        assert (sent.topic, sent.reconsume_times) == (RETRY, 1)
        properties = decode_properties(sent.properties.decode())
        assert properties["ORIGIN_GROUP"] == GROUP
        assert "1ST_POP_TIME" in properties
    scene.after()
    assert len(scene.other.asked) == 1, "they are under way"
    assert scene.revived() == before
    then([True, True])
    scene.after()
    assert scene.revived() == len(scene.records())
    assert not scene.parts.pop.revive
    assert scene.parts.store.max_physical_offset == end, "nothing is written here"
    assert scene.parts.topics.get(RETRY) is None, "nor is a topic made"
    assert scene.parts.pop.revive._metrics.brought_back[GROUP, "T", "PUT_OK"] == 2


def test_what_nobody_takes_is_sent_again_behind_the_others(
    scene: Acting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_BATCH", 2)
    told: list[tuple[int, str]] = []
    scene.popped("done", "a", "b")
    scene.popped("done", "c", "d")
    scene.is_slave_now()
    scene.parts.pop.revive.on_not_taken.append(lambda each: told.append((each.number, each.topic)))
    scene.after(INVISIBLE_MS + 5_000)
    assert scene.other.asked[-1][0] == [b"a", b"b"]
    scene.other.asked[-1][1]([True, False])
    assert told == [(1, RETRY)]
    scene.after()
    assert scene.other.asked[-1][0] == [b"c", b"d"]
    scene.other.asked[-1][1]([True, True])
    scene.after()
    assert len(scene.other.asked) == 2
    assert scene.revived() < len(scene.records())
    scene.after(RETRY_MS)
    assert scene.other.asked[-1][0] == [b"b"], "and only this"
    scene.other.asked[-1][1]([False])
    scene.after(RETRY_MS)
    scene.other.asked[-1][1]([True])
    scene.after()
    assert [bodies for bodies, _ in scene.other.asked[2:]] == [[b"b"], [b"b"]]
    assert scene.revived() == len(scene.records())


def test_it_pauses_when_nothing_is_taken(scene: Acting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BATCH", 1)
    scene.popped("done", "a")
    scene.popped("done", "b")
    scene.is_slave_now()
    scene.after(INVISIBLE_MS + 5_000)
    scene.other.asked[-1][1]([False])
    scene.after()
    assert len(scene.other.asked) == 1
    scene.after(RETRY_MS)
    assert scene.other.asked[-1][0] == [b"b"]


def test_messages_of_a_topic_that_is_gone_are_done_with(scene: Acting) -> None:
    scene.popped("a", "b")
    scene.is_slave_now()
    scene.parts.topics.delete("T")
    scene.after(INVISIBLE_MS + 5_000)
    scene.after()
    assert scene.other.asked == []
    assert scene.revived() == len(scene.records())


def test_what_the_master_does_counts_when_it_acts_again(scene: Acting) -> None:
    scene.popped("done", "a", "b")
    scene.is_slave_now()
    scene.after(INVISIBLE_MS + 5_000)
    _, late = scene.other.asked[-1]
    scene.acts = False
    scene.after()
    late([True, True])
    assert not scene.parts.pop.revive, "it acts no more"
    for queue_id in range(scene.parts.config.revive_queue_num):
        scene.parts.offsets.commit(
            REVIVE_GROUP,
            scene.parts.pop.revive._topic.name,
            queue_id,
            scene.parts.store.max_offset(scene.parts.pop.revive._topic.name, queue_id) - 1,
        )
    scene.acts = True
    scene.after(INVISIBLE_MS)
    assert len(scene.other.asked) == 1, "the master has brought them back"


class Timers(Acting):
    """The slave of an original master, which has check points and acknowledgements as timers."""

    def hears(self) -> None:
        """Lets all records be heard that the revive topic has, as if they had not come there."""
        store, revive = self.parts.store, self.parts.pop.revive
        for queue_id in store.queue_ids(revive.topic):
            end = store.max_offset(revive.topic, queue_id)
            self.parts.offsets.commit(REVIVE_GROUP, revive.topic, queue_id, end - 1)
            for unit in store.queue_units(revive.topic, queue_id, 0, end):
                record = store.message_at(unit.physical_offset, unit.size_bytes)
                assert record is not None
                assert revive.hear(record, self.parts.now_ms, self.parts.now_ms)


@pytest.fixture
def timers(tmp_path: Path) -> Iterator[Timers]:
    made = Timers(tmp_path)
    yield made
    made.close()


def test_check_points_that_a_timer_delivers(timers: Timers) -> None:
    timers.popped("a", "b", "c")
    timers.is_slave_now()
    revive, store = timers.parts.pop.revive, timers.parts.store
    timers.parts.now_ms += INVISIBLE_MS
    due_ms = timers.parts.now_ms
    assert revive.heard_ms() is None
    timers.hears()
    assert revive.heard_ms() == due_ms
    end, before = store.max_physical_offset, timers.revived()
    timers.after()
    assert not timers.other.asked, "an acknowledgement may follow"
    timers.after(5_000)
    ((bodies, then),) = timers.other.asked
    assert bodies == [b"b", b"c"]
    then([True, False])
    assert revive.heard_ms() == due_ms
    timers.after(RETRY_MS)
    assert timers.other.asked[-1][0] == [b"c"]
    timers.other.asked[-1][1]([True])
    assert revive.heard_ms() is None
    assert (store.max_physical_offset, timers.revived()) == (end, before), "nothing is written"
    assert not revive


def test_an_acknowledgement_that_a_timer_delivers_counts_for_all_check_points(
    timers: Timers,
) -> None:
    timers.popped("a", "b")
    timers.is_slave_now()
    timers.after()
    parts, revive = timers.parts, timers.parts.pop.revive
    (waiting,) = (each for queue in revive._queues.values() for each in queue.waiting.values())
    assert waiting.left == {1}
    ack = revive._topic.ack(waiting.point.key, waiting.point.start_offset + 1, 0, 0, parts.now_ms)
    ack.topic = "T"
    (stored,) = parts.store.put([ack.to_put()], parts.now_ms)
    record = parts.store.message_at(stored.physical_offset)
    assert record is not None
    assert revive.hear(record, parts.now_ms, parts.now_ms)
    timers.after(INVISIBLE_MS + 5_000)
    assert not timers.other.asked
    assert not revive


def test_there_may_be_no_room_for_another_check_point(
    timers: Timers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_WAITING", 0)
    timers.popped("a", "b")
    timers.is_slave_now()
    with pytest.raises(AssertionError):
        timers.hears()
    assert timers.parts.pop.revive.heard_ms() is None


def test_a_record_that_cannot_be_understood_is_told(timers: Timers) -> None:
    timers.popped("a")
    revive, told = timers.parts.pop.revive, []
    revive.on_unreadable.append(lambda each: told.append(each.offset))
    assert revive.hear(memoryview(bytes(200)), 77, 78)
    assert told == [77]
    assert not revive


def test_what_was_heard_is_forgotten_when_it_acts_no_more(timers: Timers) -> None:
    timers.popped("a", "b")
    timers.is_slave_now()
    timers.after()
    timers.hears()
    assert timers.parts.pop.revive
    timers.acts = False
    timers.after()
    assert not timers.parts.pop.revive
    assert timers.parts.pop.revive.heard_ms() is None
