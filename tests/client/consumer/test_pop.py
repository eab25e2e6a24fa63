# SPDX-License-Identifier: Apache-2.0
"""The pop consumer, with brokers that answer as told."""

from __future__ import annotations

from typing import Any

import pytest

from tests.client.fakes import BROKER_A, BROKER_B, Scene, a_route, refusal, result_of, started
from txrocketmq.client.base.config import TRACE_TOPIC, ClientConfig
from txrocketmq.client.base.errors import (
    MessageIllegal,
    MQBrokerError,
    NoRoute,
    NotRunning,
    PopNotSupported,
)
from txrocketmq.client.consumer.config import ConsumeFrom, PopConsumerConfig
from txrocketmq.client.consumer.listening.hooks import ConsumeHookContext, ConsumeReturnType
from txrocketmq.client.consumer.pop import PopConsumer
from txrocketmq.client.core.trace import SubAfter, decode_records
from txrocketmq.remoting.call import PendingReply, Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import ConnectError
from txrocketmq.remoting.message.message import MessageExt, encode_message
from txrocketmq.remoting.protocol import heartbeat, pop, send
from txrocketmq.remoting.protocol.body.heartbeat import HeartbeatData
from txrocketmq.remoting.protocol.body.pop import BatchAckMessageRequestBody
from txrocketmq.remoting.protocol.pop import (
    ChangeInvisibleTimeResponseHeader,
    NotificationResponseHeader,
    PopMessageResponseHeader,
)
from txrocketmq.remoting.protocol.send import SendMessageResponseHeader


def popped(*offsets: int, tags: str = "a", revive: int = 0) -> Reply[Any]:
    body = b"".join(
        encode_message(MessageExt("T", b"m%d" % n, properties={"TAGS": tags}, queue_offset=n))
        for n in offsets
    )
    header = PopMessageResponseHeader(
        pop_time=1_000,
        invisible_time=60_000,
        revive_qid=revive,
        rest_num=0,
        start_offset_info=f"0 0 {offsets[0]}",
        msg_offset_info=f"0 0 {','.join(map(str, offsets))}",
    )
    return Reply(header, body)


EMPTY: Reply[Any] = Reply(
    PopMessageResponseHeader(pop_time=0, invisible_time=0, revive_qid=0, rest_num=0),
    code=ResponseCode.POLLING_TIMEOUT,
)


class Group:
    """A consumer of T at one broker or two; `answers` are those of pops, by address."""

    def __init__(
        self, brokers: int = 1, config: PopConsumerConfig | None = None, **settings: Any
    ) -> None:
        self.scene = Scene()
        names = ["broker-a", "broker-b"][:brokers]
        self.scene.routes["T"] = a_route(dict.fromkeys(names, 2))
        self.answers: dict[str, list[Any]] = {BROKER_A: [], BROKER_B: []}
        self.told: list[PendingReply] = []
        on = self.scene.connections.on
        for address in (BROKER_A, BROKER_B):
            on(address, heartbeat.HEART_BEAT, Reply())
            on(address, heartbeat.UNREGISTER_CLIENT, Reply())
            on(address, pop.POP_MESSAGE, self._pop)
            on(address, pop.NOTIFICATION, self._notify)
            on(address, pop.ACK_MESSAGE, Reply())
            on(address, pop.BATCH_ACK_MESSAGE, Reply())
            on(
                address,
                pop.CHANGE_MESSAGE_INVISIBLETIME,
                Reply(
                    ChangeInvisibleTimeResponseHeader(
                        pop_time=2_000, invisible_time=5, revive_qid=1
                    )
                ),
            )
        subscriptions = settings.pop("subscriptions", {"T": "a"})
        self.consumer = PopConsumer(
            self.scene.client, "g", subscriptions, config=config, **settings
        )

    def start(self) -> PopConsumer:
        result_of(self.consumer.start())
        return self.consumer

    def _pop(self, address: str, *_: Any) -> Any:
        return self.answers[address].pop(0) if self.answers[address] else EMPTY

    def _notify(self, *_: Any) -> PendingReply:
        self.told.append(PendingReply())
        return self.told[-1]

    def asked(self, call: Any) -> list[Any]:
        return [header for _, header in self.scene.connections.questions(call)]


