# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

import pytest

from tests.broker.conftest import Parts
from tests.broker.intake.test_intake import message
from txrocketmq.broker.intake.after_durable import MAX_BATCH, MAX_WAITING, AfterDurable, Message
from txrocketmq.broker.intake.new_queues import ENOUGH
from txrocketmq.broker.store.formats.put_message import PutStatus


class Scene:
    """Messages that wait, and a reactor whose turns are called by hand."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.turns: deque[Callable[[], None]] = deque()
        self.after = AfterDurable(parts.intake, parts.clock, self.turns.append)

    @property
    def stored(self) -> int:
        return self.parts.store.max_offset("op", 1)

    def write(self) -> None:
        self.parts.put("T")

    def sync(self) -> None:
        """One job of the flush."""
        flush = self.parts.store.flush
        job = flush.begin()
        assert job is not None
        job.run()
        flush.finish(job)


@pytest.fixture
def scene(parts: Parts) -> Scene:
    return Scene(parts)


def test_a_message_waits_for_what_was_written_before_it(scene: Scene) -> None:
    heard: list[PutStatus] = []
    scene.write()
    scene.after.put([message("op"), message("op")], heard.append)
    assert (len(scene.after), scene.stored, heard) == (2, 0, [])
    scene.sync()
    assert scene.stored == 0  # not in the turn of the flush
    scene.turns.popleft()()
    assert (len(scene.after), scene.stored, heard) == (0, 2, [PutStatus.PUT_OK] * 2)
    scene.sync()
    assert not scene.turns


def test_a_turn_makes_few_queues(scene: Scene) -> None:
    scene.write()
    scene.after.put([message(f"op{number}") for number in range(2 * ENOUGH)])
    scene.sync()
    scene.turns.popleft()()
    assert len(scene.after) == ENOUGH
    scene.turns.popleft()()
    assert len(scene.after) == 0
    topics = scene.parts.store.topics()
    assert all(f"op{number}" in topics for number in range(2 * ENOUGH))


def test_what_is_written_while_a_sync_is_under_way_waits_for_the_next(scene: Scene) -> None:
    scene.write()
    flush = scene.parts.store.flush
    job = flush.begin()
    assert job is not None
    scene.write()
    scene.after.put([message("op")])
    job.run()
    flush.finish(job)
    assert not scene.turns
    scene.sync()
    scene.turns.popleft()()
    assert scene.stored == 1


def test_many_are_put_in_several_turns(scene: Scene) -> None:
    scene.write()
    scene.after.put([message("op")] * (2 * MAX_BATCH + 1))
    scene.sync()
    counts = []
    while scene.turns:
        scene.turns.popleft()()
        counts.append(scene.stored)
    assert counts == [MAX_BATCH, 2 * MAX_BATCH, 2 * MAX_BATCH + 1]


def test_a_stop_puts_all_that_may_be_put(scene: Scene) -> None:
    scene.write()
    scene.after.put([message("op")] * (MAX_BATCH + 1))
    scene.sync()
    scene.write()
    scene.after.put([message("op")])
    scene.after.put_all()
    assert (scene.stored, len(scene.after)) == (MAX_BATCH + 1, 1)
    scene.turns.popleft()()  # was called for before
    assert scene.stored == MAX_BATCH + 1


def test_what_the_store_refuses_is_told(scene: Scene) -> None:
    heard: list[PutStatus] = []
    scene.write()
    scene.after.put([message("op", body=b""), message("op")], heard.append)
    scene.sync()
    scene.turns.popleft()()
    assert heard == [PutStatus.MESSAGE_ILLEGAL, PutStatus.PUT_OK]


def test_it_says_when_it_is_full(scene: Scene) -> None:
    scene.write()
    one = message("op")
    scene.after.put([one] * (MAX_WAITING - 1))
    assert not scene.after.is_full
    scene.after.put([one])
    assert scene.after.is_full


def test_a_sync_is_wanted_once_until_it_is_done(scene: Scene) -> None:
    wanted: list[int] = []
    scene.after.on_wanted.append(lambda: wanted.append(len(scene.after)))
    scene.write()
    scene.after.put([message("op")])
    scene.after.put([message("op")])
    assert wanted == [1]
    flush = scene.parts.store.flush
    job = flush.begin()
    assert job is not None
    scene.write()
    scene.after.put([message("op")])
    assert wanted == [1]
    job.run()
    flush.finish(job)
    assert wanted == [1, 3]  # the last one is not durable yet
    scene.turns.popleft()()
    scene.sync()
    scene.turns.popleft()()
    assert (wanted, scene.stored) == ([1, 3], 3)
    scene.after.put([])
    assert wanted == [1, 3]


def test_what_the_store_refuses_for_now_waits_on_in_order(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that fails for a moment loses no end of a transaction; a bad message is not kept."""
    scene.write()
    take, answers = scene.parts.intake.take, [
        [PutStatus.SERVICE_NOT_AVAILABLE] * 2 + [PutStatus.MESSAGE_ILLEGAL],
        [PutStatus.CREATE_MAPPED_FILE_FAILED] * 2,
    ]  # fmt: skip
    taken: list[int] = []

    def refusing(messages: Sequence[Message], now_ms: int) -> list[PutStatus]:
        taken.append(len(messages))
        return answers.pop(0) if answers else take(messages, now_ms)

    monkeypatch.setattr(scene.parts.intake, "take", refusing)
    first, second, bad = message("op", body=b"1"), message("op", body=b"2"), message("op")
    scene.after.put([first, second, bad])
    scene.sync()
    scene.turns.popleft()()
    assert (taken, len(scene.after)) == ([3], 2)
    assert not scene.turns, "it is not tried again at once"
    scene.after.put_all()
    assert (taken, len(scene.after)) == ([3, 2], 2), "nor for ever when the broker stops"
    scene.write()
    scene.sync()
    scene.turns.popleft()()
    assert len(scene.after) == 0
    units = scene.parts.store.queue_units("op", 1, 0, 9)
    records = [scene.parts.store.message_at(each.physical_offset) for each in units]
    assert [b"1" in bytes(each or b"")[84:100] for each in records] == [True, False]


def test_who_hears_of_a_refusal_puts_again_himself(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.write()
    refused = PutStatus.SERVICE_NOT_AVAILABLE
    monkeypatch.setattr(scene.parts.intake, "take", lambda messages, _: [refused] * len(messages))
    heard: list[PutStatus] = []
    scene.after.put([message("op")], heard.append)
    scene.sync()
    scene.turns.popleft()()
    assert (heard, len(scene.after)) == ([refused], 0)
