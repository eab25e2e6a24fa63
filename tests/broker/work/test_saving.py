# SPDX-License-Identifier: Apache-2.0
"""Saving: one write for many changes, and no answer before the write that has the change."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fakes import outcome_of
from txrocketmq.broker.work import saving
from txrocketmq.broker.work.in_thread import Done
from txrocketmq.broker.work.json_file import JsonFile
from txrocketmq.broker.work.saving import TOLD_AT_ONCE, Saving
from txrocketmq.remoting.call import PendingReply, Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.header import NoHeader


class Scene:
    """A file of which the test changes the content, and runs the writes."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "a.json"
        self.file = JsonFile(self.path)
        self.content = 0
        self.threads: list[tuple[Callable[[], None], Done]] = []
        self.ends: list[Exception | None] = []
        self.saving = Saving(self.file, self._snapshot)
        self.saving.in_thread = lambda work, done: self.threads.append((work, done))
        self.saving.on_end = self.ends.append

    def _snapshot(self) -> Callable[[], bytes]:
        content = self.content
        return lambda: b"%d" % content

    def change(self) -> PendingReply:
        self.content += 1
        self.file.is_stale = True
        pending = self.saving.answer(Reply(remark=str(self.content)))
        assert isinstance(pending, PendingReply)
        return pending

    def write(self) -> None:
        (thread,) = self.threads
        self.threads.clear()
        work, done = thread
        try:
            work()
        except OSError as error:
            done(error)
        else:
            done(None)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_without_a_change_the_answer_is_there(scene: Scene) -> None:
    reply: Reply[NoHeader] = Reply()
    assert scene.saving.answer(reply) is reply
    scene.saving.begin()
    assert scene.threads == []


def test_one_write_answers_all_whose_changes_it_has(scene: Scene) -> None:
    first = scene.change()
    late = [scene.change() for _ in range(5)]
    assert len(scene.threads) == 1
    assert not first.done
    scene.write()
    assert scene.path.read_bytes() == b"1"
    assert outcome_of(first).remark == "1"
    assert not any(each.done for each in late)
    scene.write()
    assert scene.path.read_bytes() == b"6"
    assert [outcome_of(each).remark for each in late] == ["2", "3", "4", "5", "6"]
    assert scene.threads == []


def test_very_many_are_told_in_turns_and_in_their_order(scene: Scene) -> None:
    turns: list[Callable[[], None]] = []
    told: list[str | None] = []
    scene.saving.later = turns.append

    def changes(count: int) -> None:
        for _ in range(count):
            scene.change().then(lambda outcome: told.append(getattr(outcome, "remark", None)))

    changes(2 * TOLD_AT_ONCE + 2)
    scene.write()
    assert len(told) == 1
    scene.write()
    assert len(told) == 1 + TOLD_AT_ONCE
    changes(1)
    scene.write()
    assert (len(turns), len(told)) == (1, 1 + TOLD_AT_ONCE)
    while turns:
        before = len(told)
        turns.pop()()
        assert 0 < len(told) - before <= TOLD_AT_ONCE
    assert told == [str(number) for number in range(1, 2 * TOLD_AT_ONCE + 4)]


def test_who_asks_for_what_is_so_already_waits_for_the_write_that_has_it(scene: Scene) -> None:
    first = scene.change()
    again = scene.saving.answer(Reply())
    assert isinstance(again, PendingReply)
    scene.write()
    assert first.done
    assert again.done
    assert scene.threads == []


def test_a_write_that_fails_is_told_and_tried_again(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError("No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("txrocketmq.broker.work.json_file.write_replacing", full)
        pending = scene.change()
        scene.write()
    error = outcome_of(pending)
    assert isinstance(error, ResponseError)
    assert error.code == ResponseCode.SYSTEM_ERROR
    assert error.remark == (
        "the change is in effect, but could not be saved: a.json cannot be written: No space left"
        " on device"
    )
    assert [str(each) for each in scene.ends] == ["No space left on device"]
    scene.saving.begin()
    scene.write()
    assert scene.path.read_bytes() == b"1"


def test_at_the_end_it_is_written_here_whatever_runs_in_a_thread(scene: Scene) -> None:
    scene.change()
    scene.content = 7
    scene.saving.write_now()
    assert not scene.path.exists()
    scene.file.is_stale = True
    scene.saving.write_now()
    assert scene.path.read_bytes() == b"7"
    scene.write()
    assert scene.path.read_bytes() == b"7"


def test_progress_is_written_at_once_after_a_rest(scene: Scene) -> None:
    scene.saving.begin_soon(0, 5_000)
    assert not scene.threads  # nothing has changed
    for steady_ms in range(0, 2_000, 100):
        scene.content += 1
        scene.file.is_stale = True
        scene.saving.begin_soon(steady_ms, 5_000)
        if scene.threads:
            scene.write()
            assert scene.path.read_bytes() == b"%d" % scene.content
    assert len(scene.ends) == 2_000 // saving.SOON_MS


@pytest.mark.parametrize(("took_s", "period_ms"), [(0.1, 2_000), (10, 5_000)])
def test_a_file_that_takes_long_is_written_seldom(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, took_s: float, period_ms: int
) -> None:
    times = itertools.count()
    monkeypatch.setattr(saving, "perf_counter", lambda: next(times) * took_s)
    for steady_ms in range(0, 20_000, 100):
        scene.file.is_stale = True
        scene.saving.begin_soon(steady_ms, 5_000)
        if scene.threads:
            scene.write()
    assert len(scene.ends) == 20_000 // period_ms


def test_what_cannot_be_written_is_tried_seldom(scene: Scene) -> None:
    scene.path.mkdir()
    scene.file.is_stale = True
    for steady_ms in range(0, 20_000, 100):
        scene.saving.begin_soon(steady_ms, 5_000)
        if scene.threads:
            scene.write()
    assert [type(error) for error in scene.ends] == [IsADirectoryError] * 4
