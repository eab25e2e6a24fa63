# SPDX-License-Identifier: Apache-2.0
"""How a limit of messages is shared out among queues, according to what waits in each.

Spark's Kafka source does the same for maxOffsetsPerTrigger, but here the limit is kept exactly.
This module does no I/O.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Final, TypeVar

K = TypeVar("K", bound=Hashable)

_GOLDEN: Final = 0x9E3779B97F4A7C15
_WORD: Final = (1 << 64) - 1


def share(limit: int, backlogs: Mapping[K, int], turn: int) -> dict[K, int]:
    """Returns how many messages of each queue to take: `limit` in all, or fewer if fewer wait.

    Each queue gets its share in proportion to its backlog, rounded down. What is left goes one by
    one to queues that got nothing, and then to the others, so a queue with a small backlog is not
    passed over for ever. If there is still not enough for all, `turn` decides which queues come
    first; it may be any number that differs from time to time.
    """
    waiting = {key: backlog for key, backlog in backlogs.items() if backlog > 0}
    total = sum(waiting.values())
    if total <= limit:
        return {key: waiting.get(key, 0) for key in backlogs}
    shares = {key: limit * backlog // total for key, backlog in waiting.items()}
    left = limit - sum(shares.values())
    keys = list(waiting)
    first = _scattered(turn) % len(keys)
    in_turn = keys[first:] + keys[:first]
    for key in sorted(in_turn, key=lambda each: shares[each] > 0)[:left]:  # it keeps their order
        shares[key] += 1
    return {key: shares.get(key, 0) for key in backlogs}


def _scattered(number: int) -> int:
    """Hashes a number, so that turns that grow by equal steps do not favour the same queues."""
    return ((number * _GOLDEN) & _WORD) >> 20
