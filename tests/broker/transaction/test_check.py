# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.broker.conftest import STORE_HOST
from tests.broker.jumps import lost_before, told_jumps
from tests.broker.transaction.scene import (
    COMMIT,
    INTERVAL_MS,
    ROLLBACK,
    UNKNOWN,
    Scene,
    killed,
    restarted,
)
from txrocketmq.broker.store.formats.put_message import PutMessage
from txrocketmq.broker.store.get.jumps import HALF_MESSAGES, OP_MESSAGES, Jump
from txrocketmq.broker.transaction.check import MAX_BATCH
from txrocketmq.broker.transaction.half_message import left_alone
from txrocketmq.broker.transaction.op_message import op_messages
from txrocketmq.broker.work.slices import Slices
from txrocketmq.remoting.message.topics import (
    TRANS_CHECK_MAX_TIME_TOPIC,
    TRANS_HALF_TOPIC,
    TRANS_OP_TOPIC,
)

OK = [(0, None)]


def test_an_open_transaction_is_asked_for_and_ended(scene: Scene) -> None:
    peer = scene.joins()
    half = scene.begin(b"late")
    scene.check(5_000)
    assert not scene.asked(peer)  # it is not time for a round
    scene.check()
    ((question, asked),) = scene.asked(peer)
    assert asked.properties["TRANSACTION_CHECK_TIMES"] == "1"
    (_, again) = scene.half()
    assert question.commit_log_offset == again.commit_log_offset != half.commit_log_offset
    assert (question.tran_state_table_offset, again.flag) == (1, 5)
    assert scene.answer(question, again, COMMIT) == OK
    assert scene.seen() == [b"late"]
    assert scene.ops() == [b"0", b"1"]
    scene.check()
    scene.check()
    assert not scene.asked(peer)
    assert scene.sync() == (2, 2)


def test_a_young_one_waits_for_the_next_round(scene: Scene) -> None:
    peer = scene.joins()
    scene.parts.now_ms += 26_000
    scene.steady_ms += 26_000
    scene.begin()
    scene.check(4_000)
    scene.check(1_999)
    assert not scene.asked(peer)
    assert len(scene.half()) == 1
    scene.check(INTERVAL_MS - 1_999)
    assert len(scene.asked(peer)) == 1


def test_a_clock_that_is_ahead_at_the_producer_makes_nobody_wait(scene: Scene) -> None:
    peer = scene.joins()
    scene.parts.now_ms += 100_000
    scene.begin()
    scene.parts.now_ms -= 100_000
    scene.check()
    assert len(scene.asked(peer)) == 1


def test_what_is_ended_is_not_asked_for(scene: Scene) -> None:
    peer = scene.joins()
    halves = [scene.begin(b"%d" % n) for n in range(6)]
    for n in (0, 2, 5):
        assert scene.end(halves[n], COMMIT) == OK
    assert scene.end(halves[3], ROLLBACK) == OK
    assert scene.end(halves[4], UNKNOWN) == []
    scene.make_durable()
    scene.check()
    assert [asked.body for _, asked in scene.asked(peer)] == [b"1", b"4"]
    assert scene.sync() == (6, 4)
    assert scene.seen() == [b"0", b"2", b"5"]


def test_nobody_is_asked_while_the_disk_is_slow(scene: Scene) -> None:
    """The op messages are yet to come; what is kept of the progress needs none of them."""
    peer = scene.joins()
    for each in [scene.begin(b"%d" % n) for n in range(3)]:
        assert scene.end(each, COMMIT) == OK
    scene.check()
    scene.check()
    assert scene.queue(TRANS_OP_TOPIC) == []
    assert scene.sync()[0] == 3
    restarted(scene)
    scene.check()
    assert not scene.asked(peer)
    assert len(scene.ops()) == 3


