# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from txrocketmq.broker.store.formats.opening_report import Recovered, messages


def test_it_is_told_in_sentences() -> None:
    assert str(Recovered(was_closed=True)) == "The store is new, or empty."
    done = Recovered(was_closed=True, max_offset=1000, checked_messages=1)
    assert str(done) == (
        "The store was closed in order. Its log runs from 0 to 1000; 1 message of it was checked."
    )
    done = Recovered(
        was_closed=False,
        min_offset=10,
        max_offset=1000,
        checked_messages=12_345,
        dispatched_messages=2,
        was_cut=True,
    )
    assert str(done) == (
        "The store was not closed in order. Its log runs from 10 to 1000; 12,345 messages of it"
        " were checked. 2 messages were put into their queues again. What was damaged from 1000 on"
        " was cut off."
    )


def test_counts_are_written_as_people_write_them() -> None:
    assert [messages(count) for count in (0, 1, 2)] == ["0 messages", "1 message", "2 messages"]
