# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import pytest

from tests.spark.stores import Draft, StoreWriter
from txrocketmq.spark.log.fingerprint import WINDOW_BYTES, fingerprint, is_same_log
from txrocketmq.spark.store.store import Store

SEGMENT_BYTES = 1 << 18


@pytest.fixture
def writer(tmp_path: Path) -> StoreWriter:
    made = StoreWriter(tmp_path / "a", segment_bytes=SEGMENT_BYTES)
    made.put_all(Draft(body=b"%d" % number * 3000) for number in range(80))
    return made


def change(writer: StoreWriter, at: int) -> None:
    """Another byte at an offset of the log."""
    with writer.segment(at - at % SEGMENT_BYTES).open("r+b") as file:
        file.seek(at % SEGMENT_BYTES)
        byte = file.read(1)[0]
        file.seek(at % SEGMENT_BYTES)
        file.write(bytes([byte ^ 1]))


def test_what_follows_does_not_change_it(writer: StoreWriter) -> None:
    store = Store.open(str(writer.root))
    at = writer.end
    before = fingerprint(store, at)
    assert len(before) == 8
    writer.put(Draft(body=b"more"))
    assert fingerprint(store, at) == before
    assert is_same_log(store, at, before)


@pytest.mark.parametrize("back", [1, 2, 5000, WINDOW_BYTES])
def test_another_byte_before_it_changes_it(writer: StoreWriter, back: int) -> None:
    store = Store.open(str(writer.root))
    at = writer.stored[70].physical_offset
    before = fingerprint(store, at)
    change(writer, at - back)
    assert not is_same_log(store, at, before)


def test_the_start_of_a_file_has_that_of_the_file_before_without_its_empty_end(
    writer: StoreWriter,
) -> None:
    store = Store.open(str(writer.root))
    last = [each for each in writer.stored if each.physical_offset < SEGMENT_BYTES][-1]
    blank_end = last.physical_offset + last.size + 8
    assert blank_end < SEGMENT_BYTES, "zeros follow"
    before = fingerprint(store, SEGMENT_BYTES)
    assert before == fingerprint(store, blank_end) != fingerprint(store, blank_end - 8)
    change(writer, last.physical_offset + 50)
    assert not is_same_log(store, SEGMENT_BYTES, before)


def test_a_log_cut_off_before_it_is_another_one(writer: StoreWriter) -> None:
    store = Store.open(str(writer.root))
    last = writer.stored[-1]
    before = fingerprint(store, writer.end)
    with writer.segment(last.physical_offset - last.physical_offset % SEGMENT_BYTES).open(
        "r+b"
    ) as f:
        f.seek(last.physical_offset % SEGMENT_BYTES)
        f.write(bytes(last.size))
    assert not is_same_log(store, writer.end, before)


def test_where_nothing_lies_before_there_is_none(writer: StoreWriter) -> None:
    store = Store.open(str(writer.root))
    assert fingerprint(store, 0) == ""
    at = fingerprint(store, SEGMENT_BYTES)
    writer.delete_segment()
    assert fingerprint(store, SEGMENT_BYTES) == ""
    assert is_same_log(store, SEGMENT_BYTES, at), "it can no longer be compared"
    assert is_same_log(store, writer.end, ""), "nothing was before it then"
