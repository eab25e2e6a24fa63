# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from tests.disk import MemoryFiles
from txrocketmq.broker.store.disk import steps as module
from txrocketmq.broker.store.disk.in_memory import Chunk, ColdRead, InMemory, NotInMemory
from txrocketmq.broker.store.disk.steps import Steps, finished, when_in_memory


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

    def ask(*, only_in_memory: bool) -> str:
        if only_in_memory and not files.read_ahead_of:
            raise NotInMemory(read)
        return "found"

    assert next(when_in_memory(ask)) is read
    assert finished(when_in_memory(ask)) == "found"
    assert files.read_ahead_of == [("/a", 0, 4096)]


def test_it_is_not_asked_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_READS", 3)
    files, asked = MemoryFiles(), list[bool]()

    def ask(*, only_in_memory: bool) -> str:
        asked.append(only_in_memory)
        if only_in_memory:
            raise NotInMemory(ColdRead(files, InMemory(files), []))
        return "found"

    assert finished(when_in_memory(ask)) == "found"
    assert asked == [True, True, True, False]
