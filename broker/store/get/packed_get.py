# SPDX-License-Identifier: Apache-2.0
"""Answers a pull of all messages of a queue from its units, by a kernel.

A kernel takes usual pulls only: messages that are recent and in memory, sound, in one file of the
log. Whatever is otherwise is for get_message.py, which has the rules; so None may be returned at
any time, and nothing is noted here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from txrocketmq.broker.store.formats.packed import PullAnswer
from txrocketmq.broker.store.get.get_result import Limits, Request
from txrocketmq.broker.store.get.records import Records
from txrocketmq.broker.store.queues.consume_queue import UNIT, UNIT_BYTES, ConsumeQueue

_MOST_APART_BYTES: Final = 1024 * 1024
"""If messages that were not written lately are farther apart, each is looked for by itself."""


class PackedGet(NamedTuple):
    """An answer to a pull: its buffers, how many messages it has, and where the next one begins."""

    next_offset: int
    messages: int
    size_bytes: int
    buffers: Sequence[bytes | memoryview]


NOTHING_YET: Final = PackedGet(0, 0, 0, ())
"""For a pull that begins where its queue ends."""


# For each pull, so no call is made that can be avoided.
def get_packed(
    records: Records, queue: ConsumeQueue, request: Request, answer: PullAnswer,
    pieces: list[bytes], opaque: int,
) -> PackedGet | None:  # fmt: skip
    """Serves a request for messages that are there; raises NotInMemory if their units are not."""
    recent_from, asked_before = records.marks()
    limits = Limits(records.config, request, recent_from)
    offset, most = request.offset, limits.recent_count if limits.recent_count > 0 else 1
    units = queue.read(offset, most, records.memory.check)
    if units is None:
        return None
    start: int = UNIT.unpack_from(units)[0]
    file = records.log.files.find(start)
    if file is None:
        return None
    view, base, end = file.view, file.from_offset, file.wrote_bytes
    least = max(recent_from, asked_before)
    if start < asked_before:
        last, size_bytes, _ = UNIT.unpack_from(units, len(units) - UNIT_BYTES)
        least, end = max(recent_from, start), last + size_bytes - base
        if (
            not 0 < end - start + base <= _MOST_APART_BYTES
            or end > file.wrote_bytes
            or records.memory.missing(file, start - base, end)
        ):
            return None
    found = answer(
        units, view, base, end, least, queue.magic, most, limits.recent_bytes, pieces, opaque,
        (offset, queue.min_offset, queue.max_offset),
    )  # fmt: skip
    if found is None:
        return None
    count, size_bytes, head, places = found
    buffers: list[bytes | memoryview] = [head]
    if places:
        buffers += [view[begin:end] for begin, end in places]
    return PackedGet(offset + count, count, size_bytes, buffers)
