# SPDX-License-Identifier: Apache-2.0
"""Rights: which actions on which topics and groups a call needs.

Each method declares its own, beside its name: `@rpc("SendMessage", rights=...)`. What is declared
nowhere is for accounts that may do everything, and a test asserts that nothing is forgotten. Names
are read as the methods read them. A retry topic stands for its group, as with requests to brokers
(access/needs.py). Counterpart of DefaultAuthorizationContextBuilder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from txrocketmq.access.needs import (
    MOST_NEEDS,
    TOO_MUCH,
    Action,
    Need,
    Part,
    ResourceType,
    UnclearNeed,
)

Names = tuple[str, ...]
"""What of a request decides, as texts, by which decisions are remembered."""
_PUB: Final = Part(ResourceType.TOPIC, (Action.PUB,))
_SUB: Final = Part(ResourceType.TOPIC, (Action.SUB,))
_ROUTE: Final = Part(ResourceType.TOPIC, (Action.PUB, Action.SUB, Action.GET))
_GROUP: Final = Part(ResourceType.GROUP, (Action.SUB,))


@dataclass(frozen=True, slots=True)
class Rights:
    """What a call needs: `names` reads from its request what decides, `needs` says what that is.

    Both may raise UnclearNeed, whose text is for the caller.
    """

    names: Callable[[Any], Names]
    needs: Callable[[Names], Iterator[Need]]


def publishing(topic: Callable[[Any], str]) -> Rights:
    """Rights to send to the topic of a request."""
    return Rights(lambda request: (topic(request),), lambda names: _of(_PUB, names[0]))


def finding(topic: Callable[[Any], str]) -> Rights:
    """Rights to do anything with the topic of a request."""
    return Rights(lambda request: (topic(request),), lambda names: _of(_ROUTE, names[0]))


def consuming(topic: Callable[[Any], str] = lambda request: str(request.topic.name)) -> Rights:
    """Rights to consume the topic of a request as its group."""
    return Rights(lambda request: (request.group.name, topic(request)), _consumed)


def belonging(group: Callable[[Any], str]) -> Rights:
    """Rights to consume as the group of a request; none if it has no group."""
    return Rights(lambda request: (group(request),), _belongs)


def stating(names: Callable[[Any], Names]) -> Rights:
    """Rights of a client by what it says it does: `producer_names`, `consumer_names` or nothing."""
    return Rights(names, _stated)


def producer_names(topics: Iterable[str]) -> Names:
    """The names that stand for a producer of topics."""
    return ("", *topics)


def consumer_names(group: str, topics: Iterable[str]) -> Names:
    """The names that stand for a consumer of topics."""
    if not group.strip():
        raise UnclearNeed("group is null.")
    return (group, *topics)


def _consumed(names: Names) -> Iterator[Need]:
    group, topic = names
    yield from _of(_GROUP, group)
    yield from _of(_SUB, topic)


def _belongs(names: Names) -> Iterator[Need]:
    if names[0].strip():
        yield from _of(_GROUP, names[0])


def _stated(names: Names) -> Iterator[Need]:
    if len(names) > MOST_NEEDS:
        raise UnclearNeed(TOO_MUCH)
    if not names:
        return
    group, *topics = names
    if group:
        yield from _of(_GROUP, group)
    for topic in topics:
        yield from _of(_SUB if group else _PUB, topic)


def _of(part: Part, name: str) -> Iterator[Need]:
    if not name.strip():
        raise UnclearNeed("topic is null." if part.type is ResourceType.TOPIC else "group is null.")
    return part.named(part.type, name)
