# SPDX-License-Identifier: Apache-2.0
"""Rows are written and forgotten. That they are written as others are: see test_packed_index.py."""

from __future__ import annotations

from mmap import mmap

from tests.broker.kernel.two_brokers import with_each_kernel
from txrocketmq.broker.kernel.chosen import Kernel
from txrocketmq.broker.store.index.index_rows import IndexEntry

SLOTS, ITEMS = 10, 50
ITEMS_AT = 40 + 4 * SLOTS


def entries(count: int) -> list[IndexEntry]:
    """Entries with a key and a tag each."""
    return [("T", f"KEY{at:04}", None, "tag", 100 * at, 1_000 * at) for at in range(count)]


@with_each_kernel
def test_there_are_as_many_as_fit(kernel: Kernel) -> None:
    rows = kernel.new_rows()
    rows.add(entries(30))
    assert len(rows) == 60
    mapped = mmap(-1, ITEMS_AT + 20 * ITEMS)
    assert rows.put(mapped, SLOTS, ITEMS_AT, 1, 0) == ITEMS - 1
    assert len(rows) == 60 - ITEMS + 1
    assert rows.put(mapped, SLOTS, ITEMS_AT, ITEMS, 0) == 0
    assert int.from_bytes(mapped[36:40], "big") == ITEMS


@with_each_kernel
def test_there_are_1024_at_most(kernel: Kernel) -> None:
    rows = kernel.new_rows()
    rows.add(entries(700))
    mapped = mmap(-1, ITEMS_AT + 20 * 5_000)
    assert rows.put(mapped, SLOTS, ITEMS_AT, 1, 0) == 1_024


@with_each_kernel
def test_those_of_others_come_behind(kernel: Kernel) -> None:
    rows, other = kernel.new_rows(), kernel.new_rows()
    rows.add(entries(1))
    other.add(entries(3)[2:])
    rows.extend(other)
    mapped = mmap(-1, ITEMS_AT + 20 * ITEMS)
    assert rows.put(mapped, SLOTS, ITEMS_AT, 1, 0) == 4
    assert int.from_bytes(mapped[24:32], "big") == 200  # the last message of the header
    assert rows.put(mapped, SLOTS, ITEMS_AT, 5, 0) == 0
