# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.broker.delays.scene import deliver
from tests.broker.transaction.scene import COMMIT, INTERVAL_MS, ROLLBACK, UNKNOWN, Scene
from tests.fakes import refused, request
from txrocketmq.broker.processors.send.end_transaction import RememberedEnds
from txrocketmq.broker.transaction.half_message import given_up
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.command import ONEWAY_FLAG
from txrocketmq.remoting.message.topics import SCHEDULE_TOPIC, TRANS_HALF_TOPIC, TRANS_OP_TOPIC
from txrocketmq.remoting.protocol.transaction import ResumeCheckHalfMessageRequestHeader

OK = [(0, None)]
ERROR = ResponseCode.SYSTEM_ERROR


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path)
    yield made
    made.close()
    assert not made.failures


def test_a_commit_shows_the_message(scene: Scene) -> None:
    half = scene.begin(b"x", KEYS="k", TAGS="a")
    assert scene.seen() == []
    assert scene.parts.transaction_metrics.count("T") == 1
    assert scene.end(half, COMMIT) == OK
    (message,) = scene.queue("T", 2)
    assert (message.body, message.flag, message.sys_flag) == (b"x", 5, 8)
    assert message.born_timestamp == half.born_timestamp
    assert message.prepared_transaction_offset == half.commit_log_offset
    of_half = {"REAL_TOPIC": "T", "REAL_QID": "2"}
    assert {**message.properties, **of_half} == half.properties
    assert not message.properties.keys() & of_half.keys()
    assert scene.ops() == [b"0"]
    assert scene.parts.transaction_metrics.count("T") == 0
    assert scene.parts.stats.item("TOPIC_PUT_NUMS", "T") is not None


def test_a_rollback_shows_nothing(scene: Scene) -> None:
    assert scene.end(scene.begin(), ROLLBACK) == OK
    assert scene.seen() == []
    assert scene.ops() == [b"0"]
    assert scene.parts.transaction_metrics.count("T") == 0


@pytest.mark.parametrize("from_check", [False, True])
def test_what_is_undecided_is_not_answered(scene: Scene, from_check: bool) -> None:
    half = scene.begin()
    assert scene.end(half, UNKNOWN, from_transaction_check=from_check) == []
    assert scene.ops() == []
    assert scene.parts.transaction_metrics.count("T") == 1


@pytest.mark.parametrize("how", [4, 1, -1])
def test_an_end_that_is_none_is_refused(scene: Scene, how: int) -> None:
    """The original does not answer."""
    ((code, remark),) = scene.end(scene.begin(), how)
    assert code == ERROR
    assert "commitOrRollback must be 8 to commit" in (remark or "")
    assert scene.ops() == []


def test_a_read_of_many_ends_in_order(scene: Scene) -> None:
    halves = [scene.begin(b"%d" % n) for n in range(5)]
    commands = [
        scene.end_command(half, how)
        for half, how in zip(halves, (COMMIT, ROLLBACK, COMMIT, UNKNOWN, COMMIT), strict=True)
    ]
    commands[2].flag |= ONEWAY_FLAG
    commands.insert(2, scene.end_command(halves[0], COMMIT, producer_group="other"))
    answers = scene.serve(*commands)
    assert [(each.opaque, each.code) for each in answers] == [
        (commands[0].opaque, 0),
        (commands[1].opaque, 0),
        (commands[2].opaque, ERROR),
        (commands[5].opaque, 0),
    ]
    assert scene.seen() == [b"0", b"2", b"4"]
    assert scene.ops() == [b"0", b"1", b"2", b"4"]


