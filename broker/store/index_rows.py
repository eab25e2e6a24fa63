# SPDX-License-Identifier: Apache-2.0
"""What the index is to know of messages, and the items that come of it.

Hashing is the cost of it, so entries are collected and hashed many at once. The producer's unique
keys, which nearly every message has, differ from one to the next in their last four characters
only; the hash of what is before them is kept, since Java's hash of a text goes on from that of
its start.

Java: index.IndexService.buildIndex, buildKey, IndexFile.indexKeyHashMethod.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from txrocketmq.remoting.message.tags import java_string_hash, java_string_hashes

_TAIL: Final = 4
"""How many characters of unique keys change from one to the next."""
_NO_TAIL: Final = "\0" * _TAIL
"""Adds nothing to a hash."""
_MASK: Final = 0xFFFFFFFF
_SIGN: Final = 0x80000000

TAG_INDEX: Final = "T"
"""The index type of tags: the key is looked up as T#key."""


IndexEntry: TypeAlias = tuple[str, str | None, str | None, str | None, int, int]
"""What is indexed of a message: topic, unique key, keys (words between blanks), tag; and its
physical offset and store time in ms. A plain tuple, since one is made for each message."""


class Rows(NamedTuple):
    """Items to be: for each, the hash of its key, its message's place, when that was stored."""

    hashes: list[int]
    offsets: list[int]
    times_ms: list[int]


def rows_of(entries: Sequence[IndexEntry]) -> Rows:
    """What is to be written; of each entry, in the original's order: unique key, keys, tag.

    Each row has the hash of a text without its tail, and the tail; most rows have none.
    """
    hashes: list[int] = []
    tails: list[str] = []
    offsets: list[int] = []
    times_ms: list[int] = []
    words: list[str] = []
    word_rows: list[int] = []
    last_topic = last_head = None
    head_hash = 0
    for topic, uniq_key, keys, tags, physical_offset, stored_ms in entries:
        if uniq_key is not None:
            head = uniq_key[:-_TAIL]
            if head and uniq_key.isascii():
                if head != last_head or topic != last_topic:
                    last_topic, last_head = topic, head
                    head_hash = java_string_hash(f"{topic}#{head}") * 31**_TAIL
                hashes.append(head_hash)
                tails.append(uniq_key[-_TAIL:])
            else:
                hashes.append(_text_hash(f"{topic}#{uniq_key}"))
                tails.append(_NO_TAIL)
            offsets.append(physical_offset)
            times_ms.append(stored_ms)
        if keys:
            for word in keys.split(" "):
                if word:
                    words.append(f"{topic}#{word}")
                    word_rows.append(len(hashes))
                    hashes.append(0)
                    tails.append(_NO_TAIL)
                    offsets.append(physical_offset)
                    times_ms.append(stored_ms)
        if tags:
            hashes.append(_text_hash(f"{topic}#{TAG_INDEX}#{tags}"))
            tails.append(_NO_TAIL)
            offsets.append(physical_offset)
            times_ms.append(stored_ms)
    for row, word_hash in zip(word_rows, java_string_hashes(words), strict=True):
        hashes[row] = word_hash
    return Rows(_whole(hashes, "".join(tails).encode()), offsets, times_ms)


def _whole(hashes: list[int], tails: bytes) -> list[int]:
    """positive() of hashes of texts without tails, with their tails; all in one go."""
    columns = [tails[at::_TAIL] for at in range(_TAIL)]
    return [
        low
        if (low := (head + 29791 * a + 961 * b + 31 * c + d) & _MASK) < _SIGN
        else -low & ~_SIGN & _MASK
        for head, a, b, c, d in zip(hashes, *columns, strict=True)
    ]


def positive(java_hash: int) -> int:
    """Math.abs of the low 32 bits, and 0 for the one integer that has no positive counterpart."""
    low = java_hash & _MASK
    return low if low < _SIGN else -low & ~_SIGN & _MASK


_text_hash: Final = lru_cache(maxsize=1024)(java_string_hash)
"""For texts that come again: tags."""
