# SPDX-License-Identifier: Apache-2.0
"""Damage to all files, on a whole broker: tests/crash/test_config_damage.py."""

from __future__ import annotations

from tests.broker.conftest import Parts


def test_after_a_crash_no_group_is_ahead_of_its_queue(parts: Parts) -> None:
    parts.topic("T")
    parts.put()
    parts.offsets.commit("g", "T", 0, 3)
    lost = parts.lost_files
    lost.restore()
    assert parts.offsets.query("g", "T", 0) == 3, "nothing was lost: an administrator may have"
    (said,) = lost.restore(after_crash=True)
    assert said.startswith("1 offsets of groups were beyond the ends of their queues")
    assert parts.offsets.query("g", "T", 0) == 1
    assert lost.restore(after_crash=True) == []


def test_topics_that_only_the_store_knows_are_created_again(parts: Parts) -> None:
    parts.put("Lost", 2)
    assert parts.topics.get("Lost") is None
    (said,) = parts.lost_files.restore(after_crash=True)
    assert said.startswith("topics.json did not name 1 topics that have queues in the store")
    topic = parts.topics.get("Lost")
    assert topic is not None
    assert topic.read_queue_nums == 3


def test_groups_that_were_lost_are_told_with_their_number(parts: Parts) -> None:
    parts.put("T")
    parts.offsets.commit("g", "T", 0, 1)
    parts.groups.load()  # there is no file
    (said,) = parts.lost_files.restore()
    assert "the 1 groups that have offsets" in said


def test_offsets_that_were_lost_are_told(parts: Parts) -> None:
    parts.put("T")
    parts.groups.find("g")
    (said,) = parts.lost_files.restore()
    assert said.startswith("consumerOffset.json holds no offsets, though there are 1 groups and 1")


def test_offsets_without_any_log_are_of_another_volume(parts: Parts) -> None:
    parts.offsets.commit("g", "T", 0, 5)
    (said,) = parts.lost_files.restore(after_crash=True)
    assert "is another volume mounted there" in said
    assert parts.offsets.query("g", "T", 0) == 5, "nothing was changed"
