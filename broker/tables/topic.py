# SPDX-License-Identifier: Apache-2.0
"""The topics of a broker: their settings, the creation of new ones, topics.json.

Counterpart of TopicConfigManager and TopicValidator.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.disk.steps import Steps
from txrocketmq.broker.store.queues.light_queues import is_light
from txrocketmq.broker.tables.attributes import (
    BATCH_QUEUES,
    QUEUE_TYPE,
    TOPIC_ATTRIBUTES,
    changed,
    has_batch_queues,
    unserved_in,
)
from txrocketmq.broker.tables.drafts import Drafts
from txrocketmq.broker.tables.encoded_table import EncodedTable
from txrocketmq.broker.work.config_table import NamedTable
from txrocketmq.broker.work.json_file import JsonFile
from txrocketmq.broker.work.life import SECOND_MS, Beat, Gauge, Life
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
    TIMER_TOPIC,
    TRANS_HALF_TOPIC,
    TRANS_OP_TOPIC,
)
from txrocketmq.remoting.protocol.body.route import TopicConfig
from txrocketmq.remoting.serialize.json import (
    HOLE,
    encode_pretty_member,
)

_NAME = re.compile(r"[%|a-zA-Z0-9_-]+")
_MAX_TOPIC_LENGTH = 127
_MAX_RETRY_TOPIC_LENGTH = 255
_MAX_GROUP_LENGTH = 120
_SCHEDULE_QUEUES = 18
_BENCHMARK_QUEUES = 1024
_CLUSTER_QUEUES = 16


_KINDS = {"": "topics", RETRY_PREFIX: "retry topics", DLQ_PREFIX: "dead-letter topics"}
"""What may be created on demand, each kind up to autoCreateLimit, by the prefix of the names."""


def _literal(text: str) -> str:
    """A pattern in which nothing but `*` has a meaning."""
    return re.sub(r"[?\[]", r"[\g<0>]", text)


def _kind(name: str) -> str:
    """The kind of a topic."""
    if not name.startswith("%"):
        return ""
    return next((each for each in (RETRY_PREFIX, DLQ_PREFIX) if name.startswith(each)), "")


def _why_no_name(what: str, name: str) -> str | None:
    if not name or name.isspace():
        return f"The specified {what} is blank."
    if not _NAME.fullmatch(name):
        return (
            f"The specified {what}: {name}, contains illegal characters,"
            " allowing only ^[%|a-zA-Z0-9_-]+$"
        )
    return None


def validate_topic(name: str) -> str | None:
    """What is wrong with a topic's name, in the original's words; None when it is valid."""
    why = _why_no_name("topic", name)
    if why is not None:
        return why
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
    """What is wrong with a group's name, in the original's words; None when it is valid."""
    why = _why_no_name("group", name)
    if why is not None:
        return why
    if len(name) > _MAX_GROUP_LENGTH:
        return f"The specified group: {name}, is longer than group max length: {_MAX_GROUP_LENGTH}"
    return None


class Topics(NamedTable[dict[str, TopicConfig]]):
    """All topics by name.

    A change takes effect at once, in memory. Changes by administrators and topics created for a
    message are written to topics.json without delay, by `saving`; an administrator is answered when
    the change is on disk, while the message does not wait for that: if the broker is killed in
    between, it restores the topic from the directories of its queues. Topics created by heartbeats,
    which would create them again, are written with the next tick: there may be thousands at once.
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
        self._encoded = EncodedTable(_encode_topic)
        self._own = {each.topic_name or "": each for each in _system_topics(config)}
        self._topics = dict(self._own)
        """Always the same object: its `get` is bound below."""
        self._counts: Counter[str] = Counter()
        """How many topics there are of each kind."""
        self._count()
        self.drafts = Drafts()
        """Topics, and groups, that are made once a message for them is stored."""
        self._is_lost = False
        self._system = {*SYSTEM_TOPICS, *self._own}
        self.get = self._get if has_light_queues else self._topics.get  # asked for each message

    def _get(self, name: str) -> TopicConfig | None:
        """Returns a topic; with light queues, each name of one is a topic that is in no table."""
        found = self._topics.get(name)
        return _topic(name, 1) if found is None and is_light(name) else found

    def decode(self, content: Mapping[str, Any]) -> dict[str, TopicConfig]:
        """Reads the topics."""
        table = (content.get("topicConfigTable") or {}).items()
        return {name: TopicConfig.from_json(value) for name, value in table}

    def _hold(self, held: dict[str, TopicConfig]) -> Steps[None]:
        """The broker's own topics remain, whether they are named or not."""
        before, after = dict(self._topics), {**self._own, **held}
        self._topics.clear()
        self._topics.update(after)
        self._count()
        self._file.is_stale = not self._own.keys() <= held.keys()
        self._is_lost = not held or bool(self._file.warning)
        return self._differences(before, after)

    def _count(self) -> None:
        """Counts all topics, in a fourth of the time of looking at each: there may be very many."""
        names = "\n".join(["", *self._topics])
        special = {kind: names.count(f"\n{kind}") for kind in _KINDS if kind}
        self._counts = Counter({"": len(self._topics) - sum(special.values()), **special})

    def restore(
        self,
        queue_nums: Mapping[str, int],
        *,
        after_crash: bool = False,
        has_batches: Callable[[str], bool] = lambda _: False,
    ) -> int:
        """Creates topics again that are missing in topics.json although they should be there;
        returns how many.

        `queue_nums` has the topics with queues and the number of these; `has_batches` tells their
        kind. Nothing is done when the file was read without trouble and the broker was stopped in
        order: topics that it does not name have been deleted. After a crash they may as well have
        been created for a message just before.
        """
        if not self._is_lost and not after_crash:
            return 0
        lost = sorted(each for each in queue_nums if not (each in self._topics or is_light(each)))
        for name in lost:
            topic = _topic(name, queue_nums[name])
            if has_batches(name):
                topic = replace(topic, attributes={QUEUE_TYPE: BATCH_QUEUES})
            self._put(name, topic)
        return len(lost)

    def _snapshot(self) -> Callable[[], bytes]:
        """Copies the table; returns a function that makes the text of topics.json from it."""
        content = {"dataVersion": self.data_version.to_json(), "topicConfigTable": HOLE}
        return partial(self._encoded.text, content, dict(self._topics))

    def all(self) -> dict[str, TopicConfig]:
        """Every topic, as a copy of the table."""
        return dict(self._topics)

    @property
    def count(self) -> int:
        """How many topics there are."""
        return len(self._topics)

    def known(self) -> set[str] | None:
        """The names of all topics; None when topics.json was lost, or names none but the system's.

        Then it is unknown to which topics the messages of a store should belong.
        """
        names = set(self._topics)
        return None if self._is_lost or all(map(self.is_system, names)) else names

    def has_batches(self, name: str) -> bool | None:
        """Whether the topic has queues of batches; None when it does not exist."""
        topic = self._topics.get(name)
        return None if topic is None else has_batch_queues(topic.attributes)

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

    def why_full(self, name: str) -> str:
        """Why no topic of this name is created on demand any more; empty when it is.

        Retry topics, dead-letter topics and all others each have the same limit, so that no kind
        takes the room of another.
        """
        if name in self._topics or name in self.drafts.topics:
            return ""
        limit, kind = self._config.auto_create_limit, _kind(name)
        count = self._counts[kind] + sum(_kind(each) == kind for each in self.drafts.topics)
        names = self._config.auto_create_topic_names
        if names and not kind and not any(fnmatchcase(name, _literal(each)) for each in names):
            return (
                "topics of this name are not created by sending (autoCreateTopicNames="
                f"{';'.join(names)}): create it, or send to another one"
            )
        if count < limit:
            return ""
        return (
            f"the broker has {count} {_KINDS[kind]} and creates no more by itself"
            f" (autoCreateLimit={limit}): delete some, create this one, or raise the limit"
        )

    def expected(self, name: str) -> TopicConfig | None:
        """Returns a topic that exists or will, for a message that is on its way."""
        return self.get(name) or self.drafts.topics.get(name)

    def attributes_of(self, name: str) -> Mapping[str, str] | None:
        """Returns the attributes of such a topic; None if there is none."""
        topic = self.get(name) or self.drafts.topics.get(name)  # in place: each message asks
        return None if topic is None else topic.attributes

    def draft_in_send(
        self, name: str, default_topic: str, queue_nums: int, sys_flag: int
    ) -> TopicConfig | None:
        """Drafts a topic for its first message, modelled on `default_topic`, if allowed."""
        existing = self._topics.get(name)
        if existing is not None:
            return existing
        model = self._topics.get(default_topic)
        if model is None or not is_inherited(model.perm):
            return None
        if default_topic == DEFAULT_TOPIC and not self._config.auto_create_topic_enable:
            return None
        if self.why_full(name):
            return None
        queues = max(0, min(queue_nums, model.write_queue_nums))
        return self._draft(
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

    def draft_in_send_back(
        self, name: str, queue_nums: int, sys_flag: int = 0
    ) -> TopicConfig | None:
        """Returns a retry or dead-letter topic for a message, drafted if it is missing; None if
        there are too many.
        """
        existing = self._topics.get(name)
        if existing is not None:
            return existing
        if self.why_full(name):
            return None
        return self._draft(name, _topic(name, queue_nums, sys_flag=sys_flag))

    def _draft(self, name: str, topic: TopicConfig) -> TopicConfig:
        topic = self.drafts.topics.setdefault(name, topic)
        self.drafts.want("topic", name, lambda: self._create(topic))
        return topic

    def _create(self, topic: TopicConfig) -> None:
        self._put(topic.topic_name or "", topic)
        self.saving.begin()

    def create_in_send_back(
        self,
        name: str,
        queue_nums: int,
        perm: int = PermName.READ | PermName.WRITE,
        sys_flag: int = 0,
    ) -> TopicConfig:
        """Returns a retry or dead-letter topic for a message, created if it is missing."""
        topic = self.create_in_heartbeat(name, queue_nums, perm, sys_flag)
        self.saving.begin()
        return topic

    def create_in_heartbeat(
        self,
        name: str,
        queue_nums: int,
        perm: int = PermName.READ | PermName.WRITE,
        sys_flag: int = 0,
    ) -> TopicConfig:
        """Returns a retry topic for messages that may come, created if it is missing."""
        existing = self._topics.get(name)
        if existing is not None:
            return existing
        return self._put(name, _topic(name, queue_nums, perm, sys_flag))

    def update(self, topic: TopicConfig) -> bool:
        """Creates or changes a topic; False: it is so already. `saving.answer` makes it durable.

        `attributes` of the argument are changes, "+name": value and "-name": ""; raises
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
        self.saving.begin()
        return True

    def delete(self, name: str) -> bool:
        """Deletes a topic; returns False when there was none."""
        if self._topics.pop(name, None) is None:
            return False
        self._counts[_kind(name)] -= 1
        self._changed(name)
        self.saving.begin()
        return True

    def life(self) -> Life:
        """The topics are kept in topics.json."""
        return Life(
            "topics",
            table=self,
            opens=lambda _: unserved_in("topic", TOPIC_ATTRIBUTES, self.all()),
            beats=(Beat(SECOND_MS, self.saving.begin),),
            gauges=(Gauge("rocketmq_topic_number", lambda: self.count),),
        )

    def set_order_topics(self, names: set[str]) -> None:
        """Marks these as order topics (the name server's ORDER_TOPIC_CONFIG), and no others.

        4.9 removes the mark from the others, even where an administrator has set it.
        """
        unmarked = {
            name: replace(topic, order=True)
            for name in names
            if (topic := self._topics.get(name)) is not None and not topic.order
        }
        if unmarked:
            self._topics.update(unmarked)
            self.next_version()
            self._file.is_stale = True

    def _put(self, name: str, topic: TopicConfig) -> TopicConfig:
        self._counts[_kind(name)] += name not in self._topics
        self._topics[name] = topic
        self._changed(name)
        return topic


def _encode_topic(name: str, topic: TopicConfig) -> bytes:
    return encode_pretty_member(name, topic.to_json(), 2)


def _system_topics(config: BrokerConfig) -> list[TopicConfig]:
    """The topics that TopicConfigManager.init creates, in its order."""
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
    topics.append(_topic(TIMER_TOPIC, 1))
    return topics


def _topic(
    name: str, queues: int, perm: int = PermName.READ | PermName.WRITE, sys_flag: int = 0
) -> TopicConfig:
    return TopicConfig(
        topic_name=name,
        read_queue_nums=queues,
        write_queue_nums=queues,
        perm=perm,
        topic_sys_flag=sys_flag,
    )
