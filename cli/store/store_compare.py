# SPDX-License-Identifier: Apache-2.0
"""`txrocketmq store compare`: says up to where the logs of two stores are the same.

Both are opened on private copies, so nothing is changed. On a terminal a bar shows the progress.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Final

import orjson

from txrocketmq.broker.store.check.check import StoreCheck
from txrocketmq.broker.store.check.comparison import Comparison, RecordFound, Rest, ends_file
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.errors import StoreError
from txrocketmq.broker.store.formats.opening_report import messages
from txrocketmq.cli.command_line import progress
from txrocketmq.cli.show import heading
from txrocketmq.cli.store.store_directory import DONE, kinds_of_queues, known_topics
from txrocketmq.cli.store.store_dump import decoded
from txrocketmq.remoting.primitives.plain_text import plain, plain_json

DIFFERENT: Final = 1
NOT_COMPARABLE: Final = 2


def compare_stores(first: StoreConfig, second: StoreConfig, *, as_json: bool) -> int:
    """Compares two stores; returns 0 if they are the same as far as both go."""
    with opened(first) as one, opened(second) as other:
        comparison = compared(one, other, shows=not as_json)
        report = _Report(comparison, (first.store_path_root_dir, second.store_path_root_dir))
        print(report.json() if as_json else plain("\n".join(report.lines()), keep="\n"))
        is_same = comparison.has_common and not comparison.differs
        return DONE if is_same else DIFFERENT


def compared(first: StoreCheck, second: StoreCheck, *, shows: bool) -> Comparison:
    """Compares two open stores, with a bar if it `shows` that on a terminal."""
    comparison = Comparison(first, second)
    size_bytes = max(comparison.end - comparison.start, 0)
    with progress("comparing", size_bytes) if shows else nullcontext(lambda _: None) as advance:
        for count in comparison.run():
            advance(count)
    return comparison


@contextmanager
def opened(config: StoreConfig) -> Iterator[StoreCheck]:
    """Opens a store on copies as a broker would; raises StoreError where a broker could not."""
    root = Path(config.store_path_root_dir)
    check = StoreCheck(config, kinds_of_queues(root))
    try:
        if not check.open(int(time.time() * 1000), known_topics(root), trusts=True):
            raise StoreError(str(check.refusal))
        yield check
    finally:
        check.close()


class _Report:
    """The result of a comparison, to be printed."""

    def __init__(self, comparison: Comparison, names: tuple[str, str]) -> None:
        self._comparison = comparison
        self._names = names

    def lines(self) -> list[str]:
        """The report in sentences for a person."""
        comparison, (first, second) = self._comparison, self._names
        one, other = comparison.sides
        lines = [
            f"{name} has the log from {side.start} to {side.end}."
            for name, side in zip(self._names, comparison.sides, strict=True)
        ]
        if not comparison.has_common:
            where = (first, second) if one.end <= other.start else (second, first)
            lines.append(
                f"They have nothing in common: {where[0]} ends before {where[1]} begins."
                if one.end and other.end
                else "They have nothing in common, as there is nothing in one of them."
            )
            return lines
        lines.append(f"They are the same from {comparison.start} to {comparison.equal_to}.")
        if comparison.differs:
            lines.append(f"The first difference is at {comparison.equal_to}:")
            lines += [f"  {self._names[number]} has {self._shown(number)}" for number in (0, 1)]
        rests = comparison.rests()
        lines += [
            f"Behind that, {name} has {_amount(rest)}."
            for name, rest in zip(self._names, rests, strict=True)
        ]
        if comparison.differs:
            lines.append(
                f"To let one of them follow the other: {self._advice(first)}, or {second} likewise"
            )
        return lines

    def _advice(self, name: str) -> str:
        return f"txrocketmq store cut {name} --at {self._comparison.equal_to}"

    def _shown(self, number: int) -> str:
        comparison = self._comparison
        found = comparison.found(number)
        if found is not None:
            return _line(found)
        if ends_file(comparison.sides[number], comparison.equal_to):
            return "the end of a file of the log"
        return "nothing that is a message"

    def json(self) -> str:
        """The report as JSON for a program."""
        comparison = self._comparison
        rests = comparison.rests() if comparison.has_common else (Rest(), Rest())
        sides = []
        for number, (side, rest) in enumerate(zip(comparison.sides, rests, strict=True)):
            value: dict[str, Any] = {
                "store": self._names[number],
                "start": side.start,
                "end": side.end,
                "messagesBehind": rest.messages,
                "bytesBehind": rest.size_bytes,
            }
            found = comparison.found(number) if comparison.differs else None
            if found is not None:
                value["differs"] = _fields(found)
            sides.append(value)
        report = {
            "equal": comparison.has_common and not comparison.differs,
            "hasCommon": comparison.has_common,
            "from": comparison.start,
            "equalTo": comparison.equal_to,
            "stores": sides,
        }
        return plain_json(orjson.dumps(report, option=orjson.OPT_INDENT_2).decode())


def _amount(rest: Rest) -> str:
    return f"{messages(rest.messages)}, {rest.size_bytes:,} bytes" if rest.size_bytes else "nothing"


def _line(found: RecordFound) -> str:
    message, _ = decoded(memoryview(found.data))
    place = (
        f"{message.commit_log_offset}+{message.store_size}"
        f" {plain(message.topic)}/{message.queue_id}@{message.queue_offset}"
    )
    wrong = "" if found.is_sound else " (damaged: wrong CRC)"
    return f"{heading(message, place)} {plain(message.msg_id or message.offset_msg_id)}{wrong}"


def _fields(found: RecordFound) -> dict[str, Any]:
    message, _ = decoded(memoryview(found.data))
    return {
        "offset": message.commit_log_offset,
        "size": message.store_size,
        "topic": message.topic,
        "queueId": message.queue_id,
        "queueOffset": message.queue_offset,
        "storeTimestamp": message.store_timestamp,
        "msgId": message.msg_id,
        "offsetMsgId": message.offset_msg_id,
        "isSound": found.is_sound,
    }
