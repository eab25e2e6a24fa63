# SPDX-License-Identifier: Apache-2.0
"""The topics of a broker: what they are allowed, how new ones come to be, topics.json.

Counterpart of TopicConfigManager and TopicValidator.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from txrocketmq.broker.attributes import TOPIC_ATTRIBUTES, changed
from txrocketmq.broker.config import BrokerConfig
from txrocketmq.broker.json_file import JsonFile
from txrocketmq.remoting.message.flags import PermName, is_inherited
from txrocketmq.remoting.message.topics import (
    BENCHMARK_TOPIC,
    DEFAULT_TOPIC,
    DLQ_PREFIX,
    OFFSET_MOVED_EVENT,
    REPLY_SUFFIX,
    RETRY_PREFIX,
    SCHEDULE_TOPIC,
    SELF_TEST_TOPIC,
    SYSTEM_PREFIX,
    SYSTEM_TOPICS,
    TRANS_HALF_TOPIC,
    TRANS_OP_TOPIC,
)
from txrocketmq.remoting.protocol.body.route import DataVersion, TopicConfig

_NAME = re.compile(r"[%|a-zA-Z0-9_-]+")
_MAX_TOPIC_LENGTH = 127
_MAX_RETRY_TOPIC_LENGTH = 255
_MAX_GROUP_LENGTH = 120
_READ_WRITE = PermName.READ | PermName.WRITE
_SCHEDULE_QUEUES = 18
_BENCHMARK_QUEUES = 1024
_CLUSTER_QUEUES = 16


def validate_topic(name: str) -> str | None:
    """What is wrong with a topic's name, in the original's words; None when it is good."""
    if not name or name.isspace():
        return "The specified topic is blank."
    if not _NAME.fullmatch(name):
        return (
            f"The specified topic: {name}, contains illegal characters,"
            " allowing only ^[%|a-zA-Z0-9_-]+$"
        )
    if name.startswith((RETRY_PREFIX, DLQ_PREFIX)):
        if len(name) > _MAX_RETRY_TOPIC_LENGTH:
            return (
                f"The specified topic is DLQ or Retry topic: {name}, and it's longer than topic"
                f" max length: {_MAX_RETRY_TOPIC_LENGTH}"
            )
    elif len(name) > _MAX_TOPIC_LENGTH:
        return f"The specified topic: {name}, is longer than topic max length: {_MAX_TOPIC_LENGTH}"
    return None


def validate_group(name: str) -> str | None:
    """What is wrong with a group's name, in the original's words; None when it is good."""
    if not name or name.isspace():
        return "The specified group is blank."
    if not _NAME.fullmatch(name):
        return (
            f"The specified group: {name}, contains illegal characters,"
            " allowing only ^[%|a-zA-Z0-9_-]+$"
        )
    if len(name) > _MAX_GROUP_LENGTH:
        return f"The specified group: {name}, is longer than group max length: {_MAX_GROUP_LENGTH}"
    return None


class Topics:
    """All topics by name. `on_change` is called with the name of a topic that came or changed.

    What an administrator changes and what gets a message is on disk when it is done. What
    heartbeats make, and would make again, waits for `changes`: there may be thousands at once.
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
        self._topics: dict[str, TopicConfig] = {}
        self.data_version = DataVersion(timestamp=now_ms())
        self._system = set(SYSTEM_TOPICS)
        for topic in _system_topics(config):
            self._topics[topic.topic_name or ""] = topic
        self._system.update(self._topics)
        self.get = self._topics.get  # asked for each message

    def load(self) -> None:
        """Takes what topics.json holds; raises JsonFileError."""
        with self._file.content() as content:
            for name, value in (content.get("topicConfigTable") or {}).items():
                self._topics[name] = TopicConfig.from_json(value)
            if content.get("dataVersion"):
                self.data_version = DataVersion.from_json(content["dataVersion"])

    def save(self) -> None:
        """Writes topics.json; raises OSError."""
        self._file.save(self._table())

    def changes(self) -> Callable[[], None] | None:
        """What writes topics.json, in any thread; None when nothing changed since."""
        if not self._file.is_stale:
            return None
        return self._file.saving(self._table())

    def _table(self) -> dict[str, Any]:
        return {
            "dataVersion": self.data_version.to_json(),
            "topicConfigTable": {
                name: self._topics[name].to_json() for name in sorted(self._topics)
            },
        }

    def all(self) -> dict[str, TopicConfig]:
        """Every topic, as a copy of the table."""
        return dict(self._topics)

    def for_registration(self) -> dict[str, TopicConfig]:
        """Every topic as name servers are told it: with no more than the broker's permission."""
        allowed = self._config.broker_permission
        if allowed & _READ_WRITE == _READ_WRITE:
            return dict(self._topics)
        return {
            name: replace(topic, perm=topic.perm & allowed) for name, topic in self._topics.items()
        }

    def system_topics(self) -> set[str]:
        """Names that are the broker's own."""
        return set(self._system)

    def is_system(self, name: str) -> bool:
        """Whether a topic is the broker's own (TopicValidator.isSystemTopic)."""
        return name in self._system or name.startswith(SYSTEM_PREFIX)

    def is_order_topic(self, name: str) -> bool:
        """Whether the order of the topic's queues is fixed by the name server's configuration."""
        topic = self._topics.get(name)
        return topic is not None and topic.order

    def create_in_send(
        self, name: str, default_topic: str, queue_nums: int, sys_flag: int
    ) -> TopicConfig | None:
        """A topic for the first message to it, modelled on `default_topic`; None: not allowed."""
        existing = self._topics.get(name)
        if existing is not None:
            return existing
        model = self._topics.get(default_topic)
        if model is None or not is_inherited(model.perm):
            return None
        if default_topic == DEFAULT_TOPIC and not self._config.auto_create_topic_enable:
            return None
        queues = max(0, min(queue_nums, model.write_queue_nums))
        made = self._put(
            name,
            TopicConfig(
                topic_name=name,
                read_queue_nums=queues,
                write_queue_nums=queues,
                perm=model.perm & ~PermName.INHERIT,
                topic_filter_type=model.topic_filter_type,
                topic_sys_flag=sys_flag,
            ),
        )
        self.save()
        return made

    def create_in_send_back(
        self,
        name: str,
        queue_nums: int,
        perm: int = PermName.READ | PermName.WRITE,
        sys_flag: int = 0,
    ) -> TopicConfig:
        """A retry or dead-letter topic for a message, made when it is missing."""
        topic = self.create_in_heartbeat(name, queue_nums, perm, sys_flag)
        if self._file.is_stale:
            self.save()
        return topic

    def create_in_heartbeat(
        self,
        name: str,
        queue_nums: int,
        perm: int = PermName.READ | PermName.WRITE,
        sys_flag: int = 0,
    ) -> TopicConfig:
        """A retry topic for messages that may come, made when it is missing."""
        existing = self._topics.get(name)
        if existing is not None:
            return existing
        return self._put(
            name,
            TopicConfig(
                topic_name=name,
                read_queue_nums=queue_nums,
                write_queue_nums=queue_nums,
                perm=perm,
                topic_sys_flag=sys_flag,
            ),
        )

    def update(self, topic: TopicConfig) -> bool:
        """Makes or changes a topic; False when it is so already.

        `attributes` of the argument are changes, "+name": value and "-name": "";
        AttributeChangeError when one of them is not allowed.
        """
        name = topic.topic_name or ""
        current = self._topics.get(name)
        before = None if current is None else current.attributes
        attributes = changed(TOPIC_ATTRIBUTES, before, topic.attributes)
        topic = replace(topic, attributes=attributes)
        if topic == current:
            return False
        self._put(name, topic)
        self.save()
        return True

    def delete(self, name: str) -> bool:
        """Forgets a topic; False when there was none."""
        if self._topics.pop(name, None) is None:
            return False
        self._changed(name)
        self.save()
        return True

    def set_order_topics(self, names: set[str]) -> None:
        """Marks these as order topics (the name server's ORDER_TOPIC_CONFIG); others stay.

        4.9 takes the mark off the others, even where an administrator has set it.
        """
        unmarked = {
            name: replace(topic, order=True)
            for name in names
            if (topic := self._topics.get(name)) is not None and not topic.order
        }
        if unmarked:
            self._topics.update(unmarked)
            self.data_version = self.data_version.next(self._now_ms())
            self._file.is_stale = True

    def _put(self, name: str, topic: TopicConfig) -> TopicConfig:
        self._topics[name] = topic
        self._changed(name)
        return topic

    def _changed(self, name: str) -> None:
        self.data_version = self.data_version.next(self._now_ms())
        self._file.is_stale = True
        if self.on_change is not None:
            self.on_change(name)