def test_what_is_not_durable_may_be_asked_for_again(scene: Scene) -> None:
    """After a crash, that is; it is not lost."""
    peer = scene.joins()
    scene.end(scene.begin(b"once more"), COMMIT)
    restarted(scene)
    scene.check()
    assert [asked.body for _, asked in scene.asked(peer)] == [b"once more"]


def test_both_generations_of_op_messages_count(scene: Scene) -> None:
    peer = scene.joins()
    for n in range(6):
        scene.begin(b"%d" % n)
    for body in (b"0", b"1,3,", b"4;foreign", b"99,"):
        scene.parts.store.put([op(scene, body)], scene.parts.now_ms)
    scene.parts.store.put(
        [op(scene, b"5")._replace(tags_code=7, properties=b"")], scene.parts.now_ms
    )
    scene.check()
    assert [asked.body for _, asked in scene.asked(peer)] == [b"2", b"4", b"5"]


def op(scene: Scene, body: bytes) -> PutMessage:
    return op_messages([(0, 0)], STORE_HOST, scene.parts.now_ms)[0]._replace(body=body)


def test_after_enough_questions_it_is_given_up(scene: Scene) -> None:
    peer = scene.joins()
    told: list[tuple[int, str, str]] = []
    scene.parts.transaction_check.on_dead_letters.append(
        lambda each: told.append((each.number, each.topic, each.key))
    )
    scene.begin(b"never", KEYS="k")
    for times in range(1, 16):
        scene.check()
        ((_, asked),) = scene.asked(peer)
        assert asked.properties["TRANSACTION_CHECK_TIMES"] == str(times)
    assert not told
    scene.check()
    assert not scene.asked(peer)
    (lost,) = scene.queue(TRANS_CHECK_MAX_TIME_TOPIC)
    assert (lost.body, lost.properties["KEYS"], lost.flag) == (b"never", "k", 5)
    assert told == [(1, "T", lost.properties["UNIQ_KEY"])]
    assert scene.parts.topics.get(TRANS_CHECK_MAX_TIME_TOPIC) is not None
    assert scene.parts.transaction_metrics.count("T") == 0
    scene.check()
    assert len(scene.half()) == 16
    assert scene.sync() == (16, 0)
    assert len(scene.ops()) == 16  # it has ended in all its copies


def test_where_no_producer_is_left_it_is_given_up_too(scene: Scene) -> None:
    scene.parts.set(transaction_check_max=2)
    scene.begin(b"orphan", group="gone")
    for _ in range(3):
        scene.check()
    assert [each.body for each in scene.queue(TRANS_CHECK_MAX_TIME_TOPIC)] == [b"orphan"]


def test_what_is_older_than_the_log_is_given_up(scene: Scene) -> None:
    peer = scene.joins()
    scene.begin(b"old")
    scene.check(72 * 3_600_000 + 1)
    assert not scene.asked(peer)
    assert [each.body for each in scene.queue(TRANS_CHECK_MAX_TIME_TOPIC)] == [b"old"]


def test_a_producer_may_want_to_be_asked_later(scene: Scene) -> None:
    peer = scene.joins()
    scene.begin(b"slow", CHECK_IMMUNITY_TIME_IN_SECONDS="75")
    scene.begin(b"other")
    scene.check()
    assert [asked.body for _, asked in scene.asked(peer)] == [b"other"]
    scene.check()
    (_, asked), *_ = scene.asked(peer)
    assert asked.body == b"other"
    assert [each.properties.get("TRAN_PREPARED_QUEUE_OFFSET") for each in scene.half()] == [
        None, None, "0", None, "0", None,
    ]  # fmt: skip
    scene.check()
    bodies = {asked.body: asked for _, asked in scene.asked(peer)}
    assert bodies[b"slow"].properties["TRANSACTION_CHECK_TIMES"] == "1"


