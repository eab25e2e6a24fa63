# SPDX-License-Identifier: Apache-2.0
"""What a store contained when it was closed: a small file of our own beside the checkpoint.

It says where the log began and ended, how far each queue went, and what the index had, so that the
next start notices what has been removed since, without reading everything. It counts only for the
log that it was written for: when an original broker has continued the store, or after a crash, it
is void.

Java: has no counterpart; original brokers leave the file alone.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from txrocketmq.broker.store.disk.files import Files
from txrocketmq.broker.store.index.index_file import Index
from txrocketmq.broker.store.log.commit_log import CommitLog
from txrocketmq.broker.store.queues.consume_queues import ConsumeQueues

NAME: Final = "inventory"
_VERSION: Final = 1

IndexExtent = list[int]
"""For an index file: log offsets of its first and last message, and its next item's number."""


@dataclass
class Inventory:
    """What a store contained; offsets are those of the log, but queue offsets count units."""

    log_start: int = 0
    log_end: int = 0
    last_ms: int = 0
    """The store timestamp of the last message."""
    queues: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    """By topic and queue id: the first offset and the offset after the last unit."""
    index: dict[str, IndexExtent] = field(default_factory=dict)
    """The extents of the index files, by file name."""
    is_indexed: bool = False
    """Whether all messages of the log that have keys are indexed."""


class InventoryFile:
    """The file of a store's inventory."""

    def __init__(self, files: Files, root: str) -> None:
        self._files = files
        self.path = os.path.join(root, NAME)

    def read(self) -> Inventory | None:
        """Reads the inventory; None when there is none, or none that can be read."""
        if not self._files.exists(self.path):
            return None
        try:
            values: dict[str, Any] = orjson.loads(self._files.read(self.path))
            if values.pop("version") != _VERSION:
                return None
            return Inventory(**values)
        except (ValueError, TypeError, KeyError, AttributeError):
            return None

    def leave(
        self,
        log: CommitLog,
        queues: ConsumeQueues,
        index: Index,
        last_ms: int,
        *,
        is_indexed: bool,
    ) -> None:
        """Durably writes what a store contains that is being closed; may raise OSError."""
        inventory = Inventory(max(log.min_offset, 0), log.max_offset, last_ms)
        inventory.queues = {
            topic: {str(each): [row.min_offset, row.max_offset] for each, row in rows.items()}
            for topic, rows in queues.table.items()
        }
        inventory.index, inventory.is_indexed = index.extents(), is_indexed
        values = {"version": _VERSION, **vars(inventory)}
        self._files.write(self.path, orjson.dumps(values))
        self._files.sync(self.path)
