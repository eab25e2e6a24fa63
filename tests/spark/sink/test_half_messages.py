# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.spark.live.fakes import Outcome, lost_connection
from tests.spark.sink.conftest import HALF_BYTES, StoringWorld
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.codes import STORED, ResponseCode
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.message.message import Message, MessageQueue
from txrocketmq.remoting.protocol.transaction import COMMITTED, END_TRANSACTION, ROLLED_BACK
from txrocketmq.spark.arrow.errors import ClusterError, SparkSourceError
from txrocketmq.spark.live.wire.send import start_send
from txrocketmq.spark.live.wire.transaction import Decision, HalfMessage, half_message, half_parcel
from txrocketmq.spark.sink import half_messages as module
from txrocketmq.spark.sink.half_messages import HalfMessages, end_all

OFFSETS = st.integers(0, (1 << 63) - 1)
HALVES = st.builds(
    HalfMessage,
    st.sampled_from(("T", "U")),
    st.sampled_from(("a", "b")),
    OFFSETS,
    OFFSETS,
    st.binary(min_size=16, max_size=16).map(lambda key: key.hex().upper()),
)


@given(st.lists(HALVES, max_size=50))
def test_they_travel_as_they_are(halves: list[HalfMessage]) -> None:
    kept = HalfMessages()
    for half in halves:
        kept.add(half)
    travelled = pickle.loads(pickle.dumps(kept))  # noqa: S301 - our own
    assert list(travelled) == halves
    assert len(travelled) == len(halves)
    assert travelled.topics == {half.topic for half in halves}


def test_they_travel_light() -> None:
    kept = HalfMessages()
    for number in range(1000):
        kept.add(HalfMessage("T", "a", 1 << 40, 1 << 30, f"{number:032X}"))
    assert len(pickle.dumps(kept)) < 37_000


def test_a_task_keeps_no_more_than_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_HALF_MESSAGES", 2)
    kept = HalfMessages()
    half = HalfMessage("T", "a", 0, 0, "00" * 16)
    kept.add(half)
    kept.add(half)
    with pytest.raises(SparkSourceError, match="more than 2 rows.*transactional.*repartition"):
        kept.add(half)


def prepared(world: StoringWorld, *counts: int) -> list[HalfMessages]:
    """Tasks that have sent so many half messages, to both brokers in turn."""
    cluster = world.cluster()
    cluster.route("T")
    tasks = []
    for count in counts:
        tasks.append(HalfMessages())
        for number in range(count):
            queue = MessageQueue("T", "ab"[number % 2], number % 4)
            key = f"{len(world.halves):032X}"
            message = Message("T", b"%d" % len(world.halves), 0, {"UNIQ_KEY": key})
            parcel = half_parcel(message, "g")
            sent = start_send(cluster, queue, parcel, producer_group="g").wait(STORED)
            tasks[-1].add(half_message(queue, sent, key))
    return tasks


def end(
    world: StoringWorld,
    tasks: list[HalfMessages],
    decision: Decision = Decision.COMMIT,
    attempts: int = 3,
) -> None:
    """As the driver does, that has asked nobody yet."""
    end_all(world.cluster(), tasks, decision, producer_group="g", attempts=attempts)


def refuse(world: StoringWorld, outcomes: dict[int, list[Outcome]]) -> None:
    """What the decisions on some half messages meet, by their number, one after the other."""

    def fail(address: str, call: Any, header: Any) -> Outcome | None:
        if call is not END_TRANSACTION:
            return None
        waiting = outcomes.get(header.commit_log_offset // HALF_BYTES)
        return waiting.pop(0) if waiting else None

    world.fail = fail


def test_all_are_committed_the_first_of_each_task_before_the_others(
    world: StoringWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "QUESTIONS_AT_ONCE", 3)
    tasks = prepared(world, 4, 0, 2, 1)
    assert not world.bodies
    end(world, tasks)
    assert world.bodies == [b"0", b"4", b"6", b"1", b"2", b"3", b"5"]
    assert not world.pauses


def test_what_is_rolled_back_is_never_seen(world: StoringWorld) -> None:
    end(world, prepared(world, 4, 2), Decision.ROLLBACK)
    assert sorted(world.ended) == [(number, 12) for number in range(6)]
    assert not world.bodies


def test_nothing_to_end_asks_nobody(world: StoringWorld) -> None:
    end(world, [HalfMessages()])
    assert not world.asked


@pytest.mark.parametrize(
    "outcome",
    [
        lost_connection(),
        Reply(code=ResponseCode.SYSTEM_BUSY),
        Reply(code=ResponseCode.SLAVE_NOT_AVAILABLE),
    ],
)
def test_what_may_pass_is_tried_again(world: StoringWorld, outcome: Outcome) -> None:
    tasks = prepared(world, 5)
    refuse(world, {2: [outcome, outcome]})
    end(world, tasks)
    assert sorted(world.bodies) == [b"0", b"1", b"2", b"3", b"4"]
    assert world.pauses == [0.5, 1.0]


def _ended_already(remark: str) -> Reply[NoHeader]:
    return Reply(code=ResponseCode.SYSTEM_ERROR, remark=remark)


@pytest.mark.parametrize("decision", Decision)
def test_what_was_committed_already_is_done(world: StoringWorld, decision: Decision) -> None:
    """As when the answer to a commit was lost, or a write fails after some commits."""
    tasks = prepared(world, 3)
    refuse(world, {1: [_ended_already(COMMITTED)]})
    end(world, tasks, decision)
    assert sorted(number for number, _ in world.ended) == [0, 2]


def test_what_was_rolled_back_already_is_not_committed(world: StoringWorld) -> None:
    tasks = prepared(world, 3)
    refuse(world, {1: [_ended_already(ROLLED_BACK)] * 4})
    with pytest.raises(ClusterError, match="2 of 3 messages were committed.*it was rolled back"):
        end(world, tasks)
    end(world, tasks, Decision.ROLLBACK)


def test_a_commit_in_part_says_so(world: StoringWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "QUESTIONS_AT_ONCE", 3)
    tasks = prepared(world, 10)
    unknown = Reply[Any](code=ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark="request type 37")
    refuse(world, {5: [unknown], 6: [lost_connection()]})
    with pytest.raises(
        ClusterError,
        match="5 of 10 messages were committed and are delivered, the others are not, perhaps but"
        " for 1 that brokers did not answer for: .*request type 37",
    ):
        end(world, tasks)
    assert len(world.bodies) == 5
    assert not world.pauses, "no use in trying"


def test_a_rollback_in_part_says_so(world: StoringWorld) -> None:
    tasks = prepared(world, 3)
    refuse(world, {1: [lost_connection()]})
    with pytest.raises(ClusterError, match="2 of 3 half messages were rolled back, the others sta"):
        end(world, tasks, Decision.ROLLBACK, attempts=1)
    assert not world.bodies


def test_without_name_servers_nothing_is_committed(world: StoringWorld) -> None:
    tasks = prepared(world, 3)
    world.down = {"10.0.0.1:9876"}
    with pytest.raises(ClusterError, match="0 of 3 messages were committed.*no name server"):
        end(world, tasks)


def test_a_topic_so_new_that_it_has_no_route(world: StoringWorld) -> None:
    tasks = prepared(world, 2)
    for broker in world.brokers.values():
        broker.fill("TBW102", [0] * 8)
        broker.queues = {place: its for place, its in broker.queues.items() if place[0] != "T"}
    end(world, tasks)
    assert world.bodies == [b"0", b"1"]
    assert not world.pauses