@pytest.mark.parametrize(
    ("fields", "remark"),
    [
        ({"producer_group": "other"}, "The producer group wrong"),
        ({"tran_state_table_offset": 7}, "The transaction state table offset wrong"),
        ({"commit_log_offset": 1}, "Find prepared transaction message failed"),
        ({"commit_log_offset": -1}, "Find prepared transaction message failed"),
        ({"commit_log_offset": 2**62}, "Find prepared transaction message failed"),
    ],
)
@pytest.mark.parametrize("how", [COMMIT, ROLLBACK])
def test_what_is_not_the_producers_own_is_refused(
    scene: Scene, how: int, fields: dict[str, Any], remark: str
) -> None:
    half = scene.begin()
    assert scene.end(half, how, **fields) == [(ERROR, remark)]
    assert scene.seen() == []
    assert scene.ops() == []


def test_what_is_no_half_message_is_refused(scene: Scene) -> None:
    put = scene.parts.put("T", 2, PGROUP="p", REAL_TOPIC="T", REAL_QID="2", TRAN_MSG="true")
    plain = scene.at(put.physical_offset)
    ((code, remark),) = scene.end(plain, COMMIT)
    assert code == ERROR
    assert "is not a half message" in (remark or "")
    half = scene.begin()
    scene.end(half, COMMIT)
    committed = scene.queue("T", 2)[-1]
    assert scene.end(committed, COMMIT)[0][0] == ERROR
    assert len(scene.queue("T", 2)) == 2


@pytest.mark.parametrize("name", ["PGROUP", "REAL_TOPIC", "REAL_QID"])
def test_a_half_message_that_lacks_something_is_refused(scene: Scene, name: str) -> None:
    half = scene.begin()
    message = given_up(half)
    message.topic = half.topic
    del message.properties[name]
    (appended,) = scene.parts.store.put([message.to_put()], scene.parts.now_ms)
    broken = scene.at(appended.physical_offset)
    ((code, remark),) = scene.end(broken, COMMIT)
    assert code == ERROR
    assert ("producer group wrong" if name == "PGROUP" else "which queue") in (remark or "")
    assert scene.seen() == []


def test_a_record_cut_short_is_not_found(scene: Scene) -> None:
    half = scene.begin()
    path = next((scene.parts.folder / "store" / "commitlog").iterdir())
    with path.open("r+b") as file:
        file.seek(half.commit_log_offset + 60)
        file.write(bytes(half.store_size - 60))
    assert scene.end(half, COMMIT) == [(ERROR, "Find prepared transaction message failed")]
    other = scene.begin(b"other")
    assert scene.end(other, COMMIT) == OK
    assert scene.seen() == [b"other"]


def test_ids_that_make_no_sense_do_not_matter(scene: Scene) -> None:
    """Nor do they to the original: what counts are the offsets."""
    half = scene.begin()
    assert scene.end(half, COMMIT, msg_id="no id", transaction_id="\x01") == OK
    assert scene.seen() == [b"body"]


def test_a_header_that_lacks_a_field_is_refused(scene: Scene) -> None:
    command = scene.end_command(scene.begin(), COMMIT)
    assert command.ext_fields is not None
    fields = dict(command.ext_fields)
    del fields["commitLogOffset"]
    command.ext_fields = fields
    (answer,) = scene.serve(command)
    assert answer.code == ERROR
    assert "commitLogOffset" in (answer.remark or "")


def test_who_wants_to_be_asked_later_cannot_be_late(scene: Scene) -> None:
    half = scene.begin(CHECK_IMMUNITY_TIME_IN_SECONDS="10")
    scene.parts.now_ms += 10_001
    ((code, remark),) = scene.end(half, COMMIT)
    assert code == ResponseCode.ILLEGAL_OPERATION
    assert "CHECK_IMMUNITY_TIME_IN_SECONDS" in (remark or "")
    assert scene.end(half, COMMIT, from_transaction_check=True) == OK
    brief = scene.begin(CHECK_IMMUNITY_TIME_IN_SECONDS="1")
    scene.parts.now_ms += 6_000  # transactionTimeOut is the least
    assert scene.end(brief, ROLLBACK) == OK


def test_a_delayed_message_waits_when_it_is_committed(scene: Scene) -> None:
    half = scene.begin(DELAY="2")
    assert scene.queue(SCHEDULE_TOPIC, 1) == []
    assert scene.end(half, COMMIT) == OK
    assert scene.seen() == []
    assert deliver(scene.parts.schedule, scene.parts.now_ms + 5_000) == 1
    assert scene.seen() == [b"body"]


