# SPDX-License-Identifier: Apache-2.0
"""Parsers of option values, which return a value or raise OptionError with what is valid."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from txrocketmq.remoting.message.tags import SubscriptionError, build_subscription_data
from txrocketmq.remoting.message.topics import LMQ_PREFIX
from txrocketmq.spark.arrow.errors import OptionError

_UNITS: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_SIZE: Final = re.compile(r"([0-9]{1,18})\s*([kmgt]?)i?b?", re.IGNORECASE)
_OF_PYTHON: Final = re.compile(r"\s*[\[({]")
"""The text of a list or a set of Python, which Spark makes of one that is given as an option."""
_GROUP: Final = re.compile(r"[%|a-zA-Z0-9_-]{1,120}")
_DIGITS: Final = re.compile(r"-?[0-9]{1,18}")
_LEAST_MS: Final = 100_000_000_000
"""A time in 1973: a smaller number is in seconds, or is a date written in digits."""
EVERY_BROKER: Final = "*"
"""Stands for the name of each broker in options that name queues."""
_ASSIGN_FORMS: Final = '{"topic": {"broker": [0, 1]}} or {"topic": [0, 1]}'
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class LocalTime(int):
    """A time, in ms since 1970, for which no zone was named: see SourceOptions.in_zone.

    Until then it is what the clocks of UTC show.
    """


class BadRecordPolicy(NamedTuple):
    """What happens to a damaged record."""

    kind: str
    """fail, skip or quarantine"""
    path: str | None = None
    """The folder of the quarantine's files; None for other kinds."""


FAIL: Final = BadRecordPolicy("fail")


class TopicPattern(NamedTuple):
    """A regular expression that has to match the whole name of a topic."""

    text: str

    @property
    def is_light(self) -> bool:
        """Whether it begins with the prefix of light queues, so that it matches nothing else."""
        return self.text.startswith(LMQ_PREFIX)

    def matches(self, topic: str) -> bool:
        """Returns whether the expression matches the topic."""
        return re.fullmatch(self.text, topic) is not None


class Assignment(NamedTuple):
    """The queues to read, by topic and broker; `*` stands for every broker."""

    queues: Mapping[str, Mapping[str, frozenset[int]]]

    def topics(self) -> frozenset[str]:
        """Returns the topics that are named."""
        return frozenset(self.queues)

    def brokers(self) -> frozenset[str]:
        """Returns the brokers that are named."""
        return frozenset(name for each in self.queues.values() for name in each) - {EVERY_BROKER}

    def of_broker(self, key: str, broker_name: str) -> Assignment:
        """Returns the queues with this broker under its name where it is given by `Store.key`."""
        if key not in self.brokers():
            return self
        return Assignment(
            {
                topic: {broker_name if each == key else each: ids for each, ids in queues.items()}
                for topic, queues in self.queues.items()
            }
        )

    def of(self, topic: str, broker_name: str) -> frozenset[int]:
        """Returns the numbers of the topic's queues on the broker; for `*`, on any broker."""
        brokers = self.queues.get(topic, {})
        if broker_name == EVERY_BROKER:
            return frozenset[int]().union(*brokers.values())
        return brokers.get(broker_name, brokers.get(EVERY_BROKER, frozenset()))


def text(_option: str, value: str) -> str:
    """Returns the value without blanks around it."""
    return value.strip()


def names(option: str, value: str) -> tuple[str, ...]:
    """Parses names separated by commas."""
    found = tuple(part.strip() for part in value.split(","))
    if not all(found) or _OF_PYTHON.match(value):
        raise OptionError.of(option, value, "names separated by commas")
    return tuple(dict.fromkeys(found)) if option == "topic" else found


def group(option: str, value: str) -> str:
    """Returns the name of a group, which has to be one that brokers accept."""
    stripped = value.strip()
    if not _GROUP.fullmatch(stripped):
        valid = "up to 120 letters, digits and characters of % | _ -"
        raise OptionError.of(option, value, valid)
    return stripped


def column_names(option: str, value: str) -> tuple[str, ...] | None:
    """Parses names separated by commas; returns None for `*`, the same as no option."""
    return None if value.strip() == "*" else names(option, value)


_SPAN_S: Final = {"s": 1, "m": 60, "h": 3600}
_SPAN: Final = re.compile(r"([0-9]{1,9})\s*([smh])[a-z]*", re.IGNORECASE)


def span(option: str, value: str) -> int:
    """Parses a length of time as Spark writes it; returns seconds."""
    match = _SPAN.fullmatch(value.strip())
    if match is None or not int(match[1]):
        raise OptionError.of(option, value, "a length of time such as 30s, 15m or 1h")
    return int(match[1]) * _SPAN_S[match[2].lower()]


