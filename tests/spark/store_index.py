# SPDX-License-Identifier: Apache-2.0
"""Index files for the stores that tests write."""

from __future__ import annotations

from pathlib import Path

from txrocketmq.broker.store.formats import formats
from txrocketmq.remoting.message.tags import java_string_hash


class IndexWriter:
    """Writes index files, item by item, as IndexFile.putKey does."""

    def __init__(self, directory: Path, slots: int, items: int) -> None:
        self._directory = directory
        self._slots = slots
        self._items = items
        self._files = 0
        self._header: dict[str, int] = {}

    def put(self, key: str, physical_offset: int, store_timestamp: int) -> None:
        """Adds an item, in a new file when the last one is full."""
        if not self._header or self._header["index_count"] >= self._items:
            self._files += 1
            self._header = {
                "begin_timestamp": store_timestamp,
                "end_timestamp": 0,
                "begin_physical_offset": physical_offset,
                "end_physical_offset": 0,
                "hash_slot_count": 0,
                "index_count": 1,
            }
        header = self._header
        path = self._directory / f"202611210000000{self._files:02d}"
        slots_at = formats.INDEX_HEADER.sizeof()
        items_at = slots_at + 4 * self._slots
        file_bytes = items_at + formats.INDEX_ITEM.sizeof() * self._items
        write_at(path, 0, b"", file_bytes)
        its_hash = hash_of(key)
        slot_at = slots_at + 4 * (its_hash % self._slots)
        number = header["index_count"]
        with path.open("rb") as file:
            file.seek(slot_at)
            previous = formats.INDEX_SLOT.parse(file.read(4)).newest_item
        item = formats.INDEX_ITEM.build(
            {
                "key_hash": its_hash,
                "physical_offset": physical_offset,
                "seconds_since_begin": (store_timestamp - header["begin_timestamp"]) // 1000,
                "previous_item": previous,
            }
        )
        write_at(path, items_at + formats.INDEX_ITEM.sizeof() * number, item, file_bytes)
        write_at(path, slot_at, formats.INDEX_SLOT.build({"newest_item": number}), file_bytes)
        header["index_count"] = number + 1
        header["hash_slot_count"] += previous == 0
        header["end_timestamp"] = store_timestamp
        header["end_physical_offset"] = physical_offset
        write_at(path, 0, formats.INDEX_HEADER.build(header), file_bytes)


def write_at(path: Path, at: int, data: bytes, file_bytes: int) -> None:
    """Writes into a file, which is first made at full size if it does not exist."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as new:
            new.truncate(file_bytes)
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


def key_hash(topic: str, key: str, index_type: str | None = None) -> int:
    """Returns the hash of a topic's key in the index; 5.x gives tags the index type T."""
    return hash_of(f"{topic}#{f'{index_type}#' if index_type else ''}{key}")


def hash_of(text: str) -> int:
    """Returns Java's hash without its sign (IndexFile.indexKeyHashMethod)."""
    value = abs(java_string_hash(text))
    return 0 if value == 1 << 31 else value
