# SPDX-License-Identifier: Apache-2.0
"""Which options make sense together: those that exclude or need each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from txrocketmq.remoting.message.topics import LMQ_PREFIX
from txrocketmq.spark.arrow.errors import OptionError
from txrocketmq.spark.options.offsets import Offsets
from txrocketmq.spark.options.option_values import TopicPattern


def check_light_queues(
    topics: Iterable[str], pattern: TopicPattern | None, *, is_as_consumers_see: bool
) -> None:
    """Raises OptionError if light queues are named where they are not read.

    `is_as_consumers_see` is false with assign, verify=store and view=physical.
    """
    name = "topic"
    light = min((topic for topic in topics if topic.startswith(LMQ_PREFIX)), default=None)
    if light is None and pattern is not None and pattern.is_light:
        name, light = "topicPattern", pattern.text
    if light is not None and not is_as_consumers_see:
        raise OptionError(
            f"{light} is a light queue: give {name}={light}, without assign, verify=store and"
            " view=physical"
        )


def check_live(
    given: frozenset[str],
    offsets: Mapping[str, Offsets | None],
    *,
    has_tags: bool,
    least: int | None,
    most: int | None,
    commits: bool,
) -> None:
    """Raises OptionError for options of a read of a cluster; `given` are the names of all.

    `offsets` are the options with offsets, by name. `least` and `most` are those of a micro-batch,
    and `commits` says whether the offsets of a group are committed.
    """
    if not given & {"topic", "topicPattern", "assign"}:
        raise OptionError("option topic, topicPattern or assign is needed with nameServer")
    if has_tags and "sqlExpression" in given:
        raise OptionError("subExpression and sqlExpression are both given: choose one")
    if least is not None and most is not None and least > most:
        raise OptionError("minOffsetsPerTrigger is more than maxOffsetsPerTrigger")
    if "maxTriggerDelay" in given and least is None:
        raise OptionError("option minOffsetsPerTrigger is needed with maxTriggerDelay")
    if commits and "group" not in given:
        raise OptionError("option group is needed with commitGroupOffsets=true")
    for name, its in offsets.items():
        if its is not None and its.logs:
            raise OptionError(f"option {name}: bytes of logs are for stores; name queues")
