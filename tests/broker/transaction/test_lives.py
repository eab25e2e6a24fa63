# SPDX-License-Identifier: Apache-2.0
"""The check of transactions in lives that end before any progress is saved: nothing multiplies."""

from __future__ import annotations

import pytest

from tests.broker.transaction.scene import COMMIT, ROLLBACK, Scene, killed, restarted
from txrocketmq.remoting.message.topics import TRANS_CHECK_MAX_TIME_TOPIC

OK = [(0, None)]


def lives(scene: Scene, number: int) -> None:
    """Kills the broker after each round, before it has saved any progress."""
    for _ in range(number):
        restarted(scene)
        scene.check()


def test_however_often_it_is_killed_a_message_is_open_once(scene: Scene) -> None:
    peer = scene.joins()
    scene.begin(b"asked about", KEYS="k")
    scene.begin(b"left alone", CHECK_IMMUNITY_TIME_IN_SECONDS="140")
    lives(scene, 4)
    assert [asked.body for _, asked in scene.asked(peer)] == [b"asked about"] * 4
    lives(scene, 1)
    questions = scene.asked(peer)
    assert sorted(asked.body for _, asked in questions) == [b"asked about", b"left alone"]
    assert len(scene.half()) == 2 + 2 * 5
    for question, _ in questions:
        half = scene.at(question.commit_log_offset)
        assert scene.answer(question, half, COMMIT) == OK
    scene.make_durable()
    lives(scene, 3)
    assert not scene.asked(peer)
    assert sorted(scene.seen()) == [b"asked about", b"left alone"]
    assert len(scene.half()) == 2 + 2 * 5


def test_its_copies_of_one_life_do_not_come_back_either(scene: Scene) -> None:
    peer = scene.joins()
    scene.begin(b"once")
    for _ in range(4):
        scene.check()
    question, half = scene.asked(peer)[1]  # an early question, answered late
    assert scene.answer(question, scene.at(question.commit_log_offset), COMMIT) == OK
    assert scene.ops() == [b"0", b"1", b"2", b"3", b"4"]
    lives(scene, 2)
    assert not scene.asked(peer)
    assert scene.seen() == [half.body]


@pytest.mark.parametrize("is_read", [False, True])
def test_who_ends_it_early_in_the_next_life_ends_its_copies(scene: Scene, is_read: bool) -> None:
    """Before the broker knows of them, or after that; and whether or not the end is durable."""
    peer = scene.joins()
    first = scene.begin(b"once")
    other = scene.begin(b"other")
    scene.check()
    scene.check()
    assert len(scene.asked(peer)) == 4
    (restarted if is_read else killed)(scene)
    assert scene.end(first, COMMIT) == OK
    scene.make_durable()
    scene.parts.transaction_check.tick(scene.parts.now_ms, scene.steady_ms)
    scene.check()
    assert [asked.body for _, asked in scene.asked(peer)] == [b"other"]
    scene.make_durable()
    lives(scene, 1)
    assert [asked.body for _, asked in scene.asked(peer)] == [b"other"]
    assert scene.end(other, ROLLBACK) == OK
    scene.make_durable()
    lives(scene, 1)
    assert not scene.asked(peer)
    assert scene.seen() == [b"once"]


def test_what_is_given_up_is_given_up_once(scene: Scene) -> None:
    scene.parts.set(transaction_check_max=2)
    scene.begin(b"orphan", group="gone")
    for _ in range(3):
        scene.check()
    scene.make_durable()
    lives(scene, 3)
    assert [each.body for each in scene.queue(TRANS_CHECK_MAX_TIME_TOPIC)] == [b"orphan"]
