# SPDX-License-Identifier: Apache-2.0
"""Where a read begins or ends, according to the options startingOffsets and endingOffsets.

The text is `earliest`, `latest` or JSON in one of these forms:

    {"topic": {"broker": {"0": 23, "1": -1}}}    offsets of queues, as rocketmq-spark writes them
    {"topic": {"0": 23, "1": -1}}                the same on each broker, as for partitions of Kafka
    {"log": {"broker": 1073741824}}              bytes in the commit logs of stores

startingOffsetsByTimestamp and endingOffsetsByTimestamp have times in the first two forms.

-2 means the earliest offset of a queue (only where a read begins) and -1 the latest. Queues that
the JSON does not name begin at their earliest and end at their latest offset. An ending offset is
the first one that is not read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from txrocketmq.spark.arrow.errors import OptionError
from txrocketmq.spark.options.option_values import EVERY_BROKER, json_object

EARLIEST: Final = -2
LATEST: Final = -1

OffsetKey = tuple[str, str, int]
"""Topic, name of the broker or EVERY_BROKER, number of the queue."""

_FORMS: Final = (
    'earliest, latest, {"topic": {"broker": {"0": offset}}}, {"topic": {"0": offset}} for each'
    ' broker, or {"log": {"broker": byteOffset}}'
)
_TIMES: Final = (
    '{"topic": {"broker": {"0": milliseconds since 1970}}}, or {"topic": {"0": milliseconds}} for'
    " each broker"
)


@dataclass(frozen=True, slots=True)
class Offsets:
    """Offsets of queues or of commit logs; `default` is EARLIEST or LATEST, for all others."""

    everywhere: int
    queues: Mapping[OffsetKey, int] = field(default_factory=dict)
    logs: Mapping[str, int] = field(default_factory=dict)
    """Byte offsets in commit logs, by broker name."""

    def of_queue(self, topic: str, broker_name: str, queue_id: int) -> int:
        """The offset given for the queue, or EARLIEST or LATEST."""
        given = of_queue(self.queues, (topic, broker_name, queue_id))
        return self.everywhere if given is None else given

    def of_log(self, broker_name: str) -> int:
        """The byte offset given for the broker's commit log, or EARLIEST or LATEST."""
        return self.logs.get(broker_name, self.everywhere)

    def of_broker(self, key: str, broker_name: str) -> Offsets:
        """Returns the offsets with this broker under its name where they give its `Store.key`."""
        if key not in self.brokers():
            return self
        queues = {
            (topic, broker_name if broker == key else broker, number): at
            for (topic, broker, number), at in self.queues.items()
        }
        logs = {broker_name if broker == key else broker: at for broker, at in self.logs.items()}
        return Offsets(self.everywhere, queues, logs)

    def brokers(self) -> frozenset[str]:
        """Returns the names of the brokers that are named."""
        named = frozenset((*self.logs, *(broker for _, broker, _ in self.queues)))
        return named - {EVERY_BROKER}

    def queues_on(self, broker_name: str) -> frozenset[tuple[str, int]]:
        """Returns topics and numbers of the queues that are named for this broker or for each."""
        here = (broker_name, EVERY_BROKER)
        return frozenset((topic, number) for topic, name, number in self.queues if name in here)


def of_queue(named: Mapping[OffsetKey, int], queue: OffsetKey) -> int | None:
    """Returns the number given for the queue, or else the one given for it on each broker."""
    topic, _, queue_id = queue
    return named.get(queue, named.get((topic, EVERY_BROKER, queue_id)))


def queue_text(topic: str, broker_name: str, queue_id: int) -> str:
    """Names a queue in texts for people."""
    place = "any broker" if broker_name == EVERY_BROKER else broker_name
    return f"queue {queue_id} of {topic} on {place}"


def check_order(starting: Offsets, ending: Offsets) -> None:
    """Raises OptionError where a read would end before it begins."""
    pairs = {
        f"the log of {name}": (start, ending.of_log(name)) for name, start in starting.logs.items()
    } | {
        queue_text(*queue): (start, ending.of_queue(*queue))
        for queue, start in starting.queues.items()
    }
    for place, (start, end) in sorted(pairs.items()):
        if 0 <= end < start:
            raise OptionError(
                f"endingOffsets is before startingOffsets for {place}: {end} and {start}"
            )


def starting_offsets(option: str, text: str) -> Offsets:
    """Parses where a read begins. Raises OptionError if the text has none of the forms."""
    return _parsed(option, text, unnamed=EARLIEST)


def ending_offsets(option: str, text: str) -> Offsets:
    """Parses where a read ends, in the same forms but without the earliest offset."""
    offsets = _parsed(option, text, unnamed=LATEST)
    named = {offsets.everywhere, *offsets.queues.values(), *offsets.logs.values()}
    if EARLIEST in named:
        raise OptionError(f"option {option}: a read cannot end at the earliest offset (-2)")
    return offsets


def queue_times(option: str, text: str) -> Mapping[OffsetKey, int]:
    """Parses times of queues, in ms since 1970. Raises OptionError for another form of text."""
    return _of_queues(option, json_object(option, text, _TIMES), _TIMES, _time)


def _parsed(option: str, text: str, unnamed: int) -> Offsets:
    word = text.strip().lower()
    if word == "earliest":
        return Offsets(EARLIEST)
    if word == "latest":
        return Offsets(LATEST)
    value = json_object(option, text, _FORMS)
    log = value.get("log")
    if len(value) == 1 and isinstance(log, dict) and log and not _has_objects(log):
        logs = {broker: _offset(option, at, f"log of {broker}") for broker, at in log.items()}
        return Offsets(unnamed, logs=logs)
    return Offsets(unnamed, queues=_of_queues(option, value, _FORMS, _offset))


def _has_objects(value: Mapping[str, Any]) -> bool:
    return any(isinstance(each, dict) for each in value.values())


def _of_queues(
    option: str, value: Mapping[str, Any], forms: str, parse: Callable[[str, object, str], int]
) -> dict[OffsetKey, int]:
    queues: dict[OffsetKey, int] = {}
    for topic, given in value.items():
        brokers = _object(option, given, topic, forms)
        short = {
            name: at
            for name, at in brokers.items()
            if name.isascii() and name.isdigit() and not isinstance(at, dict)
        }
        named = {name: numbers for name, numbers in brokers.items() if name not in short}
        for broker, numbers in (*named.items(), *([(EVERY_BROKER, short)] if short else ())):
            for number, at in _object(option, numbers, f"{topic}, {broker}", forms).items():
                place = f"{topic}, {broker}, queue {number}"
                if not (number.isascii() and number.isdigit()):
                    raise OptionError(f"option {option}: {place}: a queue is a whole number")
                queues[topic, broker, int(number)] = parse(option, at, place)
    if not queues:
        raise OptionError(f"option {option} names no queue; valid: {forms}")
    return queues


def _object(option: str, value: object, place: str, forms: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise OptionError(
            f"option {option}: {place}: {value!r:.100} is not an object; valid: {forms}"
        )
    return value


def _time(option: str, value: object, place: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 63:
        raise OptionError(
            f"option {option}: {place}: {value!r:.100} is not a time; valid: milliseconds since"
            " 1970"
        )
    return value


def _offset(option: str, value: object, place: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not EARLIEST <= value < 1 << 63:
        raise OptionError(
            f"option {option}: {place}: {value!r:.100} is not an offset; valid: a whole number,"
            " -2 for the earliest, -1 for the latest"
        )
    return value
