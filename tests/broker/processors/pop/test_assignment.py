# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import pytest

from tests.broker.conftest import Parts
from tests.fakes import outcome_of, refused, reply_of, request
from txrocketmq.broker.cluster.topic_routes import TopicRoutes
from txrocketmq.broker.processors.pop.assignment import AssignmentProcessor
from txrocketmq.broker.tables.message_request_mode import MessageRequestModes
from txrocketmq.broker.work.json_file import JsonFile
from txrocketmq.remoting.call import PendingReply, Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import HeaderError
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.protocol.body.pop import (
    MessageRequestModeSerializeWrapper,
    QueryAssignmentRequestBody,
    QueryAssignmentResponseBody,
    SetMessageRequestModeRequestBody,
)
from txrocketmq.remoting.protocol.body.route import QueueData, TopicRouteData

ROUTE = TopicRouteData(
    queue_datas=[
        QueueData(broker_name=name, read_queue_nums=2, write_queue_nums=2, perm=6) for name in "ab"
    ]
)
QUEUES = [MessageQueue("T", name, queue_id) for name in "ab" for queue_id in range(2)]


def ask_route(topic: str) -> PendingReply:
    pending = PendingReply()
    known = topic in {"T", "%RETRY%g"}
    pending.resolve(
        Reply(body=ROUTE.encode()) if known else Reply(code=ResponseCode.TOPIC_NOT_EXIST)
    )
    return pending


@pytest.fixture
def processor(parts: Parts) -> AssignmentProcessor:
    for name in ("c1", "c2", "c3"):
        parts.consumer("g", name, "T")
    parts.topic("T")
    return AssignmentProcessor(
        parts.config,
        parts.topics,
        parts.groups,
        parts.consumers,
        TopicRoutes(ask_route),
        MessageRequestModes(JsonFile(parts.folder / "messageRequestMode.json")),
        parts.walks,
    )


def assigned(
    processor: AssignmentProcessor, mode: str = "PULL", **fields: Any
) -> list[MessageQueue] | None:
    body = QueryAssignmentRequestBody(
        **{
            "topic": "T",
            "consumer_group": "g",
            "client_id": "c1",
            "strategy_name": "AVG",
            "message_model": "CLUSTERING",
            **fields,
        }
    )
    reply = outcome_of(processor.assignment(request(NoHeader(), body.encode())))
    assert reply.code == ResponseCode.SUCCESS
    found = QueryAssignmentResponseBody.decode(reply.body_bytes).message_queue_assignments
    if found is None:
        return None
    assert {each.mode for each in found} <= {mode}
    return [each.message_queue for each in found if each.message_queue is not None]


def test_queues_of_all_brokers_are_shared_out(processor: AssignmentProcessor) -> None:
    assert [assigned(processor, client_id=name) for name in ("c1", "c2", "c3")] == [
        QUEUES[:2],
        QUEUES[2:3],
        QUEUES[3:],
    ]
    circle = assigned(processor, strategy_name="AVG_BY_CIRCLE")
    assert circle == [QUEUES[0], QUEUES[3]]


def test_everybody_gets_everything(parts: Parts, processor: AssignmentProcessor) -> None:
    assert assigned(processor, message_model="BROADCASTING") == QUEUES
    parts.set(server_load_balancer_enable=False)
    assert assigned(processor) == QUEUES


def test_one_that_is_no_member_gets_nothing(processor: AssignmentProcessor) -> None:
    assert assigned(processor, client_id="stranger") == []


@pytest.mark.parametrize(
    "fields",
    [
        {"topic": "unknown"},
        {"consumer_group": "empty"},
        {"strategy_name": "MINE"},
        {"strategy_name": None},
        {"client_id": None},
    ],
)
def test_without_an_answer_a_consumer_keeps_what_it_has(
    processor: AssignmentProcessor, fields: dict[str, Any]
) -> None:
    assert assigned(processor, **fields) is None


def test_a_body_that_is_none(processor: AssignmentProcessor) -> None:
    with pytest.raises(HeaderError):
        processor.assignment(request(NoHeader(), b"{"))


def set_mode(processor: AssignmentProcessor, **fields: Any) -> None:
    body = SetMessageRequestModeRequestBody(**{"topic": "T", "consumer_group": "g", **fields})
    processor.set_mode(request(NoHeader(), body.encode()))


def test_modes_are_kept(processor: AssignmentProcessor) -> None:
    set_mode(processor)
    body = reply_of(processor.all_modes(request(NoHeader()))).body_bytes
    modes = MessageRequestModeSerializeWrapper.decode(body).message_request_mode_map
    assert modes["T"]["g"].mode == "PULL"


def test_modes_that_cannot_be(parts: Parts, processor: AssignmentProcessor) -> None:
    with refused(ResponseCode.NO_PERMISSION, "retry topic is not allowed to set mode"):
        set_mode(processor, topic="%RETRY%g")
    with refused(ResponseCode.TOPIC_NOT_EXIST, "topic[U] not exist"):
        set_mode(processor, topic="U")
    with refused(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST):
        set_mode(processor, consumer_group="a b")


@pytest.mark.parametrize(
    ("share", "expected"),
    [
        (0, [("a", -1), ("b", -1)]),
        (-1, [("a", -1), ("b", -1)]),
        (2, [("a", -1), ("b", -1)]),  # with all others
        (1, [("a", 0), ("a", 1), ("b", 0)]),
    ],
)
def test_a_group_that_pops(
    processor: AssignmentProcessor, share: int, expected: list[tuple[str, int]]
) -> None:
    """It has queues of its own and of the next ones, or all, which -1 stands for."""
    set_mode(processor, mode="POP", pop_share_queue_num=share)
    found = assigned(processor, mode="POP") or []
    assert [(queue.broker_name, queue.queue_id) for queue in found] == expected
    retry = assigned(processor, topic="%RETRY%g")
    assert [queue.queue_id for queue in retry or ()] == [0, 1]


def test_more_clients_than_queues(parts: Parts, processor: AssignmentProcessor) -> None:
    for name in ("c4", "c5", "c6"):
        parts.consumer("g", name, "T")
    set_mode(processor, mode="POP", pop_share_queue_num=1)
    found = [assigned(processor, mode="POP", client_id=f"c{n}") for n in range(1, 7)]
    assert [len(each or ()) for each in found] == [1] * 6
    assert {queue for each in found for queue in each or ()} == set(QUEUES)
    assert assigned(processor, mode="POP", client_id="stranger") == []


def test_a_light_queue_is_here_alone(parts: Parts, processor: AssignmentProcessor) -> None:
    assert assigned(processor, topic="%LMQ%a") is None, "they are not served"
    topics = parts.topics
    topics.get = topics._get
    assert assigned(processor, topic="%LMQ%a") == [
        MessageQueue("%LMQ%a", parts.config.broker_name, 0)
    ]
