# SPDX-License-Identifier: Apache-2.0
"""What UPDATE_BROKER_CONFIG takes of POP counts at once.

See tests/broker/test_live_settings.py, which finds the settings that have no check.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.broker.pop.scene import GROUP, INVISIBLE_MS, Scene
from tests.fakes import reply_of, request
from tests.live import Checks
from txrocketmq.broker.all_processors import all_processors
from txrocketmq.broker.cluster.topic_routes import TopicRoutes
from txrocketmq.broker.processors.pop.assignment import AssignmentProcessor
from txrocketmq.remoting.call import PendingReply, Reply
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.protocol.body.pop import (
    QueryAssignmentRequestBody,
    QueryAssignmentResponseBody,
)
from txrocketmq.remoting.protocol.body.route import QueueData, TopicRouteData

check = Checks()
RETRY = f"%RETRY%{GROUP}_T"


def update(scene: Scene, **settings: object) -> None:
    """As an administrator does it."""
    values = {
        key: str(value).lower() if isinstance(value, bool) else str(value)
        for key, value in settings.items()
    }
    scene.parts.configuration.update(values)


def put(scene: Scene, *bodies: str) -> None:
    for body in bodies:
        scene.parts.put("T", body=body.encode())


def come_back(scene: Scene, *bodies: str) -> None:
    """Messages that are in the retry topic."""
    put(scene, *bodies)
    scene.pop()
    scene.advance(INVISIBLE_MS + 5_000)


@check
def enable_pop_buffer_merge(scene: Scene) -> None:
    put(scene, "a", "b")
    scene.pop(max_msg_nums=1)
    assert scene.tags() == ["ck"]
    update(scene, enablePopBufferMerge=True)
    scene.pop(max_msg_nums=1)
    assert scene.tags() == ["ck"]


@check
def pop_ck_stay_buffer_time(scene: Scene) -> None:
    update(scene, enablePopBufferMerge=True, popCkStayBufferTime=20_000)
    put(scene, "a")
    scene.pop()
    scene.advance(15_000)
    assert scene.tags() == []
    scene.advance(6_000)
    assert scene.tags() == ["ck"]


@check
def pop_ck_stay_buffer_time_out(scene: Scene) -> None:
    update(scene, enablePopBufferMerge=True, popCkStayBufferTimeOut=100_000)
    put(scene, "a")
    scene.pop()
    assert scene.tags() == ["ck"]


@check
def pop_ck_max_buffer_size(scene: Scene) -> None:
    update(scene, enablePopBufferMerge=True, popCkMaxBufferSize=0)
    put(scene, "a", "b")
    scene.pop(max_msg_nums=1)
    assert scene.tags() == []
    scene.pop(max_msg_nums=1)
    assert scene.tags() == ["ck"]


@check
def pop_ck_offset_max_queue_size(scene: Scene) -> None:
    update(scene, enablePopBufferMerge=True, popCkOffsetMaxQueueSize=0)
    put(scene, "a")
    scene.pop()
    assert scene.tags() == ["ck"]


@check
def enable_pop_batch_ack(scene: Scene) -> None:
    update(scene, enablePopBufferMerge=True, enablePopBatchAck=True)
    put(scene, "a", "b")
    scene.ack(scene.pop()[0])
    scene.advance(15_000)
    assert scene.tags() == ["ck", "bAck"]


@check
def pop_polling_size(scene: Scene) -> None:
    update(scene, popPollingSize=0)
    scene.ask(poll_time=10_000)
    assert scene.reply(poll_time=10_000).code == 209


@check
def max_pop_polling_size(scene: Scene) -> None:
    update(scene, maxPopPollingSize=0)
    assert scene.reply(poll_time=10_000).code == 209


@check
def pop_from_retry_probability(scene: Scene) -> None:
    come_back(scene, "again")
    put(scene, "fresh")
    update(scene, popFromRetryProbability=100)
    assert scene.bodies(max_msg_nums=1) == ["again"]


@check
def pop_from_retry_probability_for_priority(scene: Scene) -> None:
    scene.parts.topic("T", 3, message_type="PRIORITY")
    come_back(scene, "again")
    put(scene, "fresh")
    update(scene, popFromRetryProbability=100)
    update(scene, popFromRetryProbabilityForPriority=100)
    assert scene.bodies(max_msg_nums=1) == ["again"]


@check
def priority_order_asc(scene: Scene) -> None:
    scene.parts.topic("T", 3, message_type="PRIORITY")
    for queue_id in range(3):
        scene.parts.put("T", queue_id, body=b"%d" % queue_id)
    update(scene, priorityOrderAsc=False)
    assert scene.bodies() == ["0", "1", "2"]


@check
def enable_retry_topic_v2(scene: Scene) -> None:
    update(scene, enableRetryTopicV2=True)
    come_back(scene, "a")
    assert scene.parts.topics.get(f"%RETRY%{GROUP}+T") is not None


@check
def retrieve_message_from_pop_retry_topic_v1(scene: Scene) -> None:
    come_back(scene, "a")
    update(scene, enableRetryTopicV2=True, retrieveMessageFromPopRetryTopicV1=False)
    assert [each for _ in range(40) for each in scene.bodies()] == []
    update(scene, retrieveMessageFromPopRetryTopicV1=True)
    assert [each for _ in range(40) for each in scene.bodies()] == ["a"]


@check
def pop_response_return_actual_retry_topic(scene: Scene) -> None:
    come_back(scene, "a")
    update(scene, popResponseReturnActualRetryTopic=True)
    assert RETRY.encode() in scene.reply().body_bytes


@check
def init_pop_offset_by_check_msg_in_mem(scene: Scene) -> None:
    put(scene, "a", "b")
    update(scene, initPopOffsetByCheckMsgInMem=False)
    assert scene.bodies(init_mode=1) == ["b"]


@check
def enable_notify_after_pop_order_lock_release(scene: Scene) -> None:
    put(scene, "a")
    scene.pop(order=True, invisible_time=5_000)
    update(scene, enableNotifyAfterPopOrderLockRelease=False)
    waiting = scene.ask(order=True, poll_time=60_000)
    scene.advance(10_000)
    assert not waiting.done


@check
def enable_pop_message_threshold(scene: Scene) -> None:
    scene.parts.set(pop_inflight_message_threshold=0)
    put(scene, "a", "b")
    scene.pop(max_msg_nums=1)
    update(scene, enablePopMessageThreshold=True)
    assert scene.pop() == []


@check
def pop_inflight_message_threshold(scene: Scene) -> None:
    scene.parts.set(enable_pop_message_threshold=True)
    put(scene, "a", "b")
    scene.pop(max_msg_nums=1)
    update(scene, popInflightMessageThreshold=0)
    assert scene.pop() == []


@check
def skip_when_ck_re_put_reach_max_times(scene: Scene) -> None:
    scene.parts.put("T", key="x" * 32_740)  # there is no room for another property
    scene.pop()
    for _ in range(20):
        scene.advance(8_000_000)
    assert len(scene.parts.pop.revive) == 1
    update(scene, skipWhenCKRePutReachMaxTimes=True)
    scene.advance(16_000_000)
    assert len(scene.parts.pop.revive) == 0


def assigned(scene: Scene) -> list[tuple[str, int]]:
    """Mode and queue id of what the first of three clients is to consume of T."""
    for client_id in ("c1", "c2", "c3"):
        scene.parts.consumer(GROUP, client_id, "T")
    route = TopicRouteData(
        queue_datas=[QueueData(broker_name="b", read_queue_nums=6, write_queue_nums=6, perm=6)]
    )
    answer = PendingReply()
    answer.resolve(Reply(body=route.encode()))
    scene.parts.routes = TopicRoutes(lambda _: answer)
    processors = {type(each): each for each in all_processors(scene.parts)}
    processor = processors[AssignmentProcessor]
    assert isinstance(processor, AssignmentProcessor)
    body = QueryAssignmentRequestBody(
        topic="T", consumer_group=GROUP, client_id="c1", strategy_name="AVG",
        message_model="CLUSTERING",
    )  # fmt: skip
    reply = reply_of(processor.assignment(request(NoHeader(), body.encode())))
    found = QueryAssignmentResponseBody.decode(reply.body_bytes).message_queue_assignments
    return [(each.mode, each.message_queue.queue_id) for each in found or () if each.message_queue]


@check
def default_message_request_mode(scene: Scene) -> None:
    update(scene, defaultMessageRequestMode="PULL")
    assert assigned(scene) == [("PULL", 0), ("PULL", 1)]
    update(scene, defaultMessageRequestMode="POP")
    assert assigned(scene) == [("POP", -1)]


@check
def default_pop_share_queue_num(scene: Scene) -> None:
    scene.parts.set(default_message_request_mode="POP")
    assert assigned(scene) == [("POP", -1)]
    update(scene, defaultPopShareQueueNum=1)
    assert assigned(scene) == [("POP", each) for each in range(4)]


@pytest.mark.parametrize("name", sorted(check))
def test_it_counts_at_once(name: str, tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    check[name](scene)
    scene.close()
