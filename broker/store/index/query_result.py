# SPDX-License-Identifier: Apache-2.0
"""What a query of the index finds, and what it cannot follow. Java: index.QueryOffsetResult."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class QueryOffsetResult(NamedTuple):
    """The answer to a query: log offsets of messages that may have the key, newest first.

    The other two fields are of the last item of the index, whatever the query was.
    """

    physical_offsets: list[int]
    last_update_timestamp_ms: int
    last_update_offset: int
    broken: Sequence[BrokenIndexChain] = ()
    """The damaged places of the index, because of which there may be more messages."""


class BrokenIndexChain(Exception):
    """An item of an index file does not belong to its chain, which cannot be followed further."""

    def __init__(self, path: str, position: int) -> None:
        super().__init__(f"{path} is damaged at byte {position}")
        self.path = path
        self.position = position
