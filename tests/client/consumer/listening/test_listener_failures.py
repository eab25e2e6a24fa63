# SPDX-License-Identifier: Apache-2.0
"""What is logged of a listener that fails: once with its traceback, then as a count."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from typing import Any, cast

import pytest
from twisted.internet.task import Clock as ReactorClock
from twisted.logger import ILogObserver, LogLevel, formatEvent, globalLogPublisher

from txrocketmq.client.consumer.listening.listener import ConsumeStatus
from txrocketmq.client.consumer.listening.listener_failures import (
    LOGGER,
    MAX_KINDS,
    PERIOD_MS,
    Fate,
    ListenerFailures,
)
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.message.message import MessageExt, MessageQueue

QUEUE = MessageQueue("T", "broker-a", 2)


class Told:
    """The failures of a group, and the events that are logged about them."""

    def __init__(self) -> None:
        self.time = ReactorClock()
        self.failures = ListenerFailures(Clock(self.time), "g")
        self.events: list[Any] = []

    @property
    def texts(self) -> list[str]:
        return [formatEvent(event) for event in self.events]

    def fail(
        self,
        text: str = "no",
        count: int = 1,
        kind: type[Exception] = ValueError,
        dead_letters: int = 0,
    ) -> None:
        messages = [
            MessageExt("T", b"x", queue_offset=7 + n, reconsume_times=2) for n in range(count)
        ]
        try:
            listener(text, kind)
        except Exception as error:  # noqa: BLE001 - of any kind
            self.failures.tell(messages, QUEUE, error, Fate(dead_letters=dead_letters))


def listener(text: str, kind: type[Exception]) -> None:
    raise kind(text)


@pytest.fixture
def told() -> Iterator[Told]:
    told = Told()
    observer = cast(ILogObserver, told.events.append)
    globalLogPublisher.addObserver(observer)
    yield told
    globalLogPublisher.removeObserver(observer)


def test_a_failure_is_told_with_its_place_and_its_traceback(told: Told) -> None:
    told.fail("the price is missing")
    (event,) = told.events
    assert formatEvent(event) == (
        "the listener of group g failed with a message of topic T, queue 2 of broker-a, offset 7,"
        " attempt 3, which will be delivered again: ValueError: the price is missing"
    )
    assert (event["log_level"], event["log_namespace"]) == (LogLevel.error, LOGGER)
    frames = traceback.extract_tb(event["log_failure"].getTracebackObject())
    assert [frame.name for frame in frames] == ["fail", "listener"]


def test_several_messages_are_named_by_the_first(told: Told) -> None:
    told.fail(count=3)
    assert "failed with 3 messages, the first one of topic T, queue 2" in told.texts[0]


def test_equal_failures_are_counted_and_told_once_a_minute(told: Told) -> None:
    for number in range(10):
        told.fail(f"no {number}")
    told.fail(kind=KeyError)
    assert len(told.events) == 2
    told.time.advance(PERIOD_MS / 1000)
    (line,) = told.texts[2:]
    assert "the listener of group g failed 9 more times with ValueError at test_listener" in line
    assert "log_failure" not in told.events[2]
    told.fail()
    told.time.advance(PERIOD_MS / 1000)
    assert "failed once more with ValueError" in told.texts[3]
    told.time.advance(PERIOD_MS / 1000)
    assert len(told.events) == 4
    assert told.time.getDelayedCalls() == []
    told.fail()
    assert "log_failure" in told.events[4], "it is news again"


def test_what_was_counted_is_told_at_the_end(told: Told) -> None:
    told.fail()
    told.fail()
    told.failures.stop()
    assert len(told.events) == 2
    assert told.time.getDelayedCalls() == []
    told.failures.stop()
    assert len(told.events) == 2


def test_dead_letters_are_counted_as_well(told: Told) -> None:
    told.fail(dead_letters=1)  # its own line says so
    for dead_letters in (0, 2, 1):
        told.fail(count=2, dead_letters=dead_letters)
    told.time.advance(PERIOD_MS / 1000)
    assert told.texts[1].endswith("; dead letters in %DLQ%g: 3")
    told.fail()
    told.time.advance(PERIOD_MS / 1000)
    assert "dead letters" not in told.texts[2]


def test_a_call_that_fails_after_the_end_is_told_at_once(told: Told) -> None:
    told.fail()
    told.failures.stop()
    told.fail()
    assert "failed once more with ValueError at test_listener" in told.texts[1]
    assert "log_failure" not in told.events[1]
    told.fail(kind=KeyError)
    assert "KeyError" in told.texts[2]
    assert "log_failure" in told.events[2], "this kind is news"
    told.failures.stop()
    assert len(told.events) == 3
    assert told.time.getDelayedCalls() == []


def test_there_is_a_limit_of_kinds(told: Told) -> None:
    for number in range(MAX_KINDS + 5):
        told.fail(kind=type(f"Error{number}", (Exception,), {}))
    assert len(told.events) == MAX_KINDS + 1
    told.time.advance(PERIOD_MS / 1000)
    assert "failed 4 more times with errors of other kinds" in told.texts[-1]


def test_an_error_without_a_traceback_is_told_too(told: Told) -> None:
    told.failures.tell([MessageExt("T", b"x")], QUEUE, ValueError("no"), Fate("be lost"))
    assert "which will be lost: ValueError: no" in told.texts[0]


def test_it_is_told_what_becomes_of_the_messages(told: Told) -> None:
    first, again = MessageExt("T", b"x"), MessageExt("T", b"x", reconsume_times=1)
    fate = told.failures.fate
    assert fate([first, again], 16) == ("be delivered again", 0)
    assert fate([first], 0) == ("be a dead letter in the topic %DLQ%g", 1)
    assert fate([again, again], 1) == ("be dead letters in the topic %DLQ%g", 2)
    assert fate([first, again], 1) == (
        "be delivered again, but for 1 of them, which will be in the topic %DLQ%g",
        1,
    )
    assert fate([first], 16, delay_level=-1) == ("be a dead letter in the topic %DLQ%g", 1)


def test_an_answer_that_is_no_status_is_told_once(told: Told) -> None:
    told.failures.tell_answer("ship", True, ConsumeStatus)
    told.failures.tell_answer("ship", True, ConsumeStatus)
    (text,) = told.texts
    assert text == (
        "the listener ship of group g returned True: these messages count as failed, and so"
        " do all for which it returns anything but None, which is success, or one of"
        " ConsumeStatus.CONSUME_SUCCESS, ConsumeStatus.RECONSUME_LATER. This is logged once"
    )
    (event,) = told.events
    assert (event["log_namespace"], event["log_level"]) == (LOGGER, LogLevel.error)
