# SPDX-License-Identifier: Apache-2.0
"""A table with a limit: when it is full, the entry that came first makes room for the next one.

A plain dictionary would forget its first entry as well, but slowly: it keeps the places of removed
entries for a while, and looks through all of these for the first one that is left, which takes some
microseconds with many entries. An OrderedDict finds it at once.

Java: LinkedHashMap with removeEldestEntry.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class FifoCache(OrderedDict[K, V]):
    """Values by key, at most so many. It is read as any dictionary, and written with `keep`."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    def keep(self, key: K, value: V) -> None:
        """Sets a value; a key that is there keeps its place, and a new one comes last."""
        self[key] = value
        if len(self) > self.most:
            self.popitem(last=False)