def test_it_takes_messages_as_it_is_set() -> None:
    config = PopConsumerConfig(batch_size=5, invisible_ms=7_000, wait_ms=3_000)
    group = Group(config=config)
    group.answers[BROKER_A] = [popped(3, 4)]
    messages = result_of(group.start().receive())
    assert [each.body for each in messages] == [b"m3", b"m4"]
    (header,) = group.asked(pop.POP_MESSAGE)
    assert (header.topic, header.consumer_group, header.queue_id) == ("T", "g", -1)
    assert (header.max_msg_nums, header.invisible_time, header.poll_time) == (5, 7_000, 3_000)
    assert (header.exp_type, header.exp, header.init_mode) == ("TAG", "a", 0)
    assert (header.order, header.attempt_id) == (False, None)


def test_in_order_and_from_the_last_message_on() -> None:
    config = PopConsumerConfig(consume_from=ConsumeFrom.LAST_OFFSET)
    group = Group(config=config, orderly=True)
    group.answers[BROKER_A] = [popped(3, revive=999)] * 2
    consumer = group.start()
    result_of(consumer.receive(1, 2_000, wait_ms=0))
    result_of(consumer.receive(1, 2_000, wait_ms=0))
    first, second = group.asked(pop.POP_MESSAGE)
    assert (first.order, first.init_mode, first.max_msg_nums, first.poll_time) == (True, 1, 1, 0)
    assert first.attempt_id != second.attempt_id


def test_nothing_in_time_is_no_message() -> None:
    group = Group()
    assert result_of(group.start().receive(wait_ms=0)) == []
    assert len(group.asked(pop.POP_MESSAGE)) == 1


def test_a_broker_that_does_not_hold_the_question_is_not_asked_in_a_busy_loop() -> None:
    group = Group()
    full = Reply(EMPTY.header, code=ResponseCode.POLLING_FULL)
    group.answers[BROKER_A] = [full] * 99
    done: list[Any] = []
    started(group.start().receive(wait_ms=3_000)).addBoth(done.append)
    group.scene.time.pump([0.1] * 35)
    assert done == [[]]
    assert len(group.asked(pop.POP_MESSAGE)) <= 5


def test_several_brokers_have_turns_and_tell_when_they_have_something() -> None:
    group = Group(brokers=2)
    consumer = group.start()
    done: list[Any] = []
    started(consumer.receive(wait_ms=9_000)).addBoth(done.append)
    assert [header.poll_time for header in group.asked(pop.POP_MESSAGE)] == [0, 0]
    assert [header.poll_time for header in group.asked(pop.NOTIFICATION)] == [9_000, 9_000]
    group.answers[BROKER_B] = [popped(1), popped(2)]
    group.told[0].resolve(Reply(NotificationResponseHeader(has_msg=True)))
    group.scene.time.advance(0)
    ((message,),) = done
    assert (message.body, message.broker_name) == (b"m1", "broker-b")
    group.answers[BROKER_A] = [popped(5), popped(6)]
    brokers = [result_of(consumer.receive(wait_ms=0))[0].broker_name for _ in range(2)]
    assert sorted(map(str, brokers)) == ["broker-a", "broker-b"]


def test_one_broker_that_fails_does_not_keep_the_messages_of_the_other() -> None:
    group = Group(brokers=2)
    group.answers = {BROKER_A: [ConnectError("gone")] * 2, BROKER_B: [popped(1), EMPTY]}
    consumer = group.start()
    assert len(result_of(consumer.receive(wait_ms=0))) == 1
    assert result_of(consumer.receive(wait_ms=0)) == []


