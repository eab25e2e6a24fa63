# SPDX-License-Identifier: Apache-2.0
"""The face for Twisted."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.defer import CancelledError, Deferred, succeed
from twisted.internet.task import Clock as ReactorClock

from tests.client.fake_core import Core
from tests.client.fakes import result_of
from txrocketmq.client.base.errors import MQClientError
from txrocketmq.client.thread import leftovers as forgotten
from txrocketmq.client.tx import tx

Made: Any = tx(Core)
WHERE = {"namesrv_addr": "127.0.0.1:1"}


@pytest.fixture
def reactor() -> ReactorClock:
    return ReactorClock()


def test_what_waits_gives_a_deferred(reactor: ReactorClock) -> None:
    made = Made("g", reactor=reactor, size=4, **WHERE)
    assert result_of(made.start()) is made
    waiting = made.later(5)
    assert isinstance(waiting, Deferred)
    assert not waiting.called
    reactor.advance(0.01)
    assert result_of(waiting) == 5
    assert (made.double(5), made.size) == (10, 4)
    result_of(made.shutdown())
    assert reactor.getDelayedCalls() == []
    assert forgotten._open == {}


def test_what_is_begun_gives_its_own_deferred(reactor: ReactorClock) -> None:
    made = result_of(Made("g", reactor=reactor, **WHERE).start())
    begun = made.begin(5)
    assert not begun.called
    reactor.advance(0.01)
    assert result_of(begun) == 5
    result_of(made.shutdown())


def test_what_is_begun_without_a_coroutine(reactor: ReactorClock) -> None:
    made = Made("g", reactor=reactor, **WHERE)
    with pytest.raises(MQClientError, match="not started"):
        result_of(made.quickly(5))
    result_of(made.start())
    both = [made.quickly(5), made.begin_quickly(6)]
    assert [each.called for each in both] == [False, False]
    reactor.advance(0.01)
    assert [result_of(each) for each in both] == [5, 6]
    with pytest.raises(ValueError, match="negative"):
        result_of(made.quickly(-1))
    waiting = made.quickly(0)
    waiting.cancel()
    with pytest.raises(CancelledError):
        result_of(waiting)
    assert made._life.core.cancelled
    assert "waited" not in made._life.core.said
    result_of(made.shutdown())


def test_functions_of_the_program_may_answer_later(reactor: ReactorClock) -> None:
    made = result_of(
        Made("g", lambda number: succeed(number + 1), reactor=reactor, **WHERE).start()
    )
    assert result_of(made.listen(1)) == 2
    assert result_of(made.call(lambda number: number, 7)) == 7
    result_of(made.shutdown())


def test_with_and_for(reactor: ReactorClock) -> None:
    async def main() -> list[int]:
        async with Made("g", reactor=reactor, **WHERE) as made:
            return [each async for each in made]

    running = Deferred.fromCoroutine(main())
    for _ in range(3):
        reactor.advance(0.01)
    assert result_of(running) == [1, 0]


def test_before_its_life(reactor: ReactorClock) -> None:
    made = Made("g", reactor=reactor, **WHERE)
    with pytest.raises(MQClientError, match="not started"):
        result_of(made.later(1))
    with pytest.raises(MQClientError, match="it cannot start"):
        result_of(Made("bad", reactor=reactor, **WHERE).start())
    assert forgotten._open == {}


def test_a_with_statement_is_answered_by_the_right_one(reactor: ReactorClock) -> None:
    why = r"^Core of txrocketmq.client.tx needs 'async with': 'with' is for the Core of"
    with pytest.raises(TypeError, match=why), Made("g", reactor=reactor, **WHERE):
        pass
