# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import pytest

from tests.spark.live.fakes import FakeBroker, FakeQueue, Outcome, World, message
from txrocketmq.remoting.call import Call
from txrocketmq.remoting.message.message import Message, decode_batch
from txrocketmq.remoting.message.properties import decode_properties
from txrocketmq.remoting.protocol import send as send_calls
from txrocketmq.spark.live import cluster, send

SENDS = (send_calls.SEND_MESSAGE_V2, send_calls.SEND_BATCH_MESSAGE)


class StoringWorld(World):
    """Brokers that keep what they are sent: it can be looked at, and their index finds it."""

    def __init__(self, *brokers: FakeBroker) -> None:
        super().__init__(*brokers)
        self.requests: list[tuple[str, int, int, list[Message]]] = []
        """Topic, queue, and what came in one request."""

    def answer(self, address: str, call: Call[Any, Any], header: Any, body: bytes) -> Outcome:
        outcome = super().answer(address, call, header, body)
        if call in SENDS and not isinstance(outcome, Exception) and outcome.code == 0:
            self._keep(address, call, header, body)
        return outcome

    def _keep(self, address: str, call: Call[Any, Any], header: Any, body: bytes) -> None:
        own = decode_properties(header.properties)
        if call is send_calls.SEND_BATCH_MESSAGE:
            found = decode_batch(body, header.topic)
        else:
            found = [Message(header.topic, body, header.flag, own)]
        (broker,) = (its for its in self.brokers.values() if address in its.addresses.values())
        self.requests.append((broker.name, header.queue_id, int(header.batch), found))
        queue = broker.queues.setdefault((header.topic, header.queue_id), FakeQueue())
        for each in found:
            queue.messages.append(
                message(
                    header.topic, header.queue_id, queue.end,
                    body=each.body, properties={**own, **each.properties}, flag=each.flag,
                )
            )  # fmt: skip

    @property
    def bodies(self) -> list[bytes]:
        """Of all messages that came, in their order."""
        return [each.body for request in self.requests for each in request[-1]]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> StoringWorld:
    """Two brokers with four queues each of the topic T."""
    brokers = FakeBroker("a"), FakeBroker("b")
    for broker in brokers:
        broker.fill("T", [0, 0, 0, 0])
    made = StoringWorld(*brokers)
    monkeypatch.setattr(cluster, "connection_to", made.connection_to)
    monkeypatch.setattr(send, "connection_to", made.connection_to)
    return made
