# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from txrocketmq.spark.arrow.errors import OptionError
from txrocketmq.spark.options.offsets import starting_offsets
from txrocketmq.spark.options.option_sets import check_light_queues, check_live
from txrocketmq.spark.options.option_values import TopicPattern


def test_light_queues_are_read_as_consumers_see_them() -> None:
    check_light_queues(["%LMQ%a"], None, is_as_consumers_see=True)
    check_light_queues(["Orders"], TopicPattern(".*"), is_as_consumers_see=False)
    with pytest.raises(OptionError, match="%LMQ%a is a light queue: give topic=%LMQ%a, without"):
        check_light_queues(["Orders", "%LMQ%a"], None, is_as_consumers_see=False)
    with pytest.raises(OptionError, match="give topicPattern=%LMQ%., without"):
        check_light_queues([], TopicPattern("%LMQ%."), is_as_consumers_see=False)


LIVE = {"has_tags": False, "least": None, "most": None, "commits": False}


@pytest.mark.parametrize(
    ("given", "more", "said"),
    [
        ((), {}, "topicPattern or assign is needed"),
        (("topic", "sqlExpression"), {"has_tags": True}, "choose one"),
        (("topic",), {"least": 5, "most": 4}, "minOffsetsPerTrigger is more than"),
        (("topic", "maxTriggerDelay"), {}, "minOffsetsPerTrigger is needed"),
        (("topic",), {"commits": True}, "option group is needed"),
    ],
)
def test_options_of_a_cluster(given: tuple[str, ...], more: dict[str, int], said: str) -> None:
    with pytest.raises(OptionError, match=said):
        check_live(frozenset(given), {}, **{**LIVE, **more})  # type: ignore[arg-type]


def test_bytes_of_a_log_are_for_stores() -> None:
    offsets = {"endingOffsets": starting_offsets("endingOffsets", '{"log": {"a": 0}}')}
    with pytest.raises(OptionError, match="endingOffsets: bytes of logs are for stores"):
        check_live(frozenset({"topic"}), offsets, **LIVE)  # type: ignore[arg-type]