def test_an_error_of_all_is_raised() -> None:
    group = Group(brokers=2)
    group.answers = {BROKER_A: [ConnectError("a is gone")], BROKER_B: [ConnectError("b is gone")]}
    with pytest.raises(ConnectError):
        result_of(group.start().receive())


def test_a_broker_of_4_x_is_told_by_a_type_of_its_own() -> None:
    group = Group()
    group.answers[BROKER_A] = [refusal(ResponseCode.REQUEST_CODE_NOT_SUPPORTED)]
    with pytest.raises(PopNotSupported, match=r"has no POP, which came with 5\.0: use a Push"):
        result_of(group.start().receive())


def test_what_nobody_wants_is_acknowledged() -> None:
    group = Group()
    group.answers[BROKER_A] = [popped(3, tags="b")]
    assert result_of(group.start().receive(wait_ms=0)) == []
    assert [header.offset for header in group.asked(pop.ACK_MESSAGE)] == [3]


def test_one_is_acknowledged_by_itself_and_many_together() -> None:
    group = Group(brokers=2)
    group.answers = {BROKER_A: [popped(3, 4)], BROKER_B: [popped(5)]}
    consumer = group.start()
    messages = result_of(consumer.receive(wait_ms=0)) + result_of(consumer.receive(wait_ms=0))
    by_offset = {each.queue_offset: each for each in messages}
    result_of(consumer.ack(by_offset[5]))
    ((address, header),) = group.scene.connections.questions(pop.ACK_MESSAGE)
    assert (address, header.offset) == (BROKER_B, 5)
    result_of(consumer.ack(messages))
    bodies = {
        address: BatchAckMessageRequestBody.decode(body)
        for address, call, _, body, _ in group.scene.connections.asked
        if call is pop.BATCH_ACK_MESSAGE
    }
    offsets = {
        address: ack.offsets(ack.within(0, 2**62))
        for address, body in bodies.items()
        for ack in body.acks[:1]
    }
    assert offsets == {BROKER_A: [3, 4], BROKER_B: [5]}
    result_of(consumer.ack([]))
    with pytest.raises(MessageIllegal):
        result_of(consumer.ack(MessageExt("T", b"x")))


def test_a_message_is_hidden_anew_and_has_another_handle() -> None:
    group = Group(config=PopConsumerConfig(invisible_ms=7_000))
    group.answers[BROKER_A] = [popped(3)]
    consumer = group.start()
    (message,) = result_of(consumer.receive(wait_ms=0))
    result_of(consumer.change_invisible_time(message, 90_000))
    result_of(consumer.renew(message))
    hidden = group.asked(pop.CHANGE_MESSAGE_INVISIBLETIME)
    assert [header.invisible_time for header in hidden] == [90_000, 7_000]
    assert [header.extra_info.split(" ")[1] for header in hidden] == ["1000", "2000"]
    group.scene.connections.on(
        BROKER_A, pop.CHANGE_MESSAGE_INVISIBLETIME, refusal(ResponseCode.NO_MESSAGE)
    )
    with pytest.raises(MQBrokerError, match="NO_MESSAGE"):
        result_of(consumer.renew(message))


def test_the_iterator_acknowledges_the_last_when_it_is_asked_for_the_next() -> None:
    group = Group(config=PopConsumerConfig(invisible_ms=7_000))
    group.answers[BROKER_A] = [popped(3, 4, 5), popped(6)]
    consumer = group.start()
    assert [result_of(consumer.__anext__()).queue_offset for _ in range(2)] == [3, 4]
    assert [header.offset for header in group.asked(pop.ACK_MESSAGE)] == [3]
    group.scene.time.advance(7)  # 5 is not hidden any more: somebody else may have it
    assert result_of(consumer.__anext__()).queue_offset == 6
    assert [header.offset for header in group.asked(pop.ACK_MESSAGE)] == [3, 4]
    result_of(consumer.stop())
    with pytest.raises(StopAsyncIteration):
        result_of(consumer.__anext__())


