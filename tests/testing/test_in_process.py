# SPDX-License-Identifier: Apache-2.0
"""A server within a reactor that is none: it starts, is put forward, stops and leaves nothing.

That clients find it is tested in tests/process.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from txrocketmq.remoting.settings.config_file import ConfigError
from txrocketmq.testing.in_process import InProcessServer


@pytest.fixture(autouse=True)
def _temporary(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def test_settings_are_the_brokers(tmp_path: Path) -> None:
    server = InProcessServer(autoCreateTopicEnable=False)
    assert server.service.config.auto_create_topic_enable is False
    (folder,) = tmp_path.iterdir()
    assert server.service.store_config.store_path_root_dir == str(folder)


def test_settings_that_are_wrong_are_told() -> None:
    with pytest.raises(ConfigError, match="listenPort"):
        InProcessServer(listenPort="many")


def test_the_clock_is_the_brokers() -> None:
    server = InProcessServer()
    before_ms = server.clock.now_ms()
    server.advance(10_000)
    assert server.clock.now_ms() - before_ms >= 10_000


def test_a_start_that_fails_leaves_nothing(tmp_path: Path) -> None:
    server = InProcessServer(storePathCommitLog=os.devnull)
    with pytest.raises(OSError, match="cannot be opened"):
        server.start()
    assert list(tmp_path.iterdir()) == []
