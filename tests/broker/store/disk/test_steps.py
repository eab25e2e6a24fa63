# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.disk import MemoryFiles
from txrocketmq.broker.store.disk import steps as module
from txrocketmq.broker.store.disk.in_memory import Chunk, ColdRead, InMemory, NotInMemory, NotYet
from txrocketmq.broker.store.disk.steps import (
    Steps,
    as_far_as_in_memory,
    finished,
    items_in_memory,
    patient,
    when_in_memory,
)


def test_all_steps_are_taken_and_the_result_is_given() -> None:
    taken: list[int] = []

    def steps() -> Steps[str]:
        for number in range(3):
            taken.append(number)
            yield
        return "done"

    assert finished(steps()) == "done"
    assert taken == [0, 1, 2]


def test_what_is_not_in_memory_is_read_before_the_next_step() -> None:
    files = MemoryFiles()
    read = ColdRead(files, InMemory(files), [Chunk("/a", 0, 4096)])

    def ask() -> str:
        if not files.read_ahead_of:
            raise NotInMemory(read)
        return "found"

    assert next(when_in_memory(ask)) is read
    assert finished(when_in_memory(ask)) == "found"
    assert files.read_ahead_of == [("/a", 0, 4096)]


class Question:
    """A question that is answered only if the disk is waited for, in two steps."""

    def __init__(self) -> None:
        self.files = MemoryFiles()
        self.files.evict("/a")
        self.memory = InMemory(self.files)
        self.asked = 0
        self.chunk = Chunk("/a", 0, 4096)
        self.waited: list[bool] = []

    def ask(self) -> str:
        self.asked += 1
        self.waited.append(self.memory._is_waiting)
        if not self.memory._is_waiting:
            raise NotInMemory(ColdRead(self.files, self.memory, [self.chunk]))
        return "found"

    def steps(self) -> Steps[str]:
        yield
        found = self.ask()
        yield
        return found


def test_it_is_not_asked_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_READS", 3)
    question = Question()
    assert finished(when_in_memory(question.ask)) == "found"
    assert question.waited == [False, False, False, True]
    assert not question.memory._is_waiting


def test_the_disk_is_waited_for_only_while_a_step_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MOST_READS", 1)
    question = Question()
    steps = patient(question.steps)
    for _ in range(4):
        next(steps)
        assert not question.memory._is_waiting
    assert question.waited == [False, True]
    assert finished(steps) == "found"


def test_waiting_for_something_else_has_no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_READS", 1)
    left = [1] * 5

    def ask() -> str:
        if left:
            raise NotYet("not yet", left.pop())
        return "found"

    steps = when_in_memory(ask)
    assert [next(steps) for _ in range(5)] == [1] * 5
    with pytest.raises(StopIteration):
        next(steps)


@pytest.mark.parametrize("found", [0, 1])
def test_what_is_enough_is_not_waited_for(found: int) -> None:
    question, taken = Question(), list[int]()
    steps = as_far_as_in_memory(_taken(question, taken, found), lambda: taken)
    if found:
        finished(steps)
    else:
        with pytest.raises(NotInMemory):
            finished(steps)
    assert len(taken) == found


def _taken(question: Question, taken: list[int], found: int) -> Steps[None]:
    for number in range(found):
        taken.append(number)
        yield
    question.ask()


def test_items_end_before_the_first_that_is_not_in_memory() -> None:
    question = Question()

    def items(count: int) -> Iterator[int]:
        yield from range(count)
        question.ask()

    assert list(items_in_memory(items(2))) == [0, 1]
    assert list(items_in_memory(iter([1, 2]))) == [1, 2]
    with pytest.raises(NotInMemory):
        list(items_in_memory(items(0)))