def test_it_is_a_member_from_the_start_to_the_end() -> None:
    group = Group()
    consumer = group.consumer
    with pytest.raises(NotRunning):
        result_of(consumer.receive())
    group.start()
    (beat,) = (body for _, call, _, body, _ in group.scene.connections.asked
               if call is heartbeat.HEART_BEAT)  # fmt: skip
    (data,) = HeartbeatData.decode(beat).consumer_data_set
    assert (data.group_name, data.consume_type) == ("g", "CONSUME_ACTIVELY")
    assert [each.topic for each in data.subscription_data_set] == ["T"]
    result_of(consumer.stop())
    assert len(group.asked(heartbeat.UNREGISTER_CLIENT)) == 1
    result_of(consumer.stop())
    with pytest.raises(NotRunning):
        result_of(consumer.receive())


def test_the_end_lets_go_who_waits() -> None:
    group = Group(brokers=2)
    consumer = group.start()
    done: list[Any] = []
    started(consumer.receive()).addErrback(lambda failure: done.append(failure.type))
    result_of(consumer.stop())
    assert done == [NotRunning]


def test_topics_come_and_go() -> None:
    group = Group(subscriptions={})
    consumer = group.start()
    with pytest.raises(NoRoute, match="subscribe to topics"):
        result_of(consumer.receive())
    result_of(consumer.subscribe("T", "b"))
    group.answers[BROKER_A] = [popped(1, tags="b")]
    assert len(result_of(consumer.receive(wait_ms=0))) == 1
    result_of(consumer.subscribe("U"))
    assert consumer._missing
    result_of(consumer.unsubscribe("U"))
    assert not consumer._missing
    result_of(consumer.unsubscribe("T"))
    with pytest.raises(NoRoute):
        result_of(consumer.receive())


def test_it_waits_for_a_topic_that_no_broker_has_yet() -> None:
    group = Group()
    route = group.scene.routes.pop("T")
    group.answers[BROKER_A] = [popped(1)]
    consumer = group.start()
    assert result_of(consumer.receive(wait_ms=0)) == []
    receiving = started(consumer.receive(wait_ms=3_000))
    group.scene.time.advance(1)
    assert not receiving.called
    group.scene.routes["T"] = route
    group.scene.time.advance(1)
    assert len(result_of(receiving)) == 1
    group.scene.routes.clear()


def test_a_consumer_that_stops_waits_for_no_topic() -> None:
    group = Group()
    group.scene.routes.clear()
    consumer = group.start()
    receiving = started(consumer.receive(wait_ms=500))
    group.scene.time.advance(0.5)
    assert result_of(receiving) == []
    receiving = started(consumer.receive(wait_ms=60_000))
    result_of(consumer.stop())
    with pytest.raises(NotRunning):
        result_of(receiving)


def test_what_is_missing_does_not_hold_up_what_is_there() -> None:
    group = Group(subscriptions={"T": "*", "U": "*"})
    group.answers[BROKER_A] = [PendingReply()]
    consumer = group.start()
    receiving = started(consumer.receive(wait_ms=15_000))
    (header,) = group.asked(pop.POP_MESSAGE)
    assert header.poll_time == 1_000, "so that the other one is soon asked for again"
    receiving.addErrback(lambda _: None).cancel()


@pytest.mark.parametrize(("arguments", "named"), [((0,), {}), ((33,), {}), ((), {"wait_ms": -1})])
def test_what_cannot_be_asked_for_is_told(arguments: Any, named: Any) -> None:
    with pytest.raises(ValueError, match="must"):
        result_of(Group().start().receive(*arguments, **named))


def test_administrators_are_told_how_it_is_set() -> None:
    consumer = Group(config=PopConsumerConfig(batch_size=3)).start()
    info = consumer.running_info(with_stacks=False)
    assert info.properties["popBatchNums"] == "3"
    assert [each.topic for each in info.subscription_set] == ["T"]
    assert info.jstack is None
    assert consumer.offset_table("T") == {}
    assert result_of(consumer.consume_directly(MessageExt("T", b""), None)) is None
    result_of(consumer.reset_offsets("T", {}))
    consumer.group_changed()


