# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable

import pytest

from txrocketmq.remoting.host.life import (
    Done,
    Hears,
    InThread,
    LastWrite,
    Life,
    Opening,
    load_all,
    open_all,
    write_all,
)


class NoteSaving:
    """Stands for the file of a table."""

    in_thread: InThread
    on_end: Done

    def __init__(self, name: str, calls: list[str], error: Exception | None) -> None:
        self.name = name
        self._calls = calls
        self._error = error

    def write_now(self) -> None:
        self._calls.append(f"write {self.name}")
        if self._error is not None:
            raise self._error


class NoteTable:
    def __init__(self, name: str, calls: list[str], error: Exception | None = None) -> None:
        self.saving = NoteSaving(name, calls, error)
        self._calls = calls

    def load(self) -> None:
        self._calls.append(f"load {self.saving.name}")


def lives(calls: list[str], error: Exception | None = None) -> list[Life]:
    def settle(now_ms: int) -> None:
        calls.append(f"settle {now_ms}")
        if error is not None:
            raise error

    def warnings(opening: Opening) -> list[str]:
        calls.append(f"open {opening.after_crash}")
        return ["too warm"]

    return [
        Life("first", table=NoteTable("a.json", calls)),
        Life("idle"),
        Life(
            "second",
            table=NoteTable("b.json", calls, error),
            opens=warnings,
            at_stop=(LastWrite("settling", settle),),
        ),
    ]


def test_tables_are_loaded_in_order_and_written_in_the_reverse_order() -> None:
    calls: list[str] = []
    parts = lives(calls)
    load_all(parts)
    assert open_all(parts, Opening(7, after_crash=True)) == ["too warm"]
    write_all(parts, 9, lambda what, _: pytest.fail(what), (OSError,))
    assert calls == [
        "load a.json", "load b.json", "open True", "settle 9", "write b.json", "write a.json",
    ]  # fmt: skip


def test_a_failure_does_not_stop_the_rest() -> None:
    calls: list[str] = []
    failed: list[tuple[str, str]] = []
    write_all(
        lives(calls, OSError("full")),
        9,
        lambda what, why: failed.append((what, str(why))),
        (OSError,),
    )
    assert calls == ["settle 9", "write b.json", "write a.json"]
    assert failed == [("settling", "full"), ("writing b.json", "full")]


def test_a_defect_is_not_taken_for_a_full_disk() -> None:
    with pytest.raises(KeyError):
        write_all(lives([], KeyError("oops")), 9, lambda *_: None, (OSError,))


def test_a_listener_is_added_once_the_life_begins() -> None:
    heard: list[int] = []
    listeners: list[Callable[[int], None]] = []
    hears = Hears(listeners, heard.append)
    assert listeners == []
    hears.begin()
    listeners[0](7)
    assert heard == [7]
