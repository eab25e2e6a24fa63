# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import struct
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.stored import NOW_MS, SETTINGS, filled_store, spoil
from txrocketmq.broker.store.disk.steps import finished
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.index.index_rows import rows_of
from txrocketmq.broker.store.message_store import MessageStore
from txrocketmq.broker.store.opening import index_comparison as indexed


def opened(root: Path) -> tuple[MessageStore, list[str]]:
    store = MessageStore(StoreConfig(store_path_root_dir=str(root), **SETTINGS))
    return store, store.load(NOW_MS).warnings


@pytest.mark.parametrize("at", [0, 8])
@pytest.mark.parametrize("wrong_ms", [0, 1, NOW_MS - 5_000, NOW_MS + 50_000])
def test_a_header_with_another_time_is_not_believed(tmp_path: Path, at: int, wrong_ms: int) -> None:
    filled_store(tmp_path)
    path = min((tmp_path / "index").iterdir())
    spoil(path, at, struct.pack(">q", wrong_ms))
    store, warnings = opened(tmp_path)
    assert f"{path} is damaged: its header has {wrong_ms} as the time of the message" in warnings[0]
    assert "The index is missing; it is built from the log." in warnings
    found = finished(store.query("Topic1", "key-7", 32, NOW_MS - 1_000, NOW_MS + 1_000))
    assert len(found.buffers) == 1
    store.stop(NOW_MS)
    assert opened(tmp_path)[1] == []


def test_a_file_of_other_messages_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is from before a cut of the log, and is back after a power cut."""
    there = SimpleNamespace(store_timestamp_ms=NOW_MS, physical_offset=100)
    monkeypatch.setattr(
        indexed, "record_at", lambda _, offset, **__: there if offset == 100 else None
    )
    entry = ("T", "uniq-key", "b", "tag", 100, NOW_MS)
    own = rows_of([entry]).hashes
    monkeypatch.setattr(indexed, "index_entry", lambda _: entry)
    log: Any = SimpleNamespace(min_offset=50)

    def first_wrong(begin: int, end: int, items: list[tuple[int, int]]) -> Any:
        view = memoryview(b"".join(struct.pack(">iqii", *item, 0, 0) for item in items))
        file = SimpleNamespace(
            begin_physical_offset=begin, begin_timestamp_ms=NOW_MS,
            end_physical_offset=end, end_timestamp_ms=NOW_MS,
            file=SimpleNamespace(view=view), items=lambda: iter([(0, begin)]),
            next_item=len(items) + 1,
        )  # fmt: skip
        index: Any = SimpleNamespace(files=[file])
        return indexed.first_misdated(index, log, end=200)

    whole = [(each, 100) for each in own]
    before, behind = (7, 49), (7, 200)
    for items in (whole, whole[:2], whole[1:], whole[2:]):
        assert first_wrong(100, 100, items) is None
        assert first_wrong(49, 100, [before, *items]) is None, "the first one has expired"
        assert first_wrong(100, 200, [*items, behind]) is None, "the last one will be removed"
    why = "its header names a message at 101, where the log has none"
    assert first_wrong(100, 101, whole) == (0, why)
    why = "it has other keys for the message at 100 than the log"
    for items in ([(7, 100), *whole[1:]], [whole[0], whole[2]], [(7, 100)]):
        assert first_wrong(100, 200, [*items, behind]) == (0, why)
        assert first_wrong(49, 100, [before, *items]) == (0, why)


def test_times_that_are_right_are_believed(tmp_path: Path) -> None:
    filled_store(tmp_path)
    assert opened(tmp_path)[1] == []


@pytest.mark.parametrize("missing", [0, 1, 2])
def test_items_of_the_first_message_may_have_gone_with_a_file(
    monkeypatch: pytest.MonkeyPatch, missing: int
) -> None:
    entry = ("T", "uniq-key", "a b", None, 5, NOW_MS)
    monkeypatch.setattr(indexed, "record_at", lambda *_, **__: object())
    monkeypatch.setattr(indexed, "index_entry", lambda _: entry)
    hashes = rows_of([entry]).hashes
    view = struct.pack(">iqii", hashes[missing], 5, 0, 0)
    file = SimpleNamespace(
        begin_physical_offset=5, file=SimpleNamespace(view=view), items=lambda: iter([(0, 5)])
    )
    index: Any = SimpleNamespace(files=[file, file])
    log: Any = None
    assert indexed.lacks_before(index, log, 0, 5) == (missing > 0)
    assert not indexed.lacks_before(index, log, 1, 5), "they are in the file before it"
    assert not indexed.lacks_before(index, log, 0, 6), "the log no longer has the message"
