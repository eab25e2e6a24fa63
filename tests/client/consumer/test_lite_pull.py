# SPDX-License-Identifier: Apache-2.0
"""The lite pull consumer: topics or queues, poll and commit, seeking, pausing, what it watches."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest
from twisted.internet.defer import Deferred

from tests.client.consumer.fake_broker import QUEUE, Broker, found
from tests.client.fakes import BROKER_A, Scene, a_route, refusal, result_of, started
from txrocketmq.client.base.errors import (
    MessageIllegal,
    MQBrokerError,
    NotAssigned,
    NotRunning,
    OffsetIllegal,
)
from txrocketmq.client.consumer.config import LitePullConsumerConfig, MessageModel
from txrocketmq.client.consumer.lite_pull import FIRST_CHECK_MS, LitePullConsumer
from txrocketmq.client.consumer.pulling.assigned_queues import EXCEPTION_MS
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.message.message import MessageExt, MessageQueue
from txrocketmq.remoting.protocol import heartbeat, offset
from txrocketmq.remoting.protocol.pull import PullMessageResponseHeader

SECOND = MessageQueue("T", "broker-a", 1)


def consumer_of(scene: Scene, **config: Any) -> LitePullConsumer:
    return LitePullConsumer(scene.client, "g", config=LitePullConsumerConfig(**config))


def subscribed(scene: Scene, **config: Any) -> LitePullConsumer:
    consumer = consumer_of(scene, **config)
    result_of(consumer.subscribe("T"))
    result_of(consumer.start())
    return consumer


def offsets_of(messages: list[MessageExt]) -> list[int]:
    return [each.queue_offset for each in messages]


def updated(scene: Scene) -> list[tuple[int, int]]:
    """What brokers were asked to commit, with an answer."""
    asked = scene.connections.questions(offset.UPDATE_CONSUMER_OFFSET)
    return [(header.queue_id, header.commit_offset) for _, header in asked]


def test_it_gives_what_was_pulled_a_pull_at_a_time(scene: Scene, broker: Broker) -> None:
    broker.answers = [found(7, 5, 6), found(8, 7)]
    consumer = subscribed(scene)
    assert consumer.assignment == [QUEUE]
    assert offsets_of(result_of(consumer.poll())) == [5, 6]
    assert offsets_of(result_of(consumer.poll())) == [7]
    assert [header.queue_offset for header in broker.pulls()] == [5, 7, 8]
    result_of(consumer.stop())


def test_it_waits_for_a_topic_that_no_broker_has_yet(scene: Scene, broker: Broker) -> None:
    route = scene.routes.pop("T")
    broker.answers = [found(7, 5, 6)]
    consumer = subscribed(scene)
    polling = started(consumer.poll(60_000))
    scene.time.advance(5)
    assert not polling.called
    scene.routes["T"] = route
    scene.time.advance(1)
    scene.time.advance(1)
    assert offsets_of(result_of(polling)) == [5, 6]
    result_of(consumer.stop())


def test_poll_waits_for_messages_but_not_for_ever(scene: Scene, broker: Broker) -> None:
    consumer = subscribed(scene)
    polling = started(consumer.poll(1_000))
    assert not polling.called
    broker.open[0].resolve(found(6, 5))
    assert offsets_of(result_of(polling)) == [5]
    polling = started(consumer.poll(1_000))
    scene.time.advance(1)
    assert result_of(polling) == []
    with pytest.raises(ValueError, match="negative"):
        result_of(consumer.poll(-1))
    result_of(consumer.stop())


def test_a_poll_that_is_given_up_takes_nothing_along(scene: Scene, broker: Broker) -> None:
    consumer = subscribed(scene)
    polling = started(consumer.poll(1_000))
    polling.cancel()
    polling.addErrback(lambda _: None)
    broker.open[0].resolve(found(6, 5))
    assert offsets_of(result_of(consumer.poll())) == [5]
    result_of(consumer.stop())


def test_auto_commit_commits_what_earlier_polls_have_given(scene: Scene, broker: Broker) -> None:
    broker.answers = [found(7, 5, 6), found(8, 7)]
    consumer = subscribed(scene)
    result_of(consumer.poll())
    scene.time.advance(5)
    assert broker.committed() == []
    result_of(consumer.poll())
    scene.time.advance(5)
    assert broker.committed() == [(0, 7)]
    result_of(consumer.stop())
    assert broker.committed() == [(0, 7), (0, 7)]  # the last poll's messages come again


def test_a_commit_is_over_when_the_broker_knows(scene: Scene, broker: Broker) -> None:
    broker.answers = [found(7, 5, 6)]
    consumer = subscribed(scene, auto_commit=False)
    result_of(consumer.poll())
    result_of(consumer.poll(0))
    scene.time.advance(5)
    assert (broker.committed(), updated(scene)) == ([], [])
    result_of(consumer.commit())
    assert updated(scene) == [(0, 7)]
    result_of(consumer.commit({QUEUE: 6}))
    assert (updated(scene)[-1], result_of(consumer.committed(QUEUE))) == ((0, 6), 6)
    with pytest.raises(NotAssigned):
        result_of(consumer.commit({SECOND: 6}))
    no = refusal(ResponseCode.SYSTEM_ERROR, "busy")
    scene.connections.on(BROKER_A, offset.UPDATE_CONSUMER_OFFSET, no)
    with pytest.raises(MQBrokerError, match="busy"):
        result_of(consumer.commit())
    result_of(consumer.stop())


def test_what_was_committed_is_asked_of_the_broker(scene: Scene, broker: Broker) -> None:
    consumer = subscribed(scene)
    assert result_of(consumer.committed(QUEUE)) == 5
    broker.offset = None
    assert result_of(consumer.committed(QUEUE)) is None
    result_of(consumer.stop())


def test_it_goes_on_elsewhere_and_drops_what_was_pulled(scene: Scene, broker: Broker) -> None:
    broker.answers = [found(7, 5, 6)]
    consumer = subscribed(scene, auto_commit=False)
    result_of(consumer.seek(QUEUE, 3))
    assert broker.pulls()[-1].queue_offset == 3
    broker.open[0].resolve(found(9, 8))  # what was asked for before it was told
    broker.open[1].resolve(found(4, 3))
    assert offsets_of(result_of(consumer.poll(0))) == [3]
    result_of(consumer.commit())
    assert updated(scene) == [(0, 4)]
    result_of(consumer.seek_to_begin(QUEUE))
    assert broker.pulls()[-1].queue_offset == 0
    result_of(consumer.seek_to_end(QUEUE))
    assert broker.pulls()[-1].queue_offset == 90
    result_of(consumer.seek_to_time(QUEUE, 44))
    assert broker.pulls()[-1].queue_offset == 44
    result_of(consumer.commit())
    assert updated(scene)[-1] == (0, 44)
    result_of(consumer.stop())


@pytest.mark.parametrize("is_shorter", [False, True])
def test_a_topic_that_is_made_anew_is_read_from_its_first_message(
    scene: Scene, broker: Broker, is_shorter: bool
) -> None:
    broker.answers = [found(7, 5, 6)]
    consumer = subscribed(scene, auto_commit=False)
    assert offsets_of(result_of(consumer.poll(0))) == [5, 6]
    broker.earliest_ms = 1_000
    broker.answers = [found(0, code=ResponseCode.PULL_OFFSET_MOVED), found(2, 0, 1)]
    shorter = PullMessageResponseHeader(
        suggest_which_broker_id=0, next_begin_offset=4, min_offset=0, max_offset=4
    )
    broker.open[0].resolve(
        Reply(shorter, b"", ResponseCode.PULL_OFFSET_MOVED)
        if is_shorter
        else refusal(ResponseCode.TOPIC_NOT_EXIST)
    )
    scene.time.advance(EXCEPTION_MS / 1000)
    assert offsets_of(result_of(consumer.poll(0))) == [0, 1]
    result_of(consumer.commit())
    assert updated(scene) == [(0, 2)]
    result_of(consumer.stop())


def test_it_goes_only_where_messages_can_be(scene: Scene, broker: Broker) -> None:
    consumer = subscribed(scene)
    for illegal in (-1, 91):
        with pytest.raises(OffsetIllegal, match=f"from 0 to 90, {illegal} is not one"):
            result_of(consumer.seek(QUEUE, illegal))
    with pytest.raises(NotAssigned, match="the group is changing"):
        result_of(consumer.seek(SECOND, 0))
    result_of(consumer.stop())


def test_a_paused_queue_is_not_pulled(scene: Scene, broker: Broker) -> None:
    consumer = subscribed(scene)
    consumer.pause([QUEUE, SECOND])
    broker.open[0].resolve(found(6, 5))
    scene.time.advance(3)
    assert len(broker.pulls()) == 1
    assert offsets_of(result_of(consumer.poll(0))) == [5]
    consumer.resume([QUEUE])
    scene.time.advance(1)
    assert len(broker.pulls()) == 2
    result_of(consumer.stop())


@pytest.mark.parametrize(
    "limit",
    [
        {"pull_threshold_for_queue": 1},
        {"pull_threshold_size_for_queue": 1},
        {"consume_max_span": 1},
        {"pull_threshold_for_all": 9},
    ],
)
def test_while_too_much_waits_nothing_is_pulled(
    scene: Scene, broker: Broker, limit: dict[str, Any]
) -> None:
    broker.answers = [found(8, 5, 6, 7)]
    consumer = subscribed(scene, **limit)
    scene.time.advance(1)
    assert len(broker.pulls()) == 1
    result_of(consumer.poll())
    scene.time.advance(0.05)
    assert len(broker.pulls()) == 2
    result_of(consumer.stop())


def test_assigned_queues_are_nobody_elses_business(scene: Scene, broker: Broker) -> None:
    scene.routes["T"] = a_route({"broker-a": 2})
    consumer = consumer_of(scene)
    consumer.filter_assigned("T", "A || B")
    consumer.assign([QUEUE])
    result_of(consumer.start())
    assert scene.connections.questions(heartbeat.GET_CONSUMER_LIST_BY_GROUP) == []
    assert [header.subscription for header in broker.pulls()] == ["A || B"]
    consumer.assign([SECOND])
    assert (consumer.assignment, broker.pulls()[-1].queue_id) == ([SECOND], 1)
    with pytest.raises(ValueError, match="before start"):
        consumer.filter_assigned("T", "C")
    with pytest.raises(ValueError, match="at least one"):
        consumer.assign([])
    with pytest.raises(ValueError, match="either"):
        result_of(consumer.subscribe("T"))
    result_of(consumer.stop())


def test_a_subscriber_cannot_be_assigned_queues(scene: Scene, broker: Broker) -> None:
    consumer = subscribed(scene)
    with pytest.raises(ValueError, match="either"):
        consumer.assign([QUEUE])
    result_of(consumer.stop())


def test_queues_are_shared_and_changes_are_told(scene: Scene, broker: Broker) -> None:
    scene.routes["T"] = a_route({"broker-a": 2})
    told: list[tuple[str, int, list[MessageQueue]]] = []
    consumer = consumer_of(scene)
    listener = lambda topic, queues, own: told.append((topic, len(queues), list(own)))  # noqa: E731
    result_of(consumer.subscribe("T", "*", listener))
    result_of(consumer.start())
    broker.members = [scene.client.client_id, "10.0.0.9@zzz"]
    scene.client.group_changed("g")
    assert told == [("T", 2, [QUEUE, SECOND]), ("T", 2, [QUEUE])]
    assert consumer.assignment == [QUEUE]
    result_of(consumer.unsubscribe("T"))
    assert consumer.assignment == []
    result_of(consumer.stop())


def test_brokers_hear_that_it_is_active(scene: Scene, broker: Broker) -> None:
    consumer = subscribed(scene)
    (data,) = broker.beats()[0].consumer_data_set
    assert (data.consume_type, data.message_model) == ("CONSUME_ACTIVELY", "CLUSTERING")
    assert [each.topic for each in data.subscription_data_set] == ["T"]
    result_of(consumer.stop())
    left = scene.connections.questions(heartbeat.UNREGISTER_CLIENT)
    assert [header.consumer_group for _, header in left] == ["g"]


def test_a_topic_may_be_watched(scene: Scene, broker: Broker) -> None:
    told: list[int] = []

    def changed(topic: str, queues: Collection[MessageQueue]) -> None:
        told.append(len(queues))

    consumer = consumer_of(scene)
    result_of(consumer.watch_queues("T", changed))
    result_of(consumer.start())
    scene.time.advance(FIRST_CHECK_MS / 1000)
    assert told == []
    scene.routes["T"] = a_route({"broker-a": 4})
    scene.time.advance(30)
    scene.time.advance(30)
    assert told == [4]
    result_of(consumer.stop())


def test_in_broadcasting_it_has_all_queues_and_a_file(
    scene: Scene, broker: Broker, tmp_path: Path
) -> None:
    scene.routes["T"] = a_route({"broker-a": 2})
    broker.members = []
    broadcasting = {
        "message_model": MessageModel.BROADCASTING,
        "local_offset_store_dir": tmp_path,
        "auto_commit": False,
    }
    consumer = subscribed(scene, **broadcasting)
    assert consumer.assignment == [QUEUE, SECOND]
    assert [header.queue_offset for header in broker.pulls()] == [90, 90]
    broker.open[0].resolve(found(92, 91))
    result_of(consumer.poll())
    result_of(consumer.commit())
    result_of(consumer.stop())
    assert (broker.committed(), updated(scene)) == ([], [])
    again = subscribed(scene, **broadcasting)
    assert [header.queue_offset for header in broker.pulls()[-2:]] == [92, 90]
    result_of(again.stop())


def test_without_a_start_or_after_the_end_nothing_can_be_asked(
    scene: Scene, broker: Broker
) -> None:
    consumer = consumer_of(scene)
    with pytest.raises(NotRunning):
        result_of(consumer.poll())
    result_of(consumer.subscribe("T"))
    result_of(consumer.start())
    polling = started(consumer.poll())
    result_of(consumer.stop())
    assert result_of(polling) == []
    for asked in (consumer.poll(), consumer.commit(), consumer.committed(QUEUE)):
        with pytest.raises(NotRunning):
            result_of(asked)
    with pytest.raises(MessageIllegal, match="group"):
        LitePullConsumer(scene.client, "no group")


def test_messages_come_one_after_the_other_from_an_iterator(scene: Scene, broker: Broker) -> None:
    broker.answers = [found(7, 5, 6), found(8, 7)]
    consumer = subscribed(scene)
    seen: list[int] = []

    async def read() -> None:
        async for message in consumer:
            seen.append(message.queue_offset)
            if len(seen) == 3:
                return

    result_of(Deferred.fromCoroutine(read()))
    assert seen == [5, 6, 7]
    waiting = started(consumer.__anext__())
    result_of(consumer.stop())
    with pytest.raises(StopAsyncIteration):
        result_of(waiting)


def test_only_what_an_iterator_has_given_is_committed(scene: Scene, broker: Broker) -> None:
    """The rest of a pull waits, for the iterator or for `poll`."""
    broker.answers = [found(8, 5, 6, 7)]
    consumer = subscribed(scene, auto_commit=False)
    assert result_of(consumer.__anext__()).queue_offset == 5
    result_of(consumer.commit())
    assert updated(scene) == [(0, 6)]
    assert offsets_of(result_of(consumer.poll())) == [6, 7]
    result_of(consumer.commit())
    assert updated(scene)[-1] == (0, 8)
    result_of(consumer.stop())


def test_topics_may_be_given_when_it_is_made(scene: Scene, broker: Broker) -> None:
    broker.answers = [found(6, 5)]
    consumer = LitePullConsumer(scene.client, "g", {"T": "*"})
    result_of(consumer.start())
    assert offsets_of(result_of(consumer.poll())) == [5]
    (told,) = broker.beats()[-1].consumer_data_set[0].subscription_data_set
    assert (told.topic, told.sub_string) == ("T", "*")
    result_of(consumer.stop())
    with pytest.raises(MessageIllegal):
        LitePullConsumer(scene.client, "g", {"no topic": "*"})


def test_administrators_are_told_what_it_has(scene: Scene, broker: Broker) -> None:
    broker.answers = [found(7, 5, 6)]
    consumer = subscribed(scene)
    info = consumer.running_info(with_stacks=False)
    assert info.properties["PROP_CONSUME_TYPE"] == "CONSUME_ACTIVELY"
    assert (info.mq_table[QUEUE].cached_msg_count, info.jstack) == (2, None)
    assert result_of(consumer.consume_directly(MessageExt("T", b"x"), "b")) is None
    result_of(consumer.reset_offsets("T", {QUEUE: 1}))
    assert offsets_of(result_of(consumer.poll())) == [5, 6]
    result_of(consumer.poll(0))
    assert consumer.offset_table("T") == {}
    result_of(consumer.stop())
