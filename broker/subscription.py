# SPDX-License-Identifier: Apache-2.0
"""Consumer groups as configured: who may consume how, subscriptionGroup.json.

Counterpart of SubscriptionGroupManager.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from txrocketmq.broker.attributes import GROUP_ATTRIBUTES, changed
from txrocketmq.broker.config import BrokerConfig
from txrocketmq.broker.json_file import JsonFile
from txrocketmq.broker.topic import validate_group
from txrocketmq.remoting.protocol.body.route import DataVersion
from txrocketmq.remoting.protocol.body.topic import SubscriptionGroupConfig

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
"""PermName.INDEX_PERM_READ as a bit of the forbidden table."""


def is_system_group(name: str) -> bool:
    """Whether a group is the broker's own (MixAll.isSysConsumerGroup)."""
    return name.startswith(SYSTEM_GROUP_PREFIX) or name in SYSTEM_GROUPS


class SubscriptionGroups:
    """All groups by name. `on_change` is called when a group came or changed.

    As of topics, what an administrator changes is on disk when it is done; what heartbeats and
    pulls make waits for `changes`.
    """

    def __init__(
        self,
        config: BrokerConfig,
        file: JsonFile,
        now_ms: Callable[[], int],
        on_change: Callable[[str], None] | None = None,
    ) -> None:
        self._config = config
        self._file = file
        self._now_ms = now_ms
        self.on_change = on_change
        self.data_version = DataVersion(timestamp=now_ms())
        self._groups: dict[str, SubscriptionGroupConfig] = {}
        self._forbidden: dict[str, dict[str, int]] = {}
        for name in SYSTEM_GROUPS:
            self._groups[name] = SubscriptionGroupConfig(
                group_name=name, consume_broadcast_enable=True
            )

    def load(self) -> None:
        """Takes what subscriptionGroup.json holds; raises JsonFileError."""
        with self._file.content() as content:
            for name, value in (content.get("subscriptionGroupTable") or {}).items():
                self._groups[name] = SubscriptionGroupConfig.from_json(value)
            for group, topics in (content.get("forbiddenTable") or {}).items():
                self._forbidden[group] = {topic: int(bits) for topic, bits in topics.items()}
            if content.get("dataVersion"):
                self.data_version = DataVersion.from_json(content["dataVersion"])

    def save(self) -> None:
        """Writes subscriptionGroup.json; raises OSError."""
        self._file.save(self._table())

    def changes(self) -> Callable[[], None] | None:
        """What writes subscriptionGroup.json, in any thread; None when nothing changed since."""
        if not self._file.is_stale:
            return None
        return self._file.saving(self._table())

    def _table(self) -> dict[str, Any]:
        return {
            "dataVersion": self.data_version.to_json(),
            "forbiddenTable": self.forbidden(),
            "subscriptionGroupTable": {
                name: self._groups[name].to_json() for name in sorted(self._groups)
            },
        }

    def all(self) -> dict[str, SubscriptionGroupConfig]:
        """Every group, as a copy of the table."""
        return dict(self._groups)

    def forbidden(self) -> dict[str, dict[str, int]]:
        """Group to topic to bits of what it may not do."""
        return {group: dict(topics) for group, topics in self._forbidden.items()}

    def get(self, name: str) -> SubscriptionGroupConfig | None:
        """A group that exists; none is made."""
        return self._groups.get(name)

    def find(self, name: str) -> SubscriptionGroupConfig | None:
        """A group, made when the configuration allows that and its name is good."""
        group = self._groups.get(name)
        if group is not None:
            return group
        config = self._config
        allowed = config.auto_create_subscription_group or (
            config.enable_create_sys_group and is_system_group(name)
        )
        if not allowed or validate_group(name) is not None:
            return None
        group = self._groups[name] = SubscriptionGroupConfig(group_name=name)
        self._changed(name)
        return group

    def update(self, group: SubscriptionGroupConfig) -> None:
        """Makes or changes a group.

        `attributes` of the argument are changes, "+name": value and "-name": "";
        AttributeChangeError when one of them is not allowed.
        """
        name = group.group_name or ""
        current = self._groups.get(name)
        before = None if current is None else current.attributes
        attributes = changed(GROUP_ATTRIBUTES, before, group.attributes)
        self._groups[name] = replace(group, attributes=attributes)
        self._changed(name)
        self.save()

    def delete(self, name: str) -> bool:
        """Forgets a group; False when there was none."""
        self._forbidden.pop(name, None)
        if self._groups.pop(name, None) is None:
            return False
        self._changed(name)
        self.save()
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
        self.save()

    def _changed(self, name: str) -> None:
        self.data_version = self.data_version.next(self._now_ms())
        self._file.is_stale = True
        if self.on_change is not None:
            self.on_change(name)
