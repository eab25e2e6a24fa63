# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def fast_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes syncs do nothing: no power fails here, and they would take most of the time."""
    monkeypatch.setattr("os.fsync", lambda handle: None)


@pytest.fixture(autouse=True)
def files_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes a split of each file of the log, however small it is."""
    monkeypatch.setattr("txrocketmq.spark.planning.split.TOGETHER_BYTES", 0)
