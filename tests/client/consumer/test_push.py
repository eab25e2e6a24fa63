# SPDX-License-Identifier: Apache-2.0
"""The push consumer: which queues are its own, where it begins, what it tells the brokers."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from twisted.internet.defer import Deferred
from twisted.logger import ILogObserver, formatEvent, globalLogPublisher

from tests.client.consumer.fake_broker import QUEUE, Broker, Listener, found
from tests.client.fakes import BROKER_A, Scene, a_route, refusal, result_of, started
from txrocketmq.client.base.errors import MessageIllegal, OffsetsUnreadable
from txrocketmq.client.consumer.config import ConsumeFrom, MessageModel, PushConsumerConfig
from txrocketmq.client.consumer.listening.listener import ConsumeStatus
from txrocketmq.client.consumer.listening.troubles import BROKER_FLOW_CONTROL_MS, EXCEPTION_MS
from txrocketmq.client.consumer.pulling.pull_loops import FLOW_CONTROL_MS
from txrocketmq.client.consumer.push import PushConsumer
from txrocketmq.client.consumer.queue.first_offset import HALF_AN_HOUR_MS
from txrocketmq.remoting.call import PendingReply, Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import ConnectError
from txrocketmq.remoting.message.flags import PullSysFlag
from txrocketmq.remoting.message.message import MessageExt
from txrocketmq.remoting.protocol import heartbeat, offset, pull, send
from txrocketmq.remoting.protocol.send import SendMessageResponseHeader


def consumer_of(
    scene: Scene, listener: Any = None, expression: str = "*", **config: Any
) -> PushConsumer:
    return PushConsumer(
        scene.client,
        "g",
        {"T": expression},
        listener or Listener(),
        config=PushConsumerConfig(**config),
    )


def test_it_reads_its_queues_from_where_the_group_is(scene: Scene, broker: Broker) -> None:
    consumer = consumer_of(scene)
    result_of(consumer.start())
    assert consumer.queues == [QUEUE]
    (header,) = broker.pulls()
    assert (header.queue_offset, header.max_msg_nums, header.sys_flag) == (
        5, 32, PullSysFlag.SUSPEND,
    )  # fmt: skip
    result_of(consumer.stop())


def test_brokers_hear_what_it_wants_before_it_asks_who_else_is_there(
    scene: Scene, broker: Broker
) -> None:
    consumer = consumer_of(scene, expression="A || B")
    result_of(consumer.start())
    calls = [call for _, call, _, _, _ in scene.connections.asked]
    assert calls.index(heartbeat.HEART_BEAT) < calls.index(heartbeat.GET_CONSUMER_LIST_BY_GROUP)
    (data,) = broker.beats()[0].consumer_data_set
    assert (data.group_name, data.consume_type, data.message_model, data.consume_from_where) == (
        "g", "CONSUME_PASSIVELY", "CLUSTERING", "CONSUME_FROM_LAST_OFFSET",
    )  # fmt: skip
    assert {each.topic: each.sub_string for each in data.subscription_data_set} == {
        "T": "A || B",
        "%RETRY%g": "*",
    }
    result_of(consumer.stop())


@pytest.mark.parametrize(
    ("start", "time_ms", "first"),
    [
        (ConsumeFrom.LAST_OFFSET, None, 90),
        (ConsumeFrom.FIRST_OFFSET, None, 0),
        (ConsumeFrom.TIMESTAMP, 1234, 1234),
        (ConsumeFrom.TIMESTAMP, None, 2 * HALF_AN_HOUR_MS - HALF_AN_HOUR_MS),
    ],
)
def test_a_group_that_never_was_here_begins_where_it_is_told(
    scene: Scene, broker: Broker, start: ConsumeFrom, time_ms: int | None, first: int
) -> None:
    scene.time.advance(2 * HALF_AN_HOUR_MS / 1000)
    broker.offset = None
    consumer = consumer_of(scene, consume_from=start, consume_timestamp_ms=time_ms)
    result_of(consumer.start())
    assert [header.queue_offset for header in broker.pulls()] == [first]
    result_of(consumer.stop())


def test_what_is_consumed_is_committed_every_five_seconds_with_pulls_and_at_the_end(
    scene: Scene, broker: Broker
) -> None:
    listener = Listener()
    broker.answers = [found(7, 5, 6)]
    consumer = consumer_of(scene, listener)
    result_of(consumer.start())
    assert listener.bodies == [b"m5", b"m6"]
    header = broker.pulls()[-1]
    assert (header.queue_offset, header.commit_offset) == (7, 7)
    assert header.sys_flag == PullSysFlag.SUSPEND | PullSysFlag.COMMIT_OFFSET
    assert broker.committed() == []
    scene.time.advance(5)
    assert broker.committed() == [(0, 7)]
    result_of(consumer.stop())
    assert broker.committed() == [(0, 7), (0, 7)]
    left = scene.connections.questions(heartbeat.UNREGISTER_CLIENT)
    assert [header.consumer_group for _, header in left] == ["g"]


def test_the_queues_are_shared_with_the_other_members(scene: Scene, broker: Broker) -> None:
    scene.routes["T"] = a_route({"broker-a": 2})
    consumer = consumer_of(scene)
    result_of(consumer.start())
    assert len(consumer.queues) == 2
    broker.members = [scene.client.client_id, "10.0.0.9@zzz"]
    scene.client.group_changed("g")
    assert consumer.queues == [QUEUE]
    broker.members = [scene.client.client_id]
    scene.time.advance(20)
    assert len(consumer.queues) == 2
    result_of(consumer.stop())


def test_a_queue_that_is_given_up_commits_what_was_done_and_no_more(
    scene: Scene, broker: Broker
) -> None:
    listener = Listener()
    waiting: Deferred[None] = Deferred()
    listener.answer = waiting
    broker.answers = [found(6, 5)]
    consumer = consumer_of(scene, listener)
    result_of(consumer.start())
    broker.members = ["10.0.0.1@other"]
    scene.client.group_changed("g")
    assert consumer.queues == []
    waiting.callback(None)
    scene.time.advance(5)
    assert broker.committed() == []
    result_of(consumer.stop())


def test_what_the_listener_fails_to_consume_is_given_back(scene: Scene, broker: Broker) -> None:
    listener = Listener()
    listener.answer = ConsumeStatus.RECONSUME_LATER
    broker.answers = [found(6, 5)]
    consumer = consumer_of(scene, listener)
    result_of(consumer.start())
    ((_, header),) = scene.connections.questions(send.CONSUMER_SEND_MSG_BACK)
    assert (header.group, header.offset, header.origin_topic) == ("g", 35, "T")
    assert (header.delay_level, header.max_reconsume_times) == (0, 16)
    result_of(consumer.stop())


def test_what_the_broker_does_not_take_back_is_sent_to_the_retry_topic(
    scene: Scene, broker: Broker
) -> None:
    scene.connections.on(BROKER_A, send.CONSUMER_SEND_MSG_BACK, refusal(ResponseCode.SYSTEM_ERROR))
    stored = SendMessageResponseHeader(msg_id="m", queue_id=0, queue_offset=0)
    scene.connections.on(BROKER_A, send.SEND_MESSAGE_V2, Reply(stored))
    scene.routes["%RETRY%g"] = a_route({"broker-a": 1})
    listener = Listener()
    listener.answer = ConsumeStatus.RECONSUME_LATER
    broker.answers = [found(6, 5)]
    consumer = consumer_of(scene, listener)
    result_of(consumer.start())
    ((_, header),) = scene.connections.questions(send.SEND_MESSAGE_V2)
    properties = dict(pair.split("\x01") for pair in header.properties.split("\x02") if pair)
    assert header.topic == "%RETRY%g"
    assert properties["RETRY_TOPIC"] == "T"
    assert (properties["RECONSUME_TIME"], properties["DELAY"]) == ("1", "3")
    assert properties["MAX_RECONSUME_TIMES"] == "16"
    result_of(consumer.stop())


def test_an_offset_that_the_queue_does_not_have_is_corrected(scene: Scene, broker: Broker) -> None:
    broker.answers = [found(50, code=ResponseCode.PULL_OFFSET_MOVED)]
    broker.offset = 5
    consumer = consumer_of(scene)
    result_of(consumer.start())
    assert broker.committed() == [(0, 50)]
    assert consumer.queues == [QUEUE]  # it was begun anew
    assert len(broker.pulls()) == 2
    result_of(consumer.stop())


def test_an_empty_queue_is_committed_as_far_as_it_was_looked_through(
    scene: Scene, broker: Broker
) -> None:
    broker.answers = [found(40, code=ResponseCode.PULL_RETRY_IMMEDIATELY)]
    consumer = consumer_of(scene)
    result_of(consumer.start())
    result_of(consumer.stop())
    assert broker.committed() == [(0, 40)]


@pytest.mark.parametrize(
    ("answer", "pause_ms"),
    [
        (refusal(ResponseCode.FLOW_CONTROL), BROKER_FLOW_CONTROL_MS),
        (refusal(ResponseCode.SYSTEM_BUSY), EXCEPTION_MS),
    ],
)
def test_after_an_error_it_tries_again(
    scene: Scene, broker: Broker, answer: Any, pause_ms: int
) -> None:
    broker.answers = [answer]
    consumer = consumer_of(scene)
    result_of(consumer.start())
    assert len(broker.pulls()) == 1
    scene.time.advance(pause_ms / 1000)
    assert len(broker.pulls()) == 2
    result_of(consumer.stop())


def test_while_too_much_waits_nothing_is_pulled(scene: Scene, broker: Broker) -> None:
    listener = Listener()
    waiting: Deferred[None] = Deferred()
    listener.answer = waiting
    broker.answers = [found(8, 5, 6, 7)]
    consumer = consumer_of(scene, listener, pull_threshold_for_queue=2, consume_concurrency=1)
    result_of(consumer.start())
    assert len(broker.pulls()) == 1
    listener.answer = None
    waiting.callback(None)
    scene.time.advance(0)
    scene.time.advance(FLOW_CONTROL_MS / 1000)
    assert len(broker.pulls()) == 2
    assert listener.bodies == [b"m5", b"m6", b"m7"]
    result_of(consumer.stop())


def test_the_end_may_wait_for_listeners_but_not_for_ever(scene: Scene, broker: Broker) -> None:
    listener = Listener()
    listener.answer = Deferred()
    broker.answers = [found(6, 5)]
    consumer = consumer_of(scene, listener, await_termination_ms=500)
    result_of(consumer.start())
    stopping = started(consumer.stop())
    assert not stopping.called
    scene.time.advance(0.5)
    assert stopping.called
    assert broker.committed() == []


def test_the_end_takes_along_what_a_listener_still_does(scene: Scene, broker: Broker) -> None:
    listener = Listener()
    waiting: Deferred[None] = Deferred()
    listener.answer = waiting
    broker.answers = [found(6, 5)]
    consumer = consumer_of(scene, listener, await_termination_ms=500)
    result_of(consumer.start())
    stopping = started(consumer.stop())
    waiting.callback(None)
    scene.time.advance(0)
    assert stopping.called
    assert broker.committed() == [(0, 6)]


def test_a_group_has_one_consumer_in_a_client(scene: Scene, broker: Broker) -> None:
    consumer = consumer_of(scene)
    result_of(consumer.start())
    with pytest.raises(ValueError, match="has a consumer of the group g already"):
        result_of(consumer_of(scene).start())
    result_of(consumer.stop())
    again = consumer_of(scene)
    result_of(again.start())
    result_of(again.stop())


@pytest.mark.parametrize("model", list(MessageModel))
@pytest.mark.parametrize("is_orderly", [False, True])
def test_it_waits_for_a_topic_that_no_broker_has_yet(
    scene: Scene, broker: Broker, tmp_path: Path, model: MessageModel, is_orderly: bool
) -> None:
    route = scene.routes.pop("T")
    config = PushConsumerConfig(message_model=model, local_offset_store_dir=tmp_path)
    consumer = PushConsumer(
        scene.client, "g", {"T": "*"}, Listener(), config=config, orderly=is_orderly
    )
    result_of(consumer.start())
    scene.time.advance(60)
    assert consumer.queues == []
    scene.routes["T"] = route
    scene.time.advance(1)
    scene.time.advance(1)
    assert consumer.queues == [QUEUE]
    assert broker.beats()[0].consumer_data_set, "the broker hears of it first"
    result_of(consumer.stop())


def test_names_are_checked_at_once(scene: Scene, broker: Broker) -> None:
    with pytest.raises(MessageIllegal, match="group"):
        PushConsumer(scene.client, "no group", {"T": "*"}, Listener())
    with pytest.raises(MessageIllegal, match="topic"):
        PushConsumer(scene.client, "g", {"no topic": "*"}, Listener())


@pytest.mark.parametrize(
    "call", [heartbeat.GET_CONSUMER_LIST_BY_GROUP, offset.QUERY_CONSUMER_OFFSET]
)
def test_an_end_in_the_middle_of_rebalancing_is_silent(
    scene: Scene, broker: Broker, call: Any
) -> None:
    told: list[str] = []
    observe = cast(ILogObserver, lambda event: told.append(formatEvent(event)))
    globalLogPublisher.addObserver(observe)
    consumer = consumer_of(scene)
    answer = PendingReply()
    scene.connections.on(BROKER_A, call, answer)
    starting = started(consumer.start())
    result_of(consumer.stop())
    answer.resolve(refusal(ResponseCode.SYSTEM_ERROR))
    globalLogPublisher.removeObserver(observe)
    assert starting.called
    assert (consumer.queues, told) == ([], [])


# ------------------------------------------------------------------------------------ broadcasting


def test_in_broadcasting_everybody_has_all_queues_and_a_file(
    scene: Scene, broker: Broker, tmp_path: Path
) -> None:
    scene.routes["T"] = a_route({"broker-a": 2})
    broker.members = ["10.0.0.1@other"]
    listener = Listener()
    listener.answer = ConsumeStatus.RECONSUME_LATER
    config: dict[str, Any] = {
        "message_model": MessageModel.BROADCASTING,
        "local_offset_store_dir": tmp_path,
    }
    consumer = consumer_of(scene, listener, **config)
    result_of(consumer.start())
    assert [header.queue_offset for header in broker.pulls()] == [90, 90]
    (data,) = broker.beats()[0].consumer_data_set
    assert data.message_model == "BROADCASTING"
    assert [each.topic for each in data.subscription_data_set] == ["T"]
    broker.open[0].resolve(found(92, 91))
    assert listener.bodies == [b"m91"]
    assert broker.pulls()[-1].sys_flag == PullSysFlag.SUSPEND  # the broker keeps no offset of it
    assert scene.connections.questions(send.CONSUMER_SEND_MSG_BACK) == []
    result_of(consumer.stop())
    assert broker.committed() == []
    again = consumer_of(scene, **config)
    result_of(again.start())
    assert sorted(header.queue_offset for header in broker.pulls()[-2:]) == [90, 92]
    result_of(again.stop())


def test_a_damaged_file_of_offsets_is_an_error_at_the_start(
    scene: Scene, broker: Broker, tmp_path: Path
) -> None:
    config: dict[str, Any] = {
        "message_model": MessageModel.BROADCASTING,
        "local_offset_store_dir": tmp_path,
    }
    path = tmp_path / "10.0.0.9@DEFAULT" / "g" / "offsets.json"
    path.parent.mkdir(parents=True)
    path.write_text("{")
    with pytest.raises(OffsetsUnreadable, match="offsets.json"):
        result_of(consumer_of(scene, **config).start())


# -------------------------------------------------------------------------------------------- more


def test_changes_of_its_queues_are_told(scene: Scene, broker: Broker) -> None:
    told: list[Any] = []
    scene.routes["T"] = a_route({"broker-a": 2})
    consumer = PushConsumer(
        scene.client,
        "g",
        {"T": "*"},
        Listener(),
        queues_changed=lambda topic, queues, own: told.append((topic, len(queues), len(own))),
    )
    result_of(consumer.start())
    first = broker.beats()[-1].consumer_data_set[0].subscription_data_set
    scene.time.advance(3)
    broker.members = [scene.client.client_id, "10.0.0.9@zzz"]
    scene.client.group_changed("g")
    assert told == [("T", 2, 2), ("T", 2, 1)]
    newer = broker.beats()[-1].consumer_data_set[0].subscription_data_set
    assert [each.sub_version for each in newer if each.topic == "T"] == [3_000]
    assert [each.sub_version for each in first] == [0, 0]
    result_of(consumer.stop())


def test_topics_may_come_and_go_while_it_runs(scene: Scene, broker: Broker) -> None:
    scene.routes["U"] = a_route({"broker-a": 1})
    consumer = consumer_of(scene)
    result_of(consumer.start())
    result_of(consumer.subscribe("U", "A"))
    assert [each.topic for each in consumer.queues] == ["T", "U"]
    result_of(consumer.unsubscribe("T"))
    assert [each.topic for each in consumer.queues] == ["U"]
    topics = {each.topic for each in broker.beats()[-1].consumer_data_set[0].subscription_data_set}
    assert topics == {"U", "%RETRY%g"}
    result_of(consumer.stop())


def test_thirty_seconds_without_any_server_are_survived_in_peace(
    scene: Scene, broker: Broker
) -> None:
    listener = Listener()
    consumer = consumer_of(scene, listener)
    result_of(consumer.start())
    asked = len(scene.connections.asked)
    scene.connections.on(BROKER_A, pull.PULL_MESSAGE, ConnectError("nobody there"))
    scene.connections.on(BROKER_A, heartbeat.HEART_BEAT, ConnectError("nobody there"))
    scene.connections.on(
        BROKER_A, heartbeat.GET_CONSUMER_LIST_BY_GROUP, ConnectError("nobody there")
    )
    broker.open[0].resolve(ConnectError("nobody there"))
    for _ in range(300):
        scene.time.advance(0.1)
    assert len(scene.connections.asked) - asked < 80  # a pull and a look a second, and a few more
    assert consumer.queues == [QUEUE]
    again = Broker(scene)
    again.answers = [found(6, 5)]
    for _ in range(20):
        scene.time.advance(0.1)
    assert listener.bodies == [b"m5"]
    result_of(consumer.stop())
    assert again.committed()[-1] == (0, 6)


def in_order(scene: Scene, listener: Any = None, **config: Any) -> PushConsumer:
    return PushConsumer(
        scene.client,
        "g",
        {"T": "*"},
        listener or Listener(),
        config=PushConsumerConfig(**config),
        orderly=True,
    )


@pytest.mark.parametrize("orderly", [False, True])
def test_a_listener_may_end_the_consumer_and_what_it_has_consumed_counts(
    scene: Scene, broker: Broker, orderly: bool
) -> None:
    stopping: list[Deferred[None]] = []

    def listen(messages: list[MessageExt], _: Any) -> None:
        if messages[0].queue_offset == 6:
            stopping.append(started(consumer.stop()))

    broker.answers = [found(8, 5, 6, 7)]
    consumer = in_order(scene, listen) if orderly else consumer_of(scene, listen)
    result_of(consumer.start())
    scene.time.advance(0)
    result_of(stopping[0])
    assert broker.committed() == [(0, 7)]
