# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from random import Random
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.broker.store.formats.test_scan import FROM_OFFSET, built
from tests.examples import examples
from txrocketmq.broker.store.disk import record_head, scrub
from txrocketmq.broker.store.disk.record_head import HEAD
from txrocketmq.broker.store.disk.scrub import Scrub
from txrocketmq.broker.store.formats.damage import Damage
from txrocketmq.remoting.message.record import MAGIC_V2

PATH: Final = "/store/commitlog/8192"
BODY_AT: Final = 88
"""Of a record with IPv4 hosts."""


class Log:
    """A file of the log, from its start."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.starts: list[int] = []
        self.reads: list[tuple[int, int]] = []
        self.pauses = 0

    def add(self, body: bytes = b"body", **fields: Any) -> int:
        """Adds a record; where it begins."""
        start = len(self.data)
        self.data += built(start, body, queue_offset=len(self.starts), **fields)
        self.starts.append(start)
        return start

    def spoil(self, number: int, at: int = BODY_AT) -> Damage:
        """Alters a byte of a record; what is to be told of it."""
        start = self.starts[number]
        (size, *_) = HEAD.unpack_from(self.data, start)
        self.data[start + at] ^= 1
        return Damage(FROM_OFFSET + start, size, PATH, start, "Topic/3", number)

    def scrub(self) -> Scrub:
        def pause(_: float) -> None:
            self.pauses += 1

        return Scrub(self._read, pause)

    def _read(self, path: str, position: int, size: int) -> bytes:
        assert path == PATH
        self.reads.append((position, size))
        return bytes(self.data[position : position + size])

    def look(self, start: int = 0, end: int | None = None, by: Scrub | None = None) -> Scrub:
        """Scrubs a part."""
        found = by or self.scrub()
        found.look(PATH, start, FROM_OFFSET + start, bytes(self.data[start:end]))
        return found


@pytest.fixture
def log() -> Log:
    made = Log()
    for number in range(8):
        made.add(b"%d" % number * 50)
    return made


def test_sound_records_are_told_nothing_of(log: Log) -> None:
    log.add(b"", magic=MAGIC_V2)
    log.add(b"", body_crc=5)
    assert log.look().wrong == []
    assert log.reads == []


def test_each_wrong_body_is_told_with_its_place(log: Log) -> None:
    expected = [log.spoil(number) for number in (0, 3, 4, 7)]
    assert log.look().wrong == expected


def test_it_begins_anywhere(log: Log) -> None:
    expected = [log.spoil(number) for number in (2, 3)]
    assert log.look(log.starts[2] - 5).wrong == expected
    assert log.look(log.starts[2] + 1).wrong == expected[1:]
    assert log.look(log.starts[2] + 1, log.starts[3] - 1).wrong == []


@pytest.mark.parametrize("kept", [1, HEAD.size - 1, HEAD.size, 100, 130])
def test_what_ends_behind_the_part_is_read(log: Log, kept: int) -> None:
    expected = [log.spoil(number) for number in (2, 5)]
    size = log.starts[6] - log.starts[5]
    assert log.look(0, log.starts[5] + kept).wrong == expected
    heads = [(log.starts[5], HEAD.size)] if kept < HEAD.size else []
    assert log.reads == [*heads, (log.starts[5], size)]


def test_a_long_record_is_looked_at_once(log: Log) -> None:
    log.add(bytes(5_000))
    log.add()
    expected = [log.spoil(number) for number in (8, 9)]
    by = log.scrub()
    for start in range(0, len(log.data), 1_000):
        log.look(start, start + 1_000, by)
    assert by.wrong == expected


def test_a_size_that_nobody_can_send_is_not_read(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scrub, "_MOST_BYTES", 2_000)
    log.data[log.starts[5] : log.starts[5] + 4] = (2_001).to_bytes(4, "big")
    assert log.look(0, log.starts[6] - 1).wrong == []
    assert log.reads == []


def test_at_the_end_of_a_file_nothing_more_is_there(log: Log) -> None:
    expected = [log.spoil(2)]
    log.add()
    for cut in (5, HEAD.size - 1, 60):
        log.data = log.data[: log.starts[8] + cut]
        assert log.look().wrong == expected


@pytest.mark.parametrize("at", [0, 4, 28, 84, 90])
def test_what_is_no_record_is_passed_over(log: Log, at: int) -> None:
    log.spoil(3, at)
    log.data[log.starts[3] + BODY_AT + 4] ^= 1
    expected = [log.spoil(1), log.spoil(5)]
    found = log.look().wrong
    assert [each for each in found if each.queue_offset != 3] == expected


def test_another_file_is_begun_anew(log: Log) -> None:
    by = log.look(0, log.starts[3])
    expected = log.spoil(0)
    by.look("/other", 0, FROM_OFFSET, bytes(log.data))
    assert by.wrong == [expected._replace(path="/other")]


def test_a_message_may_be_full_of_records(log: Log) -> None:
    inner = bytes(log.data[: log.starts[2]])
    log.add(inner * 3)
    log.add(b"last")
    expected = log.spoil(9)
    assert log.look(log.starts[8] + 1).wrong == [expected], "none of them is at its place"


def test_what_looks_like_a_record_is_not_looked_for_for_ever(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = log.add(record_head._MARK * 200)
    log.add()
    expected = log.spoil(9)
    assert log.look(start + 1).wrong == []
    monkeypatch.setattr(record_head, "_MOST_GUESSES", 250)
    assert log.look(start + 1).wrong == [expected]


def test_others_come_in_between(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scrub, "_AT_ONCE", 3)
    log.look()
    assert log.pauses == 2


@settings(max_examples=examples(60), deadline=None)
@given(
    sizes=st.lists(st.integers(0, 400), min_size=1, max_size=30),
    part=st.integers(1, 1_500),
    seed=st.integers(0, 1 << 16),
)
def test_all_wrong_bodies_are_found_wherever_parts_end(
    sizes: list[int], part: int, seed: int
) -> None:
    random, log = Random(seed), Log()
    for size in sizes:
        log.add(random.randbytes(size))
    expected = [
        log.spoil(number)
        for number in sorted(random.sample(range(len(sizes)), len(sizes) // 2))
        if sizes[number]
    ]
    by = log.scrub()
    for start in range(0, len(log.data), part):
        log.look(start, start + part, by)
    assert by.wrong == expected
    # Each part by itself, when it is large enough that records begin in it.
    part += 1_100
    alone = [log.look(start, start + part).wrong for start in range(0, len(log.data), part)]
    assert [damage for found in alone for damage in found] == expected
