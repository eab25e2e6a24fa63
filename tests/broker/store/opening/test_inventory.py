# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from txrocketmq.broker.store.message_store import MessageStore, PutMessage
from txrocketmq.broker.store.opening.inventory import InventoryFile

NOW_MS = 1_700_000_000_000
OpenStore = Callable[..., MessageStore]
Build = Callable[..., PutMessage]


def test_a_store_that_is_closed_leaves_what_it_has(
    open_store: OpenStore, files: Any, message: Build
) -> None:
    store = open_store()
    results = store.put([message("A", each % 2, uniq_key="K" * 32) for each in range(5)], NOW_MS)
    assert InventoryFile(files, "/store").read() is None
    store.stop(NOW_MS)
    left = InventoryFile(files, "/store").read()
    assert left is not None
    assert (left.log_start, left.log_end) == (0, results[-1].physical_offset + results[-1].size)
    assert left.last_ms == NOW_MS
    assert left.queues == {"A": {"0": [0, 3], "1": [0, 2]}}
    assert list(left.index.values()) == [[0, results[-1].physical_offset, 6]]
    assert left.is_indexed
    assert "/store/inventory" in files.synced


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b"7", b"null", b'{"version":1,"new":2}', b'{"version":2}']
)
def test_what_cannot_be_read_counts_as_not_there(files: Any, data: bytes) -> None:
    files.write("/store/inventory", data)
    assert InventoryFile(files, "/store").read() is None


def test_a_store_that_another_broker_has_gone_on_with_voids_it(
    open_store: OpenStore, files: Any, message: Build
) -> None:
    store = open_store()
    store.put([message("A")] * 5, NOW_MS)
    store.stop(NOW_MS)
    left = files.small["/store/inventory"]
    store = open_store()
    store.put([message("A")] * 5, NOW_MS + 1)
    store.stop(NOW_MS + 1)
    files.small["/store/inventory"] = left
    again = open_store()
    assert again.max_offset("A", 0) == 10, "not what the inventory says"
