# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock as ReactorClock

from tests.client.fakes import result_of, started
from txrocketmq.client.base.errors import NoNameServer
from txrocketmq.proxy.base.cache import Cache
from txrocketmq.remoting.host.clock import Clock


class Asked:
    """A cache whose values are prepared; `asked` are the keys that were asked for."""

    def __init__(self, max_kept: int = 100) -> None:
        self.time = ReactorClock()
        self.asked: list[str] = []
        self.values: dict[str, str | Exception | Deferred[str]] = {}
        self.cache: Cache[str, str] = Cache(Clock(self.time), self._ask, 20_000, 300_000, max_kept)

    async def _ask(self, key: str) -> str | None:
        self.asked.append(key)
        value = self.values.get(key)
        if isinstance(value, Exception):
            raise value
        return await value if isinstance(value, Deferred) else value


def test_a_value_is_asked_for_once_and_then_known() -> None:
    its = Asked()
    its.values["a"] = "1"
    assert its.cache.known("a") is None
    assert result_of(its.cache.get("a")) == "1"
    assert (its.cache.known("a"), result_of(its.cache.get("a"))) == ("1", "1")
    assert its.asked == ["a"]


def test_those_who_wait_for_one_answer_share_it() -> None:
    its = Asked()
    answer: Deferred[str] = Deferred()
    its.values["a"] = answer
    waiting = [started(its.cache.get("a")) for _ in range(3)]
    waiting[0].addErrback(lambda _: None)
    waiting[0].cancel()
    answer.callback("1")
    assert its.asked == ["a"]
    assert [each.result for each in waiting[1:]] == ["1", "1"]


def test_what_is_not_there_is_not_kept() -> None:
    its = Asked()
    assert result_of(its.cache.get("a")) is None
    assert result_of(its.cache.get("a")) is None
    assert (its.asked, len(its.cache)) == (["a", "a"], 0)


def test_an_old_value_serves_while_it_is_asked_for_again() -> None:
    its = Asked()
    its.values["a"] = "1"
    result_of(its.cache.get("a"))
    its.time.advance(20)
    answer: Deferred[str] = Deferred()
    its.values["a"] = answer
    assert (its.cache.known("a"), its.cache.known("a")) == ("1", "1")
    assert its.asked == ["a", "a"]
    answer.callback("2")
    assert its.cache.known("a") == "2"


def test_an_old_value_serves_on_if_asking_fails() -> None:
    its = Asked()
    its.values["a"] = "1"
    result_of(its.cache.get("a"))
    its.values["a"] = its.values["b"] = NoNameServer("none is reachable")
    its.time.advance(20)
    assert its.cache.known("a") == "1"
    its.time.advance(0.5)
    assert its.cache.known("a") == "1"
    assert len(its.asked) == 2
    its.time.advance(0.5)
    assert its.cache.known("a") == "1"
    assert len(its.asked) == 3
    with pytest.raises(NoNameServer):
        result_of(its.cache.get("b"))


def test_a_doubted_value_is_asked_for_again_but_not_each_time() -> None:
    its = Asked()
    its.values["a"] = "1"
    result_of(its.cache.get("a"))
    for _ in range(5):
        its.cache.doubt("a")
        its.cache.known("a")
    its.time.advance(1)
    its.cache.known("a")
    assert len(its.asked) == 2


def test_what_is_gone_is_forgotten() -> None:
    its = Asked()
    its.values["a"] = "1"
    result_of(its.cache.get("a"))
    its.time.advance(20)
    del its.values["a"]
    its.cache.known("a")
    assert (its.cache.known("a"), len(its.cache)) == (None, 0)


def test_what_is_not_used_and_what_is_too_much_is_forgotten() -> None:
    its = Asked(max_kept=3)
    for key in "abcde":
        its.values[key] = key
        result_of(its.cache.get(key))
    assert len(its.cache) == 3
    assert its.cache.known("a") is None
    its.time.advance(301)
    assert its.cache.known("e") is None
    result_of(its.cache.get("a"))
    assert len(its.cache) <= 2
