# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.disk import MemoryFiles
from tests.fakes import FakePeer, outcome_of, refused
from txrocketmq.broker.store.disk import steps as steps_module
from txrocketmq.broker.store.disk.in_memory import Chunk, ColdRead, InMemory, NotInMemory, NotYet
from txrocketmq.broker.work import patience as module
from txrocketmq.broker.work.in_thread import Done
from txrocketmq.broker.work.patience import (
    AT_ONCE,
    AT_ONCE_OF_PEER,
    BUSY,
    RETRY_MS,
    Patience,
    Reading,
    attempt,
)
from txrocketmq.remoting.call import PendingReply, Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import ResponseError


class Read(ColdRead):
    """A read that tells when it was run and finished."""

    def __init__(self, scene: Scene, name: str) -> None:
        super().__init__(scene.files, scene.memory, [])
        self._scene = scene
        self._name = name

    def run(self) -> None:
        self._scene.ran.append(self._name)

    def finish(self) -> None:
        self._scene.finished.append(self._name)


class Scene:
    """Reads whose threads the test runs: `begun` are under way."""

    def __init__(self) -> None:
        self.files = MemoryFiles()
        self.memory = InMemory(self.files)
        self.begun: list[tuple[Callable[[], None], Done]] = []
        self.ran: list[str] = []
        self.finished: list[str] = []
        self.went_on: list[str] = []
        self.errors: list[ResponseError] = []
        self.patience = Patience(lambda work, done: self.begun.append((work, done)))

    def wait(self, peer: Any, name: str) -> None:
        self.patience.wait(peer, Read(self, name), lambda error: self._go_on(name, error))

    def _go_on(self, name: str, error: ResponseError | None) -> None:
        if error is not None:
            self.errors.append(error)
        else:
            self.went_on.append(name)

    def end(self, index: int = 0, failure: Exception | None = None) -> None:
        """One of the threads comes to its end."""
        work, done = self.begun.pop(index)
        work()
        done(failure)


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_one_goes_on_when_its_read_is_done(scene: Scene) -> None:
    scene.wait("p", "a")
    assert (scene.ran, scene.went_on, len(scene.patience)) == ([], [], 1)
    scene.end()
    assert (scene.ran, scene.finished, scene.went_on) == (["a"], ["a"], ["a"])
    assert (scene.begun, len(scene.patience)) == ([], 0)


def test_so_many_at_once_and_of_each_peer_fewer(scene: Scene) -> None:
    for number in range(5):
        for peer in "pqr":
            scene.wait(peer, f"{peer}{number}")
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
    assert scene.patience._peers == {}


def test_a_peer_alone_has_its_share_and_no_more(scene: Scene) -> None:
    for number in range(6):
        scene.wait("p", str(number))
    for _ in range(4):
        assert len(scene.begun) == AT_ONCE_OF_PEER
        scene.end(-1)
    scene.end()
    scene.end()
    assert len(scene.went_on) == 6
    assert len(scene.patience) == 0


def test_who_goes_is_forgotten(scene: Scene) -> None:
    peer: Any = "p"
    nobody: Any = "nobody"
    for number in range(4):
        scene.wait(peer, f"p{number}")
    scene.wait("q", "q0")
    scene.patience.disconnected(peer, 0)
    scene.patience.disconnected(nobody, 0)
    while scene.begun:
        scene.end()
    assert scene.went_on == ["q0"]
    assert scene.ran == ["p0", "p1", "q0"], "what waited is not even read"
    assert len(scene.patience) == 0
    assert scene.patience._peers == {}


