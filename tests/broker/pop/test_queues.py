# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.broker.jumps import lost_before, told_jumps
from tests.broker.pop.scene import GROUP, INVISIBLE_MS, Scene
from txrocketmq.broker.intake.inner_message import InnerMessage
from txrocketmq.broker.intake.transforms.multi_dispatch import MultiDispatch
from txrocketmq.broker.store.formats.put_message import PutStatus
from txrocketmq.broker.store.get import jumps
from txrocketmq.remoting.message.message import decode_messages
from txrocketmq.remoting.message.pop import retry_topic
from txrocketmq.remoting.protocol.body.topic import SubscriptionGroupConfig

RETRY = f"%RETRY%{GROUP}_T"


def test_all_queues_have_their_turn(scene: Scene) -> None:
    scene.parts.topic("T", 4)
    for queue_id in range(4):
        for _ in range(100):
            scene.parts.put("T", queue_id)
    first: Counter[int] = Counter()
    for _ in range(100):
        (message,) = scene.pop(max_msg_nums=1)
        first[message.stored.queue_id] += 1
    assert set(first) == {0, 1, 2, 3}
    assert max(first.values()) < 60


def test_a_pop_takes_from_many_queues(scene: Scene) -> None:
    scene.parts.topic("T", 3)
    for queue_id in (0, 1, 1, 2):
        scene.parts.put("T", queue_id, body=str(queue_id).encode())
    reply = scene.reply(max_msg_nums=3)
    assert reply.header is not None
    assert len((reply.header.start_offset_info or "").split(";")) in (2, 3)
    assert reply.header.rest_num == 1
    assert reply.header.order_count_info is None
    assert 0 <= reply.header.revive_qid < 8
    assert len(scene.pop()) == 1