def test_what_cannot_be_stored_stays_open(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    peer = scene.joins()
    half = scene.begin()
    with monkeypatch.context() as patch:
        patch.setattr(type(scene.parts.store), "writeable", property(lambda _: False))
        ((code, _),) = scene.end(half, COMMIT)
    assert code == ResponseCode.SERVICE_NOT_AVAILABLE
    assert scene.ops() == []
    scene.parts.set(max_message_size=1)
    other = scene.begin(b"1")
    assert scene.end(other, COMMIT) == OK
    ((code, _),) = scene.end(half, COMMIT)
    assert code == ResponseCode.MESSAGE_ILLEGAL
    assert scene.ops() == [b"1"]
    scene.parts.set(max_message_size=1_000)
    scene.check(INTERVAL_MS)
    assert len(scene.asked(peer)) == 1


def test_what_was_given_up_is_resumed(scene: Scene) -> None:
    scene.parts.set(transaction_check_max=1)
    scene.begin(b"lost")
    scene.check()
    scene.check()
    (lost,) = scene.queue("TRANS_CHECK_MAX_TIME_TOPIC")
    peer = scene.joins()
    header = ResumeCheckHalfMessageRequestHeader(msg_id=lost.offset_msg_id)
    scene.processor.resume(request(header, now_ms=scene.parts.now_ms))
    assert scene.parts.transaction_metrics.count("T") == 1
    scene.check()
    ((question, asked),) = scene.asked(peer)
    assert asked.body == b"lost"
    assert scene.answer(question, scene.at(question.commit_log_offset), COMMIT) == OK
    assert scene.seen() == [b"lost"]


def test_only_what_was_given_up_is_resumed(scene: Scene) -> None:
    plain = scene.at(scene.parts.put("T", 2).physical_offset)
    for msg_id in (None, "", "x", plain.offset_msg_id, "0" * 32):
        header = ResumeCheckHalfMessageRequestHeader(msg_id=msg_id)
        with refused(ERROR):
            scene.processor.resume(request(header))
    assert scene.half() == []


def test_ends_between_sends_go_into_one_write_with_them(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, dropped = scene.begin(b"kept"), scene.begin(b"dropped")
    append, runs = scene.parts.store.append, []

    def seen(messages: Any, now_ms: int) -> Any:
        runs.append([(each[0], each[2]) for each in messages])
        return append(messages, now_ms)

    monkeypatch.setattr(scene.parts.store, "append", seen)
    begin = [scene.begin_command(b"%d" % number) for number in range(2)]
    refused_one = scene.end_command(kept, COMMIT, producer_group="other")
    answers = scene.serve(
        begin[0],
        scene.end_command(kept, COMMIT),
        refused_one,
        begin[1],
        scene.end_command(dropped, ROLLBACK),
    )
    assert [each.code for each in answers] == [0, 0, ERROR, 0, 0]
    half, op = TRANS_HALF_TOPIC, TRANS_OP_TOPIC
    assert runs == [[(half, b"0"), ("T", b"kept"), (half, b"1")]]
    scene.make_durable()
    assert runs[1:] == [[(op, b"0"), (op, b"1")]]
    assert scene.seen() == [b"kept"]
    assert [each.body for each in scene.half()] == [b"kept", b"dropped", b"0", b"1"]


def test_a_commit_that_the_store_refuses_between_sends_ends_nothing(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    half = scene.begin()
    append = scene.parts.store.append

    def too_long(messages: Any, now_ms: int) -> Any:
        (sent, committed) = messages
        return append([sent, committed._replace(properties=b"x" * 40_000)], now_ms)

    monkeypatch.setattr(scene.parts.store, "append", too_long)
    answers = scene.serve(scene.begin_command(b"x"), scene.end_command(half, COMMIT))
    assert [each.code for each in answers] == [0, ResponseCode.MESSAGE_ILLEGAL]
    assert scene.seen() == []
    assert scene.ops() == []


def test_an_end_is_refused_while_too_many_wait_for_the_disk(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("txrocketmq.broker.intake.after_durable.MAX_WAITING", 2)
    halves = [scene.begin(b"%d" % number) for number in range(3)]
    for half in halves[:2]:
        assert scene.end(half, COMMIT) == OK
    ((code, remark),) = scene.end(halves[2], COMMIT)
    assert code == ERROR
    assert remark is not None
    assert "the disk does not keep up" in remark
    assert scene.seen() == [b"0", b"1"]
    scene.make_durable()
    assert scene.end(halves[2], COMMIT) == OK


ENDED = {
    COMMIT: [(ERROR, "the transaction has ended already: it was committed")],
    ROLLBACK: [(ERROR, "the transaction has ended already: it was rolled back")],
}


@pytest.mark.parametrize("second", [COMMIT, ROLLBACK])
@pytest.mark.parametrize("first", [COMMIT, ROLLBACK])
@pytest.mark.parametrize("together", [False, True])
def test_a_transaction_ends_once(scene: Scene, first: int, second: int, together: bool) -> None:
    """The original puts the message again with each commit, even after a rollback."""
    half, other = scene.begin(b"x"), scene.begin(b"y")
    ends = [scene.end_command(half, first), scene.end_command(half, second)]
    if together:
        answers = scene.serve(*ends)
    else:
        answers = [answer for each in ends for answer in scene.serve(each)]
    assert [(each.code, each.remark) for each in answers] == [*OK, *ENDED[first]]
    assert scene.end(other, COMMIT) == OK
    assert scene.seen() == ([b"x", b"y"] if first == COMMIT else [b"y"])
    assert scene.ops() == [b"0", b"1"]
    assert scene.end(half, COMMIT) == ENDED[first]


def test_a_late_end_of_what_was_asked_about_is_refused(scene: Scene) -> None:
    """The half message was put again before the question, so its producer knows another place."""
    producer = scene.joins()
    half = scene.begin(b"x")
    scene.parts.now_ms += INTERVAL_MS
    scene.check()
    ((header, _),) = scene.asked(producer)
    again = scene.at(header.commit_log_offset)
    assert again.queue_offset != half.queue_offset
    assert scene.end(again, COMMIT, from_transaction_check=True) == OK
    assert scene.end(half, COMMIT) == ENDED[COMMIT]
    assert scene.end(again, ROLLBACK) == ENDED[COMMIT]
    assert scene.seen() == [b"x"]


def test_an_end_that_did_not_take_effect_is_not_remembered(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    half = scene.begin(b"x")
    with monkeypatch.context() as broken:
        broken.setattr(type(scene.parts.store), "append", _fails)
        scene.end(half, COMMIT)
    scene.failures.clear()
    assert scene.end(half, COMMIT) == OK
    assert scene.seen() == [b"x"]


def _fails(*_: Any) -> None:
    raise OSError("the disk is full")


def test_as_many_ends_are_remembered_as_there_is_room_for() -> None:
    ends = RememberedEnds(most=4)
    for offset in range(5):
        ends.add([(0, offset)], [offset != 2])
        assert len(ends) <= 4
        assert ends.get((0, offset)) is (offset != 2)
    assert [ends.get((0, offset)) for offset in range(6)] == [None, None, False, True, True, None]
    ends.add([(0, 4), (0, 5)], [False, False])
    assert [ends.get((0, offset)) for offset in (4, 5)] == [True, False], "the first end counts"
    assert ends.get((1, 3)) is None


def test_no_more_ends_are_remembered_however_many_there_were() -> None:
    ends = RememberedEnds(most=1_000)
    for offset in range(100_000):
        ends.add([(0, offset), (1, offset)], [True, True])
        assert len(ends) <= 1_000
    assert len(ends) >= 500
    assert ends.get((1, 99_999)) is True