def test_what_waits_is_limited(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_WAITING", 1)
    for name in "abcd":
        scene.wait("p", name)
    (error,) = scene.errors
    assert (error.code, error.remark) == (ResponseCode.SYSTEM_BUSY, BUSY)
    scene.end()
    scene.wait("p", "d")
    assert len(scene.errors) == 1
    scene.wait(None, "own")
    assert len(scene.errors) == 1, "what the broker does by itself is not refused"


def test_the_brokers_own_reads_come_first_but_one_by_one(scene: Scene) -> None:
    for number in range(AT_ONCE):
        scene.wait(f"p{number}", f"p{number}")
    scene.wait("q", "q")
    for name in "abc":
        scene.wait(None, name)
    scene.end()
    assert (len(scene.begun), scene.patience._peers[None].most) == (AT_ONCE, 1)
    scene.end(-1)
    assert scene.went_on == ["p0", "a"]
    scene.end(-1)
    assert scene.went_on == ["p0", "a", "b"]
    scene.end()
    assert [work() for work, _ in scene.begun] == [None] * AT_ONCE
    assert scene.ran[-2:] == ["c", "q"]


def test_stopping_waits_for_what_is_under_way(scene: Scene) -> None:
    idle: list[int] = []
    for number in range(3):
        scene.wait("p", str(number))
    scene.patience.stop(lambda: idle.append(1))
    scene.wait("q", "late")
    assert len(scene.errors) == 1
    assert idle == []
    scene.end()
    assert idle == []
    scene.end()
    assert (idle, scene.begun, scene.went_on) == ([1], [], [])


def test_without_any_read_it_stops_at_once(scene: Scene) -> None:
    idle: list[int] = []
    scene.patience.stop(lambda: idle.append(1))
    assert idle == [1]


def test_a_thread_that_fails_is_told(scene: Scene) -> None:
    scene.wait("p", "a")
    scene.end(failure=MemoryError("no thread"))
    (error,) = scene.errors
    assert error.code == ResponseCode.SYSTEM_ERROR
    assert error.remark == "messages could not be read from the disk: no thread"
    assert scene.finished == []


def test_who_fails_keeps_nobody_waiting(scene: Scene) -> None:
    def fails(_: object) -> None:
        raise ValueError("a defect")

    scene.patience.wait(None, Read(scene, "a"), fails)
    scene.wait(None, "b")
    with pytest.raises(ValueError, match="a defect"):
        scene.end()
    scene.end()
    assert scene.went_on == ["b"]


def test_without_threads_all_is_done_at_once() -> None:
    scene = Scene()
    scene.patience = Patience()
    scene.wait("p", "a")
    assert scene.went_on == ["a"]


class Question:
    """A question with so many parts, each of which has to be read first."""

    def __init__(self, scene: Scene, parts: int) -> None:
        self.scene = scene
        self.reads = [Read(scene, str(number)) for number in range(parts)]
        self.asked = 0
        self.left = list(self.reads)
        self.outcome: Reply[Any] | PendingReply = Reply(remark="found")
        self.error: Exception | None = None

    def ask(self) -> Reply[Any] | PendingReply:
        self.asked += 1
        if self.error is not None:
            raise self.error
        if self.left and not self.scene.memory._is_waiting:
            raise NotInMemory(self.left.pop(0))
        return self.outcome


def test_an_answer_that_needs_no_disk_is_given_at_once(scene: Scene) -> None:
    question = Question(scene, 0)
    assert scene.patience.answer("p", question.ask) is question.outcome
    question.error = ResponseError(ResponseCode.TOPIC_NOT_EXIST, "gone")
    with refused(ResponseCode.TOPIC_NOT_EXIST, "gone"):
        scene.patience.answer("p", question.ask)


def test_a_question_is_asked_after_each_read(scene: Scene) -> None:
    question = Question(scene, 3)
    pending = scene.patience.answer("p", question.ask)
    assert isinstance(pending, PendingReply)
    for asked in (1, 2, 3):
        assert (question.asked, pending.done) == (asked, False)
        scene.end()
    assert outcome_of(pending) is question.outcome


def test_the_last_time_the_disk_is_waited_for(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps_module, "MOST_READS", 3)
    question = Question(scene, 100)
    pending = scene.patience.answer("p", question.ask)
    while scene.begun:
        scene.end()
    assert outcome_of(pending) is question.outcome
    assert len(question.left) == 96


def test_what_goes_wrong_later_is_the_outcome(scene: Scene) -> None:
    question = Question(scene, 1)
    pending = scene.patience.answer("p", question.ask)
    question.error = ValueError("a defect")
    scene.end()
    assert outcome_of(pending) is question.error


def test_a_promise_of_an_answer_is_kept(scene: Scene) -> None:
    question, later = Question(scene, 1), PendingReply()
    question.outcome = later
    pending = scene.patience.answer("p", question.ask)
    scene.end()
    later.resolve(Reply(remark="late"))
    assert outcome_of(pending).remark == "late"


def test_something_else_is_awaited_in_the_same_way(scene: Scene) -> None:
    waiting: list[Callable[[], None]] = []
    left = [1, 2]

    def ask() -> Reply[Any]:
        if left:
            left.pop()
            raise NotYet("not yet", lambda _, go_on: waiting.append(go_on))
        return Reply(remark="found")

    pending = scene.patience.answer(FakePeer(), ask)
    waiting.pop()()
    assert isinstance(pending, PendingReply)
    assert not pending.done
    waiting.pop()()
    assert outcome_of(pending).remark == "found"


def test_an_attempt_tells_what_it_has_to_wait_for(scene: Scene) -> None:
    question = Question(scene, 1)
    assert attempt(question.ask) is question.reads[0]
    assert attempt(question.ask) is question.outcome


def read_of(files: MemoryFiles) -> ColdRead:
    return ColdRead(files, InMemory(files), [Chunk("/a", 0, 4096)])


def cold(read: ColdRead) -> None:
    raise NotInMemory(read)


def test_own_work_waits_while_something_is_read(scene: Scene) -> None:
    reading = Reading(scene.patience)
    ended: list[int] = []
    reading.on_end.append(lambda: ended.append(1))
    files = MemoryFiles()
    assert reading.work(lambda: "done", 0) == "done"
    assert reading.work(lambda: cold(read_of(files)), 0) is None
    assert reading.work(lambda: cold(read_of(files)), 0) is None
    assert reading.is_busy(0)
    assert len(scene.begun) == 1, "one read is enough"
    scene.end()
    assert not reading.is_busy(0)
    assert (ended, files.read_ahead_of) == ([1], [("/a", 0, 4096)])


def test_a_disk_that_fails_is_tried_again() -> None:
    class Failing(MemoryFiles):
        def read_ahead(self, path: str, offset_bytes: int, length_bytes: int) -> bytes:
            raise OSError(5, "broken")

    reading = Reading(Patience())
    reading.work(lambda: cold(read_of(Failing())), 0)
    assert reading.is_busy(5)
    assert reading.is_busy(5 + RETRY_MS - 1)
    assert not reading.is_busy(5 + RETRY_MS)
