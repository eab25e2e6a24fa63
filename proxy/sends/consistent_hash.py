# SPDX-License-Identifier: Apache-2.0
"""The queue of a message group, as the original's proxy chooses it.

Both may stand side by side, and a group has one queue only if they agree. Java:
com.google.common.hash.Hashing.consistentHash, which is the jump hash of Lamping and Veach with the
random numbers of a linear congruential generator.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from txrocketmq.remoting.message.tags import java_string_hash

_FACTOR: Final = 2862933555777941757
_MASK: Final = 2**64 - 1
_SIGN: Final = 2**31


def consistent_hash(number: int, buckets: int) -> int:
    """Returns the bucket of a number, which is a Java long: 0 to `buckets` - 1."""
    state = number & _MASK
    candidate = 0
    while True:
        state = (_FACTOR * state + 1) & _MASK
        fraction = ((state >> 33) + 1) / _SIGN
        following = int((candidate + 1) / fraction)
        if not 0 <= following < buckets:
            return candidate
        candidate = following


@lru_cache(maxsize=65_536)
def bucket_of(group: str, buckets: int) -> int:
    """Returns the bucket of a message group."""
    return consistent_hash(java_string_hash(group), buckets)
