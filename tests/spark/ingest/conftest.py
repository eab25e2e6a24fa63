# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def fast_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here cuts the power: waiting for the disk would take most of the time."""
    monkeypatch.setattr("os.fsync", lambda handle: None)
