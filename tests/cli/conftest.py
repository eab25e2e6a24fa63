# SPDX-License-Identifier: Apache-2.0
"""What the tests of commands share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.administered import Administered


@pytest.fixture(autouse=True)
def _no_settings_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keeps the contexts and the caches of whoever runs the tests out of them."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("TXROCKETMQ_CONTEXT", raising=False)
    monkeypatch.delenv("NAMESRV_ADDR", raising=False)


@pytest.fixture
def administered(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Administered:
    """A cluster, and the output of commands that administrate it."""
    return Administered(monkeypatch, capsys)
