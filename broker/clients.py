# SPDX-License-Identifier: Apache-2.0
"""Who is there: consumers and producers by group, as their heartbeats and connections tell.

Pure: peers are only compared, `now_ms` is given. Counterpart of ConsumerManager, ConsumerGroupInfo,
ProducerManager and ClientChannelInfo.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from txrocketmq.remoting.call import Peer
from txrocketmq.remoting.message.tags import SubscriptionData

EXPIRED_MS = 120_000
"""Age of the last heartbeat at which a client is forgotten (CHANNEL_EXPIRED_TIMEOUT)."""
CONSUME_ACTIVELY = "CONSUME_ACTIVELY"
CONSUME_PASSIVELY = "CONSUME_PASSIVELY"
CLUSTERING = "CLUSTERING"
BROADCASTING = "BROADCASTING"


@dataclass(slots=True)
class Client:
    """One member of a group: a client id on a connection."""

    peer: Peer
    client_id: str
    language: str
    version: int
    last_seen_ms: int


@dataclass(slots=True)
class ConsumerGroup:
    """The consumers of a group that are there, and what the last heartbeat said of it."""

    name: str
    consume_type: str = CONSUME_PASSIVELY
    message_model: str = CLUSTERING
    consume_from_where: str = "CONSUME_FROM_LAST_OFFSET"
    members: dict[Peer, Client] = field(default_factory=dict)
    subscriptions: dict[str, SubscriptionData] = field(default_factory=dict)

    def client_ids(self) -> list[str]:
        """The ids of its members, each once, in order."""
        return sorted({client.client_id for client in self.members.values()})

    def find(self, client_id: str) -> Client | None:
        """The member with an id."""
        return next((c for c in self.members.values() if c.client_id == client_id), None)

    def subscribe(self, subscriptions: Iterable[SubscriptionData]) -> bool:
        """Takes a heartbeat's subscriptions: newer replace, missing go. Whether any did."""
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


GroupChanged = Callable[[ConsumerGroup], None]


class Consumers:
    """Consumer groups with members. `on_change` hears of changed members and topics."""

    def __init__(self, on_change: GroupChanged | None = None, expired_ms: int = EXPIRED_MS) -> None:
        self._groups: dict[str, ConsumerGroup] = {}
        self._expired_ms = expired_ms
        self.on_change = on_change
        self.group = self._groups.get

    def groups(self) -> list[ConsumerGroup]:
        """All groups that have members."""
        return list(self._groups.values())

    def groups_subscribing(self, topic: str) -> list[str]:
        """Names of the groups that subscribe to a topic."""
        return [g.name for g in self._groups.values() if topic in g.subscriptions]

    def register(
        self,
        client: Client,
        group_name: str,
        consume_type: str,
        message_model: str,
        consume_from_where: str,
        subscriptions: Iterable[SubscriptionData] | None,
    ) -> bool:
        """A heartbeat. `subscriptions` None: as before (heartbeat v2). Whether it changed."""
        group = self._groups.get(group_name)
        if group is None:
            group = self._groups[group_name] = ConsumerGroup(group_name)
        group.consume_type = consume_type
        group.message_model = message_model
        group.consume_from_where = consume_from_where
        known = group.members.get(client.peer)
        group.members[client.peer] = client
        changed = known is None or known.client_id != client.client_id
        if subscriptions is not None and group.subscribe(subscriptions):
            changed = True
        if changed:
            self._tell(group)
        return changed

    def unregister(self, group_name: str, client_id: str, peer: Peer) -> None:
        """A member says that it leaves."""
        group = self._groups.get(group_name)
        if group is not None and group.members.pop(peer, None) is not None:
            self._left(group)

    def disconnected(self, peer: Peer, now_ms: int) -> None:
        """A connection ended: all its members leave."""
        for group in list(self._groups.values()):
            if group.members.pop(peer, None) is not None:
                self._left(group)

    def expire(self, now_ms: int) -> list[Peer]:
        """Forgets members without heartbeat; gives their connections, to be closed."""
        gone: list[Peer] = []
        for group in list(self._groups.values()):
            late = [
                peer
                for peer, client in group.members.items()
                if now_ms - client.last_seen_ms > self._expired_ms
            ]
            for peer in late:
                del group.members[peer]
            if late:
                gone += late
                self._left(group)
        return gone

    def _left(self, group: ConsumerGroup) -> None:
        if not group.members:
            self._groups.pop(group.name, None)
        self._tell(group)

    def _tell(self, group: ConsumerGroup) -> None:
        if self.on_change is not None:
            self.on_change(group)


class Producers:
    """Producer groups with members."""

    def __init__(self, expired_ms: int = EXPIRED_MS) -> None:
        self._groups: dict[str, dict[Peer, Client]] = {}
        self._expired_ms = expired_ms

    def register(self, group: str, client: Client) -> None:
        """A heartbeat."""
        self._groups.setdefault(group, {})[client.peer] = client

    def unregister(self, group: str, peer: Peer) -> None:
        """A member says that it leaves."""
        members = self._groups.get(group)
        if members is not None:
            members.pop(peer, None)
            if not members:
                del self._groups[group]

    def disconnected(self, peer: Peer, now_ms: int) -> None:
        """A connection ended."""
        for group in list(self._groups):
            self.unregister(group, peer)

    def expire(self, now_ms: int) -> list[Peer]:
        """Forgets members without heartbeat; gives their connections, to be closed."""
        gone: list[Peer] = []
        for group, members in list(self._groups.items()):
            for peer, client in list(members.items()):
                if now_ms - client.last_seen_ms > self._expired_ms:
                    gone.append(peer)
                    self.unregister(group, peer)
        return gone

    def members(self, group: str) -> list[Client]:
        """The members of a group, none when it is unknown."""
        return list(self._groups.get(group, {}).values())

    def groups(self) -> dict[str, list[Client]]:
        """All groups with their members."""
        return {group: list(members.values()) for group, members in self._groups.items()}
