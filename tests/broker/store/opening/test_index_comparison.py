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


def test_a_header_that_names_a_message_which_the_log_does_not_have_is_not_believed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is from before a cut of the log, and is back after a power cut."""
    records = {100: SimpleNamespace(store_timestamp_ms=NOW_MS)}
    monkeypatch.setattr(indexed, "record_at", lambda _, offset, **__: records.get(offset))
    log: Any = SimpleNamespace(min_offset=50)

    def first_wrong(begin: int, end: int) -> Any:
        file = SimpleNamespace(
            begin_physical_offset=begin, begin_timestamp_ms=NOW_MS,
            end_physical_offset=end, end_timestamp_ms=NOW_MS,
        )  # fmt: skip
        index: Any = SimpleNamespace(files=[file])
        return indexed.first_misdated(index, log, end=200)

    assert first_wrong(100, 101) == (
        0, "its header names a message at 101, where the log has none"
    )  # fmt: skip
    assert first_wrong(100, 100) is None
    assert first_wrong(49, 100) is None, "it has expired"
    assert first_wrong(100, 200) is None, "what is behind the end is removed"


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
