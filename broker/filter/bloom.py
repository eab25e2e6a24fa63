# SPDX-License-Identifier: Apache-2.0
"""Bloom filters: the groups that may want a message, in the few bytes of its bitmap.

Each group has some bits, by the hash of its name and the topic's; the bitmap of a message has the
bits of all groups whose expression is true of it. How many bits there are, and how many a group
has, follows from the settings, as does what is in the files.

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
    """The bits of one group and topic, of `bit_num`."""

    bit_pos: tuple[int, ...]
    bit_num: int

    def is_hit(self, bitmap: bytes) -> bool:
        """Whether all of them are set in a bitmap of as many bits."""
        return all(bitmap[at >> 3] >> (at & 7) & 1 for at in self.bit_pos)


class BloomFilter:
    """What follows from an error rate in percent, and the number of groups to expect.

    ValueError says what is wrong with these.
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
        """The bits of a group and topic."""
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
        """Whether these are bits of this filter."""
        return (
            data is not None
            and data.bit_num == self.bits
            and len(data.bit_pos) == self.hashes
            and all(0 <= at < self.bits for at in data.bit_pos)
        )

    def bitmap(self, hit: Iterable[BloomFilterData]) -> bytes:
        """A bitmap that has the bits of all these."""
        bitmap = bytearray(self.bits // _BYTE_BITS)
        for data in hit:
            for at in data.bit_pos:
                bitmap[at >> 3] |= 1 << (at & 7)
        return bytes(bitmap)


def _log(base: float, value: float) -> float:
    return math.log(value) / math.log(base)
