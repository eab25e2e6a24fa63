# SPDX-License-Identifier: Apache-2.0
"""The ext files of a queue: what does not fit into the 20 bytes of a unit.

A unit of a consume queue may hold, instead of the hash of the tag, the address of a unit here,
which holds that hash, the store time and a filter's bitmap. An existing row is read whatever the
configuration says; it is written with enableConsumeQueueExt only. The store does not say what the
bitmap means: whoever owns the filters makes it, of each message that gets a unit.

Java: ConsumeQueueExt.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from txrocketmq.broker.store.disk.in_memory import Check, unchecked
from txrocketmq.broker.store.disk.mapped_file import MappedFile, MappedFileQueue
from txrocketmq.broker.store.formats import formats
from txrocketmq.remoting.primitives.packing import fixed

_HEAD: Final = fixed(formats.CONSUME_QUEUE_EXT_HEAD).struct
_SIZE: Final = fixed(formats.CONSUME_QUEUE_EXT_HEAD).codec_of("size")
_END: Final = _SIZE.pack(formats.CONSUME_QUEUE_EXT_END)
_MAX_OFFSET: Final = formats.CONSUME_QUEUE_EXT_ADDRESS_MAX - formats.CONSUME_QUEUE_EXT_ADDRESS_BASE


BitmapOf = Callable[[str, int, int], bytes]
"""Returns the bitmap of a message, by its topic, log offset and size; empty if it has none."""
_MAX_UNIT_BYTES: Final = 0x7FFF
"""The largest size of a unit, which is a signed number of 16 bits."""


def no_bitmap(_topic: str, _physical_offset: int, _size_bytes: int) -> bytes:
    """A BitmapOf for a store without filters."""
    return b""


def is_ext_address(tags_code: int) -> bool:
    """Whether the code in a queue's unit is an address in the ext files, and no hash of a tag."""
    return tags_code <= formats.CONSUME_QUEUE_EXT_ADDRESS_MAX


class ExtUnit(NamedTuple):
    """The unit at an address."""

    tags_code: int
    store_timestamp_ms: int
    bitmap: bytes
    size_bytes: int


class ConsumeQueueExt:
    """The ext files of one queue."""

    def __init__(self, files: MappedFileQueue, bitmap_of: BitmapOf = no_bitmap) -> None:
        self.files = files
        self.bitmap_of = bitmap_of

    def load(self) -> None:
        """Finds the files; raises FileSizeError when they have another size than configured.

        Empty files were left by a crash; the units that were in them count as damaged.
        """
        self.files.load()
        self.files.misfits = [entry for entry in self.files.misfits if entry.size_bytes]
        self.files.refuse_misfits()

    def get(self, address: int, check: Check = unchecked) -> ExtUnit | None:
        """The unit at the address; None when there is none, or it is damaged.

        `check` is called before each read.
        """
        offset = address - formats.CONSUME_QUEUE_EXT_ADDRESS_BASE
        file = self.files.find(offset)
        if file is None:
            return None
        at = offset - file.from_offset
        check(file, at, at + _HEAD.size)
        head = file.select(at, _HEAD.size)
        if head is None:
            return None
        size, tags_code, store_time, bitmap_size = _HEAD.unpack(head)
        if size < _HEAD.size or not 0 <= bitmap_size <= size - _HEAD.size:
            return None
        at += _HEAD.size
        check(file, at, at + bitmap_size)
        bitmap = file.select(at, bitmap_size)
        if bitmap is None:
            return None
        return ExtUnit(tags_code, store_time, bytes(bitmap), size)

    def put(self, tags_code: int, store_timestamp_ms: int, bitmap: bytes = b"") -> int:
        """Writes a unit and returns its address, or the tags code without a free address.

        Raises OSError when the disk has no room.
        """
        size = _HEAD.size + len(bitmap)
        most = min(_MAX_UNIT_BYTES, self.files.file_bytes - formats.CONSUME_QUEUE_EXT_END_BYTES)
        if size > most:
            size, bitmap = _HEAD.size, b""
        if self.files.max_offset + size > _MAX_OFFSET:
            return tags_code
        file = self.files.last
        if file is None or file.is_full:
            file = self.files.roll()
        room = file.size_bytes - file.wrote_bytes - formats.CONSUME_QUEUE_EXT_END_BYTES
        if room < size:
            file.append(_END)
            file.wrote_bytes = file.size_bytes
            file = self.files.roll()
        address = formats.CONSUME_QUEUE_EXT_ADDRESS_BASE + file.end_offset
        file.append(_HEAD.pack(size, tags_code, store_timestamp_ms, len(bitmap)) + bitmap)
        return address

    def recover(self, max_address: int) -> None:
        """Ends the row after the unit at the address, the last one that the queue refers to.

        If the number is no address, the row ends where its units end.
        """
        unit = self.get(max_address) if is_ext_address(max_address) else None
        if unit is not None:
            offset = max_address - formats.CONSUME_QUEUE_EXT_ADDRESS_BASE
            self.files.truncate(offset + unit.size_bytes)
        elif self.files.last is not None:
            last = self.files.last
            self.files.truncate(last.from_offset + _written_bytes(last))

    def take_files_before(self, min_address: int) -> list[MappedFile]:
        """Gives up the files before the one of this address, the first that the queue refers to."""
        if not is_ext_address(min_address):
            return []
        offset = min_address - formats.CONSUME_QUEUE_EXT_ADDRESS_BASE
        return self.files.take_first(max(self.files.index_of(offset), 0))


def _written_bytes(file: MappedFile) -> int:
    """The position in the file after its last unit."""
    position = 0
    view = file.view
    while position + _HEAD.size <= file.size_bytes:
        (size,) = _SIZE.unpack_from(view, position)
        if size < _HEAD.size:
            break
        position += size
    return min(position, file.size_bytes)
