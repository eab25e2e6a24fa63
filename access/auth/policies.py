# SPDX-License-Identifier: Apache-2.0
"""Policies: which actions on which resources a user is allowed or denied, and from where.

All policies of a user are its Acl. It has custom entries, and default entries for what no custom
entry matches. Counterpart of Resource, PolicyEntry, Policy, Acl and AclConverter, and of the checks
of AuthorizationMetadataManagerImpl, whose remarks these are.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from itertools import islice
from typing import Any, Final, NamedTuple, TypeVar

from txrocketmq.access.auth.users import member, refused
from txrocketmq.access.needs import Action, Need, ResourceType
from txrocketmq.remoting.primitives.networks import Networks
from txrocketmq.remoting.protocol.body.auth import AclInfo, PolicyEntryInfo, PolicyInfo

T = TypeVar("T")
Steps = Generator[None, None, T]
"""Work on the policies of a user, who may have 10,000: it pauses after each small step."""
_AT_ONCE: Final = 64
"""How many entries are worked on in a step."""
SUBJECT_PREFIX: Final = "User:"
_ASTERISK: Final = "*"
_PREFIX_LENGTH: Final = re.compile("[^/]+(/[0-9]{1,3})?")


class NamePattern(IntEnum):
    """How the name of a resource is compared, with the numbers that the original stores."""

    ANY = 1
    LITERAL = 2
    PREFIXED = 3


class PolicyType(IntEnum):
    """Default entries count only where no custom entry matches."""

    CUSTOM = 1
    DEFAULT = 2

    @property
    def text(self) -> str:
        """The name as requests write it."""
        return self.name.capitalize()


class Decision(IntEnum):
    """What an entry says about the requests that it matches."""

    ALLOW = 1
    DENY = 2

    @property
    def text(self) -> str:
        """The name as requests write it."""
        return self.name.capitalize()


class Resource(NamedTuple):
    """The resources that an entry is about."""

    type: ResourceType
    name: str | None
    pattern: NamePattern

    @property
    def key(self) -> str:
        """The text of which `resource_of` makes this resource."""
        if self.type is ResourceType.ANY:
            return _ASTERISK
        name = "" if self.name is None else self.name
        asterisk = "" if self.pattern is NamePattern.LITERAL else _ASTERISK
        return f"{self.type.text}:{name}{asterisk}"

    def covers(self, need: Need) -> bool:
        """Returns whether a needed resource is one of these."""
        if self.type is ResourceType.ANY:
            return True
        if self.type is not need.type:
            return False
        if self.pattern is NamePattern.ANY:
            return True
        if need.name is None or self.name is None:
            return False
        if self.pattern is NamePattern.LITERAL:
            return need.name == self.name
        return need.name.startswith(self.name)

    @property
    def rank(self) -> tuple[int, int, int]:
        """How special the resource is: of several entries that match, the lowest rank decides."""
        pattern = (NamePattern.LITERAL, NamePattern.PREFIXED, NamePattern.ANY).index(self.pattern)
        length = len(self.name or "") if self.pattern is NamePattern.PREFIXED else 0
        return (self.type is ResourceType.ANY, pattern, -length)


def resource_of(key: str | None) -> Resource | None:
    """Returns the resource of a text such as "Topic:orders*", or None if it is none."""
    if key is None or not key.strip():
        return None
    if key == _ASTERISK:
        return Resource(ResourceType.ANY, None, NamePattern.ANY)
    kind, _, name = key.partition(":")
    found = member(ResourceType, kind)
    if found is None:
        return None
    if name == _ASTERISK:
        return Resource(found, None, NamePattern.ANY)
    if name.endswith(_ASTERISK):
        return Resource(found, name.partition(_ASTERISK)[0], NamePattern.PREFIXED)
    return Resource(found, name, NamePattern.LITERAL)


@dataclass(frozen=True)
class Entry:
    """One rule. Without `source_ips` it is for requests from everywhere."""

    resource: Resource
    actions: tuple[Action, ...]
    decision: Decision
    source_ips: tuple[str, ...] = ()

    @cached_property
    def _networks(self) -> Networks:
        return Networks(self.source_ips)

    def matches(self, need: Need, host: str) -> bool:
        """Returns whether the rule is about a need, from this address."""
        return self.resource.covers(need) and self.is_for(need.actions, host)

    def is_for(self, actions: Sequence[Action], host: str) -> bool:
        """Returns whether the rule is about one of these actions, from this address."""
        return (
            Action.ANY in actions
            or Action.ALL in self.actions
            or any(action in self.actions for action in actions)
        ) and (not self.source_ips or host in self.source_ips or host in self._networks)

    def info(self) -> PolicyEntryInfo:
        """Returns the rule as answers and files have it."""
        return PolicyEntryInfo(
            resource=self.resource.key,
            actions=[action.text for action in self.actions],
            source_ips=list(self.source_ips) or None,
            decision=self.decision.text,
        )


@dataclass(frozen=True)
class Acl:
    """All policies of one user."""

    user: str
    policies: Mapping[PolicyType, tuple[Entry, ...]]

    @property
    def subject(self) -> str:
        """The user as requests write it."""
        return SUBJECT_PREFIX + self.user

    @cached_property
    def index(self) -> tuple[Index, ...]:
        """The entries as decisions look for them: first the custom ones, then the defaults."""
        return tuple(Index(self.policies.get(kind, ())) for kind in PolicyType)

    def make_index(self) -> None:
        """Makes the index, which takes as long as there are entries, unless it is there already."""
        _ = self.index

    def indexing(self) -> Steps[None]:
        """Does the same in steps."""
        made = []
        for kind in PolicyType:
            index = yield from Index.making(self.policies.get(kind, ()))
            made.append(index)
        vars(self)["index"] = tuple(made)  # where the property keeps it

    def merging(self, other: Acl) -> Steps[Acl]:
        """Returns this Acl with the entries of another; one with the same resource is replaced."""
        policies = dict(self.policies)
        for kind, entries in other.policies.items():
            before = policies.get(kind)
            policies[kind] = (yield from _merging(before, entries)) if before else entries
        return Acl(self.user, policies)

    def removing(self, kind: PolicyType, resource: Resource) -> Steps[Acl]:
        """Returns this Acl without the entry for a resource."""
        policies = dict(self.policies)
        entries = policies.get(kind, ())
        for at, entry in enumerate(entries):
            if entry.resource == resource:
                policies[kind] = entries[:at] + entries[at + 1 :]
                break
            if at % _AT_ONCE == 0:
                yield
        return Acl(self.user, {kind: left for kind, left in policies.items() if left})

    def shown(
        self, resource_filter: str = ""
    ) -> dict[PolicyType, Iterable[PolicyEntryInfo | None]]:
        """Returns by type the entries as answers have them, each made when it is asked for, and
        None for those whose resources do not contain a text.
        """
        return {
            kind: (
                each.info() if resource_filter in each.resource.key else None for each in entries
            )
            for kind, entries in self.policies.items()
        }

    def info(self, resource_filter: str = "") -> AclInfo | None:
        """Returns the Acl as answers and files have it: the entries whose resources contain a text.

        None if there are none.
        """
        policies = [
            PolicyInfo(policy_type=kind.text, entries=entries)
            for kind, each in self.shown(resource_filter).items()
            if (entries := [*filter(None, each)])
        ]
        return AclInfo(subject=self.subject, policies=policies) if policies else None


def _merging(entries: Iterable[Entry], others: Iterable[Entry]) -> Steps[tuple[Entry, ...]]:
    result = list(entries)
    places: dict[Resource, int] = {}
    for at, entry in enumerate(result):
        places.setdefault(entry.resource, at)
        if at % _AT_ONCE == 0:
            yield
    for number, entry in enumerate(others):
        at = places.setdefault(entry.resource, len(result))
        result[at : at + 1] = [entry]
        if number % _AT_ONCE == 0:
            yield
    return tuple(result)


def at_once(steps: Steps[T]) -> T:
    """Takes all steps, where nobody waits for them."""
    try:
        while True:
            next(steps)
    except StopIteration as end:
        result: T = end.value
        return result


class Index:
    """The entries of one type, by what they cover, so that a decision does not look at all."""

    __slots__ = ("_any", "_every", "_lengths", "_literal", "_prefixed")

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self._literal: dict[tuple[ResourceType, str | None], list[Entry]] = {}
        self._prefixed: dict[tuple[ResourceType, str | None], list[Entry]] = {}
        self._any: dict[ResourceType, list[Entry]] = {}
        self._every: dict[tuple[int, int, int], list[Entry]] = {}
        self._lengths: dict[ResourceType, dict[int, None]] = {}
        self._add(entries)
        self._sort()

    @classmethod
    def making(cls, entries: Iterable[Entry]) -> Steps[Index]:
        """Returns an index of these entries."""
        index, left = cls(), iter(entries)
        while some := [*islice(left, _AT_ONCE)]:
            index._add(some)
            yield
        index._sort()
        return index

    def _add(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            kind, name, pattern = entry.resource
            if kind is ResourceType.ANY:
                self._every.setdefault(entry.resource.rank, []).append(entry)
            elif pattern is NamePattern.ANY:
                self._any.setdefault(kind, []).append(entry)
            elif pattern is NamePattern.LITERAL:
                self._literal.setdefault((kind, name), []).append(entry)
            else:
                self._prefixed.setdefault((kind, name), []).append(entry)
                self._lengths.setdefault(kind, {})[len(name or "")] = None

    def _sort(self) -> None:
        """Puts in order what decisions look at one after another."""
        self._every = dict(sorted(self._every.items()))
        for kind, lengths in self._lengths.items():
            self._lengths[kind] = dict.fromkeys(sorted(lengths, reverse=True))

    def decision(self, need: Need, host: str) -> Decision | None:
        """Returns what the most special entries that match say; None if none matches.

        Of equally special ones, one that denies counts more.
        """
        for entries in self._candidates(need):
            matching = [each for each in entries if each.is_for(need.actions, host)]
            if matching:
                return max(each.decision for each in matching)
        return None

    def _candidates(self, need: Need) -> Iterable[list[Entry]]:
        kind, name = need.type, need.name
        if name is not None:
            if (found := self._literal.get((kind, name))) is not None:
                yield found
            for length in self._lengths.get(kind, ()):
                if length <= len(name) and (
                    (found := self._prefixed.get((kind, name[:length]))) is not None
                ):
                    yield found
        if (found := self._any.get(kind)) is not None:
            yield found
        yield from self._every.values()


def decision(acl: Acl | None, need: Need, host: str) -> Decision | None:
    """Returns what a user's policies say about a need; None if no entry matches."""
    if acl is not None:
        for index in acl.index:
            found = index.decision(need, host)
            if found is not None:
                return found
    return None


