# SPDX-License-Identifier: Apache-2.0
"""How far the members of broadcasting groups have pulled, for proxies, which do not keep this.

Each member of such a group reads all messages, and keeps its position in a file of its own. A
consumer behind a proxy has no such file, so its proxy asks the broker, by a pull with an offset
below 0. The broker remembers what each member has asked for, and answers with that; a member it
does not have begins where the slowest member of the group was, which is kept with the offsets of
groups as "group@broadcast". A member that pulled by itself and comes by a proxy now, or the other
way round, is told where it goes on as well.

Java: BroadcastOffsetManager, BroadcastOffsetStore.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.disk.steps import Steps
from txrocketmq.broker.store.message_store import MessageStore
from txrocketmq.broker.tables.clients import BROADCASTING, CONSUME_PASSIVELY, Consumers
from txrocketmq.broker.tables.offset import BROADCAST, NOT_FOUND, ConsumerOffsets
from txrocketmq.broker.work.life import Beat, Life
from txrocketmq.broker.work.walks import Walk, Walks
from txrocketmq.remoting.call import Peer, Reply
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.protocol.pull import PullMessageRequestHeader, RequestSource

MAX_MEMBERS: Final = 100_000
"""How many members are remembered at most, in all groups and topics together.

A member beyond this limit is unknown at each of its pulls.
"""
BROADCAST_MS: Final = 5_000
"""How often `scan` is to be called, in ms."""
_MS: Final = 1000


@dataclass(slots=True)
class _Member:
    """What one member has pulled of one topic: the next offset of each queue."""

    by_proxy: bool
    seen_ms: int
    offsets: dict[int, int] = field(default_factory=dict)


class BroadcastOffsets:
    """The offsets of the members of broadcasting groups. All times are of the steady clock."""

    def __init__(
        self,
        config: BrokerConfig,
        consumers: Consumers,
        offsets: ConsumerOffsets,
        store: MessageStore,
        steady_clock: Callable[[], int],
    ) -> None:
        self._config = config
        self._consumers = consumers
        self._offsets = offsets
        self._store = store
        self._steady_ms = steady_clock
        self._members: dict[tuple[str, str], dict[str, _Member]] = {}
        """The members by (topic, group), and then by client id."""
        self.count = 0
        """How many members are remembered; a client counts once for each topic and group."""
        self._is_scanning = False

    def client_of(self, header: PullMessageRequestHeader, peer: Peer) -> str | None:
        """The client id of the pulling member; None if it does not broadcast through a proxy."""
        if not self._config.enable_broadcast_offset_store:
            return None
        if header.request_source == RequestSource.PROXY_FOR_BROADCAST:
            return header.proxy_forward_client_id
        group = self._consumers.group(header.consumer_group)
        if (
            group is None
            or group.message_model != BROADCASTING
            or group.consume_type != CONSUME_PASSIVELY
        ):
            return None
        member = group.members.get(peer)
        return None if member is None else member.client_id

    def first_offset(self, header: PullMessageRequestHeader, client_id: str) -> int | None:
        """Returns where a pull should begin; None when the offset that it asks for is right.

        Raises NotInMemory when a part of the queue has to be read from the disk.
        """
        by_proxy = _is_by_proxy(header)
        members = self._members.get((header.topic, header.consumer_group))
        if members is None:
            if by_proxy and header.queue_offset < 0:
                return self._offset_of(header, None)
            return None
        member = members.get(client_id)
        if member is None:
            member = self._join(header, client_id)
        if member.by_proxy != by_proxy or (by_proxy and header.queue_offset < 0):
            return self._offset_of(header, member)
        return None

    def pulled(self, header: PullMessageRequestHeader, client_id: str, offset: int) -> None:
        """Remembers where a member continues.

        The offset never falls, unless it lies beyond the end of the queue, which was created again.
        """
        members = self._members.get((header.topic, header.consumer_group), {})
        member = members.get(client_id) or self._join(header, client_id)
        member.seen_ms, member.by_proxy = self._steady_ms(), _is_by_proxy(header)
        known = member.offsets.get(header.queue_id, NOT_FOUND)
        if offset >= known or known > self._store.max_offset(header.topic, header.queue_id):
            member.offsets[header.queue_id] = offset

    def _join(self, header: PullMessageRequestHeader, client_id: str) -> _Member:
        member = _Member(_is_by_proxy(header), self._steady_ms())
        if self.count < MAX_MEMBERS:
            key = header.topic, header.consumer_group
            self._members.setdefault(key, {})[client_id] = member
            self.count += 1
        return member

    def _offset_of(self, header: PullMessageRequestHeader, member: _Member | None) -> int:
        topic, queue_id = header.topic, header.queue_id
        end = self._store.max_offset(topic, queue_id)
        own = NOT_FOUND if member is None else member.offsets.get(queue_id, NOT_FOUND)
        for offset in (
            own,
            self._offsets.query(header.consumer_group + BROADCAST, topic, queue_id),
        ):
            if 0 <= offset <= end:  # one beyond is of a topic that was deleted
                return offset
        store = self._store
        return 0 if store.is_recent(topic, queue_id, 0) else end

    def scan(self, walks: Walks) -> None:
        """Forgets members that are gone, and saves the offset of each group's slowest member."""
        if not self._is_scanning and self._members:
            self._is_scanning = True
            with suppress(ResponseError):  # too many walks: next time
                walks.answer(self._scan())
                return
            self._is_scanning = False

    def life(self, walks: Walks) -> Life:
        """Members that are gone are forgotten, and the offset of the slowest is noted."""
        return Life(
            "offsets of broadcasting groups", beats=(Beat(BROADCAST_MS, lambda: self.scan(walks)),)
        )

    def _scan(self) -> Walk:
        try:
            for topic, group in list(self._members):
                yield from self._scan_group(topic, group)
        finally:
            self._is_scanning = False
        return Reply()

    def _scan_group(self, topic: str, group_name: str) -> Steps[None]:
        members = self._members[topic, group_name]
        group = self._consumers.group(group_name)
        present = set() if group is None else set(group.client_ids())
        yield
        slowest: dict[int, int] = {}
        for client_id, member in list(members.items()):
            is_there = client_id in present
            self._look_at(member, slowest, is_there=is_there)
            if self._is_gone(member, is_there=is_there):
                del members[client_id]
                self.count -= 1
            yield
        if not members:
            del self._members[topic, group_name]
        for queue_id, offset in slowest.items():
            self._offsets.commit(group_name + BROADCAST, topic, queue_id, offset)

    def _look_at(self, member: _Member, slowest: dict[int, int], *, is_there: bool) -> None:
        expire_ms = self._config.broadcast_offset_expire_second * _MS
        if is_there or self._steady_ms() - member.seen_ms < expire_ms:
            for queue_id, offset in member.offsets.items():
                slowest[queue_id] = min(slowest.get(queue_id, offset), offset)

    def _is_gone(self, member: _Member, *, is_there: bool) -> bool:
        config = self._config
        expire_s = config.broadcast_offset_expire_second
        if is_there:
            expire_s = config.broadcast_offset_expire_max_second
        return self._steady_ms() - member.seen_ms >= expire_s * _MS


def _is_by_proxy(header: PullMessageRequestHeader) -> bool:
    return header.request_source == RequestSource.PROXY_FOR_BROADCAST
