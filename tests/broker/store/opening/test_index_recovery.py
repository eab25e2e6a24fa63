# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.disk import MemoryFiles
from tests.stored import NOW_MS, SETTINGS, filled_store, put_message
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.opening_report import Recovered
from txrocketmq.broker.store.message_store import MessageStore
from txrocketmq.broker.store.opening.index_recovery import IndexRecovery
from txrocketmq.broker.store.opening.inventory import Inventory
from txrocketmq.broker.store.opening.loss import Loss


def begun(
    store: MessageStore, *, end: int | None = None, inventory: Inventory | None = None, **given: Any
) -> tuple[int, list[str]]:
    """Returns where the index of a store continues whose log ends there, and what was said."""
    config: Any = StoreConfig(store_path_root_dir=store.config.store_path_root_dir, **given)
    loss = Loss(store._files, config.store_path_root_dir, NOW_MS)
    done = Recovered(was_closed=True, max_offset=end or store.max_physical_offset)
    recovery = IndexRecovery(config, store._log.files, store._index, loss)
    return recovery.begin(done, inventory, done.max_offset), loss.warnings


@pytest.fixture
def store(tmp_path: Path) -> MessageStore:
    filled_store(tmp_path)
    store = MessageStore(StoreConfig(store_path_root_dir=str(tmp_path), **SETTINGS))
    store.load(NOW_MS)
    return store


def test_a_whole_index_continues_at_the_end(store: MessageStore) -> None:
    assert begun(store) == (store.max_physical_offset, [])
    whole = Inventory(is_indexed=True, index=store._index.extents())
    assert begun(store, inventory=whole) == (store.max_physical_offset, [])


def test_an_index_that_is_not_wanted_has_nothing_to_do(store: MessageStore) -> None:
    store._index.drop_from(0)
    assert begun(store, message_index_enable=False) == (store.max_physical_offset, [])


def test_messages_that_the_log_has_lost_are_taken_out(store: MessageStore) -> None:
    spans = store._index.spans()
    begin, (warning,) = begun(store, end=spans[1][0] + 1)
    assert spans[0][1] < begin <= spans[1][1]
    assert store._index.spans() == spans[:1]
    assert "had messages that the log does not have any more" in warning


def test_a_missing_index_is_built_from_the_log(store: MessageStore) -> None:
    store._index.drop_from(0)
    assert begun(store) == (0, ["The index is missing; it is built from the log."])


def test_what_is_behind_a_gap_is_moved_aside(store: MessageStore) -> None:
    spans = store._index.spans()
    del store._index._files[1]
    begin, warnings = begun(store)
    assert spans[0][1] < begin <= spans[1][1]
    assert len(warnings) == len(spans) - 2
    assert all("lacks messages before it" in text and "/lost/" in text for text in warnings)


@pytest.mark.parametrize("first", [0, 1], ids=["none stays", "one stays"])
def test_no_power_cut_brings_back_what_was_given_up(first: int) -> None:
    disk: Any = MemoryFiles()
    store = MessageStore(StoreConfig(store_path_root_dir="/store", **SETTINGS), files=disk)
    store.load(NOW_MS)
    for start in range(0, 300, 10):
        store.put([put_message(number) for number in range(start, start + 10)], NOW_MS + start)
    store.stop(NOW_MS + 300)
    store = MessageStore(StoreConfig(store_path_root_dir="/store", **SETTINGS), files=disk)
    store.load(NOW_MS)
    there = store._index.paths()
    assert len(there) > 1
    begun(store, end=store._index.spans()[first][0] + 1)
    assert store._index.paths() == there[:first]
    assert not any(disk.unlinked.values()), "what comes back is empty"
    assert [each.name for each in disk.entries("/store/index")] == [
        path.rpartition("/")[2] for path in there[:first]
    ]


def test_a_whole_index_is_not_synced(store: MessageStore, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    monkeypatch.setattr(store._files, "sync", synced.append)
    begun(store)
    assert synced == []
