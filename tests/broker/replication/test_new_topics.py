# SPDX-License-Identifier: Apache-2.0
"""Topics that a slave has messages of, and has not copied yet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker.conftest import Parts
from tests.broker.replication.masters import ROUND_MS, FakeMaster, Slave
from tests.broker.replication.wire import said
from txrocketmq.broker.store.disk.steps import finished
from txrocketmq.broker.work.life import Opening


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
