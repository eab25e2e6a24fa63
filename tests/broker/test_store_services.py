# SPDX-License-Identifier: Apache-2.0
"""In a whole broker: test_service.py and test_trouble.py."""

from __future__ import annotations

from collections.abc import Callable

from tests.broker.conftest import Parts
from tests.broker.test_turns import IN_TWENTY_YEARS_MS
from txrocketmq.broker.store.disk.steps import finished
from txrocketmq.broker.store_services import StoreServices
from txrocketmq.broker.work.in_thread import Done


class Threads:
    """Work that runs when the test says so."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Callable[[], None], Done]] = []

    def __call__(self, work: Callable[[], None], done: Done) -> None:
        self.waiting.append((work, done))

    def run(self) -> None:
        work, done = self.waiting.pop(0)
        work()
        done(None)


def services(parts: Parts) -> tuple[StoreServices, Threads, list[object]]:
    threads, trouble = Threads(), list[object]()
    made = StoreServices(parts.store, threads)
    made.on_sync.append(trouble.append)
    return made, threads, trouble


def test_the_log_is_synced_in_a_thread_and_not_twice_at_once(parts: Parts) -> None:
    made, threads, trouble = services(parts)
    parts.put()
    made.sync()
    made.sync()
    flush = parts.store.flush
    assert len(threads.waiting) == 1
    assert flush.flushed_offset < flush.appended_offset
    threads.run()
    assert flush.flushed_offset == flush.appended_offset
    assert trouble == [None]


def test_a_sync_that_gets_no_thread_is_told_and_tried_again(parts: Parts) -> None:
    made, threads, trouble = services(parts)
    parts.put()
    made.sync()
    threads.waiting.pop()[1](RuntimeError("can't start new thread"))
    (why,) = trouble
    assert "can't start new thread" in str(why)
    assert parts.store.writeable
    made.sync()
    threads.run()
    assert trouble[1:] == [None]


def test_files_that_the_store_gave_up_are_removed_in_a_thread(parts: Parts) -> None:
    made, threads, _ = services(parts)
    removed: list[object] = []
    made.on_removal.append(removed.append)
    made.unlink()
    assert not threads.waiting
    parts.put("T")
    parts.store.delete_topic("T")
    folder = parts.folder / "store" / "consumequeue"
    made.unlink()
    assert len(list(folder.iterdir())) == 1, "renamed, and not removed yet"
    threads.run()
    assert removed == [None]
    assert not list(folder.iterdir())


def test_queues_follow_the_log(parts: Parts) -> None:
    for _ in range(3):
        parts.put("T", 0, body=bytes(40_000))
    assert parts.store.min_offset("T", 0) == 0
    parts.store.flush.flush_all()
    parts.store.delete_expired(IN_TWENTY_YEARS_MS)
    (walk,) = [
        beat
        for beat in parts.store_services.life().beats
        if getattr(beat, "what", "") == "deleting what refers to expired messages"
    ]
    steps = walk.steps(0, 0)  # type: ignore[attr-defined]
    finished(steps)
    assert parts.store.min_offset("T", 0) == 1
    assert walk.steps(0, 0) is None  # type: ignore[attr-defined]
