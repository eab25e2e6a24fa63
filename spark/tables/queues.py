# SPDX-License-Identifier: Apache-2.0
"""Tables of the consume queues and of the index."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final

import numpy as np

from txrocketmq.spark.arrow.schema import Column
from txrocketmq.spark.store.queue_files import Queue
from txrocketmq.spark.tables.table import (
    BROKER_NAME,
    CHOOSING_QUEUES,
    CLUSTER,
    ColumnValues,
    Request,
    Row,
    Table,
)

_TASKS: Final = 64
"""The most tasks for the queues of a store."""

QueueName = tuple[str, int]


def _queues(request: Request, names: Sequence[QueueName]) -> Iterator[Row]:
    for topic, queue_id in names:
        queue = request.store.queue(topic, queue_id)
        if queue is not None:  # not deleted since it was listed
            yield _queue(request, queue)


def _queue(request: Request, queue: Queue) -> Row:
    store = request.store
    first, end = queue.min_index(store.min_offset()), queue.max_index()
    messages, size, oldest, newest = 0, 0, None, None
    for units in queue.units_in_steps(first, end):
        messages += int(units["count"].sum())
        size += int(units["size"].sum(dtype=np.int64))
        oldest = int(units["physical_offset"][0]) if oldest is None else oldest
        newest = int(units["physical_offset"][-1])
    times = (None if at is None else store.stored_at(at) for at in (oldest, newest))
    return queue.topic, queue.queue_id, first, end, messages, size, *times


def _names(request: Request) -> Sequence[Sequence[QueueName]]:
    """Returns the names of the selected queues by task. Raises UnsupportedLayout for RocksDB."""
    request.check_queue_files()
    queues = [(queue.topic, queue.queue_id) for queue in request.store.queues()]
    names = [name for name in queues if request.wanted.wants_queue(*name)]
    return [part for part in (names[start::_TASKS] for start in range(_TASKS)) if part]


def _new_names(
    request: Request, planned: Sequence[Sequence[QueueName]]
) -> Sequence[Sequence[QueueName]]:
    known = {name for names in planned for name in names}
    return [[name for names in _names(request) for name in names if name not in known]]


QUEUES: Final = Table(
    "queues",
    "The queues, what they contain and since when.",
    (
        BROKER_NAME,
        Column("topic", "string", "topic"),
        Column("queueId", "int", "the queue's number"),
        Column("minOffset", "bigint", "offset of the first message that is still in the log"),
        Column("maxOffset", "bigint", "offset that the next message will get"),
        Column("messages", "bigint", "messages that are still in the log"),
        Column("bytes", "bigint", "bytes that they take in the log"),
        Column("firstTimestamp", "timestamp", "when the first of these messages was stored"),
        Column("lastTimestamp", "timestamp", "when the last of these messages was stored"),
        CLUSTER,
    ),
    _queues,
    _names,
    _new_names,
    CHOOSING_QUEUES,
)


def _units(request: Request, names: Sequence[QueueName]) -> Iterator[ColumnValues]:
    least = request.store.min_offset()
    for topic, queue_id in names:
        queue = request.store.queue(topic, queue_id)
        if queue is None:
            continue
        for units in queue.units_in_steps(queue.min_index(least), queue.max_index()):
            yield {
                "topic": topic,
                "queueId": queue_id,
                "queueOffset": units["queue_offset"],
                "physicalOffset": units["physical_offset"],
                "size": units["size"],
                "messages": units["count"],
                "tagsCode": units["tags_code"],
            }


CONSUME_QUEUE: Final = Table(
    "consumequeue",
    "Units of the consume queues.",
    (
        BROKER_NAME,
        Column("topic", "string", "of the queue"),
        Column("queueId", "int", "the queue's number"),
        Column("queueOffset", "bigint", "offset of the message, or of the first one of a batch"),
        Column("physicalOffset", "bigint", "of the record in the log"),
        Column("size", "int", "bytes of the record"),
        Column("messages", "int", "1, or how many a batch has"),
        Column("tagsCode", "bigint", "hash of the tag; of a delayed message, when it is due (ms)"),
        CLUSTER,
    ),
    _units,
    _names,
    _new_names,
    CHOOSING_QUEUES,
)


def _index(request: Request, name: str) -> Iterator[ColumnValues]:
    for file in request.store.index_files():
        if file.name == name:
            with suppress(FileNotFoundError):  # deleted since it was listed
                for entries in file.entries():
                    yield {
                        "file": file.name,
                        "item": entries["item"],
                        "keyHash": entries["key_hash"],
                        "physicalOffset": entries["physical_offset"],
                        "storeTimestamp": entries["store_timestamp"],
                        "previousItem": entries["previous_item"],
                    }


def _index_names(request: Request) -> Sequence[str]:
    return [file.name for file in request.store.index_files()]


def _new_index_names(request: Request, planned: Sequence[str]) -> Sequence[str]:
    return [name for name in _index_names(request) if name not in planned]


INDEX: Final = Table(
    "index",
    "Items of the index of keys.",
    (
        BROKER_NAME,
        Column("file", "string", "name of the index file: the time at which it was begun"),
        Column("item", "int", "number in the file, from 1"),
        Column("keyHash", "int", "hash of topic#key"),
        Column("physicalOffset", "bigint", "of the record in the log"),
        Column("storeTimestamp", "timestamp", "of the record, to the second"),
        Column("previousItem", "int", "the next older item in the same slot; 0 if there is none"),
        CLUSTER,
    ),
    _index,
    _index_names,
    _new_index_names,
)
