# SPDX-License-Identifier: Apache-2.0
"""The configurations of consumer groups: subscriptionGroup.json.

Counterpart of SubscriptionGroupManager.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.disk.steps import Steps
from txrocketmq.broker.store.queues.light_queues import is_light
from txrocketmq.broker.tables.attributes import GROUP_ATTRIBUTES, changed, unserved_in
from txrocketmq.broker.tables.encoded_table import EncodedTable
from txrocketmq.broker.tables.topic import validate_group
from txrocketmq.broker.work.config_table import NamedTable
from txrocketmq.broker.work.json_file import JsonFile
from txrocketmq.broker.work.life import SECOND_MS, Beat, Gauge, Life
from txrocketmq.remoting.protocol.body.topic import SubscriptionGroupConfig
from txrocketmq.remoting.serialize.json import (
    HOLE,
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


class HeldGroups(NamedTuple):
    """What subscriptionGroup.json holds."""

    groups: dict[str, SubscriptionGroupConfig]
    forbidden: dict[str, dict[str, int]]


class SubscriptionGroups(NamedTable[HeldGroups]):
    """All groups by name.

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
        super().__init__(file, now_ms)
        self._config = config
        self._has_light_queues = has_light_queues
        self._encoded = EncodedTable(_encode_group)
        self._own = {
            name: SubscriptionGroupConfig(group_name=name, consume_broadcast_enable=True)
            for name in SYSTEM_GROUPS
        }
        self._groups = dict(self._own)
        self._forbidden: dict[str, dict[str, int]] = {}

    def decode(self, content: Mapping[str, Any]) -> HeldGroups:
        """Reads the groups, and what they may not do."""
        groups = (content.get("subscriptionGroupTable") or {}).items()
        forbidden = (content.get("forbiddenTable") or {}).items()
        return HeldGroups(
            {name: SubscriptionGroupConfig.from_json(value) for name, value in groups},
            {
                group: {topic: int(bits) for topic, bits in topics.items()}
                for group, topics in forbidden
            },
        )

    def _hold(self, held: HeldGroups) -> Steps[None]:
        """The broker's own groups remain, whether they are named or not."""
        before, self._groups = self._groups, {**self._own, **held.groups}
        self._forbidden = held.forbidden
        self._file.is_stale = not self._own.keys() <= held.groups.keys()
        return self._differences(before, dict(self._groups))

    def _snapshot(self) -> Callable[[], bytes]:
        """Copies the table; returns what makes the text of subscriptionGroup.json from it."""
        content = {
            "dataVersion": self.data_version.to_json(),
            "forbiddenTable": self.forbidden(),
            "subscriptionGroupTable": HOLE,
        }
        return partial(self._encoded.text, content, dict(self._groups))

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
        group = self._groups.get(name) or self.get(name)
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
        group = self._groups.get(name) or self.get(name)
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
        if not self._forbidden:  # as mostly
            return False
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


def _encode_group(name: str, group: SubscriptionGroupConfig) -> bytes:
    return encode_pretty_member(name, group.to_json(), 2)
