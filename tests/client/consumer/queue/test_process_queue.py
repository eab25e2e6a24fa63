# SPDX-License-Identifier: Apache-2.0
"""Messages at hand: what may be committed, how many there are, how far they lie apart."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.client.consumer.queue.process_queue import (
    LOCK_MAX_LIVE_MS,
    PULL_MAX_IDLE_MS,
    ProcessQueue,
)
from txrocketmq.remoting.message.message import MessageExt, MessageQueue

QUEUE = MessageQueue("T", "broker-a", 0)


def messages(*offsets: int) -> list[MessageExt]:
    return [MessageExt("T", b"x" * 10, queue_offset=offset) for offset in offsets]


def test_nothing_is_committed_before_anything_was_there() -> None:
    assert ProcessQueue(QUEUE, 0).remove(messages(3)) == -1


def test_the_oldest_message_at_hand_holds_the_offset_back() -> None:
    at_hand = ProcessQueue(QUEUE, 0)
    first, second, third = at_hand.put(messages(5, 6, 9))
    assert at_hand.remove([second]) == 5
    assert at_hand.remove([first]) == 9
    assert at_hand.remove([third]) == 10


def test_what_is_at_hand_is_not_taken_twice() -> None:
    at_hand = ProcessQueue(QUEUE, 0)
    at_hand.put(messages(5, 6))
    assert at_hand.put(messages(5, 7)) == messages(7)
    assert (at_hand.count, at_hand.size_bytes, at_hand.span) == (3, 30, 2)


def test_older_messages_that_come_later_hold_the_offset_back() -> None:
    at_hand = ProcessQueue(QUEUE, 0)
    at_hand.put(messages(5, 6))
    at_hand.put(messages(2))
    assert at_hand.remove(messages(5)) == 2


@given(st.permutations(range(12)), st.integers(0, 12))
def test_no_offset_passes_a_message_at_hand(order: list[int], done: int) -> None:
    at_hand = ProcessQueue(QUEUE, 0)
    at_hand.put(messages(*range(12)))
    offset = 0
    for each in order[:done]:
        offset = at_hand.remove(messages(each))
    left = set(order[done:])
    assert offset == (min(left, default=12) if done else 0)
    assert (at_hand.count, at_hand.size_bytes) == (len(left), 10 * len(left))


def test_a_message_that_takes_too_long_is_found() -> None:
    at_hand = ProcessQueue(QUEUE, 0)
    first, second, _ = at_hand.put(messages(1, 2, 3))
    at_hand.begin([first], 100)
    at_hand.begin([second], 200)
    assert at_hand.begun_before(150, 16) == [first]
    assert at_hand.begun_before(1_000, 1) == [first]
    assert at_hand.begun_before(1_000, 16) == [first, second]
    at_hand.remove([first])
    assert at_hand.begun_before(150, 16) == []


def test_messages_of_a_queue_that_was_dropped_are_not_begun() -> None:
    at_hand = ProcessQueue(QUEUE, 0)
    pulled = at_hand.put(messages(1))
    assert at_hand.begin(pulled, 100)
    at_hand.dropped = True
    assert not at_hand.begin(pulled, 200)
    assert at_hand.last_consume_ms == 100


def test_a_pull_that_is_lost_is_noticed() -> None:
    at_hand = ProcessQueue(QUEUE, 1_000)
    assert not at_hand.is_pull_expired(1_000 + PULL_MAX_IDLE_MS)
    assert at_hand.is_pull_expired(1_001 + PULL_MAX_IDLE_MS)


# ---------------------------------------------------------------------------------------- in order


def test_what_was_taken_is_committed_or_comes_again() -> None:
    at_hand = ProcessQueue(QUEUE, 0)
    first, second, third = at_hand.put(messages(5, 6, 9))
    assert at_hand.take(2) == [first, second]
    assert (at_hand.count, at_hand.waiting, at_hand.size_bytes) == (3, 1, 30)
    at_hand.rollback()
    assert at_hand.take(9) == [first, second, third]
    assert at_hand.commit() == 10
    assert (at_hand.count, at_hand.size_bytes, at_hand.commit()) == (0, 0, -1)


def test_what_comes_again_is_before_what_waits() -> None:
    at_hand = ProcessQueue(QUEUE, 0)
    first, second, third = at_hand.put(messages(1, 2, 3))
    assert at_hand.take(1) == [first]
    assert at_hand.take(1) == [second]
    at_hand.put_back([second])
    assert at_hand.take(1) == [second]
    at_hand.put_back([first])
    assert at_hand.take(3) == [first, third]


def test_what_is_taken_is_not_put_twice() -> None:
    at_hand = ProcessQueue(QUEUE, 0)
    at_hand.put(messages(1, 2))
    at_hand.take(1)
    assert at_hand.put(messages(1, 2)) == []


def test_a_lock_is_relied_on_for_thirty_seconds() -> None:
    at_hand = ProcessQueue(QUEUE, 1_000)
    assert not at_hand.is_locked(1_000)
    at_hand.locked = True
    assert at_hand.is_locked(1_000 + LOCK_MAX_LIVE_MS)
    assert not at_hand.is_locked(1_001 + LOCK_MAX_LIVE_MS)


def test_what_is_cleared_is_forgotten() -> None:
    at_hand = ProcessQueue(QUEUE, 0)
    at_hand.put(messages(5, 6))
    at_hand.take(1)
    at_hand.clear()
    assert (at_hand.count, at_hand.size_bytes, at_hand.commit()) == (0, 0, -1)
    assert at_hand.put(messages(2)) == messages(2)


def test_administrators_are_told_what_is_at_hand() -> None:
    at_hand = ProcessQueue(QUEUE, 100)
    at_hand.put(messages(5, 6, 9))
    at_hand.take(1)
    told = at_hand.describe(4, 1_000)
    assert (told.commit_offset, told.cached_msg_min_offset, told.cached_msg_max_offset) == (4, 6, 9)
    assert (told.cached_msg_count, told.transaction_msg_count) == (2, 1)
    assert (told.transaction_msg_min_offset, told.transaction_msg_max_offset) == (5, 5)
    assert (told.last_pull_timestamp, told.locked, told.droped) == (1_100, False, False)


class Model:
    """What Java's two sorted maps would hold."""

    def __init__(self) -> None:
        self.waiting: set[int] = set()
        self.taken: set[int] = set()
        self.next = 0


