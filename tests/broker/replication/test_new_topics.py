# SPDX-License-Identifier: Apache-2.0
"""Topics that a slave has messages of, and that are not in the table that it copied."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker.conftest import Parts
from tests.broker.replication.masters import ROUND_MS, TOPICS, FakeMaster, Slave
from tests.broker.replication.wire import said
from txrocketmq.broker.store.disk.steps import finished
from txrocketmq.broker.store.message_store import MessageStore
from txrocketmq.broker.work.life import Opening
from txrocketmq.remoting.message.topics import SCHEDULE_TOPIC


@pytest.fixture
def slave(tmp_path: Path) -> Iterator[Parts]:
    made = Parts(tmp_path, store_settings={"broker_role": "SLAVE"})
    yield made
    made.store.stop(made.now_ms)


def create(slave: Parts) -> list[str]:
    return said(lambda: finished(slave.new_topics.create()))


def test_what_came_after_the_last_copy_is_created(slave: Parts) -> None:
    slave.put("Deleted")
    slave.new_topics.asked()
    slave.put("New", 2)
    slave.put("Deleted too", 0)
    slave.new_topics.copied()
    slave.topic("Known")
    slave.put("Known", 0)
    assert create(slave) == [
        "created 2 topics that have messages and were not copied from the master yet"
    ], "there is no telling what was deleted meanwhile"
    new = slave.topics.get("New")
    assert new is not None
    assert (new.read_queue_nums, new.write_queue_nums) == (3, 3)
    assert slave.topics.get("Deleted") is None, "the master had it no more"
    assert create(slave) == []
    slave.new_topics.asked()
    slave.new_topics.copied()
    slave.topics.delete("New")
    assert create(slave) == []
    assert slave.topics.get("New") is None


def test_a_copy_that_fails_leaves_all_open(slave: Parts) -> None:
    slave.new_topics.asked()
    slave.new_topics.copied()
    slave.put("New")
    slave.new_topics.asked()
    create(slave)
    assert slave.topics.get("New") is not None


def test_what_was_there_at_the_start_is_known(slave: Parts, tmp_path: Path) -> None:
    slave.put("Deleted")
    slave.store.stop(slave.now_ms)
    again = Parts(tmp_path, store_settings={"broker_role": "SLAVE"})
    again.walked().open(Opening(again.now_ms))
    again.put("New")
    create(again)
    assert again.topics.get("Deleted") is None
    assert again.topics.get("New") is not None
    again.store.stop(again.now_ms)
    slave.store.load(slave.now_ms, kind_of=slave.kind_of)


def test_they_are_created_before_the_topics_are_written_at_the_end(slave: Parts) -> None:
    slave.put("New")
    steps = [step.what for life in reversed(slave.lives()) for step in life.stops()]
    assert steps.index("creating new topics") < steps.index("writing topics.json")


def test_a_copy_says_what_is_known(tmp_path: Path) -> None:
    slave = Slave(tmp_path, FakeMaster())
    slave.parts.put("Deleted")
    slave.beat(ROUND_MS)
    slave.parts.put("New")
    slave.go_on()
    finished(slave.parts.new_topics.create())
    assert slave.parts.topics.get("Deleted") is None
    assert slave.parts.topics.get("New") is not None
    slave.parts.store.stop(slave.parts.now_ms)


REMOVED = "removed the queues of {} topics that the master has deleted"


def look(slave: Parts) -> list[str]:
    return said(lambda: finished(slave.new_topics.remove()))


def remove(slave: Parts) -> list[str]:
    return look(slave) + look(slave)


def copied(slave: Parts) -> None:
    slave.new_topics.asked()
    slave.new_topics.copied()


def test_queues_of_deleted_topics_are_removed(slave: Parts) -> None:
    for name in ("Kept", "Deleted", "%RETRY%deleted", "%LMQ%light", SCHEDULE_TOPIC):
        slave.put(name)
    slave.topic("Kept")
    copied(slave)
    assert remove(slave) == [REMOVED.format(2)]
    assert sorted(slave.store.topics()) == ["%LMQ%light", "Kept", SCHEDULE_TOPIC]
    slave.put("Deleted")
    assert slave.store.max_offset("Deleted", 0) == 1, "the queue begins anew"


def test_a_topic_that_one_copy_skips_is_kept(slave: Parts) -> None:
    slave.topic("Known")
    slave.put("Skipped")
    copied(slave)
    assert look(slave) == []
    slave.topic("Skipped")
    copied(slave)
    assert look(slave) == []
    slave.topics.delete("Skipped")
    copied(slave)
    assert look(slave) == []
    assert slave.store.topics() == ["Skipped"], "it was there in between"
    assert look(slave) == [REMOVED.format(1)]


def test_a_topic_with_messages_that_came_since_is_kept(slave: Parts) -> None:
    slave.topic("Known")
    slave.put("Deleted")
    slave.new_topics.asked()
    slave.put("New")
    slave.new_topics.copied()
    assert remove(slave) == [REMOVED.format(1)]
    assert slave.store.topics() == ["New"]
    slave.new_topics.asked()
    slave.new_topics.copied(are_others=False)
    assert remove(slave) == [REMOVED.format(1)], "it is looked at once more"
    assert slave.store.topics() == []


def test_it_is_looked_for_deleted_topics_only_after_a_change(slave: Parts) -> None:
    slave.topic("Known")
    copied(slave)
    assert remove(slave) == []
    slave.put("Deleted")
    slave.new_topics.asked()
    slave.new_topics.copied(are_others=False)
    assert list(slave.new_topics.remove()) == []
    assert slave.store.topics() == ["Deleted"]
    copied(slave)
    assert remove(slave) == [REMOVED.format(1)]


def test_a_master_without_topics_takes_nothing_away(slave: Parts) -> None:
    slave.put("T")
    copied(slave)
    assert remove(slave) == []
    assert slave.store.topics() == ["T"]
    slave.topic("Other")
    assert remove(slave) == [REMOVED.format(1)]


def test_one_topic_is_looked_at_in_a_step(slave: Parts) -> None:
    slave.topic("Known")
    for number in range(20):
        slave.put(f"Deleted{number}")
    copied(slave)
    finished(slave.new_topics.remove())
    left = [len(slave.store.topics()) for _ in slave.new_topics.remove()]
    assert left[-20:] == list(range(20, 0, -1))
    assert slave.store.topics() == []


def test_what_is_not_in_queues_yet_is_removed_later(
    slave: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    slave.topic("Known")
    slave.put("Deleted")
    copied(slave)
    with monkeypatch.context() as behind:
        behind.setattr(MessageStore, "dispatched_offset", 0)
        assert remove(slave) == [REMOVED.format(1)]
    slave.put("Deleted")
    slave.new_topics.asked()
    slave.new_topics.copied(are_others=False)
    assert remove(slave) == [REMOVED.format(1)]


def test_what_comes_after_the_question_does_not_count_as_deleted(
    slave: Parts, tmp_path: Path
) -> None:
    slave.topic("Known")
    slave.put("Deleted")
    copied(slave)
    asked_at = slave.store.max_physical_offset
    slave.put("Known")
    remove(slave)
    assert int((tmp_path / "store" / "deleted" / "Deleted").read_bytes()) == asked_at


@pytest.mark.parametrize("page", [0, 2])
def test_a_copy_removes_them_if_it_is_whole(tmp_path: Path, page: int) -> None:
    master = FakeMaster(page)
    slave = Slave(tmp_path, master)
    slave.parts.put("A")
    slave.parts.put("C")
    slave.go_on()
    slave.beat(ROUND_MS)
    slave.go_on()
    assert sorted(slave.parts.store.topics()) == ["A", "C"]
    del master.topics["C"]
    master.versions[TOPICS] += 1
    master.instead[TOPICS] = b'{"dataVersion":{"counter":9},"topicConfigTable":{"A":'
    slave.beat(ROUND_MS)
    slave.go_on()
    assert sorted(slave.parts.store.topics()) == ["A", "C"], "an answer that is cut off"
    del master.instead[TOPICS]
    slave.beat(ROUND_MS)
    slave.go_on()
    assert sorted(slave.parts.store.topics()) == ["A", "C"], "it has to be gone twice"
    slave.beat(ROUND_MS)
    slave.go_on()
    assert slave.parts.store.topics() == ["A"]
    slave.parts.store.stop(slave.parts.now_ms)
