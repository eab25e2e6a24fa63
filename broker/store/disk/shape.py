# SPDX-License-Identifier: Apache-2.0
"""Infers the kinds and sizes of a store's files from the files themselves.

A broker gets that from its configuration; whoever only has the directory asks here. What cannot be
told has its default.

Java: has no counterpart.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from typing import Final

from txrocketmq.broker.store.disk.files import Entry, Files
from txrocketmq.broker.store.formats import formats
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.remoting.message.topics import LMQ_PREFIX
from txrocketmq.remoting.primitives.packing import fixed

_HEADER: Final = fixed(formats.INDEX_HEADER)
_ITEM: Final = fixed(formats.INDEX_ITEM)
_SLOT_BYTES: Final = fixed(formats.INDEX_SLOT).size
_END_OFFSET: Final = _HEADER.codec_of("end_physical_offset")
_OFFSET_AT: Final = _ITEM.offset_of("physical_offset")
_LAST: Final = ("end_physical_offset", "index_count")
_NAME_DIGITS: Final = 20


def config_of(files: Files, root: str) -> StoreConfig:
    """Settings with which a store in this directory can be opened."""
    default = StoreConfig(store_path_root_dir=root)
    log = _file_bytes([files.entries(os.path.join(root, "commitlog"))])
    queues = _file_bytes(_rows(files, os.path.join(root, "consumequeue")))
    batches = _file_bytes(_rows(files, os.path.join(root, "batchconsumequeue")))
    slots, items = _index(files, os.path.join(root, "index"), default)
    has_light = any(
        each.name.startswith(LMQ_PREFIX)
        for each in files.entries(os.path.join(root, "consumequeue"))
    )
    return StoreConfig(
        store_path_root_dir=root,
        mapped_file_size_commit_log=log or default.mapped_file_size_commit_log,
        mapped_file_size_consume_queue=queues or default.mapped_file_size_consume_queue,
        mapper_file_size_batch_consume_queue=(
            batches or default.mapper_file_size_batch_consume_queue
        ),
        max_hash_slot_num=slots,
        max_index_num=items,
        enable_lmq=has_light,
        enable_multi_dispatch=has_light,
    )


def _rows(files: Files, root: str) -> Iterable[list[Entry]]:
    for topic in files.entries(root):
        if topic.is_directory:
            for queue in files.entries(os.path.join(root, topic.name)):
                if queue.is_directory:
                    yield files.entries(os.path.join(root, topic.name, queue.name))


def _file_bytes(rows: Iterable[list[Entry]]) -> int:
    """The size of the files in rows: the distance of their names, or the size that most have."""
    steps: Counter[int] = Counter()
    sizes: Counter[int] = Counter()
    for row in rows:
        named = [each for each in row if len(each.name) == _NAME_DIGITS and each.name.isdecimal()]
        sizes.update(each.size_bytes for each in named if each.size_bytes)
        starts = [int(each.name) for each in named]
        steps.update(after - before for before, after in pairwise(starts))
    for counted in (steps & Counter(dict.fromkeys(sizes, 1 << 62)), sizes):
        if counted:
            return max(counted, key=lambda size: (counted[size], size))
    return 0


def _index(files: Files, directory: str, default: StoreConfig) -> tuple[int, int]:
    """The numbers of slots and items of index files: the header names the last item's message."""
    shape = default.max_hash_slot_num, default.max_index_num
    for entry in files.entries(directory):
        if entry.is_directory or entry.size_bytes <= _HEADER.size:
            continue
        mapped = files.map(os.path.join(directory, entry.name), entry.size_bytes)
        header = _HEADER.struct.unpack_from(mapped, 0)
        end, count = (header[_HEADER.names.index(name)] for name in _LAST)
        wanted = _END_OFFSET.pack(end)
        slot_bytes = shape[0] * _SLOT_BYTES
        if entry.size_bytes == _HEADER.size + slot_bytes + shape[1] * _ITEM.size:
            at = _HEADER.size + slot_bytes + (count - 1) * _ITEM.size + _OFFSET_AT
            if mapped[at : at + len(wanted)] == wanted:
                return shape
        found = mapped.rfind(wanted) - _OFFSET_AT
        slot_bytes = found - (count - 1) * _ITEM.size - _HEADER.size
        items, rest = divmod(entry.size_bytes - _HEADER.size - slot_bytes, _ITEM.size)
        is_whole = not rest and not slot_bytes % _SLOT_BYTES
        if end > 0 and slot_bytes > 0 and is_whole and items >= count:
            return slot_bytes // _SLOT_BYTES, items
    return shape