def test_the_check_points_of_some_queues_are_written_together(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.parts.topic("T", 8)
    for queue_id in range(8):
        scene.parts.put("T", queue_id, body=str(queue_id).encode())
    written: list[int] = []
    take = scene.parts.intake.take

    def counted(messages: Sequence[Any], now_ms: int) -> list[PutStatus]:
        written.append(len(messages))
        return take(messages, now_ms)

    monkeypatch.setattr(scene.parts.intake, "take", counted)
    assert sorted(scene.bodies()) == [*"01234567"]
    assert written == [4, 4]
    assert scene.tags() == ["ck"] * 8


def test_a_queue_whose_check_point_is_refused_gives_nothing(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others do, and what was refused is popped the next time."""
    scene.parts.topic("T", 4)
    for queue_id in range(4):
        for body in "ab":
            scene.parts.put("T", queue_id, body=f"{queue_id}{body}".encode())
    take = scene.parts.intake.take

    def refusing(messages: Sequence[Any], now_ms: int) -> list[PutStatus]:
        found = take(messages[1:], now_ms)
        return [PutStatus.MESSAGE_ILLEGAL, *found]

    with monkeypatch.context() as context:
        context.setattr(scene.parts.intake, "take", refusing)
        reply = scene.reply()
    bodies = [each.body.decode() for each in decode_messages(reply.body_bytes)]
    assert len(bodies) == 6
    assert reply.header is not None
    assert len((reply.header.msg_offset_info or "").split(";")) == 3
    (refused,) = {*"0123"} - {body[0] for body in bodies}
    assert scene.bodies() == [f"{refused}a", f"{refused}b"]


def test_one_queue_alone(scene: Scene) -> None:
    scene.parts.topic("T", 3)
    for queue_id in range(3):
        scene.parts.put("T", queue_id, body=str(queue_id).encode())
    assert scene.bodies(queue_id=1) == ["1"]
    assert scene.bodies(queue_id=1) == []


def test_records_go_to_all_revive_queues(scene: Scene) -> None:
    found = set()
    for _ in range(16):
        scene.parts.put("T")
        (message,) = scene.pop()
        found.add(message.handle.revive_queue_id)
    assert found == set(range(8))


@pytest.mark.parametrize(
    ("init_mode", "is_young", "expected"),
    [(0, True, "ab"), (0, False, "ab"), (1, True, "ab"), (1, False, "b")],
)
def test_where_a_group_begins(scene: Scene, init_mode: int, is_young: bool, expected: str) -> None:
    scene.parts.set(init_pop_offset_by_check_msg_in_mem=is_young)
    for body in "ab":
        scene.parts.put("T", body=body.encode())
    assert scene.bodies(init_mode=init_mode) == list(expected)


def test_a_new_group_of_an_empty_queue(scene: Scene) -> None:
    assert scene.pop(init_mode=1) == []
    assert scene.offset() == 0
    scene.parts.put("T", body=b"a")
    assert scene.bodies(init_mode=1) == ["a"]


def test_filters_by_tags_and_expressions(scene: Scene) -> None:
    """What others want is passed over, and not looked at again."""
    for number in range(6):
        scene.parts.put("T", body=b"%d" % number, TAGS="ab"[number % 2], n=str(number))
    assert scene.bodies(exp="b", exp_type="TAG", max_msg_nums=2) == ["1", "3"]
    assert scene.bodies(exp="n > 4", exp_type="SQL92") == ["5"]
    for number in range(6, 10):
        scene.parts.put("T", body=b"%d" % number, TAGS="a")
    assert scene.bodies(exp="c") == []
    scene.advance()
    assert scene.offset() == 10


def test_a_message_that_comes_back_passes_the_filter(scene: Scene) -> None:
    scene.parts.put("T", body=b"a", TAGS="t", n="5")
    scene.pop(exp="t")
    scene.advance(INVISIBLE_MS + 5_000)
    assert scene.bodies(exp="u") == []
    scene.parts.put("T", body=b"b", TAGS="t", n="5")
    scene.pop(exp="t")
    scene.advance(INVISIBLE_MS + 5_000)
    assert scene.bodies(exp="n = 5", exp_type="SQL92") == ["b"]


@pytest.mark.parametrize(("odds", "expected"), [(0, "fresh"), (100, "again")])
def test_the_odds_of_the_retry_topic(tmp_path: Path, odds: int, expected: str) -> None:
    scene = Scene(tmp_path, pop_from_retry_probability=odds)
    scene.parts.put("T", body=b"again")
    scene.pop()
    scene.advance(INVISIBLE_MS + 5_000)
    scene.parts.put("T", body=b"fresh")
    assert scene.bodies(max_msg_nums=1) == [expected]
    scene.close()


def test_the_retry_topic_comes_first_as_often_as_wanted(tmp_path: Path) -> None:
    """Twenty times in a hundred, and else when nothing else is there."""
    scene = Scene(tmp_path, pop_from_retry_probability=20)
    for _ in range(100):
        scene.parts.put("T", body=b"again")
    for _ in range(4):
        scene.pop()
    scene.advance(INVISIBLE_MS + 5_000)
    for _ in range(80):
        scene.parts.put("T", body=b"fresh")
    draws = iter(range(100))
    scene.parts.pop.queues._chance = lambda _: next(draws)
    found = [scene.bodies(max_msg_nums=1) for _ in range(100)]
    assert found == [["again"]] * 20 + [["fresh"]] * 80
    scene.parts.pop.queues._chance = lambda _: 99
    assert scene.bodies(max_msg_nums=1) == ["again"]
    scene.close()


def with_priorities(scene: Scene, *priorities: int) -> None:
    """A topic of priorities, and a message of each."""
    scene.parts.topic("T", 4, message_type="PRIORITY")
    for each in priorities:
        scene.parts.put("T", each, body=b"%d" % each)


def test_high_priorities_come_first(scene: Scene) -> None:
    for _ in range(20):
        with_priorities(scene, 1, 0, 3, 1, 2)
        assert scene.bodies() == ["3", "2", "1", "1", "0"]
    with_priorities(scene, 0, 2, 1)
    assert [scene.bodies(max_msg_nums=1) for _ in range(3)] == [["2"], ["1"], ["0"]]


def test_what_comes_back_is_last(scene: Scene) -> None:
    scene.parts.set(pop_from_retry_probability=100)
    with_priorities(scene, 3)
    scene.pop()
    scene.advance(INVISIBLE_MS + 5_000)
    with_priorities(scene, 0)
    assert scene.bodies() == ["0", "3"]


def test_other_topics_know_no_priorities(scene: Scene) -> None:
    scene.parts.topic("T", 4, message_type="NORMAL")
    first: Counter[str] = Counter()
    for _ in range(100):
        for queue_id in range(4):
            scene.parts.put("T", queue_id, body=b"%d" % queue_id)
        first[scene.bodies()[0]] += 1
    assert set(first) == {"0", "1", "2", "3"}


@pytest.mark.parametrize(("factor", "first"), [("0", {"0", "1", "2", "3"}), ("100", {"3"})])
def test_how_many_pops_of_a_group_go_by_them(scene: Scene, factor: str, first: set[str]) -> None:
    group = SubscriptionGroupConfig(group_name=GROUP, attributes={"+priority.factor": factor})
    scene.parts.groups.update(group)
    found = set()
    for _ in range(60):
        with_priorities(scene, 0, 1, 2, 3)
        found.add(scene.bodies()[0])
    assert found == first


def test_in_order_there_are_none(scene: Scene) -> None:
    found = set()
    for _ in range(60):
        with_priorities(scene, 0, 1, 2, 3)
        popped = scene.pop(order=True)
        found.add(popped[0].body)
        for each in popped:
            scene.ack(each)
    assert found == {"0", "1", "2", "3"}


def test_messages_of_the_retry_topic_as_they_are(scene: Scene) -> None:
    scene.parts.set(pop_response_return_actual_retry_topic=True)
    scene.parts.put("T", body=b"a")
    scene.pop()
    scene.advance(INVISIBLE_MS + 5_000)
    reply = scene.reply()
    assert reply.header is not None
    assert reply.header.start_offset_info == "1 0 0"
    assert reply.header.msg_offset_info == "1 0 0"
    assert RETRY.encode() in reply.body_bytes


def test_a_reset_of_offsets(scene: Scene) -> None:
    for number in range(4):
        scene.parts.put("T", body=b"%d" % number)
    scene.pop(max_msg_nums=3)
    scene.parts.offsets.reset(GROUP, "T", 0, 1)
    assert scene.bodies() == ["1", "2", "3"]
    scene.pop(order=True)
    scene.parts.offsets.reset(GROUP, "T", 0, 2)
    assert scene.bodies(order=True) == ["2", "3"]
    scene.parts.offsets.reset(GROUP, "T", 0, 0)
    assert scene.bodies(order=True) == ["0", "1", "2", "3"]


def test_a_group_that_has_missed_messages_is_told(scene: Scene) -> None:
    for body in "abcd":
        scene.parts.put("T", body=body.encode())
    lost_before(scene.parts, "T", 0, 1)
    assert scene.bodies(max_msg_nums=1) == ["b"]
    scene.parts.pop.settle()
    assert told_jumps(scene.parts) == []
    lost_before(scene.parts, "T", 0, 3)
    assert scene.bodies() == ["d"]
    assert told_jumps(scene.parts) == [(jumps.Jump(jumps.GROUP, "T", 0, 2, 3, 1, GROUP), 0)]


def test_a_group_is_not_new_to_its_retry_topic(scene: Scene) -> None:
    retry = retry_topic("T", GROUP, v2=False)
    scene.parts.topic(retry, 1)
    for body in "abc":
        scene.parts.put(retry, body=body.encode())
    lost_before(scene.parts, retry, 0, 2)
    assert scene.bodies() == ["c"]
    assert told_jumps(scene.parts) == [
        (jumps.Jump(jumps.GROUP, retry, 0, 0, 2, 2, GROUP, is_known=False), 0)
    ]


def test_offsets_that_the_queue_has_not(scene: Scene) -> None:
    for number in range(2):
        scene.parts.put("T", body=b"%d" % number)
    scene.parts.offsets.commit(GROUP, "T", 0, 1_000)
    assert scene.pop() == []
    assert scene.offset() == 2
    scene.parts.put("T", body=b"2")
    assert scene.bodies() == ["2"]


def test_a_group_that_acknowledges_nothing_is_stopped(scene: Scene) -> None:
    scene.parts.set(enable_pop_message_threshold=True, pop_inflight_message_threshold=2)
    for number in range(6):
        scene.parts.put("T", body=b"%d" % number)
    popped = scene.pop(max_msg_nums=3)
    assert scene.pop() == []
    scene.ack(popped[0])
    assert scene.bodies() == ["3", "4", "5"]


def test_in_order(scene: Scene) -> None:
    for number in range(3):
        scene.parts.put("T", body=b"%d" % number)
    popped = scene.pop(order=True, max_msg_nums=2)
    assert [each.body for each in popped] == ["0", "1"]
    assert {each.handle.revive_queue_id for each in popped} == {999}
    assert scene.pop(order=True) == []
    assert scene.records() == []
    scene.ack(popped[1])
    assert (scene.offset(), scene.pop(order=True)) == (0, [])
    scene.ack(popped[0])
    assert scene.offset() == 2
    assert scene.bodies(order=True) == ["2"]


def test_in_order_over_a_restart(scene: Scene) -> None:
    for number in range(2):
        scene.parts.put("T", body=b"%d" % number)
    popped = scene.pop(order=True)
    scene.ack(popped[0])
    scene.restart()
    assert scene.offset() == 1
    assert scene.pop(order=True) == []
    scene.advance(INVISIBLE_MS)
    reply = scene.reply(order=True)
    assert reply.header is not None
    assert reply.header.order_count_info == "0 qo0%1 1;0 0 1"


def test_in_order_what_others_want_is_passed_over(scene: Scene) -> None:
    for tag in "aab":
        scene.parts.put("T", TAGS=tag)
    assert scene.pop(order=True, exp="c") == []
    assert scene.offset() == 3


def test_nothing_is_wanted(scene: Scene) -> None:
    scene.parts.put("T")
    for count in (0, -5):
        reply = scene.reply(max_msg_nums=count)
        assert reply.code == 210
        assert reply.header is not None
        assert reply.header.rest_num == 0


def test_messages_of_a_light_queue_are_acknowledged_by_their_offsets_there(scene: Scene) -> None:
    parts, light = scene.parts, "%LMQ%a"
    parts.set(enable_lmq=True, enable_multi_dispatch=True)
    parts.topics.get = parts.topics._get
    parts.put("T", body=b"alone")
    for body in (b"a", b"b"):
        host = bytes(4) + (40_000).to_bytes(4, "big")
        properties = {"INNER_MULTI_DISPATCH": light}
        message = InnerMessage("T", 0, body, 1, host, host, properties)
        MultiDispatch().apply(message, 0)
        assert parts.intake.take([message], parts.now_ms) == [PutStatus.PUT_OK]
    reply = scene.reply(topic=light)
    assert reply.header is not None
    assert (reply.header.msg_offset_info or "").split(" ")[-1] == "0,1"
    popped = decode_messages(reply.body_bytes)
    assert [each.body for each in popped] == [b"a", b"b"]
    assert [each.queue_offset for each in popped] == [1, 2], "of the topic"
    assert scene.pop(topic=light) == []
