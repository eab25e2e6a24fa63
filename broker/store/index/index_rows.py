# SPDX-License-Identifier: Apache-2.0
"""The facts about messages that the index needs, and the items made from them.

Most of the cost is hashing, so entries are collected and many are hashed at once. The producer's
unique keys, which nearly every message has, differ only in their last four characters from one to
the next; the hash of the characters before them is kept, since Java's hash of a text continues that
of its beginning. What the last characters add is computed for all keys together, in big integers.

Java: index.IndexService.buildIndex, buildKey, IndexFile.indexKeyHashMethod.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from txrocketmq.remoting.message.tags import java_string_hash, java_string_hashes

_TAIL: Final = 4
"""How many characters at the end of unique keys differ from one to the next."""
_NO_TAIL: Final = "\0" * _TAIL
"""A tail that adds nothing to a hash."""
_MASK: Final = 0xFFFFFFFF
_SIGN: Final = 0x80000000
_MAX_HEADS: Final = 1024
_LANES: Final = 1024
"""How many hashes are computed together."""
_LANE_BYTES: Final = 4
_EVERY_OTHER_BYTE: Final = int.from_bytes(b"\0\xff\0\xff" * _LANES, "big")
_EVERY_OTHER_PAIR: Final = int.from_bytes(b"\0\0\xff\xff" * _LANES, "big")
_LOW_BITS: Final = int.from_bytes(b"\x7f\xff\xff\xff" * _LANES, "big")
_HIGH_BITS: Final = int.from_bytes(b"\x80\0\0\0" * _LANES, "big")
_NO_COUNTERPART: Final = b"\x80\0\0\0"
"""The one integer whose absolute value is no positive integer."""

TAG_INDEX: Final = "T"
"""The index type of tags: the key is looked up as T#key."""


IndexEntry: TypeAlias = tuple[str, str | None, str | None, str | None, int, int]
"""What is indexed of a message: topic, unique key, keys (words separated by blanks), tag, log
offset and store time in ms. It is a plain tuple, since one is made for each message."""


class Rows(NamedTuple):
    """Future items: the hash of each key, and its message's log offset and store time."""

    hashes: list[int]
    offsets: list[int]
    times_ms: list[int]


def rows_of(entries: Sequence[IndexEntry]) -> Rows:
    """Makes the rows for entries; for each entry in the original's order: unique key, keys, tag.

    A row has the hash of a text without its tail, and the tail; most rows have no tail.
    """
    heads: list[int] = []
    tails: list[str] = []
    offsets: list[int] = []
    times_ms: list[int] = []
    words: list[str] = []
    word_rows: list[int] = []
    last_topic = last_head = None
    head_hash: int | None = 0
    for topic, uniq_key, keys, tags, physical_offset, stored_ms in entries:
        if uniq_key is not None:
            head = uniq_key[:-_TAIL]
            if head and uniq_key.isascii():
                if head != last_head or topic != last_topic:
                    last_topic, last_head = topic, head
                    head_hash = _head_hash(topic, head)
                if head_hash is None:
                    words.append(f"{topic}#{uniq_key}")
                    word_rows.append(len(heads))
                    heads.append(0)
                    tails.append(_NO_TAIL)
                else:
                    heads.append(head_hash)
                    tails.append(uniq_key[-_TAIL:])
            else:
                heads.append(_text_hash(f"{topic}#{uniq_key}") & _MASK)
                tails.append(_NO_TAIL)
            offsets.append(physical_offset)
            times_ms.append(stored_ms)
        if keys:
            for word in keys.split(" "):
                if word:
                    words.append(f"{topic}#{word}")
                    word_rows.append(len(heads))
                    heads.append(0)
                    tails.append(_NO_TAIL)
                    offsets.append(physical_offset)
                    times_ms.append(stored_ms)
        if tags:
            heads.append(_text_hash(f"{topic}#{TAG_INDEX}#{tags}") & _MASK)
            tails.append(_NO_TAIL)
            offsets.append(physical_offset)
            times_ms.append(stored_ms)
    for row, word_hash in zip(word_rows, java_string_hashes(words), strict=True):
        heads[row] = word_hash & _MASK
    return Rows(_whole(heads, "".join(tails).encode()), offsets, times_ms)


def _whole(heads: list[int], tails: bytes) -> list[int]:
    """Computes positive() of many hashes, given those of texts without tails, and the tails.

    A tail is a lane of four bytes, which are added up in two steps; its sum has 22 bits, so that
    adding it to the low bits of the other hash does not leave the lane.
    """
    hashes: list[int] = []
    for start in range(0, len(heads), _LANES):
        some = heads[start : start + _LANES]
        unsigned, signed = _lanes(len(some))
        lanes = int.from_bytes(tails[_TAIL * start : _TAIL * (start + len(some))], "big")
        lanes = (lanes >> 8 & _EVERY_OTHER_BYTE) * 31 + (lanes & _EVERY_OTHER_BYTE)
        lanes = (lanes >> 16 & _EVERY_OTHER_PAIR) * 961 + (lanes & _EVERY_OTHER_PAIR)
        before = int.from_bytes(unsigned.pack(*some), "big")
        lanes = (before & _LOW_BITS) + lanes ^ before & _HIGH_BITS
        packed = lanes.to_bytes(_LANE_BYTES * len(some), "big")
        if _NO_COUNTERPART in packed:
            hashes += map(positive, signed.unpack(packed))
        else:
            hashes += map(abs, signed.unpack(packed))
    return hashes


@lru_cache(maxsize=_LANES)
def _lanes(count: int) -> tuple[struct.Struct, struct.Struct]:
    """The codecs of `count` hashes in a row, without a sign and with it."""
    return struct.Struct(f">{count}I"), struct.Struct(f">{count}i")


def positive(java_hash: int) -> int:
    """Math.abs of the low 32 bits; 0 for the one integer that has no positive counterpart."""
    low = java_hash & _MASK
    return low if low < _SIGN else -low & ~_SIGN & _MASK


_heads: Final[dict[tuple[str, str], int | None]] = {}
"""By topic and beginning of a key: the hash that a tail is added to; None if it came once."""


def _head_hash(topic: str, head: str) -> int | None:
    """The hash of a key without its tail; None the first time.

    Beginnings recur in turns, one from each producer, and one for each topic that a message of a
    transaction goes to. Those that never recur (of acknowledgements, say) are cheaper to hash with
    everything else.
    """
    place = topic, head
    known = _heads.get(place)
    if known is None:
        if place in _heads:
            known = java_string_hash(f"{topic}#{head}") * 31**_TAIL & _MASK
        elif len(_heads) >= _MAX_HEADS:
            _heads.clear()
        _heads[place] = known
    return known


_text_hash: Final = lru_cache(maxsize=1024)(java_string_hash)
"""The hashes of recurring texts, which are tags."""
