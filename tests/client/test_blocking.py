# SPDX-License-Identifier: Apache-2.0
"""The face for programs that wait."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from typing import Any

import pytest

import txrocketmq.client
from tests.client.fake_core import Core
from txrocketmq.client import blocking as module
from txrocketmq.client.base.errors import ClientClosed, MQClientError
from txrocketmq.client.blocking import blocking
from txrocketmq.client.thread.reactor_thread import ReactorThread
from txrocketmq.client.thread.thread_call import ThreadCall

Made: Any = blocking(Core)
WHERE = {"namesrv_addr": "127.0.0.1:1"}


def test_calls_return_when_they_are_done() -> None:
    with Made("g", size=4, **WHERE) as made:
        assert made.later(5) == 5
        assert made.double(5) == 10
        assert made.size == 4
        with pytest.raises(ValueError, match="negative"):
            made.later(-1)
    assert ReactorThread._shared is None


def test_what_is_begun_gives_a_future() -> None:
    with Made("g", **WHERE) as made:
        begun = made.begin(5)
        assert isinstance(begun, Future)
        assert begun.result(30) == 5
        assert isinstance(made.begin(-5).exception(30), ValueError)


def test_what_is_begun_without_a_coroutine(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Made("g", **WHERE)
    with pytest.raises(MQClientError, match="not started"):
        made.quickly(1)
    with made:
        assert made.quickly(5) == 5
        with pytest.raises(ValueError, match="negative"):
            made.quickly(-1)
        assert made.begin_quickly(5).result(30) == 5
        assert isinstance(made.begin_quickly(-5).exception(30), ValueError)
        assert "waited" not in made._life.core.said
        with pytest.raises(RuntimeError, match="wait for itself"):
            made._thread.ask(lambda: made.quickly(1))
        monkeypatch.setattr("txrocketmq.client.thread.reactor_thread.MAX_WAITING", 0)
        assert made.begin_quickly(5).result(30) == 5
    with pytest.raises(ClientClosed):
        made.quickly(1)


def kept_busy(made: Any) -> threading.Event:
    """Has the client's thread wait until it may go on."""
    is_busy, may_go_on = threading.Event(), threading.Event()

    def wait() -> None:
        is_busy.set()
        may_go_on.wait(30)

    made._thread.begin(wait, lambda _: None)
    assert is_busy.wait(30)
    return may_go_on


def test_what_is_begun_is_not_waited_for() -> None:
    with Made("g", **WHERE) as made:
        may_go_on = kept_busy(made)
        begun = made.begin_quickly(5)  # while the client's thread is busy
        assert not begun.done()
        may_go_on.set()
        assert begun.result(30) == 5


def test_who_hands_over_too_much_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("txrocketmq.client.thread.reactor_thread.MAX_WAITING", 3)
    with Made("g", **WHERE) as made:
        may_go_on = kept_busy(made)
        timer = threading.Timer(0.05, may_go_on.set)
        begun = [made.begin_quickly(5) for _ in range(2)]
        assert not may_go_on.is_set()
        timer.start()
        begun += [made.begin_quickly(5) for _ in range(2)]
        assert may_go_on.is_set()
        assert [each.result(30) for each in begun] == [5] * 4


def test_who_begins_too_much_waits_until_there_is_room() -> None:
    with Made("g", **WHERE) as made:
        core = made._life.core
        assert made.begin_quickly(5).result(30) == 5
        core.room.is_behind = True
        threading.Timer(0.05, lambda: setattr(core.room, "is_behind", False)).start()
        assert made.begin_quickly(5).result(30) == 5
        assert core.said[-1] == "caught up"


def test_what_has_to_wait_before_it_is_begun() -> None:
    with Made("g", size=4, **WHERE) as made:
        assert made.begin_quickly(5).result(30) == 5
        assert made._life.core.said == ["start", "waited", "quickly"]


def test_functions_of_the_program_run_in_threads_of_their_own() -> None:
    where: list[str] = []

    def function(number: int) -> int:
        where.append(threading.current_thread().name)
        return number + 1

    with Made("g", function, **WHERE) as made:
        assert made.call(function, 1) == 2
        assert made.listen(2) == 3
        assert made.here(lambda number: number, 3) == 3
    assert all(name.startswith("txrocketmq-function") for name in where)
    assert len(where) == 2


def test_an_iterator() -> None:
    with Made("g", **WHERE) as made:
        assert list(made) == [1, 0]


def test_before_and_after_its_life() -> None:
    made = Made("g", **WHERE)
    assert made.double(1) == 2
    with pytest.raises(MQClientError, match="not started"):
        made.later(1)
    made.start()
    made.shutdown()
    made.shutdown()
    with pytest.raises(ClientClosed):
        made.later(1)
    with pytest.raises(ClientClosed, match="Core of group g was shut down"):
        made.start()


def interrupt_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waits next is interrupted."""

    def interrupted(self: ThreadCall) -> Any:
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(ThreadCall, "result", interrupted)


def test_ctrl_c_while_it_starts_ends_it_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Made("never", **WHERE)
    interrupt_next(monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        made.start()
    assert made._life.core.said == ["start", "shutdown"]
    assert ReactorThread._shared is None


def test_ctrl_c_cancels_what_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Made("g", **WHERE).start()
    interrupt_next(monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        made.never()
    assert made._thread.ask(lambda: made._life.core.cancelled)
    made.shutdown()


class Awaiting:
    """An object that is called as a coroutine function."""

    async def __call__(self, number: int) -> int:
        return number


async def waiting(number: int) -> int:
    return number


@pytest.mark.parametrize(("function", "name"), [(waiting, "waiting"), (Awaiting(), "Awaiting")])
def test_what_only_waits_has_another_form(function: Any, name: str) -> None:
    with pytest.raises(TypeError, match=f"^{name} is a coroutine function: .*aio takes it"):
        Made("g", function, **WHERE)
    assert ReactorThread._shared is None


def test_wrong_arguments_do_not_reach_the_core() -> None:
    with Made("g", **WHERE) as made:
        for call in (made.later, made.quickly, made.begin_quickly, made.double):
            with pytest.raises(TypeError, match="number must be int, not '5'"):
                call("5")
            with pytest.raises(TypeError, match=r"Core\.\w+\(\) needs the argument number"):
                call()


def test_all_that_is_public_is_in_the_package() -> None:
    everything: dict[str, Any] = {}
    exec("from txrocketmq.client import *", everything)  # noqa: S102 - it cannot be done in a function
    for name in module.__all__:
        assert everything[name] is getattr(txrocketmq.client, name) is getattr(module, name)
    assert {*module.__all__, "aio", "compat", "tx"} == set(dir(txrocketmq.client))
    for name in ("Consumer", "_private"):
        with pytest.raises(AttributeError, match=f"'txrocketmq.client' has no attribute '{name}'"):
            getattr(txrocketmq.client, name)


def test_an_async_with_statement_is_answered_by_the_right_one() -> None:
    async def main() -> None:
        async with Made("g", **WHERE):
            pass

    why = r"^Core of txrocketmq.client needs 'with': 'async with' is for the Core of .*\.aio$"
    with pytest.raises(TypeError, match=why):
        asyncio.run(main())