def _system_topics(config: BrokerConfig) -> list[TopicConfig]:
    """What TopicConfigManager.init makes, in its order."""
    read_write = PermName.READ | PermName.WRITE
    cluster = config.broker_cluster_name
    topics = [_topic(SELF_TEST_TOPIC, 1)]
    if config.auto_create_topic_enable:
        perm = read_write | PermName.INHERIT
        topics.append(_topic(DEFAULT_TOPIC, config.default_topic_queue_nums, perm))
    topics.append(_topic(BENCHMARK_TOPIC, _BENCHMARK_QUEUES))
    cluster_perm = PermName.INHERIT | (read_write if config.cluster_topic_enable else 0)
    topics.append(_topic(cluster, _CLUSTER_QUEUES, cluster_perm))
    broker_perm = PermName.INHERIT | (read_write if config.broker_topic_enable else 0)
    topics.append(_topic(config.broker_name, 1, broker_perm))
    topics.append(_topic(OFFSET_MOVED_EVENT, 1))
    topics.append(_topic(SCHEDULE_TOPIC, _SCHEDULE_QUEUES))
    if config.trace_topic_enable:
        topics.append(_topic(config.msg_trace_topic_name, 1))
    topics.append(_topic(cluster + REPLY_SUFFIX, 1))
    topics.append(_topic(f"rmq_sys_REVIVE_LOG_{cluster}", config.revive_queue_num))
    member = f"rmq_sys_SYNC_BROKER_MEMBER_{config.broker_name}"
    topics.append(_topic(member, 1, PermName.INHERIT))
    topics.append(_topic(TRANS_HALF_TOPIC, 1))
    topics.append(_topic(TRANS_OP_TOPIC, 1))
    return topics


def _topic(name: str, queues: int, perm: int = PermName.READ | PermName.WRITE) -> TopicConfig:
    return TopicConfig(topic_name=name, read_queue_nums=queues, write_queue_nums=queues, perm=perm)
