# SPDX-License-Identifier: Apache-2.0
"""What a part of a request needs."""

from __future__ import annotations

import pytest

from txrocketmq.access.needs import (
    Action,
    Need,
    Needs,
    Part,
    ResourceType,
    UnclearNeed,
    need_of_topic,
)

TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
GROUP_FIELD = Part(GROUP, (Action.SUB,), ("consumerGroup",))
TOPIC_FIELD = Part(TOPIC, (Action.SUB,), ("topic",))


def test_a_topic_that_is_found_may_be_that_of_retries() -> None:
    assert need_of_topic("T", Action.PUB) == Need(TOPIC, "T", (Action.PUB,))
    assert need_of_topic("%RETRY%g", Action.GET) == Need(GROUP, "g", (Action.GET,))
    assert need_of_topic("%RETRY%g", Action.PUB) == Need(GROUP, "g", (Action.SUB,))
    with pytest.raises(UnclearNeed, match="topic is null"):
        need_of_topic("", Action.GET)


def test_the_first_field_that_is_there_counts() -> None:
    needs = Needs((Part(TOPIC, (Action.PUB,), ("b", "topic")),))
    assert needs.fields == ("b", "topic")
    assert needs.of({"topic": "T", "b": "U"}, b"", "C") == (Need(TOPIC, "U", (Action.PUB,)),)
    with pytest.raises(UnclearNeed, match="topic is null"):
        needs.of({"topic": "T", "b": ""}, b"", "C")


@pytest.mark.parametrize(
    ("topic", "needed"),
    [
        ("T", Need(TOPIC, "T", (Action.SUB,))),
        ("%RETRY%g_T", Need(TOPIC, "T", (Action.SUB,))),
        ("%RETRY%g+T", Need(TOPIC, "T", (Action.SUB,))),
        ("%RETRY%g", Need(GROUP, "g", (Action.SUB,))),
        ("%RETRY%other_T", Need(GROUP, "other_T", (Action.SUB,))),
        ("%RETRY%g_%RETRY%other", Need(GROUP, "other", (Action.SUB,))),
    ],
)
def test_what_a_group_pops_again_is_of_the_topic_that_it_pops(topic: str, needed: Need) -> None:
    its_group = Need(GROUP, "g", (Action.SUB,))
    needs = Needs((GROUP_FIELD, TOPIC_FIELD), own_pops=True)
    fields = {"consumerGroup": "g", "topic": topic}
    assert needs.of(fields, b"", "C") == tuple(dict.fromkeys((its_group, needed)))


def test_a_retry_topic_of_pops_without_a_topic_is_none() -> None:
    needs = Needs((GROUP_FIELD, TOPIC_FIELD), own_pops=True)
    with pytest.raises(UnclearNeed, match="topic is null"):
        needs.of({"consumerGroup": "g", "topic": "%RETRY%g_"}, b"", "C")
