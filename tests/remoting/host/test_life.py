# SPDX-License-Identifier: Apache-2.0
"""All that is declared, together: test_lives.py, and in a broker tests/broker/work/test_life.py."""

from __future__ import annotations

from collections.abc import Callable

from txrocketmq.remoting.host.life import AtStop, Hears, Life, Opening


def test_a_listener_is_added_once_the_life_begins() -> None:
    heard: list[int] = []
    listeners: list[Callable[[int], None]] = []
    hears = Hears(listeners, heard.append)
    assert listeners == []
    hears.begin()
    listeners[0](7)
    assert heard == [7]


def test_a_part_may_do_nothing() -> None:
    idle = Life("idle")
    assert list(idle.opens(Opening())) == []
    assert list(idle.stops()) == []


def test_what_else_is_written_at_the_end_comes_before_the_table() -> None:
    class Saving:
        name = "a.json"
        in_thread = on_end = later = staticmethod(lambda *_: None)

        def write_now(self) -> None:
            written.append("table")

    class Table:
        saving = Saving()

        def load(self) -> None: ...

    written: list[object] = []
    life = Life("a", table=Table(), at_stop=(AtStop("settling", written.append),))
    for _, write in life.stops():
        write(7)
    assert written == [7, "table"]
    assert [each.what for each in life.stops()] == ["settling", "writing a.json"]
