# SPDX-License-Identifier: Apache-2.0
"""What was begun."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from twisted.internet.defer import CancelledError, Deferred, succeed
from twisted.python.failure import Failure

from txrocketmq.client.thread.pending_calls import Started, begun, begun_by, way_to_begin


class Core:
    """What can be begun here answers when it is told to."""

    def __init__(self, *, is_busy: bool = False) -> None:
        self.is_busy = is_busy
        self.settle: Callable[[Any], None] = print

    @begun_by("_begin", unless=lambda core: core.is_busy)
    async def work(self, number: int) -> int:
        return number

    async def other(self) -> None:
        """Has no other way."""

    def _begin(self, settle: Callable[[Any], None], number: int, *, by: int = 1) -> Core:
        self.settle = settle
        if number < 0:
            raise ValueError("negative")
        if number == 0:
            settle(by)
        return self

    def cancel(self) -> None:
        self.settle(Failure(CancelledError()))


def test_it_holds_its_result_and_is_not_waited_for() -> None:
    started = Started(succeed(5))
    assert started.result.result == 5
    assert not hasattr(started, "__await__")


def test_the_mark_names_a_method_of_the_object() -> None:
    class Derived(Core):
        def _begin(self, settle: Callable[[Any], None], number: int, *, by: int = 1) -> Core:
            raise NotImplementedError

    way = way_to_begin(Core.work)
    assert way is not None
    core, derived = Core(), Derived()
    assert way(core) == core._begin
    assert way(derived) == derived._begin
    assert way(Core(is_busy=True)) is None
    assert way_to_begin(Core.other) is None


def test_a_deferred_of_what_is_begun() -> None:
    core = Core()
    waiting: Deferred[int] = begun(core._begin, 1)
    assert not waiting.called
    core.settle(7)
    assert waiting.result == 7
    assert begun(core._begin, 0, by=9).result == 9
    with pytest.raises(ValueError, match="negative"):
        begun(core._begin, -1)


def test_what_is_begun_may_fail_or_be_cancelled() -> None:
    core = Core()
    seen: list[type[BaseException] | None] = []
    waiting: Deferred[int] = begun(core._begin, 1)
    waiting.addErrback(lambda failure: seen.append(failure.type))
    core.settle(Failure(LookupError()))
    waiting = begun(core._begin, 1)
    waiting.addErrback(lambda failure: seen.append(failure.type))
    waiting.cancel()
    assert seen == [LookupError, CancelledError]
