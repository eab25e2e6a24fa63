# SPDX-License-Identifier: Apache-2.0
"""Attributes of topics and groups (5.x): which ones there are, and changes to them.

A change is a name with a sign, "+message.type": "FIFO" or "-message.type": "". Counterpart of
AttributeUtil, AttributeParser, TopicAttributes and SubscriptionGroupAttributes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

MESSAGE_TYPE = "message.type"
QUEUE_TYPE = "queue.type"
CLEANUP_POLICY = "cleanup.policy"
RESERVE_TIME = "reserve.time"
PRIORITY_FACTOR = "priority.factor"
BATCH_QUEUES = "BatchCQ"
COMPACTION = "COMPACTION"
MIXED = "MIXED"
PRIORITY = "PRIORITY"
LITE = "LITE"
LITE_BIND_TOPIC = "lite.bind.topic"
_MESSAGE_TYPES = frozenset(
    {"UNSPECIFIED", "NORMAL", "FIFO", "DELAY", "TRANSACTION", PRIORITY, MIXED, LITE}
)
_MAX_NAMED: Final = 5
_MOST_PRIORITY_FACTOR: Final = 100
_LONG = re.compile(r"-?[0-9]{1,18}")


class AttributeChangeError(ValueError):
    """A change that cannot be made; its text becomes the remark of the answer."""


class Unserved(NamedTuple):
    """A promise that valid values of an attribute make, and that this broker does not keep.

    `promise` names it in an error text; `instead` is a value that can be used in place of those, if
    there is one.
    """

    promise: str
    instead: str = ""
    takes_nothing: bool = False
    """Whether a topic that got such a value from an original broker accepts no messages."""


class Attribute(NamedTuple):
    """A known attribute: whether it may change once it is set, and which values it takes.

    A value that `is_served` refuses is valid for an original broker and refused here.
    """

    changeable: bool
    is_valid: Callable[[str], bool]
    unserved: Unserved | None = None
    is_served: Callable[[str], bool] = lambda _: True

    def promise_of(self, value: str) -> Unserved | None:
        """Returns the promise of the value that this broker does not keep, if any."""
        return None if self.unserved is None or self.is_served(value) else self.unserved


def _number(low: int, high: int) -> Callable[[str], bool]:
    def is_valid(text: str) -> bool:
        return _LONG.fullmatch(text) is not None and low <= int(text) <= high

    return is_valid


TOPIC_ATTRIBUTES: Mapping[str, Attribute] = {
    QUEUE_TYPE: Attribute(
        changeable=False,
        is_valid={BATCH_QUEUES, "SimpleCQ"}.__contains__,
    ),
    CLEANUP_POLICY: Attribute(
        changeable=False,
        is_valid={"DELETE", COMPACTION}.__contains__,
        unserved=Unserved("compaction is not served", "DELETE", takes_nothing=True),
        is_served="DELETE".__eq__,
    ),
    MESSAGE_TYPE: Attribute(
        changeable=True,
        is_valid=_MESSAGE_TYPES.__contains__,
        unserved=Unserved("lite topics (5.5) are not served", "NORMAL", takes_nothing=True),
        is_served=LITE.__ne__,
    ),
    RESERVE_TIME: Attribute(
        changeable=True,
        is_valid=_number(-1, 2**63 - 1),
        unserved=Unserved("topics have no retention of their own", "-1"),
        is_served="-1".__eq__,
    ),
}
"""The attributes of topics.

