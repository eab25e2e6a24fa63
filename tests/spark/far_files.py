# SPDX-License-Identifier: Apache-2.0
"""Local files that are read as if over a network, with counts of the requests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import ClassVar

from txrocketmq.spark.store.files import Entry, LocalFiles, Piece, Tree


@dataclass(frozen=True)
class FarFiles(LocalFiles):
    """Counts lists, trees, reads and bytes."""

    is_remote = True
    counts: Counter[str] = field(default_factory=Counter, compare=False, repr=False)
    _lock: ClassVar[Lock] = Lock()

    def list(self, path: str) -> list[Entry]:
        self._count(list=1)
        return super().list(path)

    def tree(self, path: str) -> Tree:
        self._count(tree=1)
        return LocalFiles().tree(path)

    def read_into(self, path: str, offset: int, view: memoryview) -> int:
        self._count(read=1, bytes=len(view))
        return super().read_into(path, offset, view)

    def read_pieces(self, path: str, pieces: Sequence[Piece], view: memoryview) -> int:
        self._count(read=len(pieces), bytes=len(view))
        return super().read_pieces(path, pieces, view)

    def _count(self, **more: int) -> None:
        with self._lock:  # several threads ask
            self.counts.update(more)