def test_who_ends_it_meanwhile_is_not_asked(scene: Scene) -> None:
    """Although the message is not where its producer has put it."""
    peer = scene.joins()
    slow = scene.begin(b"slow", CHECK_IMMUNITY_TIME_IN_SECONDS="75")
    late = scene.begin(b"late")
    scene.check()
    assert len(scene.asked(peer)) == 1
    assert scene.end(slow, COMMIT) == OK
    assert scene.end(late, COMMIT) == OK
    assert sorted(scene.ops()) == [b"0", b"1", b"2", b"3"]
    for _ in range(3):
        scene.check()
    assert not scene.asked(peer)
    assert scene.seen() == [b"slow", b"late"]


@pytest.mark.parametrize("text", ["soon", "-1"])
def test_an_immunity_that_is_no_number_is_the_usual_time(scene: Scene, text: str) -> None:
    peer = scene.joins()
    scene.begin(CHECK_IMMUNITY_TIME_IN_SECONDS=text)
    scene.check()
    assert len(scene.asked(peer)) == 1


def test_progress_waits_for_the_disk(scene: Scene) -> None:
    """Else a loss of power could cost a message that is put again."""
    scene.joins()
    scene.begin(b"open")
    scene.sync()
    scene.check()
    scene.parts.transaction_check.settle()
    assert scene.parts.offsets.query("CID_RMQ_SYS_TRANS", "RMQ_SYS_TRANS_HALF_TOPIC", 0) <= 0
    assert scene.sync() == (1, 0)


def test_a_new_start_goes_on_where_progress_was_kept(scene: Scene) -> None:
    peer = scene.joins()
    halves = [scene.begin(b"%d" % n) for n in range(4)]
    scene.end(halves[0], COMMIT)
    scene.make_durable()
    scene.check()
    assert len(scene.asked(peer)) == 3
    assert scene.sync() == (4, 1)
    (_, _, _, _, one, two, three) = scene.half()
    scene.end(two, ROLLBACK)
    scene.make_durable()
    restarted(scene)
    scene.check()
    assert [asked.body for _, asked in scene.asked(peer)] == [one.body, three.body]
    assert scene.sync() == (7, 3)


def test_progress_that_is_set_from_outside_counts(scene: Scene) -> None:
    peer = scene.joins()
    scene.begin(b"again")
    scene.check()
    assert len(scene.asked(peer)) == 1
    scene.sync()
    scene.parts.offsets.commit("CID_RMQ_SYS_TRANS", "RMQ_SYS_TRANS_HALF_TOPIC", 0, 0)
    assert scene.sync()[0] == 0
    scene.check()
    assert len(scene.asked(peer)) == 1  # since it was put again, the first one does not count
    assert scene.sync()[0] == 2
    scene.parts.offsets.commit("CID_RMQ_SYS_TRANS", "RMQ_SYS_TRANS_HALF_TOPIC", 0, 10**9)
    scene.check()
    assert scene.sync()[0] == 3


