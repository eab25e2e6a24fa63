# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import struct
from pathlib import Path

import pytest

from tests.stored import NOW_MS, SETTINGS, filled_store, spoil
from txrocketmq.broker.store.config import StoreConfig
from txrocketmq.broker.store.message_store import MessageStore
from txrocketmq.broker.store.steps import finished


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


def test_times_that_are_right_are_believed(tmp_path: Path) -> None:
    filled_store(tmp_path)
    assert opened(tmp_path)[1] == []
