# SPDX-License-Identifier: Apache-2.0
"""The strategies that distribute queues among the members of a group, one function each.

Clients rebalance with them on their own, and brokers for clients that ask (QUERY_ASSIGNMENT). All
members must come to the same result, so queues and client ids are sorted first, as the original
sorts them, and every function is exactly its counterpart.

Java: AllocateMessageQueueStrategy and the classes of client.consumer.rebalance that implement it,
common.consistenthash.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Final

from txrocketmq.remoting.message.message import MessageQueue

VIRTUAL_NODES: Final = 10
"""How many places each client has on the ring of `consistent_hash`."""

_CLIENTS_A_STEP: Final = 8
_QUEUES_A_STEP: Final = 32

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
    steps = consistent_hash_in_steps(client_id, queues, client_ids)
    try:
        while True:
            next(steps)
    except StopIteration as end:
        found: list[MessageQueue] = end.value
        return found


def consistent_hash_in_steps(
    client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
) -> Generator[None, None, list[MessageQueue]]:
    """Does the same as `consistent_hash`, with a pause after each small step."""
    if client_id not in client_ids:
        return []
    ring: dict[int, str] = {}
    for count, each in enumerate(client_ids, 1):
        for node in range(VIRTUAL_NODES):
            ring[_ring_hash(f"{each}-{node}")] = each
        if count % _CLIENTS_A_STEP == 0:
            yield
    places = sorted(ring)

    def owner(queue: MessageQueue) -> str:
        at = bisect_left(places, _ring_hash(str(queue)))
        return ring[places[at if at < len(places) else 0]]

    its: list[MessageQueue] = []
    for count, queue in enumerate(queues, 1):
        if owner(queue) == client_id:
            its.append(queue)
        if count % _QUEUES_A_STEP == 0:
            yield
    return its


def _ring_hash(text: str) -> int:
    digest = hashlib.md5(text.encode(), usedforsecurity=False).digest()
    return int.from_bytes(digest[:4], "big")


STRATEGIES: Final[Mapping[str, Strategy]] = {
    "AVG": averagely,
    "AVG_BY_CIRCLE": averagely_by_circle,
    "CONSISTENT_HASH": consistent_hash,
}
"""The strategies that need no settings, by the names they have on the wire."""
