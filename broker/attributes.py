# SPDX-License-Identifier: Apache-2.0
"""Attributes of topics and groups (5.x): what there are, and changes to them.

A change is a name with a sign, "+message.type": "FIFO" or "-message.type": "". Counterpart of
AttributeUtil, AttributeParser, TopicAttributes and SubscriptionGroupAttributes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

MESSAGE_TYPE = "message.type"
MIXED = "MIXED"
_MESSAGE_TYPES = frozenset(
    {"UNSPECIFIED", "NORMAL", "FIFO", "DELAY", "TRANSACTION", "PRIORITY", MIXED}
)
_LONG = re.compile(r"-?[0-9]{1,18}")


class AttributeChangeError(ValueError):
    """A change that cannot be made; the text is the answer's remark."""


class Attribute(NamedTuple):
    """One that is known: whether it may change once it is there, and which values it takes."""

    changeable: bool
    is_valid: Callable[[str], bool]


def _number(low: int, high: int) -> Callable[[str], bool]:
    def is_valid(text: str) -> bool:
        return _LONG.fullmatch(text) is not None and low <= int(text) <= high

    return is_valid


TOPIC_ATTRIBUTES: Mapping[str, Attribute] = {
    "queue.type": Attribute(changeable=False, is_valid={"BatchCQ", "SimpleCQ"}.__contains__),
    "cleanup.policy": Attribute(changeable=False, is_valid={"DELETE", "COMPACTION"}.__contains__),
    MESSAGE_TYPE: Attribute(changeable=True, is_valid=_MESSAGE_TYPES.__contains__),
    "reserve.time": Attribute(changeable=True, is_valid=_number(-1, 2**63 - 1)),
}
GROUP_ATTRIBUTES: Mapping[str, Attribute] = {
    "priority.factor": Attribute(changeable=True, is_valid=_number(0, 100)),
}


def parse_changes(text: str | None) -> dict[str, str]:
    """Changes of "+name=value,-name"; raises AttributeChangeError (AttributeParser.parseToMap)."""
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
    """Attributes after changes; `current` is None for a topic or group that is being made.

    Raises AttributeChangeError: unknown names, values that are not valid, changes of what is fixed
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
        elif attribute.is_valid(value):
            result[name] = value
        else:
            raise AttributeChangeError(f"value is not valid: {name}={value}")
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
