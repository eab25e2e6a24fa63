# SPDX-License-Identifier: Apache-2.0
"""The configurations of consumer groups: subscriptionGroup.json.

Counterpart of SubscriptionGroupManager.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.queues.light_queues import is_light
from txrocketmq.broker.tables.attributes import GROUP_ATTRIBUTES, changed, unserved_in
from txrocketmq.broker.tables.topic import validate_group
from txrocketmq.broker.work.encoded_table import EncodedTable
from txrocketmq.broker.work.json_file import JsonFile
from txrocketmq.broker.work.life import SECOND_MS, Beat, Gauge, Life
from txrocketmq.broker.work.saving import Saving
from txrocketmq.remoting.protocol.body.route import DataVersion
from txrocketmq.remoting.protocol.body.topic import SubscriptionGroupConfig
from txrocketmq.remoting.serialize.json import (
    HOLE,
    encode_around,
    encode_pretty,
    encode_pretty_member,
)

SYSTEM_GROUPS = (
    "TOOLS_CONSUMER",
    "FILTERSRV_CONSUMER",
    "SELF_TEST_C_GROUP",
    "CID_ONS-HTTP-PROXY",
    "CID_ONSAPI_PULL",
    "CID_ONSAPI_PERMISSION",
    "CID_ONSAPI_OWNER",
    "CID_RMQ_SYS_TRANS",
)
"""Groups that exist from the start, open to broadcasting."""
SYSTEM_GROUP_PREFIX = "CID_RMQ_SYS_"
_READ_BIT = 1 << 2
"""PermName.INDEX_PERM_READ as a bit in the table of forbidden topics."""


def is_system_group(name: str) -> bool:
    """Whether a group is the broker's own (MixAll.isSysConsumerGroup)."""
    return name.startswith(SYSTEM_GROUP_PREFIX) or name in SYSTEM_GROUPS


