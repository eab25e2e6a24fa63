# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from twisted.internet import task

from tests.fakes import FakePeer
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.host.life import (
    AtStop,
    Beat,
    Done,
    Gauge,
    Hears,
    InThread,
    Life,
    Opening,
    Tick,
)
from txrocketmq.remoting.host.lives import Lives


class Saving:
    """Stands for the file of a table."""

    in_thread: InThread
    on_end: Done
    later: Callable[[Callable[[], None]], object]

    def __init__(self, name: str, calls: list[str], error: Exception | None) -> None:
        self.name = name
        self._calls = calls
        self._error = error

    def write_now(self) -> None:
        self._calls.append(f"write {self.name}")
        if self._error is not None:
            raise self._error


class Table:
    def __init__(self, name: str, calls: list[str], error: Exception | None = None) -> None:
        self.saving = Saving(name, calls, error)
        self._calls = calls

    def load(self) -> None:
        self._calls.append(f"load {self.saving.name}")


def parts(calls: list[str], error: Exception | None = None) -> list[Life]:
    def settle(now_ms: int) -> None:
        calls.append(f"settle {now_ms}")
        if error is not None:
            raise error

    def opens(opening: Opening) -> list[str]:
        calls.append(f"open {opening.now_ms} {opening.after_crash}")
        return ["too warm"]

    return [
        Life("first", table=Table("a.json", calls)),
        Life("idle"),
        Life(
            "second",
            table=Table("b.json", calls, error),
            opens=opens,
            at_stop=(AtStop("settling", settle),),
        ),
    ]


def walked(
    lives: Sequence[Life], clock: Clock | None = None, went: Any = None, **more: Any
) -> Lives:
    def run(work: Callable[[], None], done: Done) -> None:
        raise AssertionError("nothing is to be done in a thread")

    clock = clock or Clock(task.Clock())
    return Lives(
        lives,
        clock,
        went=went or (lambda what, _: pytest.fail(what)),
        in_thread=more.pop("run", run),
        **more,
    )


def test_tables_are_loaded_in_order_and_written_in_the_reverse_order() -> None:
    calls: list[str] = []
    lives = walked(parts(calls))
    lives.load()
    assert lives.open(Opening(7, after_crash=True)) == ["too warm"]
    lives.stop(9, lambda what, _: pytest.fail(what), (OSError,))
    assert calls == [
        "load a.json", "load b.json", "open 7 True", "settle 9", "write b.json", "write a.json",
    ]  # fmt: skip


def test_a_failure_does_not_stop_the_rest() -> None:
    calls: list[str] = []
    failed: list[tuple[str, str]] = []
    lives = walked(parts(calls, OSError("full")))
    lives.stop(9, lambda what, why: failed.append((what, str(why))), (OSError,))
    assert calls == ["settle 9", "write b.json", "write a.json"]
    assert failed == [("settling", "full"), ("writing b.json", "full")]


def test_a_defect_is_not_taken_for_a_full_disk() -> None:
    with pytest.raises(KeyError):
        walked(parts([], KeyError("oops"))).stop(9, lambda *_: None, (OSError,))


def test_beats_come_in_their_periods_once_it_begins() -> None:
    reactor = task.Clock()
    calls: list[object] = []
    period_ms = [200]
    life = Life(
        "beating",
        beats=(
            Beat(100, lambda: calls.append("beat")),
            Tick(lambda: period_ms[0], lambda *times: calls.append(times), first_ms=50),
        ),
    )
    lives = walked([life], Clock(reactor))
    reactor.advance(1)
    assert calls == []
    lives.begin()
    reactor.pump([0.05] * 5)
    assert calls == [(1050, 1050), "beat", "beat", (1250, 1250)]
    period_ms[0] = 1_000


def test_kinds_of_beats_that_others_know() -> None:
    class Odd:
        period_ms = 100
        first_ms = None

    calls: list[str] = []
    reactor = task.Clock()
    life = Life("odd", beats=(Odd(),))
    with pytest.raises(TypeError, match="no kind of beat"):
        walked([life], Clock(reactor)).begin()
    walked([life], Clock(reactor), work_of=lambda _: lambda: calls.append("odd")).begin()
    reactor.advance(0.1)
    assert calls == ["odd"]


def test_parts_hear_and_their_troubles_are_told() -> None:
    heard: list[str] = []
    told: list[tuple[str, object]] = []
    listeners: list[Callable[[str], None]] = []
    troubles: list[Callable[[object], None]] = []
    ran: list[str] = []
    table = Table("a.json", [])
    reactor = task.Clock()
    lives = walked(
        [
            Life("hearing", hears=(Hears(listeners, heard.append),)),
            Life("troubled", table=table, troubles={"swimming": troubles}),
        ],
        Clock(reactor),
        went=lambda *what: told.append(what),
        run=lambda *_: ran.append("run"),
    )
    lives.begin()
    for each in listeners:
        each("news")
    error = OSError("wet")
    for trouble in troubles:
        trouble(error)
    table.saving.on_end(None)
    table.saving.in_thread(lambda: None, table.saving.on_end)
    table.saving.later(lambda: ran.append("later"))
    assert heard == ["news"]
    assert told == [("swimming", error), ("writing a.json", None)]
    assert ran == ["run"]
    reactor.advance(0)
    assert ran == ["run", "later"]


def test_all_forget_a_peer_that_has_gone() -> None:
    gone: list[object] = []
    peer = FakePeer()
    first = Life("first", forgets=lambda *who: gone.append(("first", *who)))
    lives = walked([first, Life("idle"), Life("last", forgets=lambda *_: gone.append("last"))])
    lives.forget(peer, 7)
    assert gone == [("first", peer, 7), "last"]


def test_gauges_are_those_of_all_parts() -> None:
    gauges = [Gauge("a", lambda: 1.0), Gauge("b", lambda: 2.0)]
    lives = walked([Life("first", gauges=gauges[:1]), Life("last", gauges=gauges[1:])])
    assert lives.gauges() == gauges


def test_what_is_kept_elsewhere_is_loaded_with_the_tables() -> None:
    calls: list[str] = []
    lives = [
        Life("a", loads=lambda: calls.append("load a")),
        Life("b", table=Table("b", calls), loads=lambda: calls.append("then load b")),
    ]
    clock = Clock(task.Clock())
    made = Lives(lives, clock, went=lambda *_: None, in_thread=lambda work, done: None)
    made.load()
    assert calls == ["load a", "load b", "then load b"]