@given(st.lists(st.tuples(st.sampled_from("ptcrb"), st.integers(1, 5)), max_size=40))
def test_it_does_in_order_what_two_sorted_maps_would(steps: list[tuple[str, int]]) -> None:
    at_hand, model = ProcessQueue(QUEUE, 0), Model()
    for step, count in steps:
        if step == "p":
            offsets = range(model.next, model.next + count)
            at_hand.put(messages(*offsets))
            model.waiting.update(offsets)
            model.next += count
        elif step == "t":
            wanted = sorted(model.waiting)[:count]
            assert [each.queue_offset for each in at_hand.take(count)] == wanted
            model.waiting.difference_update(wanted)
            model.taken.update(wanted)
        elif step == "c":
            assert at_hand.commit() == (max(model.taken) + 1 if model.taken else -1)
            model.taken.clear()
        elif step == "r":
            at_hand.rollback()
            model.waiting |= model.taken
            model.taken.clear()
        else:
            again = sorted(model.taken)[-count:]
            at_hand.put_back(messages(*again))
            model.taken.difference_update(again)
            model.waiting.update(again)
        assert at_hand.waiting == len(model.waiting)
        assert at_hand.count == len(model.waiting) + len(model.taken)
        assert at_hand.size_bytes == 10 * at_hand.count
        span = max(model.waiting) - min(model.waiting) if model.waiting else 0
        assert at_hand.span == span