def test_a_store_that_takes_nothing_ends_the_round(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    peer = scene.joins()
    scene.begin(b"open")
    store = scene.parts.store
    with monkeypatch.context() as patch:
        patch.setattr(type(store), "writeable", property(lambda _: False))
        scene.check()
    assert not scene.asked(peer)
    assert scene.sync()[0] <= 0
    scene.check()
    assert len(scene.asked(peer)) == 1


def test_what_becomes_too_large_is_given_up(scene: Scene) -> None:
    scene.joins()
    room = 32_767 - len("TRANSACTION_CHECK_TIMES") - 10
    half = scene.begin(b"large")
    used = len("".join(f"{name}\1{value}\2" for name, value in half.properties.items()))
    scene.end(half, ROLLBACK)
    scene.begin(b"large", filling="x" * (room - used))
    told: list[tuple[int, str, str]] = []
    scene.parts.transaction_check.on_dead_letters.append(
        lambda each: told.append((each.number, each.topic, each.key))
    )
    scene.check()
    assert [count for count, _, _ in told] == [1]
    assert [each.body for each in scene.queue(TRANS_CHECK_MAX_TIME_TOPIC)] == [b"large"]


def test_what_the_log_has_lost_is_told_with_its_number(scene: Scene) -> None:
    peer = scene.joins()
    halves = [scene.begin(b"%d" % n) for n in range(6)]
    for n in (1, 5):
        assert scene.end(halves[n], COMMIT) == OK
    scene.make_durable()
    lost_before(scene.parts, TRANS_HALF_TOPIC, 0, 4)
    lost_before(scene.parts, TRANS_OP_TOPIC, 0, 1)
    scene.check()
    assert [asked.body for _, asked in scene.asked(peer)] == [b"4"]
    assert told_jumps(scene.parts) == [
        (Jump(OP_MESSAGES, TRANS_OP_TOPIC, 0, 0, 1, 1, is_known=False), 0),
        (Jump(HALF_MESSAGES, TRANS_HALF_TOPIC, 0, 0, 4, 3, is_known=False), 0),
    ]
    assert scene.sync()[0] == 6


def test_what_was_ended_is_not_missed(scene: Scene) -> None:
    for n in range(3):
        assert scene.end(scene.begin(b"%d" % n), COMMIT) == OK
    scene.make_durable()
    lost_before(scene.parts, TRANS_HALF_TOPIC, 0, 3)
    scene.check()
    assert told_jumps(scene.parts) == []


def test_progress_from_the_file_may_be_behind_the_log_too(scene: Scene) -> None:
    peer = scene.joins()
    for n in range(5):
        scene.begin(b"%d" % n)
    for topic, offset in ((TRANS_HALF_TOPIC, 1), (TRANS_OP_TOPIC, 0)):
        scene.parts.offsets.commit("CID_RMQ_SYS_TRANS", topic, 0, offset)
    lost_before(scene.parts, TRANS_HALF_TOPIC, 0, 3)
    restarted(scene)
    scene.check()
    assert [asked.body for _, asked in scene.asked(peer)] == [b"3", b"4"]
    ((jump, _),) = told_jumps(scene.parts)
    assert (jump.from_offset, jump.to_offset, jump.number) == (1, 3, 2)


def test_without_progress_it_begins_at_the_first_message(scene: Scene) -> None:
    """It may have been killed before it saved any; what was lost meanwhile is told all the same."""
    peer = scene.joins()
    halves = [scene.begin(b"%d" % n) for n in range(6)]
    for n in (1, 2, 4):
        assert scene.end(halves[n], COMMIT) == OK
    scene.make_durable()
    killed(scene)
    lost_before(scene.parts, TRANS_HALF_TOPIC, 0, 4)
    lost_before(scene.parts, TRANS_OP_TOPIC, 0, 1)
    scene.parts.transaction_check.tick(scene.parts.now_ms, scene.steady_ms)
    scene.check()
    assert [asked.body for _, asked in scene.asked(peer)] == [b"5"]
    assert told_jumps(scene.parts) == [
        (Jump(OP_MESSAGES, TRANS_OP_TOPIC, 0, 0, 1, 1, is_known=False), 0),
        (Jump(HALF_MESSAGES, TRANS_HALF_TOPIC, 0, 0, 4, 3, is_known=False), 0),
    ]


def test_a_damaged_record_is_passed_over_and_told(scene: Scene) -> None:
    peer = scene.joins()
    first = scene.begin(b"cut short")
    scene.begin(b"sound")
    record = scene.parts.store.message_at(first.commit_log_offset)
    assert record is not None
    path = next((scene.parts.folder / "store" / "commitlog").iterdir())
    with path.open("r+b") as file:
        file.seek(first.commit_log_offset)
        file.write(bytes(len(record)))
    told: list[tuple[int, int]] = []
    scene.parts.transaction_check.on_unreadable.append(
        lambda each: told.append((each.queue_id, each.offset))
    )
    scene.check()
    assert told == [(0, 0)]
    assert [asked.body for _, asked in scene.asked(peer)] == [b"sound"]


def test_a_damaged_op_message_only_costs_a_question(scene: Scene) -> None:
    peer = scene.joins()
    scene.end(scene.begin(b"ended"), COMMIT)
    scene.make_durable()
    (stored,) = scene.queue(TRANS_OP_TOPIC)
    path = next((scene.parts.folder / "store" / "commitlog").iterdir())
    with path.open("r+b") as file:
        file.seek(stored.commit_log_offset)
        file.write(bytes(8))
    restarted(scene)
    scene.check()
    assert len(scene.asked(peer)) == 1


def test_a_slave_asks_nobody(scene: Scene) -> None:
    peer = scene.joins()
    scene.begin()
    object.__setattr__(scene.parts.store.config, "broker_role", "SLAVE")
    scene.check()
    assert not scene.asked(peer)


def test_settings_count_at_once(scene: Scene) -> None:
    peer = scene.joins()
    scene.begin()
    scene.parts.set(transaction_time_out=100_000, transaction_check_interval=1_000)
    scene.check(1_000)
    assert not scene.asked(peer)
    scene.parts.set(transaction_time_out=1_500)
    scene.check(1_000)
    assert len(scene.asked(peer)) == 1


def test_a_round_is_done_in_slices(tmp_path: Path) -> None:
    """However many half messages there are; and what ends between two slices is not asked for."""
    scene = Scene(tmp_path, store_settings={"mapped_file_size_commit_log": 4 * 1024 * 1024})
    peer = scene.joins()
    halves = [scene.begin(b"%d" % n) for n in range(10 * MAX_BATCH)]
    parts = scene.parts
    check, turns = parts.transaction_check, 0
    parts.now_ms += INTERVAL_MS
    scene.steady_ms += INTERVAL_MS
    while True:
        before = len(peer.told)
        check.tick(parts.now_ms, scene.steady_ms, lambda: True)
        assert len(peer.told) - before <= MAX_BATCH
        turns += 1
        if not check.is_behind:
            break
        if turns == 3:
            for each in halves[5 * MAX_BATCH :]:
                scene.end(each, COMMIT)
    assert turns >= 5
    assert [int(asked.body) for _, asked in scene.asked(peer)] == list(range(5 * MAX_BATCH))
    scene.close()


def test_slices_leave_others_their_turn(scene: Scene) -> None:
    waiting: list[Callable[[], None]] = []
    peer = scene.joins()
    for n in range(3 * MAX_BATCH):
        scene.begin(b"%d" % n)
    steady_ms = scene.steady_ms + INTERVAL_MS

    def steady_clock() -> int:
        nonlocal steady_ms
        steady_ms += 10
        return steady_ms

    scene.parts.now_ms += INTERVAL_MS
    slices = Slices(scene.parts.transaction_check, scene.parts.clock, steady_clock, waiting.append)
    slices.begin()
    assert len(peer.told) == MAX_BATCH
    slices.begin()  # a second later, while it is going on
    assert len(waiting) == 1
    while waiting:
        waiting.pop()()
    assert len(peer.told) == 3 * MAX_BATCH


def test_a_queue_of_another_id_is_looked_at_too(scene: Scene) -> None:
    """The original takes as many queues as the half topic has."""
    peer = scene.joins()
    half = scene.begin(b"elsewhere")
    message = replace(half, queue_id=3)
    put = scene.processor._intake.put
    batch = put([left_alone(message).to_put()], scene.parts.now_ms)
    scene.end(half, ROLLBACK)
    scene.check()
    ((question, asked),) = scene.asked(peer)
    assert asked.body == b"elsewhere"
    assert scene.answer(question, scene.at(question.commit_log_offset), COMMIT) == OK
    scene.make_durable()
    assert [each.body for each in scene.queue(TRANS_OP_TOPIC, 3)] == [b"0", b"1"]
    assert batch.places[0][2] == 0
