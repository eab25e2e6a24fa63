# SPDX-License-Identifier: Apache-2.0
"""The strategies that distribute queues among the members of a group, one function each.

Clients rebalance with them on their own, and brokers for clients that ask (QUERY_ASSIGNMENT). All
members must come to the same result, so queues and client ids are sorted first, as the original
sorts them, and every function is exactly its counterpart.

Java: client.consumer.rebalance.AllocateMessageQueue*, common.consistenthash.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from txrocketmq.remoting.message.message import MessageQueue

VIRTUAL_NODES: Final = 10
"""How many places each client has on the ring of `consistent_hash`."""

Strategy = Callable[[str, Sequence[MessageQueue], Sequence[str]], list[MessageQueue]]
"""Takes a client id, all queues and all client ids (sorted), and returns that client's queues."""


def averagely(
    client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
) -> list[MessageQueue]:
    """Returns a run of consecutive queues; the first members may get one more than the others."""
    if client_id not in client_ids:
        return []
    index = client_ids.index(client_id)
    size, rest = divmod(len(queues), len(client_ids))
    start = index * size + min(index, rest)
    return list(queues[start : start + size + (index < rest)])


def averagely_by_circle(
    client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
) -> list[MessageQueue]:
    """Returns every n-th queue for n members: the queues are dealt out in turn, like cards."""
    if client_id not in client_ids:
        return []
    return list(queues[client_ids.index(client_id) :: len(client_ids)])


def consistent_hash(
    client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
) -> list[MessageQueue]:
    """Returns the queues whose next place on a ring of hashes belongs to this member.

    When a member comes or goes, only few queues change hands.
    """
    if client_id not in client_ids:
        return []
    ring: dict[int, str] = {}
    for each in client_ids:
        for node in range(VIRTUAL_NODES):
            ring[_ring_hash(f"{each}-{node}")] = each
    places = sorted(ring)

    def owner(queue: MessageQueue) -> str:
        at = bisect_left(places, _ring_hash(str(queue)))
        return ring[places[at if at < len(places) else 0]]

    return [queue for queue in queues if owner(queue) == client_id]


def _ring_hash(text: str) -> int:
    digest = hashlib.md5(text.encode(), usedforsecurity=False).digest()
    return int.from_bytes(digest[:4], "big")


STRATEGIES: Final[Mapping[str, Strategy]] = {
    "AVG": averagely,
    "AVG_BY_CIRCLE": averagely_by_circle,
    "CONSISTENT_HASH": consistent_hash,
}
"""The strategies that need no settings, by the names they have on the wire."""
