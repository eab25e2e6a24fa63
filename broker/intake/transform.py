# SPDX-License-Identifier: Apache-2.0
"""Transforms: changes that a broker makes to some messages before it stores them.

A transform declares what it acts on: names of properties, topics or their beginnings, attributes of
topics, system flags, and ways by which messages come. What is plain follows from these declarations
and from nothing else: a message that none of them touches is stored as it is. So a new transform
needs its module, and its place in the list of `all_transforms.py`.

Java: PutMessageHook, HookUtils.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from txrocketmq.broker.intake.inner_message import ALL_WAYS, InnerMessage, Way
from txrocketmq.broker.intake.plain_properties import PlainProperties
from txrocketmq.broker.store.formats.put_message import PutStatus


class NotTaken(Exception):
    """A message that is not to be stored; `status` says why."""

    def __init__(self, status: PutStatus) -> None:
        super().__init__(status.name)
        self.status = status


@dataclass(frozen=True, slots=True)
class ActsOn:
    """What a transform acts on: messages of one of the ways that match any other declaration."""

    properties: frozenset[str] = frozenset()
    topics: frozenset[str] = frozenset()
    topic_prefixes: tuple[str, ...] = ()
    topic_attributes: frozenset[str] = frozenset()
    """Names of attributes: every message to a topic that has one of them set is touched."""
    sys_flags: int = 0
    ways: Way = ALL_WAYS
    is_by_topic: bool = field(init=False)
    """Whether anything other than properties and beginnings of topics is declared."""

    def __post_init__(self) -> None:
        """Precomputes `is_by_topic`, since declarations are used for every message."""
        by_topic = self.topics or self.topic_attributes or self.sys_flags
        object.__setattr__(self, "is_by_topic", bool(by_topic))

    def touches_topic(
        self, topic: str, sys_flag: int, attributes: Mapping[str, str] | None
    ) -> bool:
        """Whether every message to the topic with this flag is touched, whatever it contains."""
        return bool(
            sys_flag & self.sys_flags
            or topic in self.topics
            or (self.topic_prefixes and topic.startswith(self.topic_prefixes))
            or (attributes and not self.topic_attributes.isdisjoint(attributes))
        )


class Transform(Protocol):
    """One change that is made to messages; it acts on the message in place."""

    acts_on: ActsOn

    def apply(self, message: InnerMessage, now_ms: int) -> None:
        """Changes the message. Raises NotTaken, or a ResponseError with an answer of its own."""


class Transforms:
    """All transforms of a broker, in the order in which they act.

    `attributes_of` returns the attributes of a topic.
    """

    def __init__(
        self,
        transforms: Sequence[Transform],
        attributes_of: Callable[[str], Mapping[str, str] | None],
    ) -> None:
        self._transforms = transforms
        self._attributes_of = attributes_of
        by_way = {
            way: tuple(each for each in transforms if way in each.acts_on.ways) for way in Way
        }
        self._by_topic = {
            way: tuple(
                each.acts_on
                for each in its
                if each.acts_on.is_by_topic or each.acts_on.topic_prefixes
            )
            for way, its in by_way.items()
        }
        self._with_prefixes = {
            way: (its, tuple(prefix for each in its for prefix in each.acts_on.topic_prefixes))
            for way, its in by_way.items()
        }
        """By way: the transforms, and all beginnings of topics that they declare."""
        self._properties: dict[Way, frozenset[str]] = {
            way: frozenset().union(*(each.acts_on.properties for each in its))
            for way, its in by_way.items()
        }

        self._plain = {way: PlainProperties(names) for way, names in self._properties.items()}

    def plain(self, way: Way) -> PlainProperties:
        """The reader of properties for messages of this way that no transform touches."""
        return self._plain[way]

    def properties(self, way: Way) -> frozenset[str]:
        """Names of properties: a message that comes this way and has one of them is touched."""
        return self._properties[way]

    def touches_topic(self, way: Way, topic: str, sys_flag: int) -> bool:
        """Whether every message to the topic with this flag is touched, whatever it contains."""
        by_topic = self._by_topic[way]
        if not by_topic:
            return False
        attributes = self._attributes_of(topic)
        return any(acts_on.touches_topic(topic, sys_flag, attributes) for acts_on in by_topic)

    def apply(self, message: InnerMessage, now_ms: int) -> None:
        """Applies all transforms that act on the message, in their order; raises what they raise.

        A change by one of them can cause a later one to act on the message.
        """
        topic, attributes = message.topic, self._attributes_of(message.topic)
        transforms, prefixes = self._with_prefixes[message.way]
        begins = prefixes and topic.startswith(prefixes)
        for each in transforms:
            acts_on = each.acts_on
            if (
                not acts_on.properties.isdisjoint(message.properties)
                or (begins and topic.startswith(acts_on.topic_prefixes))
                or (
                    acts_on.is_by_topic
                    and acts_on.touches_topic(topic, message.sys_flag, attributes)
                )
            ):
                each.apply(message, now_ms)
                if message.topic != topic:
                    topic, attributes = message.topic, self._attributes_of(message.topic)
                    begins = topic.startswith(prefixes)


def no_transforms(transforms: Iterable[Transform] = ()) -> Transforms:
    """Makes Transforms of these alone, for topics without attributes: for tests and tools."""
    return Transforms(tuple(transforms), lambda _: None)
