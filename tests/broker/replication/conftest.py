# SPDX-License-Identifier: Apache-2.0
"""A synchronous master, and a slave."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker.conftest import Parts
from tests.broker.replication.masters import FakeMaster, Slave


@pytest.fixture
def sync_master(tmp_path: Path) -> Iterator[Parts]:
    made = Parts(tmp_path, store_settings={"broker_role": "SYNC_MASTER"})
    yield made
    made.store.stop(made.now_ms)


@pytest.fixture
def of_5(tmp_path: Path) -> Iterator[Slave]:
    made = Slave(tmp_path, FakeMaster(page=2))
    yield made
    made.parts.store.stop(made.parts.now_ms)
