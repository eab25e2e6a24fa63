# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.spark.live.fakes import FakeBroker, World
from txrocketmq.spark.live.wire import cluster


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Callable[..., World]:
    """Makes a world of brokers, to which all connections lead."""

    def make(*brokers: FakeBroker) -> World:
        made = World(*brokers)
        monkeypatch.setattr(cluster, "connection_to", made.connection_to)
        return made

    return make
