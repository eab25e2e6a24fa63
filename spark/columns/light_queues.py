# SPDX-License-Identifier: Apache-2.0
"""Light queues (LMQ) according to the log: which records are in which one, and at which offset.

A record either names its light queues in the properties INNER_MULTI_DISPATCH and
INNER_MULTI_QUEUE_OFFSET, or it was sent to a light queue as to a topic. So what streams and copies
read of a light queue depends on the log alone, whatever the units of the queue refer to by now.

Java: LmqDispatch, MultiDispatchUtils; MultiDispatch of 4.9.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.topics import LIGHT_SEPARATOR, may_enter_light_queues
from txrocketmq.spark.arrow.arrays import numbers_of, of_numbers, of_texts
from txrocketmq.spark.arrow.records import Records
from txrocketmq.spark.arrow.walk import Positions
from txrocketmq.spark.columns.messages import plain_messages
from txrocketmq.spark.columns.properties import Properties

_MARK: Final = re.compile(re.escape(names.INNER_MULTI_QUEUE_OFFSET.encode() + b"\x01"))
_OFFSET: Final = "^[0-9]{1,18}$"


def in_light_queues(records: Records, wants: Callable[[str], bool]) -> Iterator[Records]:
    """Yields the records that are in the wanted light queues, one queue after the other.

    Their topics and offsets are those that consumers of the queue see.
    """
    codes, known = records.topics()
    entered = _Entered.of(records)
    for topic in sorted(filter(wants, {*known, *entered.names()})):
        sent = np.flatnonzero(codes == known.index(topic)) if topic in known else _NONE
        rows, offsets = entered.queue(topic)
        rows = np.append(sent, rows)
        if len(rows):
            offsets = np.append(records.queue_offset[sent], offsets)
            order = np.argsort(rows, kind="stable")
            yield records.take(rows[order]).in_light_queue(topic, offsets[order])


_NONE: Final[Positions] = np.empty(0, np.int64)


class _Entered:
    """The records of other topics in light queues: row of the record, name of the queue, offset."""

    def __init__(self, rows: Positions, queues: pa.Array, offsets: pa.Array) -> None:
        self._rows = rows
        self._queues = queues
        self._offsets = offsets

    @classmethod
    def of(cls, records: Records) -> _Entered:
        """Reads the properties of the records."""
        rows = _rows_that_may(records)
        properties = Properties(plain_messages(records.take(rows)).properties)
        queues, offsets = (
            pc.split_pattern(properties.value(name), LIGHT_SEPARATOR)
            for name in (names.INNER_MULTI_DISPATCH, names.INNER_MULTI_QUEUE_OFFSET)
        )
        alike = pc.equal(pc.list_value_length(queues), pc.list_value_length(offsets))
        alike = pc.coalesce(alike, of_numbers(np.zeros(len(alike), np.bool_)))
        rows, queues, offsets = rows[numbers_of(alike)], queues.filter(alike), offsets.filter(alike)
        parents = numbers_of(pc.list_parent_indices(queues))
        return cls(rows[parents], pc.list_flatten(queues), pc.list_flatten(offsets))

    def names(self) -> set[str]:
        """Returns the names of the queues."""
        return set(pc.unique(self._queues).to_pylist())

    def queue(self, topic: str) -> tuple[Positions, Positions]:
        """Returns the rows of records in this queue, and their offsets in it."""
        found = pc.and_(
            pc.is_in(self._queues, value_set=of_texts([topic])),
            pc.match_substring_regex(self._offsets, _OFFSET),
        )
        offsets = numbers_of(self._offsets.filter(found).cast(pa.int64()))
        return self._rows[numbers_of(found)], offsets


def _rows_that_may(records: Records) -> Positions:
    """Returns rows whose topic may enter light queues; none if no record of the buffer has."""
    if not len(records) or _MARK.search(records.buffer.data) is None:
        return _NONE
    codes, topics = records.topics()
    allowed = np.array([may_enter_light_queues(topic) for topic in topics], np.bool_)
    return np.flatnonzero(allowed[codes])
