# SPDX-License-Identifier: Apache-2.0
"""Which options make sense together, given what is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txrocketmq.remoting.message.topics import LMQ_PREFIX
from txrocketmq.spark.errors import OptionError
from txrocketmq.spark.offsets import queue_text

if TYPE_CHECKING:
    from txrocketmq.spark.options import SourceOptions


def check_together(options: SourceOptions, *, is_live: bool, is_store: bool) -> None:
    """Raises OptionError for options that exclude or need each other in a read."""
    if is_live:
        _check_live(options)
    if is_store:
        _check_light_queues(options)
    offsets = (options.starting_offsets, options.ending_offsets)
    queues = [each.queues if each else None for each in offsets]
    for named in (*queues, options.starting_times, options.ending_times):
        for queue in sorted(named or ()):
            _check_selected(options, *queue)


def _check_light_queues(options: SourceOptions) -> None:
    named = options.assign.topics() if options.assign is not None else options.topics or ()
    light = min((topic for topic in named if topic.startswith(LMQ_PREFIX)), default=None)
    if light is None and options.topic_pattern is not None and options.topic_pattern.is_light:
        light = options.topic_pattern.text
    if light is None:
        return
    if options.assign is not None or options.verify == "store" or options.view == "physical":
        name = "topic" if options.topic_pattern is None else "topicPattern"
        raise OptionError(
            f"{light} is a light queue: give {name}={light}, without assign, verify=store and"
            " view=physical"
        )


def _check_live(options: SourceOptions) -> None:
    if not options.given & {"topic", "topicPattern", "assign"}:
        raise OptionError("option topic, topicPattern or assign is needed with nameServer")
    if options.tags is not None and options.sql_expression is not None:
        raise OptionError("subExpression and sqlExpression are both given: choose one")
    least, most = options.min_offsets_per_trigger, options.max_offsets_per_trigger
    if least is not None and most is not None and least > most:
        raise OptionError("minOffsetsPerTrigger is more than maxOffsetsPerTrigger")
    if "maxTriggerDelay" in options.given and least is None:
        raise OptionError("option minOffsetsPerTrigger is needed with maxTriggerDelay")
    if options.commit_group_offsets and options.group is None:
        raise OptionError("option group is needed with commitGroupOffsets=true")
    for name, offsets in (
        ("startingOffsets", options.starting_offsets),
        ("endingOffsets", options.ending_offsets),
    ):
        if offsets is not None and offsets.logs:
            raise OptionError(f"option {name}: bytes of logs are for stores; name queues")


def _check_selected(options: SourceOptions, topic: str, broker_name: str, queue_id: int) -> None:
    if not options.selects(topic):
        raise OptionError(f"offsets are given for the topic {topic}, which is not selected")
    if options.assign is not None and queue_id not in options.assign.of(topic, broker_name):
        raise OptionError(
            f"offsets are given for {queue_text(topic, broker_name, queue_id)},"
            " which assign does not name"
        )