def test_another_consumer_of_the_group_is_refused() -> None:
    group = Group()
    group.start()
    other = PopConsumer(group.scene.client, "g", {"T": "*"})
    with pytest.raises(ValueError, match="has a consumer of the group g"):
        result_of(other.start())
    assert isinstance(group.scene.client.config, ClientConfig)


class Hook:
    """How what it saw ended."""

    def __init__(self) -> None:
        self.before: list[bytes] = []
        self.after: list[tuple[bytes, ConsumeReturnType | None]] = []

    def before_consume(self, context: ConsumeHookContext) -> None:
        self.before += [each.body for each in context.messages]

    def after_consume(self, context: ConsumeHookContext) -> None:
        self.after += [(each.body, context.return_type) for each in context.messages]


def test_a_hook_sees_what_is_given_and_what_becomes_of_it() -> None:
    group, hook = Group(), Hook()
    group.consumer.add_consume_hook(hook)
    group.answers[BROKER_A] = [popped(3, 4, 5, 6)]
    messages = result_of(group.start().receive())
    assert (hook.before, hook.after) == ([b"m3", b"m4", b"m5", b"m6"], [])
    refused = refusal(ResponseCode.SYSTEM_ERROR, "busy")
    group.scene.connections.on(BROKER_A, pop.ACK_MESSAGE, refused)
    with pytest.raises(MQBrokerError):
        result_of(group.consumer.ack(messages[0]))
    assert hook.after == []  # it can be acknowledged again
    group.scene.connections.on(BROKER_A, pop.ACK_MESSAGE, Reply())
    result_of(group.consumer.ack(messages[0]))
    result_of(group.consumer.ack(each for each in messages[1:2]))
    success = ConsumeReturnType.SUCCESS
    assert hook.after == [(b"m3", success), (b"m4", success)]
    result_of(group.consumer.renew(messages[2]))
    result_of(group.consumer.change_invisible_time(messages[3], 2_000))
    group.scene.time.pump([1.0] * 5)
    assert hook.after[2:] == [(b"m6", ConsumeReturnType.TIME_OUT)]
    result_of(group.consumer.stop())
    assert hook.after[3:] == [(b"m5", ConsumeReturnType.FAILED)]


def test_a_hook_sees_what_the_iterator_gives_one_by_one() -> None:
    group, hook = Group(), Hook()
    group.consumer.add_consume_hook(hook)
    group.answers[BROKER_A] = [popped(3, 4)]
    consumer = group.start()
    result_of(consumer.__anext__())
    assert (hook.before, hook.after) == ([b"m3"], [])
    result_of(consumer.__anext__())
    assert (hook.before, hook.after) == ([b"m3", b"m4"], [(b"m3", ConsumeReturnType.SUCCESS)])
    result_of(consumer.stop())


def test_what_is_popped_leaves_traces() -> None:
    group = Group(config=PopConsumerConfig(enable_trace=True))
    group.scene.routes[TRACE_TOPIC] = a_route({"broker-a": 1})
    stored = Reply(SendMessageResponseHeader(msg_id="O", queue_id=0, queue_offset=7))
    group.scene.connections.on(BROKER_A, send.SEND_MESSAGE_V2, stored)
    group.answers[BROKER_A] = [popped(3, 4)]
    first, _ = result_of(group.start().receive())
    result_of(group.consumer.ack(first))
    result_of(group.consumer.stop())
    bodies = [
        body
        for _, call, header, body, _ in group.scene.connections.asked
        if call is send.SEND_MESSAGE_V2 and header.topic == TRACE_TOPIC
    ]
    records = decode_records(b"".join(bodies).decode())
    assert [each.word for each in records] == ["SubBefore"] * 2 + ["SubAfter"] * 2
    ends = [each for each in records if isinstance(each, SubAfter)]
    assert [(each.success, each.context_code) for each in ends] == [(True, 0), (False, 4)]
