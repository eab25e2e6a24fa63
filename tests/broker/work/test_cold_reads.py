# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from txrocketmq.broker.work import cold_reads as module
from txrocketmq.broker.work.cold_reads import AT_ONCE, AT_ONCE_OF_PEER, ColdReads, OneByOne, at_once


class Read:
    """A read that tells when it was run and finished."""

    def __init__(self, scene: Scene, name: str) -> None:
        self._scene = scene
        self._name = name

    def run(self) -> None:
        self._scene.ran.append(self._name)

    def finish(self) -> None:
        self._scene.finished.append(self._name)


class Scene:
    """Reads whose threads the test runs: `begun` are under way."""

    def __init__(self) -> None:
        self.begun: list[tuple[Callable[[], None], Callable[[], None]]] = []
        self.ran: list[str] = []
        self.finished: list[str] = []
        self.went_on: list[str] = []
        self.reads = ColdReads(lambda work, done: self.begun.append((work, done)))

    def add(self, peer: Any, name: str) -> bool:
        read: Any = Read(self, name)
        return self.reads.add(peer, read, lambda: self.went_on.append(name))

    def end(self, index: int = 0) -> None:
        """One of the threads comes to its end."""
        work, done = self.begun.pop(index)
        work()
        done()


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_one_goes_on_when_its_read_is_done(scene: Scene) -> None:
    assert scene.add("p", "a")
    assert (scene.ran, scene.went_on, len(scene.reads)) == ([], [], 1)
    scene.end()
    assert (scene.ran, scene.finished, scene.went_on) == (["a"], ["a"], ["a"])
    assert (scene.begun, len(scene.reads)) == ([], 0)


def test_so_many_at_once_and_of_each_peer_fewer(scene: Scene) -> None:
    for number in range(5):
        for peer in "pqr":
            assert scene.add(peer, f"{peer}{number}")
            assert len(scene.begun) <= AT_ONCE
    begun = 0
    while scene.begun:
        begun = max(begun, len(scene.begun))
        scene.end()
    assert begun == AT_ONCE
    assert sorted(scene.went_on) == [f"{peer}{number}" for peer in "pqr" for number in range(5)]
    for peer in "pqr":
        assert [each for each in scene.went_on if each[0] == peer] == [
            f"{peer}{number}" for number in range(5)
        ], "in its order"
    assert {each[0] for each in scene.went_on[:6]} == set("pqr"), "the peers in turn"
    assert scene.reads._peers == {}


def test_a_peer_alone_has_its_share_and_no_more(scene: Scene) -> None:
    for number in range(6):
        scene.add("p", str(number))
    for _ in range(4):
        assert len(scene.begun) == AT_ONCE_OF_PEER
        scene.end(-1)
    scene.end()
    scene.end()
    assert len(scene.went_on) == 6
    assert len(scene.reads) == 0


def test_who_goes_is_forgotten(scene: Scene) -> None:
    peer: Any = "p"
    nobody: Any = "nobody"
    for number in range(4):
        scene.add(peer, f"p{number}")
    scene.add("q", "q0")
    scene.reads.disconnected(peer, 0)
    scene.reads.disconnected(nobody, 0)
    while scene.begun:
        scene.end()
    assert scene.went_on == ["q0"]
    assert scene.ran == ["p0", "p1", "q0"], "what waited is not even read"
    assert len(scene.reads) == 0
    assert scene.reads._peers == {}


def test_what_waits_is_limited(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_WAITING", 1)
    assert scene.add("p", "a")
    assert scene.add("p", "b")
    assert scene.add("p", "c")
    assert not scene.add("p", "d")
    scene.end()
    assert scene.add("p", "d")


def test_stopping_waits_for_what_is_under_way(scene: Scene) -> None:
    idle: list[int] = []
    for number in range(3):
        scene.add("p", str(number))
    scene.reads.stop(lambda: idle.append(1))
    assert not scene.add("q", "late")
    assert idle == []
    scene.end()
    assert idle == []
    scene.end()
    assert (idle, scene.begun, scene.went_on) == ([1], [], [])


def test_without_any_read_it_stops_at_once(scene: Scene) -> None:
    idle: list[int] = []
    scene.reads.stop(lambda: idle.append(1))
    assert idle == [1]


def test_who_goes_on_may_ask_again(scene: Scene) -> None:
    read: Any = Read(scene, "a")
    peer: Any = "p"

    def again() -> None:
        scene.add(peer, "b")

    scene.reads.add(peer, read, again)
    scene.end()
    scene.end()
    assert scene.went_on == ["b"]


def test_without_threads_all_is_done_at_once() -> None:
    scene = Scene()
    scene.reads = ColdReads(at_once)
    assert scene.add("p", "a")
    assert scene.went_on == ["a"]


def test_the_brokers_own_reads_are_done_one_by_one() -> None:
    begun: list[tuple[Callable[[], None], Callable[[], None]]] = []
    done: list[str] = []
    reads = OneByOne(lambda work, then: begun.append((work, then)))
    for name in "abc":
        reads(lambda: None, lambda name=name: done.append(name))  # type: ignore[misc]
    for name in "abc":
        ((_, then),) = begun
        begun.clear()
        then()
        assert done[-1] == name
    assert (begun, done) == ([], ["a", "b", "c"])
