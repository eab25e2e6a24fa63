# SPDX-License-Identifier: Apache-2.0
"""Messages in transactions: both phases, and the broker's questions."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.defer import Deferred

from tests.client.fakes import BROKER_A, Scene, a_route, refusal, result_of, started
from txrocketmq.client.base.errors import SendFailed
from txrocketmq.client.producer.send_result import TransactionStatus
from txrocketmq.client.producer.transaction import MAX_CHECKS, TransactionProducer
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.ids import Host, encode_message_id
from txrocketmq.remoting.message.message import Message, MessageExt
from txrocketmq.remoting.message.properties import decode_properties
from txrocketmq.remoting.protocol import heartbeat, send, transaction
from txrocketmq.remoting.protocol.body.heartbeat import HeartbeatData
from txrocketmq.remoting.protocol.send import SendMessageResponseHeader
from txrocketmq.remoting.protocol.transaction import CheckTransactionStateRequestHeader

COMMIT, ROLLBACK, UNKNOWN = TransactionStatus
OFFSET_ID = encode_message_id(Host("10.0.1.1", 10911), 1234)
STORED = SendMessageResponseHeader(msg_id=OFFSET_ID, queue_id=0, queue_offset=7, transaction_id="X")
CHECK = CheckTransactionStateRequestHeader(
    topic="T", tran_state_table_offset=5, commit_log_offset=6, transaction_id="X"
)


@pytest.fixture
def one(scene: Scene) -> Scene:
    scene.routes["T"] = a_route({"broker-a": 1})
    scene.connections.on(BROKER_A, send.SEND_MESSAGE_V2, Reply(STORED))
    return scene


def producer_of(scene: Scene, check: Any = lambda message: COMMIT, **named: Any) -> Any:
    return TransactionProducer(scene.client, "g", check, **named)


def ends(scene: Scene) -> list[Any]:
    return [
        header for _, call, header, _ in scene.connections.told
        if call is transaction.END_TRANSACTION
    ]  # fmt: skip


def test_brokers_can_ask_before_anything_was_sent(scene: Scene) -> None:
    """One that was started anew answers for what it did before, as with the client of 4.9.7."""
    scene.routes["TBW102"] = a_route({"broker-a": 1})
    producer = producer_of(scene)
    result_of(producer.start())
    ((address, told),) = [
        (address, HeartbeatData.decode(body))
        for address, call, _, body, _ in scene.connections.asked
        if call is heartbeat.HEART_BEAT
    ]
    assert address == BROKER_A
    assert [each.group_name for each in told.producer_data_set] == ["g"]
    result_of(producer.shutdown())


def test_it_starts_where_no_broker_creates_topics(scene: Scene) -> None:
    producer = producer_of(scene)
    result_of(producer.start())
    result_of(producer.shutdown())


@pytest.mark.parametrize(
    ("status", "decision"), [(COMMIT, 0x8), (ROLLBACK, 0xC), (UNKNOWN, 0), (None, 0)]
)
def test_both_phases(one: Scene, status: TransactionStatus | None, decision: int) -> None:
    executed: list[Any] = []

    def execute(message: Message, argument: Any) -> Any:
        executed.append((message.transaction_id, argument))
        return status

    message = Message("T", b"x", properties={"DELAY": "3"})
    result = result_of(producer_of(one).send_in_transaction(message, execute, 5))
    ((_, header),) = one.connections.questions(send.SEND_MESSAGE_V2)
    own = decode_properties(header.properties)
    assert (own["TRAN_MSG"], own["PGROUP"]) == ("true", "g")
    assert "DELAY" not in own
    assert header.sys_flag == MessageSysFlag.TRANSACTION_PREPARED_TYPE
    assert executed == [(message.unique_key, 5)]
    assert result.status is (status or UNKNOWN)
    (end,) = ends(one)
    assert (end.commit_or_rollback, end.from_transaction_check) == (decision, False)
    assert (end.commit_log_offset, end.tran_state_table_offset) == (1234, 7)
    assert (end.msg_id, end.transaction_id, end.producer_group) == (message.unique_key, "X", "g")


def test_a_local_transaction_that_fails_is_undecided(one: Scene) -> None:
    def execute(message: Message, argument: Any) -> TransactionStatus:
        raise LookupError("no such order")

    result = result_of(producer_of(one).send_in_transaction(Message("T", b"x"), execute))
    assert result.status is UNKNOWN
    assert isinstance(result.error, LookupError)
    assert ends(one)[0].commit_or_rollback == 0


def test_one_that_says_something_else_is_undecided(one: Scene) -> None:
    done = result_of(producer_of(one).send_in_transaction(Message("T", b"x"), lambda m, a: True))
    assert isinstance(done.error, TypeError)


def test_it_may_take_its_time(one: Scene) -> None:
    answer: Deferred[TransactionStatus] = Deferred()
    sending = started(
        producer_of(one).send_in_transaction(Message("T", b"x"), lambda message, _: answer)
    )
    assert ends(one) == []
    answer.callback(COMMIT)
    assert result_of(sending).status is COMMIT


def test_a_half_message_that_is_not_safe_is_rolled_back(one: Scene) -> None:
    one.connections.on(BROKER_A, send.SEND_MESSAGE_V2, Reply(STORED, code=10))
    executed: list[Any] = []
    result = result_of(
        producer_of(one).send_in_transaction(Message("T", b"x"), lambda m, a: executed.append(m))
    )
    assert (result.status, executed) == (ROLLBACK, [])
    assert ends(one)[0].commit_or_rollback == 0xC


def test_what_was_not_sent_is_not_executed(one: Scene) -> None:
    one.connections.on(BROKER_A, send.SEND_MESSAGE_V2, refusal(2))
    executed: list[Any] = []
    with pytest.raises(SendFailed):
        result_of(producer_of(one).send_in_transaction(Message("T", b"x"), executed.append))
    assert (executed, ends(one)) == ([], [])


def half() -> MessageExt:
    return MessageExt("T", b"x", properties={"UNIQ_KEY": "K", "PGROUP": "g"})


def test_the_broker_is_answered_where_it_asked_from(one: Scene) -> None:
    producer_of(one)
    found = one.client.producer_of("g")
    assert found is not None
    found.check_transaction("10.9.9.9:10911", half(), CHECK)
    ((address, _, end, _),) = one.connections.told
    assert address == "10.9.9.9:10911"
    assert (end.commit_or_rollback, end.from_transaction_check) == (0x8, True)
    assert (end.msg_id, end.commit_log_offset, end.tran_state_table_offset) == ("K", 6, 5)


def test_one_question_at_a_time_and_not_too_many(one: Scene) -> None:
    answers: list[Deferred[TransactionStatus]] = []

    def check(message: MessageExt) -> Deferred[TransactionStatus]:
        answers.append(Deferred())
        return answers[-1]

    producer = producer_of(one, check)
    for _ in range(MAX_CHECKS + 5):
        producer.check_transaction(BROKER_A, half(), CHECK)
    assert len(answers) == 1
    assert len(producer._checks) == MAX_CHECKS
    answers[0].callback(ROLLBACK)
    one.time.advance(0)
    assert len(answers) == 2
    assert ends(one)[0].commit_or_rollback == 0xC


def test_after_its_end_nobody_is_asked(one: Scene) -> None:
    producer = producer_of(one)
    result_of(producer.shutdown())
    assert one.client.producer_of("g") is None


def test_a_hook_sees_the_end(one: Scene) -> None:
    producer = producer_of(one)
    seen: list[Any] = []
    producer.add_end_transaction_hook(seen.append)
    result_of(producer.send_in_transaction(Message("T", b"x"), lambda m, a: COMMIT))
    assert (seen[0].status, seen[0].from_check) == (COMMIT, False)
