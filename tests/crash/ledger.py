# SPDX-License-Identifier: Apache-2.0
"""What was put into a store, and what of it the store has promised to keep.

Messages are numbered, and everything in a message follows from its number and the seed. So a ledger
in a file needs to hold only numbers, and the next process knows each message.

A message is doubtful from when it is given to the store until it is acknowledged. It stays doubtful
if no answer comes, since the store may or may not have it. A power cut makes doubtful what was
acknowledged and was not durable. What is acknowledged and not doubtful must be served.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

from txrocketmq.broker.store.formats.put_message import MULTI_DISPATCH, Appended, PutMessage
from txrocketmq.remoting.message.properties import decode_properties
from txrocketmq.remoting.message.tags import tags_code
from txrocketmq.remoting.message.topics import SCHEDULE_TOPIC

Place = tuple[str, int, int]
"""Topic, queue id and queue offset."""

HOST: Final = bytes([127, 0, 0, 1]) + (10911).to_bytes(4, "big")
_DELAY_LEVEL: Final = 18
"""Two hours, so late that nothing is delivered during a test."""
_DELAY_MS: Final = 2 * 3_600_000


class Shape(NamedTuple):
    """The kind of messages that are put. Bodies have from `least` to `most` bytes.

    `light` is the number of light queues; half of the messages are in some of them.
    """

    seed: int = 1
    topics: int = 3
    queues: int = 3
    least: int = 1
    most: int = 700
    delayed: bool = True
    light: int = 0

    def light_names(self) -> list[str]:
        """The names of the light queues."""
        return [f"%LMQ%{number}" for number in range(self.light)]

    def message(self, number: int, now_ms: int) -> PutMessage:
        """Returns the message with this number; `now_ms` only matters if it is delayed."""
        random = Random(self.seed << 32 | number)
        uniq_key = f"7F0000010A1B18B4AAC2{number:012X}"
        tag = random.choice((None, "TagA", "TagB"))
        properties = {"UNIQ_KEY": uniq_key, "KEYS": f"order{number}"}
        if tag is not None:
            properties["TAGS"] = tag
        topic, queue_id = f"Topic{random.randrange(self.topics)}", random.randrange(self.queues)
        code = tags_code(tag)
        if self.delayed and random.random() < 0.05:
            properties |= {"DELAY": str(_DELAY_LEVEL), "REAL_TOPIC": topic, "REAL_QID": "0"}
            topic, queue_id, code = SCHEDULE_TOPIC, _DELAY_LEVEL - 1, now_ms + _DELAY_MS
        size = random.randint(self.least, self.most)
        text = b"%d:" % number
        body = (text * (size // len(text) + 1))[: max(size, len(text))]
        encoded = "".join(f"{name}\x01{value}\x02" for name, value in properties.items()).encode()
        mark = 0
        if self.light and topic != SCHEDULE_TOPIC and random.random() < 0.5:
            names = random.sample(self.light_names(), random.randint(1, self.light))
            encoded += f"INNER_MULTI_DISPATCH\x01{','.join(names)}\x02".encode()
            mark = MULTI_DISPATCH
        return PutMessage(
            topic, queue_id, body, encoded, code, 1, HOST, HOST, uniq_key,
            properties["KEYS"], tag, sys_flag=mark,
        )  # fmt: skip


class Entry(NamedTuple):
    """One message in the store."""

    number: int
    topic: str
    queue_id: int
    queue_offset: int
    physical_offset: int
    size_bytes: int
    body: bytes
    properties: dict[str, str]

    @property
    def place(self) -> Place:
        return self.topic, self.queue_id, self.queue_offset

    @property
    def end_offset(self) -> int:
        """Offset in the log after its record."""
        return self.physical_offset + self.size_bytes

    @property
    def key(self) -> str:
        """The unique key, by which a query finds it."""
        return self.properties["UNIQ_KEY"]

    def __str__(self) -> str:
        at = f"{self.physical_offset}..{self.end_offset}"
        return f"#{self.number} {self.topic}/{self.queue_id}@{self.queue_offset} (log {at})"


class Ledger:
    """The messages of a store; with a path, a line is in the file before its method returns."""

    def __init__(self, shape: Shape, path: Path | None = None) -> None:
        self.shape = shape
        self.next_number = 0
        self.acknowledged: dict[Place, Entry] = {}
        self.doubtful: dict[int, PutMessage] = {}
        """Doubtful messages, by number."""
        self.gone: dict[int, Entry | PutMessage] = {}
        """Deleted, expired or lost messages, by number: served as they were, or not at all."""
        self.durable_offset = 0
        """The offset up to which the store has said that its log is durable."""
        self.retained_offset = 0
        """Log files that begin before this offset may be deleted."""
        self.count = 0
        """The number of all messages that were ever acknowledged."""
        self._file = None if path is None else path.open("ab", buffering=0)

    @classmethod
    def read(cls, shape: Shape, path: Path) -> Ledger:
        """Reads a ledger from a file, and continues it there. Ignores a line that is cut short."""
        data = path.read_bytes() if path.exists() else b""
        ledger = cls(shape)
        whole = data[: data.rfind(b"\n") + 1]
        for line in whole.splitlines():
            name, *arguments = json.loads(line)
            getattr(ledger, name)(*arguments)
        if len(whole) < len(data):
            path.write_bytes(whole)
        ledger._file = path.open("ab", buffering=0)
        return ledger

    def copy(self) -> Ledger:
        """Returns an independent copy without a file."""
        ledger = Ledger(self.shape)
        ledger.next_number, ledger.count = self.next_number, self.count
        ledger.acknowledged, ledger.doubtful = dict(self.acknowledged), dict(self.doubtful)
        ledger.gone = dict(self.gone)
        ledger.durable_offset, ledger.retained_offset = self.durable_offset, self.retained_offset
        return ledger

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            self._file.close()

    def _note(self, name: str, *arguments: Any) -> None:
        if self._file is not None:
            self._file.write(json.dumps([name, *arguments]).encode() + b"\n")

    # --- what a life writes ---

    def draw(self, count: int, now_ms: int) -> dict[int, PutMessage]:
        """Makes new messages, by number; they are doubtful from now on."""
        numbers = range(self.next_number, self.next_number + count)
        self.drawn(self.next_number, count, now_ms)
        return {number: self.doubtful[number] for number in numbers}

    def drawn(self, start: int, count: int, now_ms: int) -> None:
        """Notes that messages with these numbers are given to the store."""
        self._note("drawn", start, count, now_ms)
        for number in range(start, start + count):
            self.doubtful[number] = self.shape.message(number, now_ms)
        self.next_number = start + count

    def acknowledge(self, numbers: Sequence[int], appended: Sequence[Appended]) -> None:
        """Notes the answer of the store that these messages are stored there."""
        self.stored(
            [
                (number, one.queue_offset, one.physical_offset, one.size)
                for number, one in zip(numbers, appended, strict=True)
            ]
        )

    def stored(self, rows: Sequence[tuple[int, int, int, int]]) -> None:
        """Notes number, queue offset, log offset and size of acknowledged messages."""
        self._note("stored", rows)
        for number, queue_offset, physical_offset, size in rows:
            if number in self.gone:
                continue
            entry = self._entry(number, queue_offset, physical_offset, size)
            del self.doubtful[number]
            before = self.acknowledged.get(entry.place)
            assert before is None, f"{entry} was given the place of {before}"
            self.acknowledged[entry.place] = entry
        self.count += len(rows)

    def _entry(self, number: int, queue_offset: int, physical_offset: int, size: int) -> Entry:
        message = self.doubtful[number]
        properties = decode_properties(message.properties.decode())
        return Entry(
            number, message.topic, message.queue_id, queue_offset, physical_offset, size,
            message.body, properties,
        )  # fmt: skip

    def durable(self, offset: int) -> None:
        """Notes that the store says its log is durable up to this offset."""
        if offset > self.durable_offset:
            self._note("durable", offset)
            self.durable_offset = offset

    def refused(self, numbers: Sequence[int]) -> None:
        """Notes that the store has refused these messages: they must not be served."""
        self._note("refused", list(numbers))
        for number in numbers:
            del self.doubtful[number]

    def delete_topic(self, topic: str) -> None:
        """Notes that the topic is about to be deleted."""
        self._note("delete_topic", topic)
        for place in [place for place in self.acknowledged if place[0] == topic]:
            entry = self.acknowledged.pop(place)
            self.gone[entry.number] = entry
        for number, message in list(self.doubtful.items()):
            if message.topic == topic:
                self.gone[number] = self.doubtful.pop(number)

    def expire(self, offset: int) -> None:
        """Notes that log files that begin before the offset may be deleted from now on."""
        self._note("expire", offset)
        self.retained_offset = max(self.retained_offset, offset)

    # --- what follows from that ---

    def lose_power(self) -> None:
        """Makes doubtful what was not durable."""
        for place, entry in list(self.acknowledged.items()):
            if entry.end_offset > self.durable_offset:
                del self.acknowledged[place]
                self.doubtful[entry.number] = self.shape.message(entry.number, 0)

    def settle(
        self,
        found: Sequence[tuple[int, int, int, int]],
        missing: Sequence[int],
        undecided: Sequence[int],
        log_end: int,
    ) -> None:
        """Takes over a judgement: doubtful messages are there or not, missing ones are gone.

        `undecided` are doubtful messages that the store will show when they are durable.
        """
        self._note("settle", found, missing, undecided, log_end)
        for number, queue_offset, physical_offset, size in found:
            entry = self._entry(number, queue_offset, physical_offset, size)
            self.acknowledged[entry.place] = entry
        self.doubtful = {
            number: message for number, message in self.doubtful.items() if number in undecided
        }
        lost = set(missing)
        for place, entry in list(self.acknowledged.items()):
            if entry.number in lost:
                self.gone[entry.number] = self.acknowledged.pop(place)
        self.durable_offset = min(self.durable_offset, log_end)

    def queues(self) -> list[tuple[str, int]]:
        """Returns the queues into which something was put."""
        places = {(topic, queue_id) for topic, queue_id, _ in self.acknowledged}
        places |= {(each.topic, each.queue_id) for each in self.doubtful.values()}
        places |= {(each.topic, each.queue_id) for each in self.gone.values()}
        return sorted(places)

    def number_of(self, body: bytes) -> int | None:
        """Returns the number in a body; None if there is none."""
        text, colon, _ = body.partition(b":")
        return int(text) if colon and text.isdigit() and len(text) < 12 else None
