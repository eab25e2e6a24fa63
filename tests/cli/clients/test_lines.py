# SPDX-License-Identifier: Apache-2.0
"""Lines of standard input: cut from chunks, handed over one portion at a time."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.client.fakes import result_of, started
from txrocketmq.cli.clients import lines
from txrocketmq.cli.clients.lines import LineSplitter, portions


@given(st.binary(), st.lists(st.integers(0, 100)))
def test_chunks_do_not_matter(data: bytes, cuts: list[int]) -> None:
    splitter = LineSplitter()
    got: list[bytes] = []
    at = 0
    for cut in cuts:
        got += splitter.feed(data[at : at + cut])
        at += cut
    got += splitter.feed(data[at:])
    got += splitter.end()
    whole = [line.removesuffix(b"\r") for line in data.split(b"\n")]
    assert got == [line for line in whole if line]


def test_a_line_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 10)
    splitter = LineSplitter()
    assert splitter.feed(b"x" * 10) == []
    with pytest.raises(ValueError, match="longer than 10 bytes"):
        splitter.feed(b"x")


class Loop:
    """What threads ask for runs when the test says so."""

    def __init__(self) -> None:
        self._arrived = threading.Semaphore(0)
        self._calls: list[tuple[Callable[..., object], tuple[Any, ...]]] = []

    def callFromThread(self, call: Callable[..., object], *args: Any) -> None:  # noqa: N802
        self._calls.append((call, args))
        self._arrived.release()

    def run_one(self) -> None:
        assert self._arrived.acquire(timeout=10), "nothing came from the thread"
        call, args = self._calls.pop(0)
        call(*args)


def test_portions_come_as_they_are_written() -> None:
    loop = Loop()
    read, write = os.pipe()
    try:
        coming = portions(loop, read)
        first = started(anext(coming))
        os.write(write, b"a\nb\nc")
        loop.run_one()
        assert result_of(first) == [b"a", b"b"]
        second = started(anext(coming))
        os.close(write)
        loop.run_one()
        assert result_of(second) == [b"c"]
        end = started(anext(coming))
        loop.run_one()
        with pytest.raises(StopAsyncIteration):
            result_of(end)
    finally:
        os.close(read)


def test_a_failure_of_the_input_reaches_who_reads() -> None:
    loop = Loop()
    read, write = os.pipe()
    os.close(write)
    os.close(read)
    reading = started(anext(portions(loop, read)))
    loop.run_one()
    with pytest.raises(OSError, match="Bad file descriptor"):
        result_of(reading)