def boolean(option: str, value: str) -> bool:
    """Parses `true` or `false`."""
    lower = value.strip().lower()
    if lower not in ("true", "false"):
        raise OptionError.of(option, value, ("true", "false"))
    return lower == "true"


def choice(*allowed: str) -> Callable[[str, str], str]:
    """Returns a parser that accepts one of these words."""

    def parse(option: str, value: str) -> str:
        lower = value.strip().lower()
        if lower not in allowed:
            raise OptionError.of(option, value, allowed)
        return lower

    return parse


def whole(least: int, most: int = (1 << 63) - 1) -> Callable[[str, str], int]:
    """Returns a parser of whole numbers from `least` to `most`."""
    valid = f"a whole number of at least {least}"
    if most < (1 << 63) - 1:
        valid = f"a whole number from {least} to {most}"

    def parse(option: str, value: str) -> int:
        if not _DIGITS.fullmatch(value.strip()) or not least <= int(value) <= most:
            raise OptionError.of(option, value, valid)
        return int(value)

    return parse


def size(least: int, most: int) -> Callable[[str, str], int]:
    """Returns a parser of sizes in bytes: digits, perhaps with k, m, g or t, as in Spark."""
    valid = f"bytes from {least} to {most}, such as 4194304, 4096k or 4m"

    def parse(option: str, value: str) -> int:
        match = _SIZE.fullmatch(value.strip())
        found = int(match[1]) * _UNITS[match[2].lower()] if match else -1
        if not least <= found <= most:
            raise OptionError.of(option, value, valid)
        return found

    return parse


def timestamp(option: str, value: str) -> int:
    """Parses a time, in ms since 1970 or as ISO 8601 text; returns ms since 1970.

    Without a zone it is a LocalTime.
    """
    stripped = value.strip()
    valid = "ISO 8601 such as 2026-11-20T08:00:00Z, or milliseconds since 1970 (13 digits, or 0)"
    if _DIGITS.fullmatch(stripped):
        if int(stripped) and int(stripped) < _LEAST_MS:
            raise OptionError.of(option, value, valid)
        return int(stripped)
    try:
        moment = datetime.fromisoformat(stripped)
    except ValueError:
        raise OptionError.of(option, value, valid) from None
    if moment.tzinfo is None:
        return LocalTime((moment.replace(tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1))
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def pattern(option: str, value: str) -> TopicPattern:
    """Parses a regular expression."""
    try:
        re.compile(value)
    except re.error as error:
        raise OptionError.of(option, value, f"a regular expression ({error})") from None
    return TopicPattern(value)


def json_object(option: str, value: str, forms: str) -> dict[str, Any]:
    """Parses a JSON object that is not empty; `forms` says what is in it, for the error."""
    try:
        parsed = json.loads(value)
    except ValueError:
        parsed = None
    if not isinstance(parsed, dict) or not parsed:
        raise OptionError.of(option, value, forms)
    return parsed


def assignment(option: str, value: str) -> Assignment:
    """Parses queues by topic and broker, from JSON."""
    parsed = json_object(option, value, _ASSIGN_FORMS)
    queues: dict[str, dict[str, frozenset[int]]] = {}
    for topic, brokers in parsed.items():
        by_broker = brokers if isinstance(brokers, dict) else {EVERY_BROKER: brokers}
        if not by_broker:
            raise OptionError.of(option, value, _ASSIGN_FORMS)
        queues[topic] = {
            broker: _queue_ids(option, value, numbers) for broker, numbers in by_broker.items()
        }
    return Assignment(queues)


def _queue_ids(option: str, value: str, numbers: Any) -> frozenset[int]:
    if not isinstance(numbers, list) or not numbers:
        raise OptionError.of(option, value, _ASSIGN_FORMS)
    for number in numbers:
        if isinstance(number, bool) or not isinstance(number, int) or number < 0:
            raise OptionError.of(option, value, _ASSIGN_FORMS)
    return frozenset(numbers)


def tag_expression(option: str, value: str) -> frozenset[str] | None:
    """Parses tags separated by `||`; returns None for `*`, which means all."""
    try:
        subscription = build_subscription_data("", value.strip())
    except SubscriptionError:
        raise OptionError.of(option, value, 'tags such as "TagA || TagB", or *') from None
    return frozenset(subscription.tags_set) or None


def bad_records(option: str, value: str) -> BadRecordPolicy:
    """Parses fail, skip or quarantine=PATH."""
    kind, equals, path = value.strip().partition("=")
    kind = kind.strip().lower()
    if kind == "quarantine" and path.strip():
        return BadRecordPolicy(kind, path.strip())
    if kind not in ("fail", "skip") or equals:
        raise OptionError.of(option, value, ("fail", "skip", "quarantine=PATH"))
    return BadRecordPolicy(kind)
