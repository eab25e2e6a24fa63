# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def fast_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes syncs do nothing: no power fails here, and they would take most of the time."""
    monkeypatch.setattr("os.fsync", lambda handle: None)
