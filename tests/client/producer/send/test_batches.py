# SPDX-License-Identifier: Apache-2.0
"""Messages in batches."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.client.producer.send.batches import split_batches
from txrocketmq.remoting.message.message import Message, encode_batch


@given(
    st.lists(st.tuples(st.sampled_from("AB"), st.integers(1, 300))),
    st.integers(100, 1_000),
    st.integers(1, 5),
)
def test_nothing_is_lost_and_limits_hold(
    wanted: list[tuple[str, int]], max_bytes: int, max_messages: int
) -> None:
    messages = [Message(topic, b"x" * size) for topic, size in wanted]
    batches = list(split_batches(messages, max_bytes=max_bytes, max_messages=max_messages))
    assert [id(each) for batch in batches for each in batch] == [id(each) for each in messages]
    for batch in batches:
        assert len({each.topic for each in batch}) == 1
        assert len(batch) <= max_messages
        assert len(batch) == 1 or len(encode_batch(batch)) <= max_bytes


def test_messages_that_fit_are_together() -> None:
    assert [len(each) for each in split_batches([Message("T", b"x")] * 2_500)] == [1024, 1024, 452]
