# SPDX-License-Identifier: Apache-2.0
"""Strategies for distributing queues that need arguments.

Those that do not are in remoting/message/allocation.py, since brokers use them too. All members of
a group have to use the same one, told the same.

Java: AllocateMessageQueueByConfig, AllocateMessageQueueByMachineRoom, AllocateMachineRoomNearby.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Final, TypeVar

from txrocketmq.remoting.arguments.arguments import checked
from txrocketmq.remoting.message.allocation import Strategy
from txrocketmq.remoting.message.message import MessageQueue

T = TypeVar("T")

_ROOM_SEPARATOR: Final = "@"


@checked
def by_config(own: Collection[MessageQueue]) -> Strategy:
    """Always assigns the same queues, whoever else is in the group."""
    own = list(own)
    return lambda *_: list(own)


@checked
def by_machine_room(rooms: Collection[str]) -> Strategy:
    """Assigns the queues of brokers in these machine rooms; brokers are named "room@broker"."""
    rooms = frozenset(rooms)

    def is_near(broker_name: str) -> bool:
        room, *names = broker_name.rstrip(_ROOM_SEPARATOR).split(_ROOM_SEPARATOR)
        return len(names) == 1 and room in rooms

    def share(
        client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        if client_id not in client_ids:
            return []
        near = [queue for queue in queues if is_near(queue.broker_name)]
        index, count = client_ids.index(client_id), len(client_ids)
        size, rest = divmod(len(near), count)
        extra = index + size * count
        return near[size * index : size * (index + 1)] + near[extra : extra + (index < rest)]

    return share


@checked
def nearby_machine_room(
    inner: Strategy,
    room_of_broker: Callable[[MessageQueue], str],
    room_of_client: Callable[[str], str],
) -> Strategy:
    """Lets the members in a machine room share its queues by another strategy.

    The queues of rooms without members are shared by all members. `room_of_broker` and
    `room_of_client` return the machine rooms; the strategy raises ValueError if one of them returns
    none.
    """

    def share(
        client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        if client_id not in client_ids:
            return []
        queues_of = _grouped(queues, room_of_broker, "broker of the queue")
        clients_of = _grouped(client_ids, room_of_client, "client")
        own = room_of_client(client_id)
        found = inner(client_id, queues_of.pop(own, []), clients_of[own])
        for room in sorted(queues_of):
            if room not in clients_of:
                found += inner(client_id, queues_of[room], client_ids)
        return found

    return share


def _grouped(items: Sequence[T], room_of: Callable[[T], str], what: str) -> dict[str, list[T]]:
    rooms: dict[str, list[T]] = {}
    for item in items:
        room = room_of(item)
        if not room:
            raise ValueError(f"the {what} {item} has no machine room")
        rooms.setdefault(room, []).append(item)
    return rooms
