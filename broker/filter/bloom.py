# SPDX-License-Identifier: Apache-2.0
"""Bloom filters: the groups that may select a message, in the few bytes of its bitmap.

Each group and topic has some bits, chosen by a hash of the two names. The bitmap of a message has
the bits of all groups whose expression is true for it. The number of bits, and how many of them a
group has, follow from the settings; so do the contents of the files.

Java: filter.util.BloomFilter, BloomFilterData, BitsArray; Guava's Hashing.murmur3_128.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from mmh3 import hash64

_INT_MASK: Final = (1 << 32) - 1
_SIGN: Final = 1 << 31
_BYTE_BITS: Final = 8


@dataclass(frozen=True, slots=True)
class BloomFilterData:
    """The bits of one group and topic, in bitmaps of `bit_num` bits."""

    bit_pos: tuple[int, ...]
    bit_num: int

    def is_hit(self, bitmap: bytes) -> bool:
        """Whether all these bits are set in a bitmap of `bit_num` bits."""
        return all(bitmap[at >> 3] >> (at & 7) & 1 for at in self.bit_pos)


class BloomFilter:
    """The size of bitmaps for an error rate in percent and an expected number of groups.

    Raises ValueError when one of the two is out of range.
    """

    def __init__(self, error_rate: int, expected: int) -> None:
        if not 1 <= error_rate < 100:
            raise ValueError(f"maxErrorRateOfBloomFilter must be 1 to 99, not {error_rate}")
        if expected < 1:
            raise ValueError(f"expectConsumerNumUseFilter must be at least 1, not {expected}")
        rate = error_rate / 100.0
        self.hashes = math.ceil(_log(0.5, rate))
        bits = math.ceil(expected * _log(2, 1 / rate) * _log(2, math.e))
        self.bits = _BYTE_BITS * math.ceil(bits / _BYTE_BITS)

    def data_of(self, group: str, topic: str) -> BloomFilterData:
        """Computes the bits of a group and topic."""
        low, _ = hash64(f"{group}#{topic}".encode("utf-8", "replace"), signed=False)
        first, second = low & _INT_MASK, low >> 32
        positions = []
        for step in range(1, self.hashes + 1):
            combined = (first + step * second) & _INT_MASK
            if combined & _SIGN:
                combined ^= _INT_MASK
            positions.append(combined % self.bits)
        return BloomFilterData(tuple(positions), self.bits)

    def fits(self, data: BloomFilterData | None) -> bool:
        """Whether these bits were made by a filter of this size."""
        return (
            data is not None
            and data.bit_num == self.bits
            and len(data.bit_pos) == self.hashes
            and all(0 <= at < self.bits for at in data.bit_pos)
        )

    def bitmap(self, hit: Iterable[BloomFilterData]) -> bytes:
        """Makes a bitmap in which the bits of all these are set."""
        bitmap = bytearray(self.bits // _BYTE_BITS)
        for data in hit:
            for at in data.bit_pos:
                bitmap[at >> 3] |= 1 << (at & 7)
        return bytes(bitmap)


def _log(base: float, value: float) -> float:
    return math.log(value) / math.log(base)
