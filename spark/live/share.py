# SPDX-License-Identifier: Apache-2.0
"""How a limit of messages is shared out among queues, by what waits in each.

As Spark's Kafka source does for maxOffsetsPerTrigger, except that the limit is kept exactly. Pure.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Final, TypeVar

K = TypeVar("K", bound=Hashable)

_GOLDEN: Final = 0x9E3779B97F4A7C15
_WORD: Final = (1 << 64) - 1


def share(limit: int, backlogs: Mapping[K, int], turn: int) -> dict[K, int]:
    """How many messages of each queue: in all `limit`, or all that wait when those are fewer.

    Each queue gets its part by its backlog, rounded down. What is left goes by one to those that
    got none, then to the others. So a queue in which little waits is not passed over for ever;
    where even so there is not enough for all, `turn` decides who is first: any number that differs
    from time to time.
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
    """A hash of the number: turns that grow by equal steps must not favour the same ones."""
    return ((number * _GOLDEN) & _WORD) >> 20
