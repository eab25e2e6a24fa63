# SPDX-License-Identifier: Apache-2.0
"""Fixtures for the client's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.client.consumer.fake_broker import Broker
from tests.client.fakes import Scene, a_route, result_of


@pytest.fixture
def scene() -> Scene:
    """A client whose connections are fakes."""
    return Scene()


@pytest.fixture
def broker(scene: Scene) -> Iterator[Broker]:
    """A broker with a client that has started."""
    scene.routes["T"] = a_route({"broker-a": 1})
    scene.client.start()
    yield Broker(scene)
    result_of(scene.client.stop())
