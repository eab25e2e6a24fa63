# SPDX-License-Identifier: Apache-2.0
"""A synchronous master, pairs of a master and its slave, and a slave that copies tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.broker.conftest import Parts
from tests.broker.replication.masters import FakeMaster, Slave
from tests.broker.replication.wire import Open, Scene
from txrocketmq.broker.work import notices
from txrocketmq.remoting.process.log_limit import Seldom


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


@pytest.fixture(autouse=True)
def _log_has_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines that other tests have logged do not count."""
    monkeypatch.setattr(notices, "_slaves", Seldom(30))


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    made: list[Scene] = []

    def open_scene(**more: Any) -> Scene:
        made.append(Scene(tmp_path / str(len(made)), **more))
        return made[-1]

    yield open_scene
    for each in made:
        each.close()


@pytest.fixture
def scene(opened: Open) -> Scene:
    return opened()
