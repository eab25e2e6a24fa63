# SPDX-License-Identifier: Apache-2.0
"""The face for asyncio."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from tests.client.fake_core import Core
from txrocketmq.client.aio import aio
from txrocketmq.client.base.errors import ClientClosed, MQClientError
from txrocketmq.client.thread.reactor_thread import ReactorThread

Made: Any = aio(Core)
WHERE = {"namesrv_addr": "127.0.0.1:1"}


def test_what_waits_is_awaited() -> None:
    async def main() -> None:
        async with Made("g", size=4, **WHERE) as made:
            assert await made.later(5) == 5
            assert await asyncio.gather(*(made.later(n) for n in range(9))) == list(range(9))
            assert made.double(5) == 10
            assert made.size == 4
            with pytest.raises(ValueError, match="negative"):
                await made.later(-1)

    asyncio.run(main())
    assert ReactorThread._shared is None


def test_what_is_begun_gives_a_future() -> None:
    async def main() -> None:
        async with Made("g", **WHERE) as made:
            begun = await made.begin(5)
            assert isinstance(begun, asyncio.Future)
            assert await begun == 5
            assert [each async for each in made] == [1, 0]

    asyncio.run(main())


def test_what_is_begun_without_a_coroutine(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        made = Made("g", **WHERE)
        with pytest.raises(MQClientError, match="not started"):
            await made.quickly(1)
        async with made:
            core = made._life.core
            assert await asyncio.gather(*(made.quickly(n) for n in range(1, 9))) == [*range(1, 9)]
            begun = await made.begin_quickly(5)
            assert isinstance(begun, asyncio.Future)
            assert await begun == 5
            with pytest.raises(ValueError, match="negative"):
                await made.quickly(-1)
            with pytest.raises(ValueError, match="negative"):
                await (await made.begin_quickly(-1))
            core.room.is_behind = True
            asyncio.get_running_loop().call_later(0.05, setattr, core.room, "is_behind", False)
            assert await (await made.begin_quickly(5)) == 5
            assert core.said[-2:] == ["caught up", "quickly"]
            for waiting in (asyncio.ensure_future(made.quickly(0)), await made.begin_quickly(0)):
                core.cancelled = False
                await made.later(1)  # it has begun by now
                waiting.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await waiting
                await asyncio.sleep(0)  # a future tells of it in the loop's next turn
                await made.later(1)
                assert core.cancelled
            assert "waited" not in core.said
            monkeypatch.setattr("txrocketmq.client.thread.reactor_thread.MAX_WAITING", 0)
            assert await (await made.begin_quickly(5)) == 5  # not before the others have begun

    asyncio.run(main())


def test_functions_of_the_program_run_in_the_loop() -> None:
    where: list[str] = []

    async def waits(number: int) -> int:
        await asyncio.sleep(0)
        where.append(threading.current_thread().name)
        return number + 1

    def plain(number: int) -> int:
        where.append(threading.current_thread().name)
        return number + 2

    def fails(number: int) -> int:
        raise LookupError(number)

    async def main() -> None:
        async with Made("g", waits, **WHERE) as made:
            assert await made.call(plain, 1) == 3
            assert await made.call(waits, 1) == 2
            assert await made.listen(1) == 2
            with pytest.raises(LookupError):
                await made.call(fails, 1)

    asyncio.run(main())
    assert set(where) == {threading.current_thread().name}


def test_cancelling_cancels_what_is_waited_for() -> None:
    async def main() -> None:
        async with Made("g", **WHERE) as made:
            waiting = asyncio.ensure_future(made.never())
            await asyncio.sleep(0)
            await made.later(1)  # it has begun by now
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            await made.later(1)
            assert made._life.core.cancelled

    asyncio.run(main())


def test_before_its_life() -> None:
    async def main() -> None:
        made = Made("g", **WHERE)
        with pytest.raises(MQClientError, match="not started"):
            await made.later(1)
        with pytest.raises(MQClientError):
            await Made("bad", **WHERE).start()
        async with Made("g", **WHERE) as ended:
            pass
        with pytest.raises(ClientClosed, match="Core of group g was shut down"):
            await ended.start()
        del made
        assert ReactorThread._shared is None

    asyncio.run(main())


def test_what_is_forgotten_is_ended() -> None:
    async def main() -> Any:
        return await Made("g", **WHERE).start()

    made = asyncio.run(main())
    made._end_at_exit()
    assert made._life.core.said == ["start", "shutdown"]
    asyncio.run(made.shutdown())


def test_a_with_statement_is_answered_by_the_right_one() -> None:
    why = r"^Core of txrocketmq.client.aio needs 'async with': 'with' is for the Core of"
    with pytest.raises(TypeError, match=why), Made("g", **WHERE):
        pass
    assert ReactorThread._shared is None