class SubscriptionGroups:
    """All groups by name. The functions in `on_change` get the name of a group that was created or
    changed.

    As with topics, changes by administrators are written without delay by `saving`, and groups
    created by heartbeats and pulls with the next tick.
    """

    def __init__(
        self,
        config: BrokerConfig,
        file: JsonFile,
        now_ms: Callable[[], int],
        *,
        has_light_queues: bool = False,
    ) -> None:
        self._config = config
        self._file = file
        self._now_ms = now_ms
        self._has_light_queues = has_light_queues
        self.on_change: list[Callable[[str], None]] = []
        self.saving = Saving(file, self._snapshot)
        self._encoded = EncodedTable(_encode_group)
        self.data_version = DataVersion(timestamp=now_ms())
        self._groups: dict[str, SubscriptionGroupConfig] = {}
        self._forbidden: dict[str, dict[str, int]] = {}
        for name in SYSTEM_GROUPS:
            self._groups[name] = SubscriptionGroupConfig(
                group_name=name, consume_broadcast_enable=True
            )

    def load(self) -> None:
        """Loads subscriptionGroup.json; raises JsonFileError."""
        with self._file.content() as content:
            table = content.get("subscriptionGroupTable") or {}
            self._file.is_stale = not self._groups.keys() <= table.keys()
            for name, value in table.items():
                self._groups[name] = SubscriptionGroupConfig.from_json(value)
            for group, topics in (content.get("forbiddenTable") or {}).items():
                self._forbidden[group] = {topic: int(bits) for topic, bits in topics.items()}
            if content.get("dataVersion"):
                self.data_version = DataVersion.from_json(content["dataVersion"])

    @property
    def is_missing(self) -> bool:
        """Whether there was neither subscriptionGroup.json nor its .bak."""
        return self._file.is_missing

    def _snapshot(self) -> Callable[[], bytes]:
        """Copies the table; returns a function that makes the text of subscriptionGroup.json from
        it.
        """
        table = dict(self._groups)
        content = {
            "dataVersion": self.data_version.to_json(),
            "forbiddenTable": self.forbidden(),
            "subscriptionGroupTable": HOLE,
        }

        def encode() -> bytes:
            before, after = encode_around(content, encode_pretty)
            return before + b"{" + self._encoded.members(table) + b"\n\t}" + after

        return encode

    def all(self) -> dict[str, SubscriptionGroupConfig]:
        """Every group, as a copy of the table."""
        return dict(self._groups)

    @property
    def count(self) -> int:
        """How many groups there are."""
        return len(self._groups)

    def forbidden(self) -> dict[str, dict[str, int]]:
        """By group and topic: bits of what the group may not do."""
        return {group: dict(topics) for group, topics in self._forbidden.items()}

    def get(self, name: str) -> SubscriptionGroupConfig | None:
        """Returns an existing group, and creates none.

        With light queues, each name of one is a group as well.
        """
        group = self._groups.get(name)
        if group is None and self._has_light_queues and is_light(name):
            return SubscriptionGroupConfig(group_name=name)
        return group

    @property
    def why_full(self) -> str:
        """Why no groups are created on demand any more; empty when they are."""
        limit = self._config.auto_create_limit
        if len(self._groups) < limit:
            return ""
        return (
            f"the broker has {len(self._groups)} groups and creates no more by itself"
            f" (autoCreateLimit={limit}): delete some, create this one, or raise the limit"
        )

    def find(self, name: str) -> SubscriptionGroupConfig | None:
        """Returns a group, created if `expected` permits that; else None."""
        group = self.get(name)
        if group is not None:
            return group
        group = self.expected(name)
        if group is not None:
            self._groups[name] = group
            self._changed(name)
        return group

    def expected(self, name: str) -> SubscriptionGroupConfig | None:
        """Returns a group that exists, or that `find` would create: if the configuration permits
        that, its name is valid, and there are not too many; else None.
        """
        group = self.get(name)
        if group is not None:
            return group
        config = self._config
        allowed = config.auto_create_subscription_group or (
            config.enable_create_sys_group and is_system_group(name)
        )
        if not allowed or validate_group(name) is not None or self.why_full:
            return None
        return SubscriptionGroupConfig(group_name=name)

    def update(self, group: SubscriptionGroupConfig) -> None:
        """Creates or changes a group. `saving.answer` makes it durable.

        `attributes` of the argument are changes, "+name": value and "-name": ""; raises
        AttributeChangeError when one of them is not allowed.
        """
        name = group.group_name or ""
        current = self._groups.get(name)
        before = None if current is None else current.attributes
        attributes = changed(GROUP_ATTRIBUTES, before, group.attributes)
        self._groups[name] = replace(group, attributes=attributes)
        self._changed(name)
        self.saving.begin()

    def delete(self, name: str) -> bool:
        """Deletes a group; returns False when there was none."""
        self._forbidden.pop(name, None)
        if self._groups.pop(name, None) is None:
            return False
        self._changed(name)
        self.saving.begin()
        return True

    def is_read_forbidden(self, group: str, topic: str) -> bool:
        """Whether a group may not read a topic (UPDATE_AND_GET_GROUP_FORBIDDEN)."""
        return bool(self._forbidden.get(group, {}).get(topic, 0) & _READ_BIT)

    def set_readable(self, group: str, topic: str, *, readable: bool) -> None:
        """Forbids or allows a group to read a topic."""
        topics = self._forbidden.setdefault(group, {})
        bits = topics.get(topic, 0)
        bits = bits & ~_READ_BIT if readable else bits | _READ_BIT
        if bits:
            topics[topic] = bits
        else:
            topics.pop(topic, None)
        if not topics:
            del self._forbidden[group]
        self._changed(group)
        self.saving.begin()

    def life(self) -> Life:
        """The groups are kept in subscriptionGroup.json."""
        return Life(
            "groups",
            table=self,
            opens=lambda _: unserved_in("group", GROUP_ATTRIBUTES, self.all()),
            beats=(Beat(SECOND_MS, self.saving.begin),),
            gauges=(Gauge("rocketmq_consumer_group_number", lambda: self.count),),
        )

    def _changed(self, name: str) -> None:
        self.data_version = self.data_version.next(self._now_ms())
        self._file.is_stale = True
        for heard in self.on_change:
            heard(name)


def _encode_group(name: str, group: SubscriptionGroupConfig) -> bytes:
    return encode_pretty_member(name, group.to_json(), 2)
