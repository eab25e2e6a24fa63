# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from tests.spark.live.fakes import HOST, FakeBroker, FakeQueue, Outcome, World, message
from txrocketmq.remoting.call import Call, Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.message.ids import encode_message_id
from txrocketmq.remoting.message.message import Message, decode_batch
from txrocketmq.remoting.message.properties import decode_properties
from txrocketmq.remoting.protocol import send as send_calls
from txrocketmq.remoting.protocol.transaction import END_TRANSACTION
from txrocketmq.spark.live.wire import cluster

SENDS = (send_calls.SEND_MESSAGE_V2, send_calls.SEND_BATCH_MESSAGE)
COMMIT = 8
HALF_BYTES = 1000
"""The distance between half messages in the log, in bytes."""


class Half(NamedTuple):
    """A half message as a broker keeps it."""

    broker: str
    header: Any
    """The header of the send."""
    body: bytes


class StoringWorld(World):
    """Brokers that keep and index what they are sent."""

    def __init__(self, *brokers: FakeBroker) -> None:
        super().__init__(*brokers)
        self.requests: list[tuple[str, int, int, list[Message]]] = []
        """Topic, queue and messages of each request."""
        self.halves: list[Half] = []
        """Half messages, in the order of their offsets."""
        self.ended: list[tuple[int, int]] = []
        """Offsets of ended half messages, each with the decision."""

    def answer(self, address: str, call: Call[Any, Any], header: Any, body: bytes) -> Outcome:
        if call is END_TRANSACTION:
            self.asked[address, call.name] += 1
            return self.fail(address, call, header) or self._end(address, header)
        outcome = super().answer(address, call, header, body)
        if call in SENDS and not isinstance(outcome, Exception) and outcome.code == 0:
            if decode_properties(header.properties).get("TRAN_MSG") == "true":
                return self._prepare(address, header, body)
            self._keep(address, call, header, body)
        return outcome

    def _prepare(self, address: str, header: Any, body: bytes) -> Outcome:
        at = len(self.halves)
        self.halves.append(Half(self._broker(address).name, header, body))
        answer = send_calls.SendMessageResponseHeader(
            msg_id=encode_message_id(HOST, HALF_BYTES * at),
            queue_id=header.queue_id,
            queue_offset=at,
        )
        return Reply(answer)

    def _end(self, address: str, header: Any) -> Outcome:
        """Does what EndTransactionProcessor does."""
        at, rest = divmod(header.commit_log_offset, HALF_BYTES)
        if rest or at >= len(self.halves) or self.halves[at].broker != self._broker(address).name:
            remark = "Find prepared transaction message failed"
            return Reply(code=ResponseCode.SYSTEM_ERROR, remark=remark)
        half = self.halves[at]
        group = decode_properties(half.header.properties)["PGROUP"]
        assert (header.producer_group, header.tran_state_table_offset) == (group, at)
        assert header.from_transaction_check is False
        self.ended.append((at, header.commit_or_rollback))
        if header.commit_or_rollback == COMMIT:
            self._keep(address, send_calls.SEND_MESSAGE_V2, half.header, half.body)
        return Reply(NoHeader())

    def _broker(self, address: str) -> FakeBroker:
        (broker,) = (its for its in self.brokers.values() if address in its.addresses.values())
        return broker

    def _keep(self, address: str, call: Call[Any, Any], header: Any, body: bytes) -> None:
        own = decode_properties(header.properties)
        if call is send_calls.SEND_BATCH_MESSAGE:
            found = decode_batch(body, header.topic)
        else:
            found = [Message(header.topic, body, header.flag, own)]
        broker = self._broker(address)
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
        """Returns all bodies in order; half messages are there when they are committed."""
        return [each.body for request in self.requests for each in request[-1]]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> StoringWorld:
    """Two brokers with four queues each of the topic T."""
    brokers = FakeBroker("a"), FakeBroker("b")
    for broker in brokers:
        broker.fill("T", [0, 0, 0, 0])
    made = StoringWorld(*brokers)
    monkeypatch.setattr(cluster, "connection_to", made.connection_to)
    return made
