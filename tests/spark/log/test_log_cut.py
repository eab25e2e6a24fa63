# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.spark.stores import Draft, StoreWriter, drafts, write_store
from txrocketmq.spark.log import log_cut
from txrocketmq.spark.log.log_cut import cut_within, first_boundary, first_stored_since
from txrocketmq.spark.store.store import Store

SEGMENT_BYTES = 8192


def ends(writer: StoreWriter) -> list[int]:
    return [stored.physical_offset + stored.size for stored in writer.stored]


@settings(max_examples=examples(30))
@given(
    messages=st.lists(drafts(), min_size=1, max_size=30),
    first=st.integers(0, 29),
    most_bytes=st.integers(1, 12_000),
    walked=st.sampled_from((0, 1000, 1 << 30)),
)
def test_a_cut_is_the_last_end_of_a_record_within_the_limit(
    tmp_path_factory: pytest.TempPathFactory,
    messages: list[Draft],
    first: int,
    most_bytes: int,
    walked: int,
) -> None:
    writer = write_store(
        tmp_path_factory.mktemp("stores") / "a", messages, segment_bytes=SEGMENT_BYTES
    )
    store = Store.open(str(writer.root))
    start = writer.stored[first % len(writer.stored)].physical_offset
    later = [end for end in ends(writer) if end > start]
    expected = max([end for end in later if end <= start + most_bytes], default=later[0])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_cut, "_WALKED_BYTES", walked)
        cut = cut_within(store, start, writer.end, most_bytes)
    # Past a blank the next record begins with the next file.
    assert cut in (expected, -(-expected // SEGMENT_BYTES) * SEGMENT_BYTES)
    assert start < cut <= max(start + most_bytes, later[0])


def test_a_cut_after_a_blank_goes_on_to_the_record_there(tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path / "a", segment_bytes=SEGMENT_BYTES)
    writer.put_all([Draft(body=bytes(5000)), Draft(body=bytes(5000))])
    first, second = ends(writer)
    store = Store.open(str(writer.root))
    assert cut_within(store, first, second, 100) == second
    assert cut_within(store, first, second, 1 << 20) == second


def test_a_damaged_record_is_cut_around(tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path / "a", segment_bytes=SEGMENT_BYTES)
    writer.put_all(Draft(body=b"x" * 300) for _ in range(6))
    with writer.segment(0).open("r+b") as file:
        file.seek(writer.stored[1].physical_offset + 4)
        file.write(b"\0\0\0\0")
    store = Store.open(str(writer.root))
    places = ends(writer)
    for most_bytes in range(1, writer.end, 97):
        assert cut_within(store, 0, writer.end, most_bytes) in places
    assert cut_within(store, places[0], writer.end, 1) == places[1]


def test_the_first_boundary_is_looked_for(tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path / "a", segment_bytes=SEGMENT_BYTES)
    writer.put_all(Draft(body=b"x" * 300, fakes=2) for _ in range(30))
    store = Store.open(str(writer.root))
    starts = [stored.physical_offset for stored in writer.stored]
    for at in range(0, writer.end, 211):
        expected = min((start for start in starts if start >= at), default=writer.end)
        assert first_boundary(store, at, writer.end) == expected
    writer.delete_segment()
    assert first_boundary(store, 5, writer.end) == 5, "the reading tells of the loss"


def test_the_first_of_a_time_is_found(tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path / "a", segment_bytes=SEGMENT_BYTES)
    writer.put_all(Draft(body=b"x" * 300, after_ms=number % 3) for number in range(50))
    store = Store.open(str(writer.root))
    for stored in writer.stored[::7]:
        time = stored.store_timestamp
        first = next(each for each in writer.stored if each.store_timestamp >= time)
        assert first_stored_since(store, time, 0, writer.end) == first.physical_offset
    assert first_stored_since(store, time + 10**6, 0, writer.end) is None