# -------------------------------------------------------------------------- what requests say


def user_of(subject: str | None) -> str | None:
    """Returns the name in a text such as "User:alice", or None for another text."""
    kind, _, name = (subject or "").partition(":")
    return name if kind.upper() == "USER" else None


def acl_of(user: str, info: AclInfo) -> Acl:
    """Returns the Acl that a body describes. Raises ResponseError that says what is wrong."""
    return at_once(making_acl(user, info))


def making_acl(user: str, info: AclInfo) -> Steps[Acl]:
    """Does the same in steps."""
    policies: dict[PolicyType, tuple[Entry, ...]] = {}
    for policy in info.policies or ():
        if policy.entries:
            kind = member(PolicyType, policy.policy_type) or PolicyType.CUSTOM
            made: list[Entry] = []
            for each in policy.entries:
                made.append(_entry(each))
                yield
            before, entries = policies.get(kind), tuple(made)
            policies[kind] = (yield from _merging(before, entries)) if before else entries
    if not policies:
        raise refused("The policies is empty.")
    return Acl(user, policies)


def _entry(info: PolicyEntryInfo) -> Entry:
    resource = resource_of(info.resource)
    if resource is None:
        raise refused("The resource is null.")
    found: Any = [member(Action, text) for text in info.actions or ()]
    actions = tuple(dict.fromkeys(action for action in found if action is not None))
    if not actions:
        raise refused("The actions is empty.")
    if Action.ANY in actions:
        raise refused("The actions can not be Any.")
    for address in info.source_ips or ():
        _check_source(address)
    decided = member(Decision, info.decision)
    if decided is None:
        raise refused("The decision is null or illegal.")
    return Entry(resource, actions, decided, tuple(info.source_ips or ()))


def _check_source(address: str) -> None:
    if not address or not address.strip():
        raise refused("The source ip is empty.")
    try:
        Networks((address,))
    except ValueError:
        raise refused("The source ip is invalid.") from None
    if not _PREFIX_LENGTH.fullmatch(address):
        raise refused("The source ip is invalid.")
