# SPDX-License-Identifier: Apache-2.0
"""The tables of `config/` in a store directory, and its checkpoint.

The broker replaces these files while it runs. Each file is read whole; where it is missing, empty
or broken, its `.bak` is read instead, as the broker itself does. The JSON is fastjson's, in which
numbers that are keys of maps have no quotes. A file that was never written is an empty table.

A broker with light queues keeps the offsets of all groups in another file and leaves the usual one
as it was. Nothing in a store says whether light queues are enabled, so where both files are there,
the one that was written last counts.

Java: ConfigManager, TopicConfigManager, SubscriptionGroupManager, ConsumerOffsetManager,
LmqConsumerOffsetManager, ScheduleMessageService, StoreCheckpoint.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from txrocketmq.broker.store.formats import formats
from txrocketmq.remoting.message.flags import PermName
from txrocketmq.remoting.message.topics import DEFAULT_TOPIC, REPLY_SUFFIX, SYSTEM_PREFIX
from txrocketmq.remoting.primitives.packing import fixed
from txrocketmq.remoting.serialize.json import decode_body
from txrocketmq.remoting.serialize.json_scanner import JsonError
from txrocketmq.spark.arrow.errors import StoreError, UnsupportedLayout
from txrocketmq.spark.store.files import Files

_CHECKPOINT: Final = fixed(formats.CHECKPOINT)
_CHECKPOINT_V4: Final = fixed(formats.CHECKPOINT_V4)
_TOPIC_AT_GROUP: Final = "@"
_OFFSETS: Final = "consumerOffset.json"
_OFFSETS_WITH_LIGHT: Final = "lmqConsumerOffset.json"
_LIGHT_QUEUE_ID: Final = 0
_SAME_TIME_MS: Final = 60_000
"""Brokers write offsets every few seconds, so files that differ less may have been copied."""

ROCKSDB_FILE: Final = "CURRENT"
"""A file that every RocksDB directory has."""
_ROCKSDB: Final = {
    "topics.json": ("topics", "metadata", "rdb"),
    "subscriptionGroup.json": ("subscriptionGroups", "metadata", "rdb"),
    "consumerOffset.json": ("consumerOffsets", "metadata", "rdb"),
}
"""Where 5.x keeps a table if it is configured to keep its configuration in RocksDB."""


@dataclass(frozen=True)
class StoreConfigFiles:
    """The configuration files of the store in the directory `path` of `files`."""

    files: Files
    path: str

    def topics(self) -> dict[str, dict[str, Any]]:
        """Returns the TopicConfig of each topic: perm, readQueueNums, writeQueueNums and so on."""
        return self._table("topics.json", "topicConfigTable")

    def groups(self) -> dict[str, dict[str, Any]]:
        """Returns the SubscriptionGroupConfig of each consumer group."""
        return self._table("subscriptionGroup.json", "subscriptionGroupTable")

    def consumer_offsets(self) -> dict[tuple[str, str], dict[int, int]]:
        """Returns by topic and group the offset of each queue that the group consumes next.

        The groups of light queues are among them, each with a single queue 0.
        """
        file, content = self._consumer_offsets()
        offsets: dict[tuple[str, str], dict[int, int]] = {}
        light = content.get("lmqOffsetTable") or {}
        if not isinstance(light, dict):
            raise self._wrong(file, "lmqOffsetTable is not an object")
        for name, at in light.items():
            queues = {_LIGHT_QUEUE_ID: self._number(file, at)}
            offsets[self._topic_and_group(file, name)] = queues
        for name, numbers in self._objects(file, content, "offsetTable").items():
            queues = self._numbers(file, numbers)
            offsets.setdefault(self._topic_and_group(file, name), {}).update(queues)
        return offsets

    def _consumer_offsets(self) -> tuple[str, dict[str, Any]]:
        """Returns the name and the content of the file of offsets that the broker uses.

        Where both are there, the times in the contents decide, which copies of a store keep as
        well, then those of the files. If neither tells, light queues have been switched on.
        """
        light = self._load(_OFFSETS_WITH_LIGHT)
        if not light:
            return _OFFSETS, self._load(_OFFSETS)
        if not self.files.exists(f"{self.path}/config/{_OFFSETS}"):
            return _OFFSETS_WITH_LIGHT, light
        usual = self._load(_OFFSETS)
        versions = _version_ms(usual), _version_ms(light)
        newer = versions[0] - versions[1] if all(versions) else 0
        if not newer:
            of_usual, of_light = (
                self.files.modified_ms(f"{self.path}/config/{name}")
                for name in (_OFFSETS, _OFFSETS_WITH_LIGHT)
            )
            newer = of_usual - of_light - _SAME_TIME_MS
        return (_OFFSETS, usual) if usual and newer > 0 else (_OFFSETS_WITH_LIGHT, light)

    def _topic_and_group(self, file: str, name: str) -> tuple[str, str]:
        topic, at, group = name.partition(_TOPIC_AT_GROUP)
        if not at:
            raise self._wrong(file, f"{name!r} is not topic@group")
        return topic, group

    def delay_offsets(self) -> dict[int, int]:
        """Returns by delay level the next offset to deliver of its queue in SCHEDULE_TOPIC_XXXX."""
        name = "delayOffset.json"
        return self._numbers(name, self._load(name).get("offsetTable") or {})

    def checkpoint(self) -> dict[str, int]:
        """Returns the fields of the checkpoint, of which 4.9 has only times; empty without one."""
        try:
            data = self.files.read(f"{self.path}/checkpoint")
        except FileNotFoundError:
            return {}
        if len(data) < _CHECKPOINT_V4.size:
            return {}
        return _CHECKPOINT.fields(data.ljust(_CHECKPOINT.size, b"\0"))

    def cluster_name(self) -> str | None:
        """Returns the cluster's name, known from the topics that every broker names after it."""
        topics = self.topics()
        for name in topics:
            cluster = name.removesuffix(REPLY_SUFFIX)
            if cluster != name and cluster in topics:
                return cluster
        return None

    def broker_name(self) -> str | None:
        """Returns the broker's name, that of the topic with one queue which each broker creates."""
        found = [
            name
            for name, topic in self.topics().items()
            if topic.get("writeQueueNums") == 1
            and topic.get("perm", 0) & PermName.INHERIT
            and name not in (DEFAULT_TOPIC, self.cluster_name())
            and not name.lower().startswith(SYSTEM_PREFIX)
        ]
        return found[0] if len(found) == 1 else None

    def _table(self, name: str, member: str) -> dict[str, Any]:
        return self._objects(name, self._load(name), member)

    def _objects(self, name: str, content: Mapping[str, Any], member: str) -> dict[str, Any]:
        table = content.get(member) or {}
        if not isinstance(table, dict) or not all(isinstance(v, dict) for v in table.values()):
            raise self._wrong(name, f"{member} is not an object of objects")
        return {str(key): value for key, value in table.items()}

    def _load(self, name: str) -> dict[str, Any]:
        wrong = []
        for path in (f"{self.path}/config/{name}", f"{self.path}/config/{name}.bak"):
            try:
                data = self.files.read(path)
            except FileNotFoundError:
                continue
            if not data.strip():
                continue
            try:
                value = decode_body(data)
            except JsonError as error:
                wrong.append(f"{path}: {error}")
                continue
            if isinstance(value, dict):
                return value
            wrong.append(f"{path} is no JSON object")
        if wrong:
            raise StoreError("; ".join(wrong))
        for kind in _ROCKSDB.get(name, ()):
            if self.files.exists(f"{self.path}/config/{kind}/{ROCKSDB_FILE}"):
                raise UnsupportedLayout(
                    f"{self.path}/config/{kind} is a RocksDB and there is no {name} beside it; have"
                    " the broker export its configuration to JSON (mqadmin rocksDBConfigToJson)"
                )
        return {}

    def _numbers(self, name: str, table: object) -> dict[int, int]:
        if not isinstance(table, Mapping):
            raise self._wrong(name, f"{table!r:.80} is not a map of numbers")
        return {self._number(name, k): self._number(name, v) for k, v in table.items()}

    def _number(self, name: str, value: object) -> int:
        try:
            return int(value)  # type: ignore[call-overload, no-any-return]  # else TypeError
        except (TypeError, ValueError):
            raise self._wrong(name, f"{value!r:.80} is not a number") from None

    def _wrong(self, name: str, what: str) -> StoreError:
        return StoreError(f"{self.path}/config/{name}: {what}")


def _version_ms(content: Mapping[str, Any]) -> int:
    """Returns when the content was changed last, by its dataVersion; 0 in a file of 4.9."""
    version = content.get("dataVersion")
    found = version.get("timestamp") if isinstance(version, dict) else None
    return found if isinstance(found, int) else 0
