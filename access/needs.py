# SPDX-License-Identifier: Apache-2.0
"""Needs: which actions on which topics, groups or clusters a request needs.

Names are read as the handlers read them: where a header may write a topic as `b` and as `topic`,
the letter counts. `%RETRY%g` as a topic is the group g, and `%RETRY%g_T`, where pops of g find the
messages of T again, is both. What a request finds by something else than a name is judged by
whoever finds it (`need_of_topic`).
Counterpart of DefaultAuthorizationContextBuilder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from itertools import islice
from typing import Final, NamedTuple

from txrocketmq.remoting.errors import RemotingError
from txrocketmq.remoting.message.pop import retry_topic
from txrocketmq.remoting.message.topics import RETRY_PREFIX
from txrocketmq.remoting.protocol.body.base import MOST_BYTES


class ResourceType(IntEnum):
    """Kinds of resources, with the numbers that the original stores."""

    UNKNOWN = 0
    ANY = 1
    CLUSTER = 2
    NAMESPACE = 3
    TOPIC = 4
    GROUP = 5

    @property
    def text(self) -> str:
        """The name as it is written in policies."""
        return self.name.capitalize()


class Action(IntEnum):
    """What is done with a resource, with the numbers that the original stores."""

    UNKNOWN = 0
    ALL = 1
    ANY = 2
    PUB = 3
    SUB = 4
    CREATE = 5
    UPDATE = 6
    DELETE = 7
    GET = 8
    LIST = 9

    @property
    def text(self) -> str:
        """The name as it is written in policies."""
        return self.name.capitalize()


class Need(NamedTuple):
    """One of these actions on a resource; the name None stands for all resources of the type."""

    type: ResourceType
    name: str | None
    actions: tuple[Action, ...]

    @property
    def resource(self) -> str:
        """The resource as it is written in policies and remarks."""
        return f"{self.type.text}:{'*' if self.name is None else self.name}"


class UnclearNeed(RemotingError):
    """It cannot be told what a request needs, so it is refused; the text is the remark."""


MOST_NEEDS: Final = 1_000
"""How many resources a request may name, and how many objects of JSON a body that is looked at may
have, since all of them are looked up in one turn."""
MOST_VALUES: Final = 16_000
"""How many commas such a body may have, which separate the values that have to be read."""
TOO_LONG: Final = f"the body has more than the limit of {MOST_BYTES} bytes"
TOO_MUCH: Final = (
    f"a request may name {MOST_NEEDS} topics, groups and queues with {MOST_VALUES} values at most:"
    " name fewer at a time, or use an account that may do everything"
)
NOTHING_KNOWN: Final = "authorization context is empty."
NOT_READABLE: Final = "parse authorization context error."
_TOPIC, _GROUP, _CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
_PUB, _SUB = Action.PUB, Action.SUB

Fields = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Part:
    """What one field of a header, or the body, needs."""

    type: ResourceType
    actions: tuple[Action, ...]
    fields: tuple[str, ...] = ()
    """The names under which the field may be written; the first that is there counts."""
    is_optional: bool = False
    separator: str = ""
    """What separates several names in the field, if it may have several."""
    retry: bool = True
    """Whether a retry topic stands for its group. Otherwise it needs nothing, since the group is
    asked for by itself."""
    body: Callable[[bytes], Iterable[tuple[ResourceType, str | None]]] | None = None
    """Reads the resources in the body, if they are there."""

    def needs(self, fields: Fields, body: bytes, cluster: str) -> Iterator[Need]:
        """Returns what a request needs. Raises UnclearNeed."""
        if self.type == _CLUSTER:
            yield Need(_CLUSTER, cluster, self.actions)
        elif self.body is not None:
            try:
                found = list(self.body(body))
            except (RemotingError, ValueError, TypeError, AttributeError, RecursionError) as error:
                raise UnclearNeed(NOT_READABLE) from error
            for kind, name in found:
                yield from self.named(kind, name)
        elif not self.fields:
            yield Need(self.type, None, self.actions)
        else:
            yield from self._of_field(fields)

    def _of_field(self, fields: Fields) -> Iterator[Need]:
        text = next((t for each in self.fields if (t := fields.get(each)) is not None), None)
        if text is None or not text.strip():
            if not self.is_optional:
                yield from self.named(self.type, None)
            return
        for name in text.split(self.separator) if self.separator else (text,):
            if name:
                yield from self.named(self.type, name)

    def named(self, kind: ResourceType, name: str | None) -> Iterator[Need]:
        """Returns the need of a resource by its name, if it is one. Raises UnclearNeed."""
        if name is None or not name.strip():
            raise UnclearNeed("topic is null." if kind == _TOPIC else "consumer group is null.")
        if name.startswith(RETRY_PREFIX):
            if kind == _TOPIC and not self.retry:
                return
            # To send to the group of a consumer is part of consuming, so Pub becomes Sub.
            actions = tuple(dict.fromkeys(_SUB if a == _PUB else a for a in self.actions))
            yield Need(_GROUP, name[len(RETRY_PREFIX) :], actions)
        else:
            yield Need(kind, name, self.actions)


def need_of_topic(topic: str, *actions: Action) -> Need:
    """Returns the need of a topic that was found by something else than its name."""
    return next(Part(_TOPIC, actions).named(_TOPIC, topic))


@dataclass(frozen=True, slots=True)
class Needs:
    """What requests with a code need."""

    parts: tuple[Part, ...]
    may_be_nothing: bool = False
    """Whether a request that names no resource is allowed to every account."""
    own_retry: bool = False
    """Whether a retry topic has to be that of the consumer group."""
    own_pops: bool = False
    """Whether a retry topic of the pops of the consumer group stands for the topic popped from."""

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of all fields that are looked at."""
        return tuple(name for part in self.parts for name in part.fields)

    @property
    def reads_body(self) -> bool:
        """Whether the body is looked at."""
        return any(part.body is not None for part in self.parts)

    @property
    def is_for_operators(self) -> bool:
        """Whether they act on the server as a whole, so that ACL 1 leaves them to its admins."""
        return any(part.type == _CLUSTER for part in self.parts)

    def of(self, fields: Fields, body: bytes, cluster: str) -> tuple[Need, ...]:
        """Returns what one request needs, each once. Raises UnclearNeed."""
        if self.reads_body:
            _check_size(body)
        if self.own_pops:
            fields = _popped_from(fields)
        every = (need for part in self.parts for need in part.needs(fields, body, cluster))
        needs = tuple(dict.fromkeys(islice(every, 2 * MOST_NEEDS)))  # an object may name two
        if len(needs) > MOST_NEEDS or next(every, None) is not None:
            raise UnclearNeed(TOO_MUCH)
        if not needs and not self.may_be_nothing:
            raise UnclearNeed(NOTHING_KNOWN)
        if self.own_retry:
            topic, group = fields.get("topic") or "", fields.get("consumerGroup") or ""
            if topic.startswith(RETRY_PREFIX) and topic != RETRY_PREFIX + group:
                raise UnclearNeed("retry topic does not match consumer group.")
        return needs


def _check_size(data: bytes) -> None:
    """Raises UnclearNeed for too much in one turn; handlers read bodies in steps, guards do not."""
    if len(data) > MOST_BYTES:
        raise UnclearNeed(TOO_LONG)
    if data.count(b"{") > MOST_NEEDS or data.count(b",") > MOST_VALUES:
        raise UnclearNeed(TOO_MUCH)


def _popped_from(fields: Fields) -> Fields:
    """Returns the fields with the topic whose messages were popped in place of a retry topic."""
    topic, group = fields.get("topic") or "", fields.get("consumerGroup") or ""
    for v2 in (False, True):
        before = retry_topic("", group, v2=v2)
        if topic.startswith(before):
            return {**fields, "topic": topic.removeprefix(before)}
    return fields
