# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.fakes import FakePeer, outcome_of, refused
from txrocketmq.broker.work.in_order import MAX_WAITING, InOrder
from txrocketmq.broker.work.walks import SLICE_S, Walks
from txrocketmq.remoting.call import PendingReply, Reply, Response
from txrocketmq.remoting.codes import ResponseCode


class Scene:
    """Requests that are served when the test says so."""

    def __init__(self) -> None:
        self.later: list[Callable[[], None]] = []
        self._now_s = 0.0
        self.in_order = InOrder(Walks(self.later.append, self._timer))
        self.served: list[str] = []
        self.open: dict[str, PendingReply] = {}

    def _timer(self) -> float:
        self._now_s += SLICE_S / 2
        return self._now_s

    def ask(self, peer: FakePeer, name: str, *, long: bool = False) -> Response:
        def serve() -> Response:
            self.served.append(name)
            if not long:
                return Reply(remark=name)
            self.open[name] = PendingReply(is_work=True)
            return self.open[name]

        return self.in_order.answer(peer, serve)

    def end(self, name: str, outcome: Reply[Any] | Exception | None = None) -> None:
        self.open.pop(name).resolve(outcome or Reply(remark=name))
        while self.later:
            self.later.pop(0)()


def test_short_requests_are_answered_at_once() -> None:
    scene, peer = Scene(), FakePeer()
    for name in "abc":
        answer = scene.ask(peer, name)
        assert isinstance(answer, Reply)
    assert scene.served == ["a", "b", "c"]
    assert not scene.in_order._waiting


def test_what_comes_behind_a_long_one_waits_for_it() -> None:
    scene, peer, other = Scene(), FakePeer(1), FakePeer(2)
    heard: list[str] = []
    for name, long in (("a", True), ("b", False), ("c", True), ("d", False), ("e", False)):
        answer = scene.ask(peer, name, long=long)
        assert isinstance(answer, PendingReply)
        assert answer.is_work
        answer.then(lambda reply: heard.append(str(reply.remark)))  # type: ignore[union-attr]
    assert isinstance(scene.ask(other, "x"), Reply)
    assert scene.served == ["a", "x"]
    scene.end("a")
    assert scene.served == ["a", "x", "b", "c"]
    scene.end("c")
    assert scene.served == ["a", "x", "b", "c", "d", "e"]
    assert heard == ["a", "b", "c", "d", "e"]
    assert not scene.in_order._waiting
    assert isinstance(scene.ask(peer, "f"), Reply)


def test_what_fails_holds_up_nothing() -> None:
    scene, peer, error = Scene(), FakePeer(), ValueError("a defect")
    first = scene.ask(peer, "a", long=True)

    def serve() -> Response:
        raise error

    second, third = scene.in_order.answer(peer, serve), scene.ask(peer, "c")
    scene.end("a", error)
    for answer in (first, second):
        assert isinstance(answer, PendingReply)
        assert outcome_of(answer) is error
    assert isinstance(third, PendingReply)
    assert isinstance(outcome_of(third), Reply)
    with pytest.raises(ValueError, match="a defect"):
        scene.in_order.answer(peer, serve)
    assert not scene.in_order._waiting


def test_whoever_hears_an_answer_may_raise_or_ask_again() -> None:
    scene, peer = Scene(), FakePeer()
    first = scene.ask(peer, "a", long=True)
    assert isinstance(first, PendingReply)

    def heard(_: object) -> None:
        scene.ask(peer, "b")
        raise ValueError("a defect")

    first.then(heard)
    with pytest.raises(ValueError, match="a defect"):
        scene.end("a")
    assert scene.served == ["a", "b"]
    assert not scene.in_order._waiting


def test_what_waits_is_limited_and_goes_with_its_peer() -> None:
    scene, peer = Scene(), FakePeer()
    scene.ask(peer, "a", long=True)
    for _ in range(MAX_WAITING):
        scene.ask(peer, "b")
    with refused(ResponseCode.SYSTEM_BUSY, "wait already"):
        scene.ask(peer, "b")
    scene.in_order.disconnected(peer, 0)
    assert not scene.in_order._waiting
    scene.end("a")
    assert scene.served == ["a"]
    assert not scene.in_order._waiting


def test_many_that_waited_are_served_in_turns() -> None:
    scene, peer = Scene(), FakePeer()
    scene.ask(peer, "a", long=True)
    for _ in range(20):
        scene.ask(peer, "b")
    scene.open.pop("a").resolve(Reply())
    assert 1 < len(scene.served) < 5
    while scene.later:
        scene.later.pop(0)()
    assert len(scene.served) == 21
