# SPDX-License-Identifier: Apache-2.0
"""Coroutines that run for somebody in another thread: as with Deferred.fromCoroutine."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from twisted.internet.defer import CancelledError, Deferred, succeed
from twisted.python.failure import Failure

from txrocketmq.client.thread.coroutine import Course

Waits = Deferred[Any]


async def returns(_: Waits) -> int:
    return 1


async def raises(_: Waits) -> None:
    raise LookupError("none")


async def has_it(_: Waits) -> int:
    return await succeed(2)


async def waits(waited: Waits) -> Any:
    return await waited + 1


async def catches(waited: Waits) -> Any:
    try:
        return await waited
    except (ValueError, CancelledError) as error:
        return type(error).__name__


async def goes_on(waited: Waits) -> Any:
    try:
        await waited
    except CancelledError:
        return await succeed("went on")


async def often(waited: Waits) -> Any:
    for _ in range(5_000):
        await succeed(None)
    return await waited


def nothing(_: Waits) -> None:
    """Nothing happens."""


def has_result(waited: Waits) -> None:
    waited.callback(41)


def fails(waited: Waits) -> None:
    waited.errback(ValueError("wrong"))


def outcomes_of(
    body: Callable[[Waits], Coroutine[Any, Any, Any]],
    happens: Callable[[Waits], None],
    begin: Callable[[Coroutine[Any, Any, Any], Callable[[Any], None]], Callable[[], None]],
) -> list[Any]:
    """What came of it: before anything happens, after it, and after it is cancelled."""
    waited: Waits = Deferred()
    outcomes: list[Any] = []
    cancel = begin(body(waited), outcomes.append)
    seen = [list(outcomes)]
    happens(waited)
    seen.append(list(outcomes))
    cancel()
    seen.append(list(outcomes))
    return [[_plain(each) for each in every] for every in seen]


def _plain(outcome: Any) -> Any:
    return (outcome.type, str(outcome.value)) if isinstance(outcome, Failure) else outcome


def by_course(
    coroutine: Coroutine[Any, Any, Any], settle: Callable[[Any], None]
) -> Callable[[], None]:
    course = Course(coroutine, settle)
    course.go_on()
    return course.cancel


def by_deferred(
    coroutine: Coroutine[Any, Any, Any], settle: Callable[[Any], None]
) -> Callable[[], None]:
    deferred = Deferred.fromCoroutine(coroutine)
    deferred.addBoth(settle)
    return deferred.cancel


@pytest.mark.parametrize("body", [returns, raises, has_it, waits, catches, goes_on, often])
@pytest.mark.parametrize("happens", [nothing, has_result, fails])
def test_it_ends_as_it_would_as_a_deferred(body: Any, happens: Any) -> None:
    seen = outcomes_of(body, happens, by_course)
    assert seen == outcomes_of(body, happens, by_deferred)
    assert len(seen[-1]) == 1


def test_what_is_waited_for_keeps_no_result() -> None:
    waited: Waits = Deferred()
    outcomes: list[Any] = []
    Course(raises(waited), outcomes.append).go_on()
    Course(waits(waited), outcomes.append).go_on()
    waited.errback(KeyError("k"))
    kept: list[Any] = []
    waited.addBoth(kept.append)
    assert kept == [None]
    assert [each.type for each in outcomes] == [LookupError, KeyError]
