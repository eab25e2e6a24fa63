# SPDX-License-Identifier: Apache-2.0
"""An index whose items are packed has the same bytes as any other."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.broker.kernel.two_brokers import with_each_kernel
from tests.broker.store.index.test_index_file import NOW_MS, SLOTS, entry, found
from txrocketmq.broker.kernel.chosen import REFERENCE, Kernel
from txrocketmq.broker.store.index import packed_index
from txrocketmq.broker.store.index.index_file import Index
from txrocketmq.broker.store.index.index_rows import IndexEntry
from txrocketmq.broker.store.index.packed_index import PackedIndex, RunEntries

ITEMS = 40


def both(files: Any, kernel: Kernel = REFERENCE) -> tuple[Index, PackedIndex]:
    """An index of each kind."""
    return (
        Index(files, "/plain", SLOTS, ITEMS),
        PackedIndex(files, "/packed", SLOTS, ITEMS, kernel.new_rows),
    )


def bytes_of(index: Index) -> list[bytes]:
    """The bytes of its files."""
    return [bytes(file.file.map()) for file in index.files]


_ENTRIES = st.lists(
    st.tuples(
        st.sampled_from((None, "KEY1", "KEY2", "7F00000100000001", "größe")),
        st.sampled_from((None, "a", "a  b", "b a", " ")),
        st.sampled_from((None, "tag", "ä")),
        st.integers(-3_000, 90_000),
    ),
    max_size=60,
)


@with_each_kernel
@given(parts=st.lists(_ENTRIES, max_size=4), at_once=st.booleans(), as_runs=st.booleans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_the_bytes_are_the_same(
    files: Any, kernel: Kernel, parts: list[Any], at_once: bool, as_runs: bool
) -> None:
    plain, packed = both(files, kernel)
    offset = 0
    for part in parts:
        entries: list[IndexEntry] = []
        for uniq_key, keys, tags, after_ms in part:
            offset += 100
            entries.append(entry(offset, uniq_key, keys, tags, stored_ms=NOW_MS + after_ms))
        plain.pending.add(entries)
        if as_runs:
            rows = kernel.new_rows()
            rows.add(entries)
            run: Any = RunEntries(rows, len(entries))
            assert len(run) == len(entries)
            packed.pending.add(run)
        else:
            packed.pending.add(entries)
        if not at_once:
            plain.write_pending(NOW_MS)
            packed.write_pending(NOW_MS)
    plain.write_pending(NOW_MS)
    packed.write_pending(NOW_MS)
    assert bytes_of(packed) == bytes_of(plain)
    assert packed.waiting == 0
    assert packed.extents() == plain.extents()
    assert found(packed, "a") == found(plain, "a")
    for index in (plain, packed):
        for file in index.drop_from(0):
            files.remove(file)


@with_each_kernel
def test_many_entries_are_packed_when_it_is_their_turn(
    files: Any, kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packed_index, "MANY", 10)
    monkeypatch.setattr(packed_index, "_AT_ONCE", 4)
    plain, packed = both(files, kernel)
    rows = kernel.new_rows()
    rows.add([entry(2_000, "KEY3")])
    many = [entry(100 * at, "KEY1", "b") for at in range(15)]
    parts: list[Any] = [[entry(1, "KEY0")], many, [entry(1_900, "KEY2")]]
    for part in parts:
        plain.pending.add(part)
        packed.pending.add(part)
    plain.pending.add([entry(2_000, "KEY3")])
    run: Any = RunEntries(rows, 1)
    packed.pending.add(run)
    assert packed.waiting == 1 + 15 + 1 + 1
    packed.write_pending(NOW_MS, 4)
    assert 0 < packed.waiting <= 14
    packed.write_pending(NOW_MS)
    plain.write_pending(NOW_MS)
    assert packed.waiting == 0
    assert bytes_of(packed) == bytes_of(plain)


def test_packed_items_cannot_be_told_apart() -> None:
    """So that reput, which can, reads them from the log again."""
    with pytest.raises(ValueError, match="from the log again"):
        list(RunEntries(REFERENCE.new_rows(), 3))
