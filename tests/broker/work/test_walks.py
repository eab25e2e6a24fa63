# SPDX-License-Identifier: Apache-2.0
"""Walks: slices in turns, whatever else there is in between."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.disk import MemoryFiles
from tests.fakes import FakePeer, outcome_of, refused
from txrocketmq.broker.store.disk.in_memory import ColdRead, InMemory
from txrocketmq.broker.store.disk.steps import Steps
from txrocketmq.broker.work import walks
from txrocketmq.broker.work.in_thread import Done
from txrocketmq.broker.work.patience import BUSY, Patience
from txrocketmq.broker.work.walks import (
    MAX_WALKS,
    PIECE_BYTES,
    SLICE_S,
    BodyPieces,
    Pieces,
    Walk,
    Walks,
)
from txrocketmq.remoting.call import PendingReply, Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.serialize.json import HOLE

STEPS = 4
"""Steps that a slice has here."""


class Scene:
    def __init__(self) -> None:
        self.later: list[Callable[[], None]] = []
        self.now_s = 0.0
        self.steps: list[str] = []
        self.walks = Walks(self.later.append, self._timer)

    def _timer(self) -> float:
        self.now_s += SLICE_S / STEPS
        return self.now_s

    def walk(self, name: str, steps: int, error: Exception | None = None) -> Walk:
        for _ in range(steps):
            self.steps.append(name)
            yield
        if error is not None:
            raise error
        return Reply(remark=name)

    def turn(self) -> list[str]:
        """What ran in one turn of the reactor."""
        self.steps.clear()
        (call,) = self.later
        self.later.clear()
        call()
        return list(self.steps)


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_a_short_walk_is_answered_at_once(scene: Scene) -> None:
    reply = scene.walks.answer(scene.walk("a", STEPS - 1))
    assert isinstance(reply, Reply)
    assert reply.remark == "a"
    assert scene.later == []


def test_long_walks_take_turns(scene: Scene) -> None:
    first = scene.walks.answer(scene.walk("a", 2 * STEPS))
    assert scene.steps == ["a"] * STEPS
    second = scene.walks.answer(scene.walk("b", STEPS + 1))
    assert isinstance(second, PendingReply)
    turns = []
    while scene.later:
        turns.append(scene.turn())
    assert turns == [["a"] * STEPS, ["b"] * STEPS, [], ["b"]]
    assert outcome_of(first).remark == "a"
    assert outcome_of(second).remark == "b"


def test_a_walk_may_end_with_the_promise_of_its_reply(scene: Scene) -> None:
    promise = PendingReply()

    def walk(steps: int) -> Walk:
        for _ in range(steps):
            yield
        return promise

    assert scene.walks.answer(walk(1)) is promise
    pending = scene.walks.answer(walk(STEPS))
    while scene.later:
        scene.turn()
    promise.resolve(Reply(remark="late"))
    assert outcome_of(pending).remark == "late"


def test_what_a_walk_raises_is_its_answer(scene: Scene) -> None:
    error = ResponseError(ResponseCode.TOPIC_NOT_EXIST, "gone")
    with refused(ResponseCode.TOPIC_NOT_EXIST, "gone"):
        scene.walks.answer(scene.walk("a", 1, error))
    pending = scene.walks.answer(scene.walk("a", STEPS, error))
    other = scene.walks.answer(scene.walk("b", 1))
    while scene.later:
        scene.turn()
    assert outcome_of(pending) is error
    assert outcome_of(other).remark == "b"


def test_there_are_not_too_many_at_a_time(scene: Scene) -> None:
    for _ in range(MAX_WALKS):
        scene.walks.answer(scene.walk("a", 2 * STEPS))
    with refused(ResponseCode.SYSTEM_BUSY, "try again later"):
        scene.walks.answer(scene.walk("a", 1))
    while scene.later:
        scene.turn()
    assert isinstance(scene.walks.answer(scene.walk("a", 1)), Reply)


def test_what_nobody_waits_for_takes_turns_too(scene: Scene) -> None:
    failed: list[Exception] = []
    for _ in range(MAX_WALKS + 1):  # however many there are
        scene.walks.run(scene.walk("own", STEPS + 1), failed.append)
    asked = scene.walks.answer
    with refused(ResponseCode.SYSTEM_BUSY, f"{MAX_WALKS} full scans"):
        asked(scene.walk("asked", 1))
    assert [scene.turn(), scene.turn()] == [["own"], ["own"] * STEPS]
    while scene.later:
        scene.turn()
    assert failed == []


def test_what_fails_by_itself_is_told(scene: Scene) -> None:
    failed: list[Exception] = []
    error = ValueError("oh")
    scene.walks.run(scene.walk("own", STEPS + 1, error), failed.append)
    assert failed == []
    while scene.later:
        scene.turn()
    assert failed == [error]


def test_bits_are_joined_as_they_come() -> None:
    pieces = Pieces()
    for _ in range(5):
        pieces.add(b"x" * (PIECE_BYTES - 1))
    pieces.add(b"end")
    joined = pieces.end()
    assert b"".join(joined) == b"x" * 5 * (PIECE_BYTES - 1) + b"end"
    assert list(map(len, joined)) == [2 * (PIECE_BYTES - 1)] * 2 + [PIECE_BYTES + 2]
    assert Pieces().end() == []


class Read(ColdRead):
    def __init__(self, error: OSError | None = None) -> None:
        files = MemoryFiles()
        super().__init__(files, InMemory(files), [])
        self.error = error
        self.is_finished = False

    def run(self) -> None:
        """Reads nothing."""

    def finish(self) -> None:
        self.is_finished = True


def test_a_walk_goes_on_when_what_it_waits_for_is_read(scene: Scene) -> None:
    threads: list[Done] = []
    scene.walks.patience = Patience(lambda _, done: threads.append(done))
    read = Read()

    def walk() -> Walk:
        yield read
        assert read.is_finished
        return Reply(remark="found")

    pending = scene.walks.answer(walk())
    assert scene.later == [], "nobody waits with it"
    other = scene.walks.answer(scene.walk("other", 1))
    assert isinstance(other, Reply)
    threads.pop()(None)
    assert isinstance(pending, PendingReply)
    assert not pending.done, "in its turn"
    scene.turn()
    assert outcome_of(pending).remark == "found"


def test_a_walk_ends_where_the_disk_fails(scene: Scene) -> None:
    def walk() -> Walk:
        yield Read(OSError(5, "broken"))
        raise AssertionError

    with refused(ResponseCode.SYSTEM_ERROR, "messages could not be read from the disk: "):
        raise outcome_of(scene.walks.answer(walk()))


def test_walks_that_wait_for_the_disk_count(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("txrocketmq.broker.work.walks.MAX_WALKS", 1)
    scene.walks.patience = Patience(lambda _, done: None)

    def walk() -> Walk:
        yield Read()
        return Reply()

    scene.walks.answer(walk())
    with refused(ResponseCode.SYSTEM_BUSY, ""):
        scene.walks.answer(walk())


def test_no_more_pieces_are_collected_than_an_answer_may_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(walks, "MAX_FRAME_BYTES", 1_000)
    body = BodyPieces({"list": HOLE}, "[]")
    with refused(ResponseCode.SYSTEM_ERROR, "the answer is too long"):
        for _ in range(11):
            body.add(b"x" * 100)


def test_what_is_begun_runs_a_slice_at_once_and_the_rest_in_turns() -> None:
    later: list[Callable[[], None]] = []
    now_s = iter(range(1_000))
    engine = Walks(later.append, lambda: next(now_s) * SLICE_S / 2)
    outcomes: list[object] = []

    def steps(count: int) -> Steps[int]:
        for _ in range(count):
            yield
        if count == 7:
            raise ValueError("a defect")
        return count

    begun = [engine.begin(steps(count), outcomes.append) for count in (1, 5, 7, 0)]
    assert [each.has_ended for each in begun] == [True, False, False, True]
    assert [each.is_in_turns for each in begun] == [False, True, True, False]
    assert outcomes == [1, 0]
    while later:
        later.pop(0)()
    assert outcomes[2] == 5
    assert str(outcomes[3]) == "a defect"


def test_a_walk_may_begin_others() -> None:
    later: list[Callable[[], None]] = []
    now_s = iter(range(10_000))
    walks = Walks(later.append, lambda: next(now_s) * SLICE_S / 2)
    seen, failed = list[str](), list[Exception]()

    def steps(name: str, count: int, *others: str) -> Steps[None]:
        for number in range(count):
            seen.append(name)
            if number == 1:
                for other in others:
                    walks.run(steps(other, 3), failed.append)
                    walks.begin(steps(other.upper(), 3), lambda _: None)
            yield

    walks.run(steps("a", 4, "b", "c"), failed.append)
    while later:
        assert len(later) == 1, "one turn is wanted at a time"
        later.pop(0)()
    assert not failed
    assert sorted(seen) == sorted("aaaabbbBBBcccCCC")


def test_a_walk_that_begins_another_goes_on_in_turns_with_it(scene: Scene) -> None:
    """Each turn has one slice, however many walks were begun in the last one."""
    outcomes: list[object] = []

    def outer() -> Walk:
        for _ in range(3 * STEPS):
            yield
        return scene.walks.soon(scene.walk("inner", 3 * STEPS))

    pending = scene.walks.soon(outer())
    assert isinstance(pending, PendingReply)
    pending.then(outcomes.append)
    while scene.later:
        scene.turn()
    (reply,) = outcomes
    assert isinstance(reply, Reply)
    assert reply.remark == "inner"


def test_what_comes_soon_is_answered_at_once_if_it_is_short(scene: Scene) -> None:
    long = scene.walks.soon(scene.walk("long", 10 * STEPS))
    assert isinstance(long, PendingReply)
    short = scene.walks.soon(scene.walk("short", 1))
    assert isinstance(short, Reply)
    assert short.remark == "short"
    with pytest.raises(ValueError, match="a defect"):
        scene.walks.soon(scene.walk("bad", 1, ValueError("a defect")))
    scene.walks.soon(scene.walk("late", 10 * STEPS, ValueError("a defect")))
    while scene.later:
        scene.turn()
    assert isinstance(long.outcome, Reply)
    assert long.outcome.remark == "long"


def test_what_is_begun_ends_where_its_peer_has_gone() -> None:
    later: list[Callable[[], None]] = []
    threads: list[Done] = []
    now_s = iter(range(1_000))
    patience = Patience(lambda _, done: threads.append(done))
    engine = Walks(later.append, lambda: next(now_s) * SLICE_S / 2, patience)
    outcomes: list[object] = []
    closed: list[str] = []

    def steps(name: str, awaited: object) -> Steps[None]:
        try:
            yield awaited
            while True:
                yield
        finally:
            closed.append(name)

    peer = FakePeer()
    reads = engine.begin(steps("reads", Read()), outcomes.append, peer)
    turns = engine.begin(steps("turns", None), outcomes.append, peer)
    assert (reads.is_in_turns, turns.is_in_turns, len(later), len(threads)) == (False, True, 1, 1)
    del reads, turns
    peer.close()
    patience.disconnected(peer, 0)
    assert closed == ["reads"]
    while later:
        later.pop(0)()
    assert (closed, outcomes) == (["reads", "turns"], [])


def test_a_read_that_is_refused_is_the_outcome_of_what_was_begun(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("txrocketmq.broker.work.patience.MAX_WAITING", 0)
    outcomes: list[object] = []

    def steps() -> Steps[None]:
        yield Read()

    begun = Walks(lambda _: None, lambda: 0.0).begin(steps(), outcomes.append, FakePeer())
    assert begun.has_ended
    assert BUSY in str(outcomes[0])
