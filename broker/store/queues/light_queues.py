# SPDX-License-Identifier: Apache-2.0
"""Light queues (LMQ): additional queues whose units point at messages of other topics.

A producer lists them in INNER_MULTI_DISPATCH, "%LMQ%a,%LMQ%b". When the record is made, the offset
that the message gets in each of them is appended to its properties, in INNER_MULTI_QUEUE_OFFSET and
in the same order; so the queues can be built again from the log. A light queue is a topic of its
own with the one queue 0, and its units are those of plain queues.

The original writes offsets with enableLmq and units with enableMultiDispatch; here the two are one
setting. For a name that is not a light queue's, the original writes no offset, and serves no later
record; here such a list is refused earlier (broker/intake/transforms/multi_dispatch.py), and
ignored when found in a log.

Java: LmqDispatch, MultiDispatchUtils, ConsumeQueue.multiDispatchLmqQueue, MultiDispatch of 4.9.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from txrocketmq.broker.store.disk.mapped_file import MappedFileQueue
from txrocketmq.broker.store.formats.scan import Record
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.light_queues import QUEUE_ID, is_light, places
from txrocketmq.remoting.message.properties import decode_properties
from txrocketmq.remoting.message.topics import LIGHT_SEPARATOR

if TYPE_CHECKING:
    from txrocketmq.broker.store.formats.config import StoreConfig

__all__ = [
    "QUEUE_ID",
    "has_places",
    "is_light",
    "is_served",
    "listed",
    "offset_in",
    "offsets_property",
    "parts_with_places",
    "places",
    "places_of",
]

_MARK: Final = names.INNER_MULTI_QUEUE_OFFSET.encode() + b"\x01"
_IN_LOG: Final = re.compile(re.escape(_MARK))


def is_served(config: StoreConfig) -> bool:
    """Whether the settings ask for light queues."""
    return config.enable_lmq and config.enable_multi_dispatch


def listed(text: str | None) -> list[str]:
    """The names in INNER_MULTI_DISPATCH."""
    return text.split(LIGHT_SEPARATOR) if text else []


def offsets_property(offsets: Iterable[int]) -> bytes:
    """The property INNER_MULTI_QUEUE_OFFSET, encoded."""
    return _MARK + LIGHT_SEPARATOR.join(map(str, offsets)).encode() + b"\x02"


def has_places(record: Record) -> bool:
    """Whether the record may be in light queues: a fast test, since most records are in none."""
    return _MARK in record.view[record.properties_at : record.end].tobytes()


def places_of(record: Record) -> list[tuple[str, int]]:
    """The light queues of a record, and its offset in each."""
    if not has_places(record):
        return []
    values = decode_properties(str(record.properties, "utf-8", "replace"))
    topic = str(record.topic, "utf-8", "replace")
    return places(
        topic, values.get(names.INNER_MULTI_DISPATCH), values.get(names.INNER_MULTI_QUEUE_OFFSET)
    )


def offset_in(record: Record, light_queue: str) -> int | None:
    """The offset of a record in a light queue; None if it is not in there."""
    if not has_places(record):
        return None
    topic = str(record.topic, "utf-8", "replace")
    return _offsets(topic, record.properties.tobytes()).get(light_queue)


@lru_cache(maxsize=4)  # a record may be in thousands of light queues, which ask one after the other
def _offsets(topic: str, properties: bytes) -> dict[str, int]:
    values = decode_properties(str(properties, "utf-8", "replace"))
    listing = values.get(names.INNER_MULTI_DISPATCH), values.get(names.INNER_MULTI_QUEUE_OFFSET)
    return dict(places(topic, *listing))


def parts_with_places(files: MappedFileQueue, end: int) -> list[tuple[int, int]]:
    """The parts of the log with records that are in light queues, a file each.

    Gaps in light queues do not show in sums (coverage.py), so a start without an inventory
    dispatches all these records again.
    """
    found: list[tuple[int, int]] = []
    for file in files.mapped_files:
        after = min(file.from_offset + file.size_bytes, end)
        if after > file.from_offset and _IN_LOG.search(file.view[: after - file.from_offset]):
            found.append((file.from_offset, after))
    return found
