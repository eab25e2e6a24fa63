# SPDX-License-Identifier: Apache-2.0
"""A synchronous master."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker.conftest import Parts


@pytest.fixture
def sync_master(tmp_path: Path) -> Iterator[Parts]:
    made = Parts(tmp_path, store_settings={"broker_role": "SYNC_MASTER"})
    yield made
    made.store.stop(made.now_ms)
