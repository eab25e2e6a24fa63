# SPDX-License-Identifier: Apache-2.0
"""What follows when a queue cannot be read."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from twisted.logger import formatEvent, globalLogPublisher

from tests.client.consumer.fake_broker import QUEUE
from tests.client.fakes import Scene
from txrocketmq.client.base.errors import ClientClosed, MQBrokerError
from txrocketmq.client.consumer.listening.troubles import (
    BROKER_FLOW_CONTROL_MS,
    EXCEPTION_MS,
    Troubles,
)
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import ConnectError

GONE = ConnectError("nobody there")


@pytest.fixture
def said() -> Iterator[list[str]]:
    """What the log is told while a test runs."""
    lines: list[str] = []

    def observer(event: dict[str, object]) -> None:
        if str(event.get("log_namespace", "")).endswith("troubles"):
            lines.append(formatEvent(event))

    globalLogPublisher.addObserver(observer)  # type: ignore[arg-type]
    yield lines
    globalLogPublisher.removeObserver(observer)  # type: ignore[arg-type]


def test_the_log_has_it_once_until_the_queue_is_read_again(scene: Scene, said: list[str]) -> None:
    troubles = Troubles(scene.client)
    assert [troubles.begin(QUEUE, GONE) for _ in range(3)] == [EXCEPTION_MS] * 3
    assert len(said) == 1
    assert "nobody there" in said[0]
    troubles.end("broker-a")
    troubles.begin(QUEUE, GONE)
    assert len(said) == 2


def test_a_broker_with_too_much_to_do_is_asked_again_soon(scene: Scene) -> None:
    busy = MQBrokerError(ResponseCode.FLOW_CONTROL, "no", "10.0.0.1:1")
    assert Troubles(scene.client).begin(QUEUE, busy) == BROKER_FLOW_CONTROL_MS


def test_nobody_hears_of_the_end(scene: Scene, said: list[str]) -> None:
    troubles = Troubles(scene.client)
    troubles.begin(QUEUE, ClientClosed("the client was stopped"))
    troubles.is_over = True
    troubles.begin(QUEUE, GONE)
    assert said == []
