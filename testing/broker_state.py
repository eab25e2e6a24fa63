# SPDX-License-Identifier: Apache-2.0
"""What tests look up in their broker: directly, without requests, clients or consuming anything.

Faults do not affect it. What the methods return can be written as JSON.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

from twisted.internet.defer import Deferred

from txrocketmq.access.auth.policies import acl_of
from txrocketmq.broker.parts import Parts
from txrocketmq.broker.tables.attributes import MESSAGE_TYPE, PRIORITY
from txrocketmq.broker.tables.subscription import is_system_group
from txrocketmq.broker.tables.topic import validate_topic
from txrocketmq.cli.servers.standalone import Standalone
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.message.topics import RETRY_PREFIX
from txrocketmq.remoting.protocol.body.auth import AclInfo, PolicyEntryInfo, PolicyInfo, UserInfo
from txrocketmq.remoting.protocol.body.route import TopicConfig

DEFAULT_QUEUES: Final = 4
MAX_QUEUES: Final = 1_024
MESSAGE_TYPES: Final = ("NORMAL", "FIFO", "DELAY", "TRANSACTION", PRIORITY)
"""The types of messages that a topic may be for."""
PAGE_MESSAGES: Final = 1_000
PAGE_BYTES: Final = 256 * 1024
LOOK_MS: Final = 2
ROUTE_MS: Final = 10_000
"""How many ms may pass until the name server has the route of a topic."""


class BrokerState:
    """The state of a broker that has started; methods raise ValueError for wrong arguments."""

    def __init__(self, service: Standalone, clock: Clock) -> None:
        self._service = service
        self._clock = clock

    @property
    def _parts(self) -> Parts:
        assert self._service.broker is not None
        return self._service.broker.parts

    def create_topic(
        self, topic: str, queues: int = DEFAULT_QUEUES, message_type: str | None = None
    ) -> Deferred[None]:
        """Creates a topic, or changes its number of queues and its type if one is given.

        Fires when clients can find it.
        """
        why = validate_topic(topic)
        if why is not None:
            raise ValueError(why)
        if not 1 <= queues <= MAX_QUEUES:
            raise ValueError(f"a topic has from 1 to {MAX_QUEUES} queues, not {queues}")
        if message_type is not None and message_type not in MESSAGE_TYPES:
            raise ValueError(
                f"message_type is one of {', '.join(MESSAGE_TYPES)}, not {message_type!r}"
            )
        config = TopicConfig(
            topic_name=topic,
            read_queue_nums=queues,
            write_queue_nums=queues,
            attributes={} if message_type is None else {f"+{MESSAGE_TYPE}": message_type},
        )
        self._parts.topics.update(config)
        return self._routed(topic, queues)

    def ensure_topic(self, topic: str) -> Deferred[None] | None:
        """Creates a topic that does not exist, if the broker creates topics for sends.

        Fires when clients can find the topic, which may take a moment even if a send has just
        created it. Returns None if the topic does not exist and is not created.
        """
        parts = self._parts
        config = parts.topics.get(topic)
        if config is not None:
            return self._routed(topic, config.write_queue_nums)
        return self.create_topic(topic) if parts.config.auto_create_topic_enable else None

    def create_account(self, name: str, secret: str, policies: Mapping[str, Any]) -> None:
        """Creates an account with the actions that it may do, by resource."""
        access = self._parts.access
        if not access.is_served:
            raise ValueError("the server has no accounts: start it with accounts=True")
        entries = [
            PolicyEntryInfo(resource=resource, actions=list(actions), decision="Allow")
            for resource, actions in policies.items()
        ]
        try:
            access.accounts.create_user(name, UserInfo(username=name, password=secret))
            if entries:
                info = AclInfo(policies=[PolicyInfo(policy_type="Custom", entries=entries)])
                access.accounts.add_acl(acl_of(name, info))
        except ResponseError as error:
            raise ValueError(f"account {name}: {error.remark}") from None

    def topics(self) -> list[str]:
        """Returns the topics that clients have created, sorted, without retry and system topics."""
        topics = self._parts.topics
        return sorted(
            name
            for name in topics.all()
            if not topics.is_system(name) and not name.startswith(RETRY_PREFIX)
        )

    def groups(self) -> list[str]:
        """Returns the consumer groups of the broker, sorted, without its own."""
        parts = self._parts
        names = {*parts.groups.all(), *(group.name for group in parts.consumers.groups())}
        names.update(key.partition("@")[2] for key, _ in parts.offsets.entries())
        return sorted(name for name in names if name and not is_system_group(name))

    def lag(self, group: str) -> dict[str, list[list[int]]]:
        """Returns, for each topic of a group, a list [id, offset, end] for each of its queues.

        The retry topic of the group is included. `offset` is that of the next message that the
        group is to consume, `end` that of the next message to be stored. Raises ValueError if the
        broker has no topic that the group consumes.
        """
        parts = self._parts
        topics = parts.offsets.topics_of(group)
        for each in parts.consumers.groups():
            if each.name == group:
                topics |= each.subscriptions.keys()
        if not topics - {RETRY_PREFIX + group}:
            known = ", ".join(self.groups()) or "none"
            raise ValueError(f"group {group} consumes no topic yet; groups that do: {known}")
        return {topic: self._queues(group, topic) for topic in sorted(topics)}

    def _queues(self, group: str, topic: str) -> list[list[int]]:
        parts, store, rows = self._parts, self._parts.store, []
        for queue_id in store.queue_ids(topic):
            least, end = store.min_offset(topic, queue_id), store.max_offset(topic, queue_id)
            offset = max(parts.offsets.query(group, topic, queue_id), least)
            rows.append([queue_id, offset, end])
        return rows

    def queue_ids(self, topic: str) -> list[int]:
        """Returns the ids of the queues in which a topic has had messages.

        Raises ValueError if the topic does not exist.
        """
        if self._parts.topics.get(topic) is None:
            known = ", ".join(self.topics()) or "none"
            raise ValueError(f"the broker has no topic {topic}; it has: {known}")
        return self._parts.store.queue_ids(topic)

    def records(self, topic: str, queue_id: int, offset: int) -> dict[str, Any]:
        """Returns a page of a queue's messages: their records in base64, and the offset after them.

        If there are no more messages, `next` is the offset that was asked for.
        """
        got = self._parts.store.get(topic, queue_id, offset, PAGE_MESSAGES, PAGE_BYTES)
        text = base64.b64encode(b"".join(got.buffers)).decode()
        return {"records": text, "next": got.next_begin_offset}

    def _routed(self, topic: str, queues: int) -> Deferred[None]:
        """Fires when the name server has the topic with this number of queues."""
        found: Deferred[None] = Deferred()
        self._look(topic, queues, self._clock.steady_ms() + ROUTE_MS, found)
        return found

    def _look(self, topic: str, queues: int, until_ms: int, found: Deferred[None]) -> None:
        """Fires `found` if the name server has the topic with this number of queues.

        If not, it looks again in a moment, and fails `found` with ValueError after `until_ms`.
        """
        name_server = self._service.name_server
        route = None
        if name_server is not None:
            route = name_server.table.route(topic)
        if route is not None and any(each.write_queue_nums == queues for each in route.queue_datas):
            found.callback(None)
        elif self._clock.steady_ms() > until_ms:
            found.errback(ValueError(f"the name server has no route of topic {topic}"))
        else:
            self._clock.later(LOOK_MS, self._look, topic, queues, until_ms, found)
