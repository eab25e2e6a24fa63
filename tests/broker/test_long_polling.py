# SPDX-License-Identifier: Apache-2.0
"""Parked pulls: woken by what is for them, by their deadline, and by nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from txrocketmq.broker import long_polling
from txrocketmq.broker.long_polling import LongPolling, ParkedPull


class Queues:
    """Tag codes of each queue's messages, in order."""

    def __init__(self) -> None:
        self.codes: dict[tuple[str, int], list[int]] = {}

    def max_offset(self, topic: str, queue_id: int) -> int:
        return len(self.codes.get((topic, queue_id), []))

    def matches(
        self, topic: str, queue_id: int, start: int, end: int, wanted: frozenset[int]
    ) -> bool:
        return any(code in wanted for code in self.codes[topic, queue_id][start:end])


class Scene:
    def __init__(self) -> None:
        self.queues = Queues()
        self.wakes = 0
        self.resumed: list[str] = []
        self.polling = LongPolling(self.queues.max_offset, self.queues.matches, self._wake)

    def _wake(self) -> None:
        self.wakes += 1

    def park(
        self, name: str, *, peer: Any = None, codes: Any = None, deadline_ms: int = 15_000
    ) -> None:
        offset = self.queues.max_offset("T", 0)
        assert self.polling.park(
            ParkedPull(peer, "T", 0, offset, deadline_ms, codes, lambda: self.resumed.append(name))
        )

    def arrive(self, *codes: int, queue_id: int = 0) -> None:
        queue = self.queues.codes.setdefault(("T", queue_id), [])
        queue.extend(codes)
        self.polling.arrived("T", queue_id, len(queue))


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_an_arrival_wakes_once_and_only_after_run_woken(scene: Scene) -> None:
    scene.park("a")
    scene.arrive(1)
    scene.arrive(2)
    assert (scene.wakes, scene.resumed) == (1, [])
    scene.polling.run_woken()
    assert scene.resumed == ["a"]
    assert len(scene.polling) == 0


def test_another_queue_wakes_nobody(scene: Scene) -> None:
    scene.park("a")
    scene.arrive(1, queue_id=1)
    assert scene.wakes == 0


def test_a_filter_lets_only_its_tags_wake(scene: Scene) -> None:
    scene.park("a", codes=frozenset({7}))
    scene.arrive(1, 2)
    scene.polling.run_woken()
    assert scene.resumed == []
    scene.arrive(7)
    scene.polling.run_woken()
    assert scene.resumed == ["a"]


def test_the_deadline_resumes(scene: Scene) -> None:
    scene.park("a", deadline_ms=15_000)
    scene.polling.tick(14_999)
    assert scene.resumed == []
    scene.polling.tick(15_000)
    assert scene.resumed == ["a"]


def test_a_missed_arrival_is_found_by_the_tick(scene: Scene) -> None:
    scene.park("a")
    scene.queues.codes["T", 0] = [1]
    scene.polling.tick(1)
    assert scene.resumed == ["a"]


def test_a_lost_peer_takes_its_pulls_along(scene: Scene) -> None:
    gone, there = object(), object()
    scene.park("a", peer=gone)
    scene.park("b", peer=there)
    scene.polling.disconnected(gone, 0)  # type: ignore[arg-type]
    scene.arrive(1)
    scene.polling.run_woken()
    assert scene.resumed == ["b"]


def test_a_pull_may_park_again_while_it_is_resumed(scene: Scene) -> None:
    pull = ParkedPull(None, "T", 0, 0, 100, None, lambda: scene.park("again"))  # type: ignore[arg-type]
    scene.polling.park(pull)
    scene.arrive(1)
    scene.polling.run_woken()
    assert len(scene.polling) == 1


def test_resume_all_takes_a_queue_whole(scene: Scene) -> None:
    scene.park("a", codes=frozenset({1}))
    scene.park("b")
    scene.polling.resume_all("T", 0)
    assert scene.resumed == ["a", "b"]


def test_there_is_a_limit(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_polling, "MAX_PARKED", 1)
    scene.park("a")
    assert not scene.polling.park(ParkedPull(None, "T", 0, 0, 1, None, lambda: None))  # type: ignore[arg-type]
