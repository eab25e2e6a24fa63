# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import cycle
from typing import Any

import pytest

from tests.disk import MemoryFiles
from txrocketmq.broker.store.log import last_record
from txrocketmq.broker.store.message_store import MessageStore, PutMessage
from txrocketmq.broker.store.replication import own_records
from txrocketmq.broker.store.replication.own_records import OwnRecords

NOW_MS = 1_700_000_000_000
FILE_BYTES = 8192
OpenStore = Callable[..., MessageStore]
Build = Callable[..., PutMessage]


def filled(open_store: OpenStore, message: Build) -> tuple[MessageStore, list[tuple[int, int]]]:
    """A store of some files, and where its records begin and end."""
    store, places = open_store(MemoryFiles()), []
    for number in range(60):
        body = bytes([number]) * (number * 131 % 900)
        (one,) = store.put([message("Topic", number % 3, body)], NOW_MS + number)
        places.append((one.physical_offset, one.physical_offset + one.size))
    assert store.max_physical_offset > 3 * FILE_BYTES
    return store, places


def until(source: MessageStore, end: int, files: MemoryFiles, open_store: OpenStore) -> OwnRecords:
    """The records of a replica that has the log up to there."""
    replica = open_store(files)
    while (at := replica.max_physical_offset) < end:
        data = source.read_raw(at, end - at)
        assert data is not None
        replica.append_raw(at, data)
    return OwnRecords(replica.log_files)


def last(steps: Iterator[int]) -> int:
    *_, value = steps
    return value


@pytest.mark.parametrize("window", [64, 512, 64 * 1024])
def test_the_last_record_of_a_log_that_ends_anywhere(
    open_store: OpenStore, message: Build, monkeypatch: pytest.MonkeyPatch, window: int
) -> None:
    monkeypatch.setattr(last_record, "_WINDOW_BYTES", window)
    store, places = filled(open_store, message)
    log = b"".join(
        bytes(store.read_raw(at, FILE_BYTES) or b"")
        for at in range(0, store.max_physical_offset, FILE_BYTES)
    )
    replica = open_store(MemoryFiles())
    records = OwnRecords(replica.log_files)
    assert records.last() is None
    at = 0
    for wanted in cycle([1, 3, 5, 12, 40]):
        step = min(wanted, FILE_BYTES - at % FILE_BYTES, len(log) - at)
        if not step:
            break
        replica.append_raw(at, log[at : at + step])
        at += step
        whole = [(start, end) for start, end in places if end <= at]
        found = records.last()
        if not whole:
            assert found is None
            continue
        start, end = whole[-1]
        assert found is not None
        assert (found.offset, found.end) == (start, end)
        assert found.data == log[start:end]
        in_file = start // FILE_BYTES == (at - 1) // FILE_BYTES
        assert records.behind(end) == (
            log[end:at] if in_file else log[end : end // FILE_BYTES * FILE_BYTES + FILE_BYTES]
        )
        is_blank = in_file and not any(begin == end for begin, _ in places) and end < at
        if is_blank:
            assert records.begins_blank(end)
    assert at == len(log)


def test_a_body_that_looks_like_a_record_is_not_the_last_one(
    open_store: OpenStore, message: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(last_record, "_WINDOW_BYTES", 128)
    store = open_store(MemoryFiles())
    store.put([message(body=b"first")], NOW_MS)
    end = store.max_physical_offset
    head = bytes(store.read_raw(0, 36) or b"")
    lies = b"".join(
        head[:28] + (end + place).to_bytes(8, "big") for place in range(88, 88 + 8 * 36, 36)
    )
    (one,) = store.put([message(body=lies)], NOW_MS)
    found = OwnRecords(store.log_files).last()
    assert found is not None
    assert (found.offset, found.end) == (end, end + one.size)


def test_the_first_record_between_two_places(open_store: OpenStore, message: Build) -> None:
    store, places = filled(open_store, message)
    records = OwnRecords(store.log_files)
    for low in range(0, store.max_physical_offset, 37):
        for high in (low, low + 10, low + 1_500, store.max_physical_offset):
            wanted = next((start for start, _ in places if low <= start < high), None)
            found = records.first_between(low, high)
            assert (None if found is None else found.offset) == wanted


def test_where_one_may_cut_and_how_much_that_would_be(
    open_store: OpenStore, message: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_records, "_AT_ONCE", 3)
    store, places = filled(open_store, message)
    records = OwnRecords(store.log_files)
    ends = [0, *(end for _, end in places), *range(FILE_BYTES, places[-1][1], FILE_BYTES)]
    for offset in [*range(0, store.max_physical_offset, 53), *ends]:
        wanted = max(end for end in ends if end <= offset)
        assert last(records.boundary(offset)) == wanted
        count = sum(start >= wanted for start, _ in places)
        assert last(records.count_from(wanted)) == count
    assert len(list(records.count_from(0))) > len(places) / 4, "in steps"


def test_an_empty_log(open_store: OpenStore) -> None:
    records = OwnRecords(open_store(MemoryFiles()).log_files)
    assert (records.start, records.end) == (0, 0)
    assert records.first_between(0, 100) is None
    assert records.behind(0) == b""
    assert not records.begins_blank(0)
    assert last(records.boundary(0)) == 0
    assert last(records.count_from(0)) == 0


def test_a_log_that_begins_later(open_store: OpenStore, message: Build) -> None:
    store, places = filled(open_store, message)
    replica = open_store(MemoryFiles())
    for at in (FILE_BYTES, 2 * FILE_BYTES):
        data: Any = store.read_raw(at, FILE_BYTES)
        replica.append_raw(at, data)
    records = OwnRecords(replica.log_files)
    assert records.start == FILE_BYTES
    found = records.first_between(0, 1 << 60)
    assert found is None, "it begins later"
    found = records.first_between(records.start, 1 << 60)
    assert found is not None
    assert found.offset == FILE_BYTES
    assert FILE_BYTES in [start for start, _ in places]
