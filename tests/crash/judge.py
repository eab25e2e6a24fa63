# SPDX-License-Identifier: Apache-2.0
"""The one rule by which a store is judged.

What was acknowledged and durable before the damaged place is served exactly, by pull and by key,
unless the start has clearly said why not: in a StoreError, or in a warning that names the file and
has numbers. Damage that only reading can find is reported when it is read. Garbage is never served,
nothing is silently missing, and nothing is deleted. A body that was altered on the disk is served
with the CRC of the original body, as by the original; its receiver can see that, and it does not
count as served.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from tests.crash.ledger import Entry, Ledger
from txrocketmq.broker.store.disk.steps import Steps, finished
from txrocketmq.broker.store.formats.put_message import PutMessage
from txrocketmq.broker.store.get.get_result import GetResult, QueryResult
from txrocketmq.remoting.message.message import (
    MessageDecodeError,
    MessageExt,
    body_crc,
    decode_messages,
)

_FAR_MS: Final = 1 << 50
_QUERIES: Final = 40
"""How many messages are looked up by key."""
_SHOWN: Final = 8
_SETTLED_S: Final = 60.0
"""How long interrupted work may take to be finished, in seconds."""


class RuleBroken(AssertionError):
    """The text says what was missing or wrong; its first line is the summary."""

    def __init__(self, text: str, lost: int = 0, wrong: int = 0) -> None:
        super().__init__(text)
        self.lost = lost
        self.wrong = wrong


def judge_in_the_end(judge: Callable[[], None]) -> None:
    """Judges until the rule holds. Raises RuleBroken at the end, or once something is wrong."""
    deadline = time.monotonic() + _SETTLED_S
    while True:
        try:
            judge()
        except RuleBroken as broken:
            if broken.wrong or time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            return


class Served(Protocol):
    """What is judged: a MessageStore, or a broker on the other side of a connection."""

    def min_offset(self, topic: str, queue_id: int) -> int: ...

    def max_offset(self, topic: str, queue_id: int) -> int: ...

    def get(
        self, topic: str, queue_id: int, offset: int, max_count: int, max_bytes: int
    ) -> GetResult: ...

    def query(
        self, topic: str, key: str, max_count: int, begin_ms: int, end_ms: int
    ) -> Steps[QueryResult]: ...


@dataclass
class Findings:
    """What a look at all queues found; `missing` was acknowledged, `wrong` is never excused."""

    served: dict[int, MessageExt] = field(default_factory=dict)
    unfound: list[str] = field(default_factory=list)
    """What is served but not found by key; only a reported damage of the index excuses it."""
    spoilt: set[int] = field(default_factory=set)
    """Messages whose body does not match the CRC that comes with it, as receivers can see."""
    missing: list[Entry] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [f"{len(self.served)} served, {len(self.missing)} missing"]
        lines += [f"missing: {entry}" for entry in self.missing[:_SHOWN]]
        return "\n  ".join(lines)


class _Look:
    def __init__(self, store: Served, ledger: Ledger) -> None:
        self._store = store
        self._ledger = ledger
        self.findings = Findings()

    def all(self) -> Findings:
        for topic, queue_id in self._ledger.queues():
            self._pull_all(topic, queue_id)
        served = self.findings.served
        self.findings.missing = [
            entry for entry in self._ledger.acknowledged.values() if entry.number not in served
        ]
        known = [entry for entry in self._ledger.acknowledged.values() if entry.number in served]
        for entry in known[:: max(len(known) // _QUERIES, 1)]:
            self._query(entry)
        for name in self._ledger.shape.light_names():
            self._look_at_light(name)
        return self.findings

    def _look_at_light(self, name: str) -> None:
        """Checks that a light queue has each message that lists it once, in log order."""
        store, wrong = self._store, self.findings.wrong
        found: list[int] = []
        offset, end = store.min_offset(name, 0), store.max_offset(name, 0)
        while offset < end:
            result = store.get(name, 0, offset, 32, 1 << 20)
            for message in decode_messages(b"".join(result.buffers)):
                found.append(message.commit_log_offset)
                if name not in message.properties.get("INNER_MULTI_DISPATCH", "").split(","):
                    wrong.append(
                        f"{name} has a message that does not list it: {message.body[:40]!r}"
                    )
            if result.next_begin_offset <= offset:
                wrong.append(f"a pull of {name} at {offset} of {end} goes nowhere")
                return
            offset = result.next_begin_offset
        if found != sorted(set(found)):
            wrong.append(f"{name} is not in the order of the log, or has something twice")
        listed = {
            message.commit_log_offset
            for message in self.findings.served.values()
            if name in message.properties.get("INNER_MULTI_DISPATCH", "").split(",")
        }
        if lacking := sorted(listed.difference(found)):
            wrong.append(f"{name} lacks {len(lacking)} of {len(listed)}, the first at {lacking[0]}")

    def _pull_all(self, topic: str, queue_id: int) -> None:
        store, where = self._store, f"{topic}/{queue_id}"
        offset, end = store.min_offset(topic, queue_id), store.max_offset(topic, queue_id)
        if not 0 <= offset <= end:
            self.findings.wrong.append(f"{where} goes from {offset} to {end}")
        while offset < end:
            result = store.get(topic, queue_id, offset, 32, 1 << 20)
            try:
                messages = decode_messages(b"".join(result.buffers))
            except MessageDecodeError as error:
                text = f"a pull of {where} at {offset} cannot be decoded: {error}"
                self.findings.wrong.append(text)
                messages = []
            least = offset
            for message in messages:
                if not least <= message.queue_offset < result.next_begin_offset:
                    text = f"a pull of {where} at {offset} has {message.queue_offset} after {least}"
                    self.findings.wrong.append(f"{text}, goes on at {result.next_begin_offset}")
                least = message.queue_offset + 1
                self._compare(message, topic, queue_id)
            if result.next_begin_offset <= offset:
                text = f"a pull of {where} at {offset} of {end} goes nowhere: {result.status.name}"
                self.findings.wrong.append(text)
                return
            offset = result.next_begin_offset

    def _compare(self, message: MessageExt, topic: str, queue_id: int) -> None:
        number = self._ledger.number_of(message.body)
        where = f"{message.topic}/{message.queue_id}@{message.queue_offset}"
        place = (topic, queue_id, message.queue_offset)
        put: Entry | PutMessage | None = self._ledger.acknowledged.get(place)
        if isinstance(put, Entry) and number != put.number:
            self.findings.wrong.append(f"{where} has message #{number} instead of {put}")
            return
        if put is None and number is not None:
            put = self._ledger.gone.get(number) or self._ledger.doubtful.get(number)
        if number is None or put is None:
            text = f"{where} has a message that nobody put: {message.body[:40]!r}"
            self.findings.wrong.append(text)
            return
        if body_crc(message.body) != message.body_crc:
            self.findings.spoilt.add(number)
            return
        if not _is_same(put, message) or (message.topic, message.queue_id) != (topic, queue_id):
            text = f"{where} (log {message.commit_log_offset}) is not what was put as #{number}"
            self.findings.wrong.append(text)
            return
        if number in self.findings.served:
            self.findings.wrong.append(f"{where}: message #{number} is there twice")
        self.findings.served[number] = message

    def _query(self, entry: Entry) -> None:
        found = finished(self._store.query(entry.topic, entry.key, 32, 0, _FAR_MS))
        try:
            messages = decode_messages(b"".join(found.buffers))
        except MessageDecodeError as error:
            self.findings.wrong.append(f"a query for {entry.key} cannot be decoded: {error}")
            return
        bodies = [message.body for message in messages if message.unique_key == entry.key]
        if entry.body not in bodies:
            text = f"{entry} is served, but a query for its key finds none"
            self.findings.unfound.append(text)
        if any(body != entry.body for body in bodies):
            self.findings.wrong.append(f"a query for {entry.key} finds another body")


def _is_same(put: Entry | PutMessage, message: MessageExt) -> bool:
    """Compares; brokers add properties of their own, and clients do not know the size (0)."""
    if isinstance(put, PutMessage):
        return (
            put.body == message.body
            and put.uniq_key == message.unique_key
            and (put.topic, put.queue_id) == (message.topic, message.queue_id)
        )
    return (
        put.body == message.body
        and put.properties.items() <= message.properties.items()
        and put.physical_offset == message.commit_log_offset
        and put.size_bytes in (0, message.store_size)
        and put.place == (message.topic, message.queue_id, message.queue_offset)
    )


def look(store: Served, ledger: Ledger) -> Findings:
    """Pulls every queue from its first offset to its last, and looks up messages by key."""
    return _Look(store, ledger).all()


@dataclass(frozen=True)
class Excuse:
    """The possible cost of a damage that was done on purpose, if the start reports it.

    Messages whose records end before `log_offset` must still be served. The report must have one of
    `names`, which are parts of a path.
    """

    names: tuple[str, ...]
    log_offset: int = 1 << 62


def is_said(said: Sequence[str], names: Sequence[str]) -> bool:
    """Returns whether a sentence names one of the files, and has a number apart from its path."""
    for text in said:
        if any(name in text for name in names):
            rest = text
            for name in names:
                rest = rest.replace(name, "")
            if re.search(r"(?<![\d/])\d{1,19}(?!\d)", re.sub(r"\S*/\S*", "", rest)):
                return True
    return False


def judge(
    store: Served,
    ledger: Ledger,
    said: Sequence[str] = (),
    excuse: Excuse | None = None,
    undecided: Collection[int] = (),
) -> Findings:
    """Looks at the store and fails where the rule is broken; the ledger then knows what is there.

    `said` are the warnings of the start; see Ledger.settle for `undecided`.
    """
    __tracebackhide__ = True
    log_start = getattr(store, "min_physical_offset", 0)
    findings = look(store, ledger)
    missing = [
        entry
        for entry in findings.missing
        if not entry.physical_offset < min(ledger.retained_offset, log_start)
    ]
    if (damaged := getattr(store, "damaged", None)) is not None:
        damaged.tick()  # reports what was found while looking
    if not is_said(said, ("/index/",)):
        findings.wrong += findings.unfound
    problems = list(findings.wrong[:_SHOWN])
    spoilt = [entry for entry in findings.missing if entry.number in findings.spoilt]
    if spoilt and excuse is None:
        problems.append(f"{len(spoilt)} messages come with a wrong body: {spoilt[0]}")
    if missing and excuse is None:
        problems.append(
            f"{len(missing)} acknowledged messages are missing, the first: {missing[0]}"
        )
    elif missing and excuse is not None:
        before = [entry for entry in missing if entry.end_offset <= excuse.log_offset]
        if before:
            problems.append(f"{len(before)} messages before the damage are missing: {before[0]}")
        silent = [entry for entry in missing if entry.number not in findings.spoilt]
        if silent and not is_said(said, excuse.names):
            text = f"{len(missing)} messages are missing and nothing is said of {excuse.names}"
            problems.append(f"{text}, only {list(said)}")
    if problems:
        text = "\n  ".join([*problems, str(findings)])
        raise RuleBroken(text, len(missing), len(findings.wrong))
    found = [
        (number, message.queue_offset, message.commit_log_offset, message.store_size)
        for number, message in sorted(findings.served.items())
        if number in ledger.doubtful
    ]
    lost = [entry.number for entry in findings.missing]
    log_end = getattr(store, "max_physical_offset", 1 << 62)
    ledger.settle(found, lost, sorted(undecided), log_end)
    return findings


def contents(root: Path) -> list[bytes]:
    """Returns the contents of the files under the root."""
    return [path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()]


def check_kept(missing: Sequence[Entry], before: Sequence[bytes], root: Path) -> None:
    """Fails if a message that is missing was somewhere under the root, and is no longer there."""
    after = contents(root)
    deleted = [
        entry
        for entry in missing
        if any(entry.body in each for each in before)
        and not any(entry.body in each for each in after)
    ]
    assert not deleted, f"{len(deleted)} messages were deleted from the disk: {deleted[0]}"
