# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.broker.store.conftest import GOLDEN
from tests.stored import SETTINGS, filled_store
from txrocketmq.broker.store.disk.files import OsFiles
from txrocketmq.broker.store.disk.shape import config_of
from txrocketmq.broker.store.formats.config import StoreConfig


def sizes(config: StoreConfig, like: dict[str, Any]) -> dict[str, Any]:
    return {name: getattr(config, name) for name in like}


def test_files_tell_their_sizes(tmp_path: Path) -> None:
    filled_store(tmp_path)
    assert sizes(config_of(OsFiles(), str(tmp_path)), SETTINGS) == SETTINGS


@pytest.mark.parametrize("version", ["4.9.7", "5.4.0"])
def test_those_of_original_brokers_do(
    golden_copy: Callable[[str, str], Path], version: str
) -> None:
    expected = {name: GOLDEN[name] for name in SETTINGS}
    config = config_of(OsFiles(), str(golden_copy(version, "clean")))
    assert sizes(config, expected) == expected


def test_light_queues_show_that_they_are_served(tmp_path: Path) -> None:
    filled_store(tmp_path)
    assert not config_of(OsFiles(), str(tmp_path)).enable_lmq
    (tmp_path / "consumequeue" / "%LMQ%a").mkdir()
    config = config_of(OsFiles(), str(tmp_path))
    assert config.enable_lmq
    assert config.enable_multi_dispatch


def test_a_cut_file_among_others_counts_for_nothing(tmp_path: Path) -> None:
    filled_store(tmp_path)
    last = max((tmp_path / "commitlog").iterdir())
    last.write_bytes(last.read_bytes()[:100])
    assert config_of(OsFiles(), str(tmp_path)).mapped_file_size_commit_log == 8192


def test_what_is_not_there_has_its_default(tmp_path: Path) -> None:
    filled_store(tmp_path)
    shutil.rmtree(tmp_path / "index")
    (tmp_path / "index").mkdir()
    (tmp_path / "index" / "20260101000000000").write_bytes(bytes(100))
    shutil.rmtree(tmp_path / "consumequeue")
    config, default = config_of(OsFiles(), str(tmp_path)), StoreConfig()
    assert config.max_index_num == default.max_index_num
    assert config.mapped_file_size_consume_queue == default.mapped_file_size_consume_queue
