# SPDX-License-Identifier: Apache-2.0
"""Locks of queues: who grants them, what becomes of them without an answer."""

from __future__ import annotations

import pytest

from tests.client.consumer.fake_broker import QUEUE, Broker
from tests.client.fakes import BROKER_A, Scene, a_route, refusal, result_of
from txrocketmq.client.consumer.queue.locks import TIMEOUT_MS, QueueLocks
from txrocketmq.client.consumer.queue.process_queue import ProcessQueue
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.protocol import heartbeat
from txrocketmq.remoting.protocol.body.heartbeat import LockBatchRequestBody

OTHER = MessageQueue("T", "broker-a", 1)
ELSEWHERE = MessageQueue("T", "broker-b", 0)


@pytest.fixture
def locks(scene: Scene, broker: Broker) -> QueueLocks:
    """Of a member whose client knows both brokers; only the first one is there."""
    scene.routes["T"] = a_route({"broker-a": 2, "broker-b": 1})
    result_of(scene.client.subscribe_queues("T"))
    return QueueLocks(scene.client, "g")


def test_each_master_is_asked_once_for_all_its_queues(
    scene: Scene, broker: Broker, locks: QueueLocks
) -> None:
    broker.others_have = {OTHER}
    assert result_of(locks.lock([QUEUE, OTHER, ELSEWHERE])) == {QUEUE}
    asked = [entry for entry in scene.connections.asked if entry[1] is heartbeat.LOCK_BATCH_MQ]
    assert len(asked) == 2
    _, _, _, body, timeout_ms = asked[0]
    request = LockBatchRequestBody.decode(body)
    assert (request.consumer_group, request.client_id) == ("g", scene.client.client_id)
    assert (request.mq_set, timeout_ms) == ({QUEUE, OTHER}, TIMEOUT_MS)


def test_slaves_do_not_lock(scene: Scene, broker: Broker, locks: QueueLocks) -> None:
    scene.routes["T"] = a_route({"broker-a": 2}, addresses={"broker-a": {1: BROKER_A}})
    result_of(scene.client.refresh("T"))
    assert result_of(locks.lock([QUEUE])) == set()
    assert broker.locks() == []


def test_what_is_refused_is_locked_no_more(scene: Scene, broker: Broker, locks: QueueLocks) -> None:
    kept, lost = ProcessQueue(QUEUE, 0), ProcessQueue(OTHER, 0)
    kept.locked = lost.locked = True
    broker.others_have = {OTHER}
    scene.time.advance(7)
    result_of(locks.renew([kept, lost]))
    assert (kept.locked, kept.last_lock_ms, lost.locked, lost.last_lock_ms) == (
        True, 7_000, False, 0,
    )  # fmt: skip


def test_without_an_answer_all_stays_and_expires(
    scene: Scene, broker: Broker, locks: QueueLocks
) -> None:
    scene.connections.on(BROKER_A, heartbeat.LOCK_BATCH_MQ, refusal(ResponseCode.SYSTEM_ERROR))
    held = ProcessQueue(QUEUE, 0)
    held.locked = True
    scene.time.advance(7)
    result_of(locks.renew([held]))
    assert (held.locked, held.last_lock_ms) == (True, 0)
    assert result_of(locks.renew_one(held)) is False


def test_one_queue_is_asked_for_alone(scene: Scene, broker: Broker, locks: QueueLocks) -> None:
    held = ProcessQueue(QUEUE, 0)
    scene.time.advance(1)
    assert result_of(locks.renew_one(held)) is True
    assert (held.locked, held.last_lock_ms, broker.locks()) == (True, 1_000, [{QUEUE}])


def test_queues_are_given_back(scene: Scene, broker: Broker, locks: QueueLocks) -> None:
    held = ProcessQueue(QUEUE, 0)
    held.locked = True
    locks.unlock([OTHER])
    result_of(locks.unlock_all([held]))
    assert (held.locked, broker.unlocks()) == (False, [{QUEUE}, {OTHER}])
