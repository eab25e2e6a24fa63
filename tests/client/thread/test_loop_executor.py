# SPDX-License-Identifier: Apache-2.0
"""A crew in an event loop, which is the test's own: how many at once, what comes of the calls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.client.thread.test_executor import Errand, as_it_is
from txrocketmq.client.thread import loop_executor as loop_crew
from txrocketmq.client.thread.executor import Outbox
from txrocketmq.client.thread.handover import Handover
from txrocketmq.client.thread.loop_executor import LoopCrew


class Scene:
    """A crew for a function; `told` are the errands that the client has heard of."""

    def __init__(self, function: Callable[[int], Any], most: int = 2) -> None:
        self.told: list[Errand] = []
        loop = asyncio.get_running_loop()
        outbox = Outbox(loop.call_soon, self._ended)
        to_loop = Handover(loop.call_soon_threadsafe)
        self.crew = LoopCrew(function, most, to_loop, outbox, lambda: 7)

    def _ended(self, errands: Sequence[Errand]) -> None:
        self.told += errands

    async def all_told(self, count: int) -> list[Errand]:
        while len(self.told) < count:  # noqa: ASYNC110 - it is the client's thread as well
            await asyncio.sleep(0)
        return self.told


def test_plain_functions_are_called_in_a_row() -> None:
    async def main() -> None:
        scene = Scene(lambda number: -number)
        scene.crew.take(Errand, range(5))
        told = await scene.all_told(5)
        assert [(each.arguments[0], each.answer) for each in told] == [(n, -n) for n in range(5)]
        assert {(each.begun_ms, each.ended_ms) for each in told} == {(7, 7)}

    asyncio.run(main())


def test_no_more_coroutines_run_at_once_than_wanted() -> None:
    async def main() -> None:
        gates = [asyncio.Event() for _ in range(4)]
        begun: list[int] = []

        async def waits(number: int) -> int:
            begun.append(number)
            await gates[number].wait()
            return number * 10

        scene = Scene(waits, most=2)
        scene.crew.take(Errand, range(4))
        for _ in range(9):
            await asyncio.sleep(0)
        assert begun == [0, 1]
        gates[1].set()
        await scene.all_told(1)
        await asyncio.sleep(0)
        assert begun == [0, 1, 2]
        for gate in gates:
            gate.set()
        assert [each.answer for each in await scene.all_told(4)] == [10, 0, 20, 30]

    asyncio.run(main())


def test_what_is_raised_is_the_errands_and_what_is_not_wanted_is_not_called(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loop_crew, "CANCELLED_S", 0.01)

    async def main() -> None:
        called: list[int] = []

        def fails(number: int) -> Any:
            called.append(number)
            if number == 0:
                raise LookupError(number)
            return fails_later() if number == 1 else cancelled()

        async def fails_later() -> None:
            raise ValueError("later")

        async def cancelled() -> None:
            raise asyncio.CancelledError

        scene = Scene(fails, most=9)
        scene.crew.take(as_it_is, [*map(Errand, range(3)), Errand(3, wanted=False)])
        told = {each.arguments[0]: each.error for each in await scene.all_told(4)}
        assert [type(told[n]) for n in range(4)] == [
            LookupError, ValueError, RuntimeError, type(None),
        ]  # fmt: skip
        assert called == [0, 1, 2]

    asyncio.run(main())


def test_a_loop_that_ends_is_no_failure_of_what_it_cancels() -> None:
    called: list[int] = []

    async def waits(number: int) -> None:
        called.append(number)
        await asyncio.sleep(1_000)

    async def main() -> Scene:
        scene = Scene(waits)
        scene.crew.take(Errand, range(4))
        while len(called) < 2:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0)
        return scene

    scene = asyncio.run(main())
    assert (called, scene.told) == ([0, 1], [])
    assert [each.arguments[0] for each in scene.crew.clear()] == [2, 3]


def test_what_has_not_begun_can_be_forgotten() -> None:
    async def main() -> None:
        scene = Scene(abs)
        scene.crew.take(Errand, range(3))
        assert len(scene.crew.clear()) == 3
        await asyncio.sleep(0)
        assert scene.told == []

    asyncio.run(main())


def test_a_closed_loop_takes_nothing() -> None:
    async def main() -> Scene:
        return Scene(abs)

    scene = asyncio.run(main())
    with pytest.raises(RuntimeError, match="closed"):
        scene.crew.take(Errand, [1])
