# SPDX-License-Identifier: Apache-2.0
"""A large JSON object whose members are encoded only when they change.

The tables of topics and groups are written to disk and sent to name servers whole, while one entry
changes at a time. Their values are immutable, so the text of an entry is kept as long as its value
is the same object.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from txrocketmq.remoting.serialize.json import encode_around, encode_pretty

T = TypeVar("T")


class EncodedTable(Generic[T]):
    """Encodes tables that differ little from the table before; may be used in any thread."""

    def __init__(self, encode: Callable[[str, T], bytes]) -> None:
        self._encode = encode
        self._kept: dict[str, tuple[T, bytes]] = {}

    def text(self, content: Mapping[str, Any], table: Mapping[str, T]) -> bytes:
        """Makes the text of a file that has the table where the content has HOLE."""
        before, after = encode_around(content, encode_pretty)
        return before + b"{" + self.members(table) + b"\n\t}" + after

    def members(self, table: Mapping[str, T]) -> bytes:
        """Encodes the members of an object, sorted by name, with commas and without braces."""
        return b",".join(self.texts(table))

    def texts(self, table: Mapping[str, T]) -> list[bytes]:
        """Encodes the members of the object, each by itself, sorted by name."""
        before, encode = self._kept, self._encode
        kept: dict[str, tuple[T, bytes]] = {}
        for name in sorted(table):
            value = table[name]
            pair = before.get(name)
            if pair is None or pair[0] is not value:
                pair = value, encode(name, value)
            kept[name] = pair
        self._kept = kept
        return [text for _, text in kept.values()]
