# SPDX-License-Identifier: Apache-2.0
"""Settings of consumers: their ranges, and limits that are shared by the queues of a topic."""

from __future__ import annotations

from typing import Any

import pytest

from txrocketmq.client.consumer.config import (
    ConsumeFrom,
    LitePullConsumerConfig,
    MessageModel,
    PushConsumerConfig,
)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("consume_concurrency", 0),
        ("consume_concurrency", 1_001),
        ("consume_message_batch_max_size", 1_025),
        ("pull_batch_size", 0),
        ("pull_interval_ms", -1),
        ("pull_threshold_for_queue", 65_536),
        ("pull_threshold_size_for_queue", 1024**3 + 1),
        ("pull_threshold_for_topic", 0),
        ("pull_threshold_size_for_topic", 0),
        ("consume_concurrently_max_span", 0),
        ("max_reconsume_times", -2),
        ("suspend_current_queue_ms", 9),
        ("await_termination_ms", -1),
        ("rebalance_interval_ms", 0),
        ("pop_invisible_ms", 4_999),
        ("pop_invisible_ms", 300_001),
        ("pop_batch_size", 33),
        ("pop_threshold_for_queue", 0),
    ],
)
def test_what_is_out_of_range_is_refused_with_the_range(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{name} must be from .* to .*, not {value}"):
        PushConsumerConfig(**{name: value})


@pytest.mark.parametrize(
    "settings",
    [
        {"auto_commit_interval_ms": 999},
        {"pull_batch_size": 0},
        {"timeout_when_suspended_ms": 10_000},
        {"poll_timeout_ms": -1},
    ],
)
def test_lite_pull_has_ranges_too(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be from"):
        LitePullConsumerConfig(**settings)


def test_limits_for_a_topic_are_divided_among_the_queues() -> None:
    alone = PushConsumerConfig()
    assert alone.threshold_for_queue(4) == 1_000
    assert alone.threshold_size_for_queue(4) == 100 * 1024 * 1024
    shared = PushConsumerConfig(pull_threshold_for_topic=10, pull_threshold_size_for_topic=1_000)
    assert [shared.threshold_for_queue(each) for each in (0, 1, 4, 20)] == [1_000, 10, 2, 1]
    assert shared.threshold_size_for_queue(4) == 250


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("earliest", ConsumeFrom.FIRST_OFFSET),
        ("Latest", ConsumeFrom.LAST_OFFSET),
        ("smallest", ConsumeFrom.FIRST_OFFSET),
        ("beginning", ConsumeFrom.FIRST_OFFSET),
        ("first", ConsumeFrom.FIRST_OFFSET),
        ("largest", ConsumeFrom.LAST_OFFSET),
        ("end", ConsumeFrom.LAST_OFFSET),
        ("last", ConsumeFrom.LAST_OFFSET),
        ("FIRST_OFFSET", ConsumeFrom.FIRST_OFFSET),
        ("timestamp", ConsumeFrom.TIMESTAMP),
        ("CONSUME_FROM_LAST_OFFSET", ConsumeFrom.LAST_OFFSET),
    ],
)
def test_where_to_begin_may_be_said_in_words(word: Any, meant: ConsumeFrom) -> None:
    assert PushConsumerConfig(consume_from=word).consume_from is meant
    assert LitePullConsumerConfig(consume_from=word).consume_from is meant


def wrong(name: str, value: Any) -> Any:
    return {name: value}


def test_other_words_are_refused() -> None:
    why = "consume_from must be ConsumeFrom .*FIRST_OFFSET or TIMESTAMP.* not 'newest'"
    with pytest.raises(ValueError, match=why):
        PushConsumerConfig(**wrong("consume_from", "newest"))
    with pytest.raises(TypeError, match="consume_concurrency must be int, not '20'"):
        PushConsumerConfig(**wrong("consume_concurrency", "20"))
    model: Any = "broadcasting"
    assert PushConsumerConfig(message_model=model).message_model is MessageModel.BROADCASTING
