# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable

from tests.disk import MemoryFiles
from txrocketmq.broker.store.disk.in_memory import Chunk, ColdRead, InMemory
from txrocketmq.broker.work.reading import RETRY_MS, Reading


def test_nothing_is_done_while_something_is_read() -> None:
    threads: list[tuple[Callable[[], None], Callable[[], None]]] = []
    reading = Reading(lambda *work: threads.append(work))
    ended: list[int] = []
    reading.on_end.append(lambda: ended.append(1))
    files = MemoryFiles()
    reading.begin(ColdRead(files, InMemory(files), [Chunk("/a", 0, 4096)]))
    assert reading.is_busy(0)
    ((work, done),) = threads
    work()
    assert reading.is_busy(0)
    done()
    assert not reading.is_busy(0)
    assert (ended, files.read_ahead_of) == ([1], [("/a", 0, 4096)])


def test_a_disk_that_fails_is_tried_again() -> None:
    class Failing(MemoryFiles):
        def read_ahead(self, path: str, offset_bytes: int, length_bytes: int) -> bytes:
            raise OSError(5, "broken")

    files = Failing()

    def at_once(work: Callable[[], None], done: Callable[[], None]) -> None:
        work()
        done()

    reading = Reading(at_once)
    reading.begin(ColdRead(files, InMemory(files), [Chunk("/a", 0, 4096)]))
    assert reading.is_busy(5)
    assert reading.is_busy(5 + RETRY_MS - 1)
    assert not reading.is_busy(5 + RETRY_MS)