The original reads reserve.time only where it has a tiered store.
"""
GROUP_ATTRIBUTES: Mapping[str, Attribute] = {
    PRIORITY_FACTOR: Attribute(
        changeable=True,
        is_valid=_number(0, _MOST_PRIORITY_FACTOR),
    ),
    LITE_BIND_TOPIC: Attribute(
        changeable=True,
        is_valid=lambda _: True,
        unserved=Unserved("lite topics (5.5) are not served"),
        is_served=lambda _: False,
    ),
}


def promises(
    known: Mapping[str, Attribute], attributes: Mapping[str, str] | None
) -> dict[str, Unserved]:
    """Returns what the attributes promise and this broker does not serve, by "name=value".

    A topic or group can have such attributes when an original broker used the store before.
    """
    found: dict[str, Unserved] = {}
    for name, value in (attributes or {}).items():
        attribute = known.get(name)
        promise = None if attribute is None else attribute.promise_of(value)
        if promise is not None:
            found[f"{name}={value}"] = promise
    return found


def has_batch_queues(attributes: Mapping[str, str] | None) -> bool:
    """Whether a topic with these attributes has queues of batches (QueueTypeUtils.isBatchCq)."""
    return attributes is not None and attributes.get(QUEUE_TYPE) == BATCH_QUEUES


def has_priorities(attributes: Mapping[str, str] | None) -> bool:
    """Whether messages of a topic with these attributes have priorities."""
    return attributes is not None and attributes.get(MESSAGE_TYPE) == PRIORITY


def priority_factor(attributes: Mapping[str, str] | None) -> int:
    """How many of 100 pops of a group with these attributes go by priority.

    Java: SubscriptionGroupConfig.getPriorityFactor.
    """
    text = (attributes or {}).get(PRIORITY_FACTOR, "")
    return int(text) if _LONG.fullmatch(text) else _MOST_PRIORITY_FACTOR


def why_nothing_is_taken(attributes: Mapping[str, str] | None) -> str:
    """Says why a topic with these attributes accepts no messages; empty when it accepts them."""
    for setting, unserved in promises(TOPIC_ATTRIBUTES, attributes).items():
        if unserved.takes_nothing:
            return f"{setting}: {unserved.promise}"
    return ""


def unserved_in(kind: str, known: Mapping[str, Attribute], table: Mapping[str, Any]) -> list[str]:
    """Returns a warning for each topic or group whose attributes promise what is not served."""
    owners: dict[tuple[str, Unserved], list[str]] = {}
    for name, each in table.items():
        for promised in promises(known, each.attributes).items():
            owners.setdefault(promised, []).append(name)
    said: list[str] = []
    for (setting, unserved), names in owners.items():
        who = f"the {kind} {names[0]} has"
        if len(names) > 1:
            more = ", ..." if len(names) > _MAX_NAMED else ""
            who = f"{len(names)} {kind}s ({', '.join(sorted(names)[:_MAX_NAMED])}{more}) have"
        refused = "; messages to it are refused" if unserved.takes_nothing else ""
        said.append(f"{who} {setting}, but {unserved.promise} here{refused}")
    return said


def parse_changes(text: str | None) -> dict[str, str]:
    """Parses changes written as "+name=value,-name"; raises AttributeChangeError.

    Java: AttributeParser.parseToMap.
    """
    changes: dict[str, str] = {}
    for part in (text or "").split(",") if text else ():
        name, equals, value = part.partition("=")
        if equals and "+" not in name:
            raise AttributeChangeError(f"add/alter attribute format is wrong: {name}")
        if not equals and "-" not in name:
            raise AttributeChangeError(f"delete attribute format is wrong: {name}")
        if name in changes:
            raise AttributeChangeError(f"key duplication: {name}")
        changes[name] = value
    return changes


def changed(
    known: Mapping[str, Attribute], current: Mapping[str, str] | None, changes: Mapping[str, str]
) -> dict[str, str]:
    """Returns the attributes after the changes; `current` is None for a new topic or group.

    Raises AttributeChangeError for unknown names, invalid values and changes of what is fixed
    (AttributeUtil.alterCurrentAttributes).
    """
    result = dict(current or {})
    seen: set[str] = set()
    for signed, value in changes.items():
        if current and current.get(signed) == value:
            continue  # a configuration that was read is written back: no change
        sign, name = signed[:1], signed[1:]
        if not name or "+" in name or "-" in name:
            raise AttributeChangeError("kv string format wrong.")
        if name in seen:
            raise AttributeChangeError(f"alter duplication key. key: {name}")
        seen.add(name)
        _check_sign(sign, name, current)
        attribute = known.get(name)
        if attribute is None:
            raise AttributeChangeError(f"unsupported key: {name}")
        if current is not None and not attribute.changeable:
            raise AttributeChangeError(f"attempt to update an unchangeable attribute. key: {name}")
        if sign == "-":
            del result[name]
            continue
        if not attribute.is_valid(value):
            raise AttributeChangeError(f"value is not valid: {name}={value}")
        unserved = attribute.promise_of(value)
        if unserved is not None:
            instead = f"write {name}={unserved.instead} or " if unserved.instead else ""
            raise AttributeChangeError(
                f"{name}={value}: {unserved.promise}; {instead}leave the attribute out"
            )
        result[name] = value
    return result


def _check_sign(sign: str, name: str, current: Mapping[str, str] | None) -> None:
    if current is None:
        if sign != "+":
            raise AttributeChangeError(
                f"only add attribute is supported while creating topic. key: {name}"
            )
    elif sign == "-":
        if name not in current:
            raise AttributeChangeError(f"attempt to delete a nonexistent key: {name}")
    elif sign != "+":
        raise AttributeChangeError(f"wrong format key: {name}")
