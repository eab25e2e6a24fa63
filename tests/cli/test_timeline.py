# SPDX-License-Identifier: Apache-2.0
"""Messages of several queues in the order in which they were stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.internet.defer import Deferred

from tests.cli.stored import Stored
from tests.client.fakes import Scene, result_of, started
from tests.examples import examples
from txrocketmq.cli.timeline import AT_ONCE, Span, Timeline, at_once, queue_of, spans_from
from txrocketmq.remoting.message.message import MessageExt, MessageQueue

QUEUES = [MessageQueue("T", "broker-a", n) for n in range(3)]


def stored() -> Stored:
    made = Stored(Scene())
    made.topic("T", 3)
    return made


def read(made: Stored, spans: dict[MessageQueue, Span], **options: Any) -> list[MessageExt]:
    async def collected() -> list[MessageExt]:
        timeline = Timeline(made.scene.client, spans, **options)
        return [each async for each in timeline.messages()]

    return result_of(collected())


def whole(made: Stored) -> dict[MessageQueue, Span]:
    return result_of(spans_from(made.scene.client, QUEUES, "first"))


@settings(max_examples=examples(50), deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 5)), max_size=30))
def test_all_messages_come_in_the_order_of_storing(steps: list[tuple[int, int]]) -> None:
    made = stored()
    now_ms = 1_000
    for n, (queue_id, pause_ms) in enumerate(steps):
        now_ms += pause_ms
        made.put("T", queue_id, b"%d" % n, now_ms)
    found = read(made, whole(made))
    expected = sorted(
        (each for queue in made.queues.values() for each in queue),
        key=lambda each: (each.store_timestamp, each.queue_id, each.queue_offset),
    )
    assert [each.body for each in found] == [each.body for each in expected]


def test_only_a_portion_of_each_queue_is_held() -> None:
    made = stored()
    for n in range(20):
        made.put("T", 0, b"x", n)
        made.put("T", 1, b"x", 1_000 + n)

    async def first() -> MessageExt:
        async for message in Timeline(made.scene.client, whole(made)).messages():
            return message
        raise AssertionError

    result_of(first())
    assert made.pulls == 2


def test_a_span_ends_before_its_end() -> None:
    made = stored()
    for n in range(5):
        made.put("T", 0, b"%d" % n, n)
    assert [m.body for m in read(made, {QUEUES[0]: Span(1, 4)})] == [b"1", b"2", b"3"]


def test_what_is_left_out_and_what_ends_a_queue() -> None:
    made = stored()
    for n in range(6):
        made.put("T", n % 2, b"%d" % n, n)
    wants: Callable[[MessageExt], bool] = lambda each: each.store_timestamp != 2  # noqa: E731
    found = read(made, whole(made), wants=wants, ends_at=lambda each: each.store_timestamp > 3)
    assert [m.body for m in found] == [b"0", b"1", b"3"]


def test_a_queue_that_has_less_than_was_said_ends() -> None:
    made = stored()
    made.put("T", 0, b"x", 1)
    assert len(read(made, {QUEUES[0]: Span(0, 9)})) == 1


@pytest.mark.parametrize(
    ("start", "last", "wanted"),
    [
        ("first", None, Span(2, 5)),
        ("last", None, Span(5, 5)),
        (3, None, Span(3, 5)),
        ("last", 1, Span(4, 5)),
        ("last", 9, Span(2, 5)),
        ({QUEUES[0]: 4}, None, Span(4, 5)),
    ],
)
def test_where_a_span_begins(start: Any, last: int | None, wanted: Span) -> None:
    made = stored()
    for n in range(5):
        made.put("T", 0, b"x", n)
    made.first["T", 0] = 2
    client = made.scene.client
    assert result_of(spans_from(client, QUEUES[:1], start, last)) == {QUEUES[0]: wanted}


def test_the_queue_of_a_message() -> None:
    assert queue_of(stored().put("T", 1, b"x", 1)) == QUEUES[1]


def test_a_few_requests_are_under_way_at_a_time() -> None:
    waiting: list[Deferred[int]] = []

    async def ask() -> int:
        waiting.append(Deferred())
        return await waiting[-1]

    running = started(at_once([ask] * (AT_ONCE + 1)))
    assert len(waiting) == AT_ONCE
    for n in range(AT_ONCE + 1):
        waiting[n].callback(n)
    assert result_of(running) == list(range(AT_ONCE + 1))


def test_the_first_error_is_the_result() -> None:
    async def fail() -> int:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        result_of(at_once([fail, fail]))
