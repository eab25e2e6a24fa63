# SPDX-License-Identifier: Apache-2.0
"""The ext file row of a queue: per message what does not fit in a unit of 20 bytes.

A unit of a consume queue may hold, instead of the hash of the tag, the address of a unit here,
which holds that hash, the store time and a filter's bitmap. An existing row is read whatever the
configuration says; it is written with enableConsumeQueueExt only, and without bitmaps.

Java: ConsumeQueueExt.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from txrocketmq.broker.store import formats
from txrocketmq.broker.store.mapped_file import MappedFile, MappedFileQueue
from txrocketmq.remoting.packing import fixed

_HEAD: Final = fixed(formats.CONSUME_QUEUE_EXT_HEAD).struct
_END: Final = formats.CONSUME_QUEUE_EXT_END.to_bytes(2, "big", signed=True)
_MAX_OFFSET: Final = formats.CONSUME_QUEUE_EXT_ADDRESS_MAX - formats.CONSUME_QUEUE_EXT_ADDRESS_BASE


def is_ext_address(tags_code: int) -> bool:
    """Whether what a queue's unit holds is an address here, and no hash of a tag."""
    return tags_code <= formats.CONSUME_QUEUE_EXT_ADDRESS_MAX


class ExtUnit(NamedTuple):
    """What is at an address."""

    tags_code: int
    store_timestamp_ms: int
    bitmap: bytes
    size_bytes: int


class ConsumeQueueExt:
    """The row of one queue, over its mapped files."""

    def __init__(self, files: MappedFileQueue) -> None:
        self.files = files

    def get(self, address: int) -> ExtUnit | None:
        """The unit at the address; None when there is none, or a damaged one."""
        offset = address - formats.CONSUME_QUEUE_EXT_ADDRESS_BASE
        head = self.files.select(offset, _HEAD.size)
        if head is None:
            return None
        size, tags_code, store_time, bitmap_size = _HEAD.unpack(head)
        if size < _HEAD.size or not 0 <= bitmap_size <= size - _HEAD.size:
            return None
        bitmap = self.files.select(offset + _HEAD.size, bitmap_size)
        if bitmap is None:
            return None
        return ExtUnit(tags_code, store_time, bytes(bitmap), size)

    def put(self, tags_code: int, store_timestamp_ms: int) -> int:
        """The address of a new unit; the tags code itself when the row has no room for more.

        OSError when the disk has none.
        """
        if self.files.max_offset + _HEAD.size > _MAX_OFFSET:
            return tags_code
        file = self.files.last
        if file is None or file.is_full:
            file = self.files.roll()
        room = file.size_bytes - file.wrote_bytes - formats.CONSUME_QUEUE_EXT_END_BYTES
        if room < _HEAD.size:
            file.append(_END)
            file.wrote_bytes = file.size_bytes
            file = self.files.roll()
        address = formats.CONSUME_QUEUE_EXT_ADDRESS_BASE + file.end_offset
        file.append(_HEAD.pack(_HEAD.size, tags_code, store_timestamp_ms, 0))
        return address

    def recover(self, max_address: int) -> None:
        """Ends the row after the unit at the address, the last that the queue refers to.

        Any number that is no address: the row ends where its units do.
        """
        unit = self.get(max_address) if is_ext_address(max_address) else None
        if unit is not None:
            offset = max_address - formats.CONSUME_QUEUE_EXT_ADDRESS_BASE
            self.files.truncate(offset + unit.size_bytes)
        elif self.files.last is not None:
            last = self.files.last
            self.files.truncate(last.from_offset + _written_bytes(last))

    def truncate_before(self, min_address: int) -> None:
        """Removes the files before the one of this address, the first that is referred to."""
        if is_ext_address(min_address):
            offset = min_address - formats.CONSUME_QUEUE_EXT_ADDRESS_BASE
            self.files.remove_first(max(self.files.index_of(offset), 0))


def _written_bytes(file: MappedFile) -> int:
    """Where the units of the file end."""
    position = 0
    view = file.view
    while position + _HEAD.size <= file.size_bytes:
        size = int.from_bytes(view[position : position + 2], "big", signed=True)
        if size < _HEAD.size:
            break
        position += size
    return min(position, file.size_bytes)
