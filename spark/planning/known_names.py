# SPDX-License-Identifier: Apache-2.0
"""Whether the stores have what options name: brokers, queues and topics.

A topic that was deleted is in no table of the broker, but its messages may still be in the log. So
before a name counts as misspelt the newest part of the log is searched for it, as bytes.
"""

from __future__ import annotations

import difflib
import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Final

from txrocketmq.remoting.message.topics import (
    BENCHMARK_TOPIC,
    DEFAULT_TOPIC,
    DLQ_PREFIX,
    LMQ_PREFIX,
    REPLY_SUFFIX,
    RETRY_PREFIX,
)
from txrocketmq.spark.arrow.errors import OptionError, StoreError
from txrocketmq.spark.log.log_end import end_of_log
from txrocketmq.spark.options.conditions import Conditions
from txrocketmq.spark.options.offsets import queue_text
from txrocketmq.spark.options.option_values import EVERY_BROKER
from txrocketmq.spark.options.options import SourceOptions
from txrocketmq.spark.store.store import Store
from txrocketmq.spark.store.system_topics import is_system_topic

log = logging.getLogger("txrocketmq.spark")

_MADE_ON_DEMAND: Final = (RETRY_PREFIX, DLQ_PREFIX, LMQ_PREFIX)
"""What topics begin with that come into being with their first message."""
_SEARCHED_BYTES: Final = 256 << 20
"""How much of the logs is searched for unknown topics."""
_CHUNK_BYTES: Final = 8 << 20
_MOST_SUGGESTED: Final = 3


def check_queues(stores: Sequence[Store], options: SourceOptions) -> None:
    """Raises OptionError if offsets for each broker name a queue that none of the stores has."""
    for name, offsets in (
        ("startingOffsets", options.starting_offsets),
        ("endingOffsets", options.ending_offsets),
    ):
        for queue in sorted(offsets.queues_on(EVERY_BROKER) if offsets else ()):
            if all(each.queue_kind == "files" and not each.queue(*queue) for each in stores):
                topic, queue_id = queue
                raise OptionError(
                    f"option {name}: {queue_text(topic, EVERY_BROKER, queue_id)} is not in"
                    f" {_listed(stores)}"
                )


def check_topics(stores: Sequence[Store], options: SourceOptions) -> None:
    """Raises OptionError if an option names a topic that is in none of the stores.

    If its name resembles none that they have and their logs are too long to be searched whole, a
    warning is logged instead.
    """
    named = set(options.topics or (options.assign.topics() if options.assign else ()))
    named |= Conditions.of(options.where).texts.get("topic", frozenset())
    if options.allow_unknown_topics or not stores or not named:
        return
    unknown = {each for each in named if not _is_made_on_demand(each)}
    for store in stores:
        unknown = {each for each in unknown if not store.queues_of(each)}
    try:
        unknown -= _known_topics(stores) if unknown else set()
        known = _of_users(_known_topics(stores), stores) if unknown else []
    except StoreError:
        return  # a broker's table of topics cannot be read, which the messages do not need
    if not known:
        return
    unknown, is_whole = _not_in_logs(stores, unknown)
    for topic in sorted(unknown):
        near = difflib.get_close_matches(topic, known, _MOST_SUGGESTED)
        text = f"{_listed(stores)} has no topic {topic}"
        if not near and not is_whole:
            log.warning("%s, unless the older part of the log has messages of it", text)
            continue
        hint = f"did you mean {' or '.join(near)}?" if near else f"its topics are {_some(known)}."
        raise OptionError(
            f"{text}: {hint} For a topic that comes later or was deleted, say"
            " allowUnknownTopics=true"
        )


def _is_made_on_demand(topic: str) -> bool:
    return topic.startswith(_MADE_ON_DEMAND) or is_system_topic(topic)


def _listed(stores: Sequence[Store]) -> str:
    return ", ".join(each.uri for each in stores)


def _known_topics(stores: Sequence[Store]) -> set[str]:
    found = {topic for store in stores for topic in store.config.topics()}
    return found | {queue.topic for store in stores for queue in store.queues()}


def _of_users(topics: Iterable[str], stores: Sequence[Store]) -> list[str]:
    """Returns the topics without those that brokers name after themselves, or make on demand."""
    own = {DEFAULT_TOPIC, BENCHMARK_TOPIC}
    for store in stores:
        cluster = store.config.cluster_name()
        own |= {store.broker_name, f"{cluster}", f"{cluster}{REPLY_SUFFIX}"}
    return sorted(each for each in topics if each not in own and not _is_made_on_demand(each))


def _some(topics: Sequence[str]) -> str:
    more = len(topics) - _MOST_SUGGESTED
    shown = ", ".join(topics[:_MOST_SUGGESTED])
    return f"{shown} and {more} more" if more > 0 else shown


def _not_in_logs(stores: Sequence[Store], topics: Iterable[str]) -> tuple[set[str], bool]:
    """Returns the topics that were not found, and whether the whole logs have been searched."""
    marks = {topic: _marks(topic) for topic in topics}
    overlap = max(len(mark) for each in marks.values() for mark in each)
    left = _SEARCHED_BYTES
    for store in stores:
        for data in _backwards(store, overlap):
            if left <= 0:
                return set(marks), False
            left -= len(data)
            marks = {
                topic: its for topic, its in marks.items() if not any(mark in data for mark in its)
            }
            if not marks:
                return set(), True
    return set(marks), True


def _marks(topic: str) -> tuple[bytes, bytes]:
    """Returns what is in a record of the topic, and in one that is delivered there later."""
    name = topic.encode("utf-8", "surrogateescape")
    return bytes([len(name) & 0xFF]) + name, b"\x01" + name + b"\x02"


def _backwards(store: Store, overlap: int) -> Iterator[bytes]:
    """Yields the log in pieces, the newest first."""
    end = end_of_log(store)
    for segment in reversed(store.segments()):
        for start in reversed(range(segment.first_offset, min(segment.end, end), _CHUNK_BYTES)):
            with suppress(FileNotFoundError):  # deleted since it was listed
                yield store.read(start, min(_CHUNK_BYTES + overlap, end - start))
