# SPDX-License-Identifier: Apache-2.0
"""The connected consumers and producers by group, as known from heartbeats and connections.

Pure: peers are only compared, `steady_ms` is given. Groups are kept by peer, too: when a thousand
connections end at once, none of them looks through all groups. Counterpart of ConsumerManager,
ConsumerGroupInfo, ProducerManager and ClientChannelInfo.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from txrocketmq.broker.store.disk.steps import Steps
from txrocketmq.broker.work.life import EXPIRE_MS, Life, WalkBeat
from txrocketmq.remoting.call import Peer
from txrocketmq.remoting.message.tags import SubscriptionData

EXPIRED_MS = 120_000
"""Age of the last heartbeat at which a client is forgotten (CHANNEL_EXPIRED_TIMEOUT)."""
CONSUME_ACTIVELY = "CONSUME_ACTIVELY"
CONSUME_PASSIVELY = "CONSUME_PASSIVELY"
CLUSTERING = "CLUSTERING"
BROADCASTING = "BROADCASTING"
_CLIENTS_A_STEP = 16


@dataclass(slots=True)
class Client:
    """One member of a group: a client id on a connection."""

    peer: Peer
    client_id: str
    language: str
    version: int
    last_seen_ms: int
    """Steady time of the last heartbeat, by which its age is measured."""
    last_update_timestamp_ms: int = 0
    """Wall-clock time of the last heartbeat, which administrators see."""


@dataclass(slots=True)
class ConsumerGroup:
    """The connected consumers of a group, and what the last heartbeat said about it."""

    name: str
    consume_type: str = CONSUME_PASSIVELY
    message_model: str = CLUSTERING
    consume_from_where: str = "CONSUME_FROM_LAST_OFFSET"
    members: dict[Peer, Client] = field(default_factory=dict)
    """Changed by `add` and `remove` only."""
    subscriptions: dict[str, SubscriptionData] = field(default_factory=dict)
    _by_id: dict[str, dict[Peer, None]] = field(default_factory=dict)
    """The connections of the members with each client id."""

    def client_ids(self) -> list[str]:
        """The client ids of the members, sorted and without duplicates."""
        return sorted(self._by_id)

    def find(self, client_id: str) -> Client | None:
        """Returns the member with this client id; None if there is none."""
        peer = next(iter(self._by_id.get(client_id, ())), None)
        return None if peer is None else self.members[peer]

    def add(self, client: Client) -> bool:
        """Adds a member, or notes its heartbeat; returns whether its connection or id is new."""
        known = self.members.get(client.peer)
        is_new = known is None or known.client_id != client.client_id
        if is_new:
            self._forget(known)
            self._by_id.setdefault(client.client_id, {})[client.peer] = None
        self.members[client.peer] = client
        return is_new

    def remove(self, peer: Peer) -> bool:
        """Removes a member; returns whether there was one."""
        known = self.members.pop(peer, None)
        self._forget(known)
        return known is not None

    def _forget(self, known: Client | None) -> None:
        if known is not None:
            peers = self._by_id[known.client_id]
            del peers[known.peer]
            if not peers:
                del self._by_id[known.client_id]

    def subscribe(self, subscriptions: Iterable[SubscriptionData]) -> bool:
        """Replaces older subscriptions by those of a heartbeat, and removes those that it lacks.

        Returns whether any topic was added or removed; a newer version alone does not count.
        """
        changed = False
        wanted = {each.topic: each for each in subscriptions}
        for topic, new in wanted.items():
            old = self.subscriptions.get(topic)
            if old is None:
                changed = True
                self.subscriptions[topic] = new
            elif new.sub_version > old.sub_version:
                self.subscriptions[topic] = new
        for topic in [t for t in self.subscriptions if t not in wanted]:
            del self.subscriptions[topic]
            changed = True
        return changed


class GroupsOfPeers:
    """The groups that each connection is a member of."""

    def __init__(self) -> None:
        self._groups: dict[Peer, dict[str, None]] = {}

    def add(self, peer: Peer, group: str) -> None:
        """Notes that a connection is a member of a group."""
        self._groups.setdefault(peer, {})[group] = None

    def remove(self, peer: Peer, group: str) -> None:
        """Notes that a connection is no longer a member of a group."""
        groups = self._groups.get(peer)
        if groups is not None:
            groups.pop(group, None)
            if not groups:
                del self._groups[peer]

    def of(self, peer: Peer) -> list[str]:
        """The groups of a connection, in the order in which it joined them."""
        return list(self._groups.get(peer, ()))


def close_silent(steps: Steps[list[Peer]]) -> Steps[None]:
    """Takes the steps of `expire`, and closes the connections of those who were forgotten."""
    for peer in (yield from steps):
        peer.close()
        yield


def _life(clients: Consumers | Producers, name: str) -> Life:
    """They are forgotten when their heartbeats do not come, or their connection ends."""
    expire = WalkBeat(
        EXPIRE_MS,
        "forgetting clients",
        lambda _, steady_ms: close_silent(clients.expire(steady_ms)),
        because="their heartbeats stopped",
    )
    return Life(name, beats=(expire,), forgets=clients.disconnected)


GroupChanged = Callable[[ConsumerGroup], None]


class Consumers:
    """The consumer groups that have members.

    Each function in `on_change` is called with a group whose members or topics have changed.
    """

    def __init__(self, expired_ms: int = EXPIRED_MS) -> None:
        self._groups: dict[str, ConsumerGroup] = {}
        self._of_peers = GroupsOfPeers()
        self._expired_ms = expired_ms
        self.on_change: list[GroupChanged] = []
        self.group = self._groups.get

    def groups(self) -> list[ConsumerGroup]:
        """All groups that have members."""
        return list(self._groups.values())

    def register(
        self,
        client: Client,
        group_name: str,
        consume_type: str,
        message_model: str,
        consume_from_where: str,
        subscriptions: Iterable[SubscriptionData] | None,
    ) -> bool:
        """Takes a heartbeat; returns whether it changed the group's members or topics.

        `subscriptions` is None when they are the same as before (heartbeat v2).
        """
        group = self._groups.get(group_name)
        if group is None:
            group = self._groups[group_name] = ConsumerGroup(group_name)
        group.consume_type = consume_type
        group.message_model = message_model
        group.consume_from_where = consume_from_where
        self._of_peers.add(client.peer, group_name)
        changed = group.add(client)
        if subscriptions is not None and group.subscribe(subscriptions):
            changed = True
        if changed:
            self._tell(group)
        return changed

    def unregister(self, group_name: str, client_id: str, peer: Peer) -> None:
        """Removes a member that says it is leaving."""
        group = self._groups.get(group_name)
        if group is not None and self._remove(group, peer):
            self._left(group)

    def disconnected(self, peer: Peer, steady_ms: int) -> None:
        """Removes all members that used a connection which has ended."""
        for name in self._of_peers.of(peer):
            self.unregister(name, "", peer)

    def expire(self, steady_ms: int) -> Steps[list[Peer]]:
        """Forgets members without a recent heartbeat; returns their connections, to be closed."""
        gone: list[Peer] = []
        for group in self.groups():
            is_one_late = False
            for count, client in enumerate(list(group.members.values()), 1):
                is_late = steady_ms - client.last_seen_ms > self._expired_ms
                if is_late and group.members.get(client.peer) is client:
                    is_one_late |= self._remove(group, client.peer)
                    gone.append(client.peer)
                if count % _CLIENTS_A_STEP == 0:
                    yield
            if is_one_late:
                self._left(group)
            yield
        return gone

    def life(self) -> Life:
        """Members are forgotten when their heartbeats do not come, or their connection ends."""
        return _life(self, "consumers")

    def _remove(self, group: ConsumerGroup, peer: Peer) -> bool:
        """Removes the member on a connection; returns whether there was one."""
        self._of_peers.remove(peer, group.name)
        return group.remove(peer)

    def _left(self, group: ConsumerGroup) -> None:
        if not group.members and self._groups.get(group.name) is group:
            del self._groups[group.name]
        self._tell(group)

    def _tell(self, group: ConsumerGroup) -> None:
        for heard in self.on_change:
            heard(group)


class Producers:
    """The producer groups that have members.

    Each function in `on_change` is called with the name of a group and the new number of its
    members.
    """

    def __init__(self, expired_ms: int = EXPIRED_MS) -> None:
        self._groups: dict[str, dict[Peer, Client]] = {}
        self._by_id: dict[str, dict[Peer, int]] = {}
        """By client id: its connections, the newest last, each with the number of its groups."""
        self._of_peers = GroupsOfPeers()
        self._expired_ms = expired_ms
        self.on_change: list[Callable[[str, int], None]] = []

    def register(self, group: str, client: Client) -> None:
        """Takes a heartbeat of a producer."""
        members = self._groups.setdefault(group, {})
        known = members.get(client.peer)
        members[client.peer] = client
        self._of_peers.add(client.peer, group)
        if known is None or known.client_id != client.client_id:
            if known is not None:
                self._left(known)
            peers = self._by_id.setdefault(client.client_id, {})
            peers[client.peer] = peers.get(client.peer, 0) + 1
        if known is None:
            self._tell(group, len(members))

    def unregister(self, group: str, peer: Peer) -> None:
        """Removes a member that says it is leaving."""
        members = self._groups.get(group)
        if members is None:
            return
        client = members.pop(peer, None)
        self._of_peers.remove(peer, group)
        if not members:
            del self._groups[group]
        if client is not None:
            self._left(client)
            self._tell(group, len(members))

    def _left(self, client: Client) -> None:
        peers = self._by_id[client.client_id]
        peers[client.peer] -= 1
        if not peers[client.peer]:
            del peers[client.peer]
        if not peers:
            del self._by_id[client.client_id]

    def find(self, client_id: str) -> Peer | None:
        """Returns the newest connection of the producer with this client id (findChannel)."""
        return next(reversed(self._by_id.get(client_id, {})), None)

    def disconnected(self, peer: Peer, steady_ms: int) -> None:
        """Removes all members that used a connection which has ended."""
        for group in self._of_peers.of(peer):
            self.unregister(group, peer)

    def expire(self, steady_ms: int) -> Steps[list[Peer]]:
        """Forgets members without a recent heartbeat; returns their connections, to be closed."""
        gone: list[Peer] = []
        for group, members in list(self._groups.items()):
            for count, client in enumerate(list(members.values()), 1):
                is_late = steady_ms - client.last_seen_ms > self._expired_ms
                if is_late and members.get(client.peer) is client:
                    gone.append(client.peer)
                    self.unregister(group, client.peer)
                    yield
                if count % _CLIENTS_A_STEP == 0:
                    yield
            yield
        return gone

    def life(self) -> Life:
        """Members are forgotten when their heartbeats do not come, or their connection ends."""
        return _life(self, "producers")

    def members(self, group: str) -> list[Client]:
        """The members of a group; an empty list when the group is unknown."""
        return list(self._groups.get(group, {}).values())

    def groups(self) -> list[str]:
        """The names of all groups."""
        return list(self._groups)

    def _tell(self, group: str, count: int) -> None:
        for heard in self.on_change:
            heard(group, count)
