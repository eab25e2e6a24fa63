# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.broker.conftest import STORE_HOST, Parts
from tests.broker.delays.scene import deliver
from tests.broker.elsewhere import Elsewhere
from tests.broker.jumps import lost_before, told_jumps
from txrocketmq.broker.delays import schedule as module
from txrocketmq.broker.delays.due_message import DEAD_LETTER_TOPIC
from txrocketmq.broker.delays.schedule import RETRY_MS, Schedule
from txrocketmq.broker.intake.inner_message import InnerMessage
from txrocketmq.broker.intake.new_queues import ENOUGH
from txrocketmq.broker.store.formats.put_message import PutStatus
from txrocketmq.broker.store.get.jumps import DELAYS, Jump
from txrocketmq.broker.work.json_file import JsonFile
from txrocketmq.remoting.message.message import MessageExt, decode_message
from txrocketmq.remoting.message.topics import SCHEDULE_TOPIC


def delayed(parts: Parts, level: int, body: bytes = b"later", **properties: str) -> None:
    message = InnerMessage("T", 2, body, parts.now_ms - 9, STORE_HOST, STORE_HOST, properties)
    message.delay(level, parts.delay_levels.deliver_ms(level, parts.now_ms))
    (appended,) = parts.store.put([message.to_put()], parts.now_ms)
    assert appended.status is PutStatus.PUT_OK


def arrived(parts: Parts, queue_id: int = 2) -> list[MessageExt]:
    return [
        decode_message(record)[0]
        for at, size, _ in parts.store.queue_units("T", queue_id, 0, 100)
        if (record := parts.store.message_at(at, size)) is not None
    ]


def saved(parts: Parts) -> dict[int, int]:
    """The progress that a new start would find."""
    parts.schedule.offsets.settle()
    parts.schedule.offsets.saving.write_now()
    return loaded(parts)


def loaded(parts: Parts) -> dict[int, int]:
    """The progress in the file."""
    later = Schedule(
        parts.delay_levels,
        parts.intake,
        JsonFile(parts.config_folder / "delayOffset.json"),
        parts.clock,
        parts.patience,
    )
    later.offsets.load()
    table: dict[int, int] = later.offsets.table()["offsetTable"]
    return table


def test_a_message_comes_when_it_is_due_and_not_before(parts: Parts) -> None:
    delayed(parts, 1, TAGS="a", KEYS="k")
    assert deliver(parts.schedule, parts.now_ms + 999) == 0
    assert arrived(parts) == []
    assert deliver(parts.schedule, parts.now_ms + 1_000) == 1
    assert deliver(parts.schedule, parts.now_ms + 1_000) == 0
    (message,) = arrived(parts)
    assert message.body == b"later"
    assert message.born_timestamp == parts.now_ms - 9
    assert message.store_timestamp == parts.now_ms + 1_000


def test_it_keeps_all_its_properties_as_the_original_s_do(parts: Parts) -> None:
    delayed(parts, 1, TAGS="a", WAIT="true")
    deliver(parts.schedule, parts.now_ms + 1_000)
    (message,) = arrived(parts)
    assert message.properties == {
        "TAGS": "a",
        "WAIT": "true",
        "DELAY": "1",
        "REAL_TOPIC": "T",
        "REAL_QID": "2",
    }


def test_its_tag_is_filtered_by_again(parts: Parts) -> None:
    delayed(parts, 1, TAGS="a")
    deliver(parts.schedule, parts.now_ms + 1_000)
    (unit,) = parts.store.queue_units("T", 2, 0, 10)
    assert unit[2] == ord("a")


def test_levels_do_not_wait_for_each_other(parts: Parts) -> None:
    delayed(parts, 2, b"slow")
    delayed(parts, 1, b"fast")
    deliver(parts.schedule, parts.now_ms + 1_000)
    assert [message.body for message in arrived(parts)] == [b"fast"]
    deliver(parts.schedule, parts.now_ms + 5_000)
    assert [message.body for message in arrived(parts)] == [b"fast", b"slow"]


def test_a_clock_that_was_set_back_delays_nothing_forever(parts: Parts) -> None:
    parts.now_ms += 3_600_000
    delayed(parts, 1)
    assert deliver(parts.schedule, parts.now_ms - 3_600_000) == 1


def test_a_batch_is_bounded_by_messages(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BATCH", 2)
    for number in range(3):
        delayed(parts, 1, b"%d" % number)
    assert deliver(parts.schedule, parts.now_ms + 1_000) == 2
    assert parts.schedule.is_behind
    assert deliver(parts.schedule, parts.now_ms + 1_000) == 1
    assert not parts.schedule.is_behind
    assert [message.body for message in arrived(parts)] == [b"0", b"1", b"2"]


def test_a_batch_is_bounded_by_new_queues(parts: Parts) -> None:
    for number in range(2 * ENOUGH + 1):
        message = InnerMessage("T", number, b"x", parts.now_ms, STORE_HOST, STORE_HOST, {})
        message.delay(1, parts.delay_levels.deliver_ms(1, parts.now_ms))
        parts.store.put([message.to_put()] * 2, parts.now_ms)
    counts: list[int] = []
    while not counts or parts.schedule.is_behind:
        before = len(parts.store.queue_ids("T"))
        deliver(parts.schedule, parts.now_ms + 1_000)
        counts.append(len(parts.store.queue_ids("T")) - before)
    assert counts == [ENOUGH, ENOUGH, 1]
    assert all(len(arrived(parts, number)) == 2 for number in range(2 * ENOUGH + 1))


def test_a_batch_is_bounded_by_bytes(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BATCH_BYTES", 5_000)
    for size in (6_000, 2_000, 2_000, 2_000):
        delayed(parts, 1, bytes(size))
    counts: list[int] = []
    while not counts or parts.schedule.is_behind:
        counts.append(deliver(parts.schedule, parts.now_ms + 1_000))
    assert counts == [1, 2, 1]


def test_levels_take_turns_when_there_is_no_time_for_all(parts: Parts) -> None:
    for level in (1, 2, 3):
        delayed(parts, level, b"%d" % level)
    due_ms = parts.now_ms + 10_000
    for _ in range(3):
        assert deliver(parts.schedule, due_ms, due_ms, lambda: True) == 1
        assert parts.schedule.is_behind
    assert [message.body for message in arrived(parts)] == [b"1", b"2", b"3"]
    assert deliver(parts.schedule, due_ms, due_ms, lambda: True) == 0
    assert not parts.schedule.is_behind


def test_a_level_rests_when_its_messages_cannot_be_put(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    delayed(parts, 1)
    due_ms = parts.now_ms + 1_000
    with monkeypatch.context() as broken:
        broken.setattr(
            parts.intake,
            "take",
            lambda messages, now_ms: [PutStatus.SERVICE_NOT_AVAILABLE for _ in messages],
        )
        assert deliver(parts.schedule, due_ms) == 0
    assert deliver(parts.schedule, due_ms + RETRY_MS - 1) == 0
    assert deliver(parts.schedule, due_ms + RETRY_MS) == 1


def dead_letters(parts: Parts) -> list[MessageExt]:
    return [
        decode_message(record)[0]
        for at, size, _ in parts.store.queue_units(DEAD_LETTER_TOPIC, 0, 0, 100)
        if (record := parts.store.message_at(at, size)) is not None
    ]


def test_a_message_that_can_never_be_stored_is_a_dead_letter_and_its_level_goes_on(
    parts: Parts,
) -> None:
    told: list[tuple[int, int, int, str]] = []
    parts.schedule.on_dead_letters.append(
        lambda each: told.append((each.queue_id + 1, each.number, each.offset, each.why))
    )
    delayed(parts, 1, b"before")
    parts.put(SCHEDULE_TOPIC, 0, body=b"dead", REAL_TOPIC="x" * 300, REAL_QID="1", KEYS="k")
    parts.put(SCHEDULE_TOPIC, 0, body=b"stray", REAL_TOPIC="T")
    delayed(parts, 1, b"behind")
    assert deliver(parts.schedule, parts.now_ms + 1_000) == 2
    assert deliver(parts.schedule, parts.now_ms + 1_000 + RETRY_MS) == 0
    assert [message.body for message in arrived(parts)] == [b"before", b"behind"]
    stray, dead = dead_letters(parts)
    assert (stray.body, dead.body) == (b"stray", b"dead")
    assert dead.properties == {
        "REAL_TOPIC": "x" * 300,
        "REAL_QID": "1",
        "KEYS": "k",
        "DELAY": "0",
    }
    assert told == [(1, 2, 1, "MESSAGE_ILLEGAL")]
    assert parts.schedule.offsets.progress() == {1: (4, 4)}


def test_of_one_that_is_too_large_a_note_says_where_it_lies(parts: Parts) -> None:
    for body in (b"before", b"x" * 2_000, b"behind"):
        delayed(parts, 1, body)
    parts.set(max_message_size=1_000)
    assert deliver(parts.schedule, parts.now_ms + 1_000) == 2
    assert [message.body for message in arrived(parts)] == [b"before", b"behind"]
    (letter,) = dead_letters(parts)
    assert letter.body == (
        b"The message at offset 1 of queue 0 of SCHEDULE_TOPIC_XXXX cannot be delivered:"
        b" MESSAGE_ILLEGAL"
    )


def test_a_listener_that_fails_repeats_nothing(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise TypeError("Logger.emit() got multiple values for argument 'level'")

    parts.schedule.on_refused.append(fail)
    parts.schedule.on_dead_letters.append(fail)
    delayed(parts, 1, b"first")
    parts.put(SCHEDULE_TOPIC, 0, body=b"dead", REAL_TOPIC="x" * 300, REAL_QID="1")
    due_ms = parts.now_ms + 1_000
    with pytest.raises(TypeError):
        deliver(parts.schedule, due_ms)
    delayed(parts, 1, b"second")
    with monkeypatch.context() as full:
        full.setattr(type(parts.store), "writeable", property(lambda _: False))
        with pytest.raises(TypeError):
            deliver(parts.schedule, due_ms + RETRY_MS)
    for turn in range(2, 100):
        deliver(parts.schedule, due_ms + turn * RETRY_MS)
    assert [message.body for message in arrived(parts)] == [b"first", b"second"]
    assert len(dead_letters(parts)) == 1


def test_a_disk_that_is_full_pauses_a_level_and_repeats_nothing(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when it fills up between the messages of a batch and the dead letters among them."""
    delayed(parts, 1, b"first")
    parts.put(SCHEDULE_TOPIC, 0, body=b"dead", REAL_TOPIC="x" * 300, REAL_QID="1")
    delayed(parts, 1, b"last")
    due_ms = parts.now_ms + 1_000
    refusals: list[tuple[int, str, str]] = []
    parts.schedule.on_refused.append(
        lambda each: refusals.append((each.queue_id + 1, each.topic, each.why))
    )
    take = parts.intake.take

    def full_for_dead_letters(messages: Sequence[InnerMessage], now_ms: int) -> list[PutStatus]:
        if messages[0].topic == DEAD_LETTER_TOPIC:
            return [PutStatus.SERVICE_NOT_AVAILABLE for _ in messages]
        return take(messages, now_ms)

    with monkeypatch.context() as full:
        full.setattr(parts.intake, "take", full_for_dead_letters)
        assert deliver(parts.schedule, due_ms) == 2
        assert deliver(parts.schedule, due_ms + RETRY_MS - 1) == 0
        assert deliver(parts.schedule, due_ms + RETRY_MS) == 0
    assert refusals == [(1, DEAD_LETTER_TOPIC, "SERVICE_NOT_AVAILABLE")] * 2
    assert parts.schedule.offsets.progress() == {1: (1, 3)}
    deliver(parts.schedule, due_ms + 2 * RETRY_MS)
    assert parts.schedule.offsets.progress() == {1: (3, 3)}
    assert [message.body for message in arrived(parts)] == [b"first", b"last"]
    assert len(dead_letters(parts)) == 1


def test_a_store_that_fails_pauses_the_level(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    delayed(parts, 1)
    delayed(parts, 2)
    due_ms = parts.now_ms + 5_000
    tried: list[int] = []

    def fail(messages: object, now_ms: int) -> None:
        tried.append(now_ms)
        raise MemoryError

    with monkeypatch.context() as broken:
        broken.setattr(parts.intake, "take", fail)
        for late_ms in (0, 100, 200, 300):
            with contextlib.suppress(MemoryError):
                deliver(parts.schedule, due_ms + late_ms)
    assert len(tried) == 2, "once for each level, and neither holds up the other"
    assert deliver(parts.schedule, due_ms + 300 + RETRY_MS) == 2


def test_records_that_cannot_be_read_are_told_and_passed_over(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    for body in (b"0", b"1", b"2"):
        delayed(parts, 1, body)
    told: list[tuple[int, int, int]] = []
    parts.schedule.on_unreadable.append(
        lambda each: told.append((each.queue_id + 1, each.number, each.offset))
    )
    read = parts.store.message_at
    ((gone, _, _),) = parts.store.queue_units(SCHEDULE_TOPIC, 0, 1, 1)
    monkeypatch.setattr(
        parts.store, "message_at", lambda at, size, **_: None if at == gone else read(at, size)
    )
    assert deliver(parts.schedule, parts.now_ms + 1_000) == 2
    assert told == [(1, 1, 1)]
    assert [message.body for message in arrived(parts)] == [b"0", b"2"]


def test_progress_is_saved_when_what_was_delivered_is_durable(parts: Parts) -> None:
    """Or else a loss of power would cost the message: the log's copy, and its turn."""
    delayed(parts, 1)
    parts.store.flush.flush_all()
    assert deliver(parts.schedule, parts.now_ms + 1_000) == 1
    assert parts.schedule.offsets.progress() == {1: (1, 1)}
    deliver(parts.schedule, parts.now_ms + 2_000)
    assert saved(parts) in ({}, {1: 0})
    delayed(parts, 1)
    job = parts.store.flush.begin()
    assert job is not None
    assert deliver(parts.schedule, parts.now_ms + 1_000) == 1
    job.run()
    parts.store.flush.finish(job)
    deliver(parts.schedule, parts.now_ms + 1_000)
    assert saved(parts) == {1: 1}, "though the next one is not durable yet"
    parts.store.flush.flush_all()
    assert saved(parts) == {1: 2}


def test_progress_beyond_the_end_of_a_level_is_corrected(parts: Parts) -> None:
    """A crash has cost the log its last messages, but not the file of the progress."""
    (parts.config_folder / "delayOffset.json").write_text('{"offsetTable":{1:5}}')
    parts.schedule.offsets.load()
    parts.schedule.offsets.correct()
    delayed(parts, 1)
    assert deliver(parts.schedule, parts.now_ms + 1_000) == 1


def test_a_message_without_destination_is_passed_over(parts: Parts) -> None:
    parts.put(SCHEDULE_TOPIC, 0, body=b"stray", REAL_TOPIC="T")
    delayed(parts, 1)
    assert deliver(parts.schedule, parts.now_ms + 2_000) == 1
    assert [message.body for message in arrived(parts)] == [b"later"]


def test_progress_survives(parts: Parts) -> None:
    delayed(parts, 1)
    delayed(parts, 1)
    deliver(parts.schedule, parts.now_ms + 1_000)
    delayed(parts, 1)
    assert parts.schedule.offsets.progress() == {1: (2, 3)}
    parts.store.flush.flush_all()
    parts.schedule.offsets.settle()
    parts.schedule.offsets.saving.write_now()
    later = Schedule(
        parts.delay_levels,
        parts.intake,
        JsonFile(parts.config_folder / "delayOffset.json"),
        parts.clock,
        parts.patience,
    )
    later.offsets.load()
    assert later.offsets.table()["offsetTable"] == {1: 2}
    assert deliver(later, parts.now_ms + 2_000) == 1


def test_progress_is_written_when_it_first_matters(parts: Parts) -> None:
    """A broker that is killed every few seconds would else deliver all levels anew each time."""
    syncs: list[int] = []
    parts.schedule.offsets.on_wanted.append(lambda: syncs.append(parts.store.max_physical_offset))
    delayed(parts, 1)
    parts.store.flush.flush_all()
    deliver(parts.schedule, parts.now_ms, 0)
    assert not syncs
    deliver(parts.schedule, parts.now_ms + 1_000, 1_000)
    assert syncs == [parts.store.max_physical_offset]
    deliver(parts.schedule, parts.now_ms + 2_000, 2_000)
    assert loaded(parts) == {1: 0}  # the rest is not durable yet
    parts.store.flush.flush_all()
    deliver(parts.schedule, parts.now_ms + 2_100, 2_100)
    assert loaded(parts) == {1: 1}
    assert len(syncs) == 2


def test_progress_is_written_a_few_times_a_second_at_most(parts: Parts) -> None:
    """However many messages become due: each write is two syncs."""
    syncs: list[int] = []
    parts.schedule.offsets.on_wanted.append(lambda: syncs.append(1))
    written: list[Exception | None] = []
    parts.schedule.offsets.saving.on_end = written.append
    for _ in range(50):
        delayed(parts, 1)
        parts.now_ms += 100
    for steady_ms in range(1_000, 6_000, 100):
        deliver(parts.schedule, parts.now_ms - 5_000 + steady_ms, steady_ms)
        if steady_ms % 500 == 0:  # as the log is synced
            parts.store.flush.flush_all()
    assert len(arrived(parts)) == 50
    assert 2 <= len(written) <= 11
    assert 8 <= len(syncs) <= 11


def test_a_level_that_has_to_jump_says_how_far(parts: Parts) -> None:
    for _ in range(5):
        delayed(parts, 1)
    deliver(parts.schedule, parts.now_ms)
    lost_before(parts, SCHEDULE_TOPIC, 0, 3)
    for _ in range(3):
        deliver(parts.schedule, parts.now_ms + 1_000)
    assert len(arrived(parts)) == 2
    assert told_jumps(parts) == [(Jump(DELAYS, SCHEDULE_TOPIC, 0, 0, 3, 3), 0)]


def test_a_level_without_progress_says_what_it_may_have_missed(parts: Parts) -> None:
    """It may have been killed before it wrote any, and begins with the first message."""
    delayed(parts, 1)
    lost_before(parts, SCHEDULE_TOPIC, 0, 1)
    for _ in range(3):
        deliver(parts.schedule, parts.now_ms + 1_000)
    assert told_jumps(parts) == [
        (Jump(DELAYS, SCHEDULE_TOPIC, 0, 0, 1, 1, is_known=False), 0),
    ]


def test_the_original_s_file_is_read(
    golden_store: Callable[[str], Path], golden_version: str, parts: Parts
) -> None:
    path = golden_store(golden_version) / "clean" / "config" / "delayOffset.json"
    schedule = Schedule(
        parts.delay_levels, parts.intake, JsonFile(path), parts.clock, parts.patience
    )
    schedule.offsets.load()
    assert schedule.offsets.table()["offsetTable"][1] == 3


def test_a_slave_that_acts_delivers_elsewhere(tmp_path: Path) -> None:
    parts = Parts(tmp_path, store_settings={"broker_role": "SLAVE"})
    schedule, other, acts = parts.schedule, Elsewhere(), [True]
    schedule.escape, schedule.escapes = other, lambda: acts[0]
    for number in range(3):
        delayed(parts, 1, b"%d" % number)
    now_ms = parts.now_ms + 1_000
    end = parts.store.max_physical_offset
    assert deliver(schedule, now_ms) == 0
    assert deliver(schedule, now_ms + RETRY_MS) == 0
    ((bodies, then),) = other.asked
    assert bodies == [b"0", b"1", b"2"]
    then([True, False, True])
    assert schedule.offsets.get(1) is None, "the second has not arrived"
    now_ms += RETRY_MS
    deliver(schedule, now_ms)
    assert len(other.asked) == 1, "it pauses"
    now_ms += RETRY_MS
    deliver(schedule, now_ms)
    assert other.asked[-1][0] == [b"1"], "and only the second is sent again"
    other.asked[-1][1]([True])
    deliver(schedule, now_ms)
    assert schedule.offsets.get(1) == 3
    assert schedule.delivered == 3
    assert parts.store.max_physical_offset == end, "nothing is written here"
    delayed(parts, 1)
    acts[0] = False
    deliver(schedule, now_ms + 60_000)
    assert len(other.asked) == 2, "it acts no more"
    parts.store.stop(parts.now_ms)


def test_what_cannot_be_delivered_anywhere_waits_for_the_master(tmp_path: Path) -> None:
    parts = Parts(tmp_path, store_settings={"broker_role": "SLAVE"})
    schedule, other = parts.schedule, Elsewhere()
    schedule.escape, schedule.escapes = other, lambda: True
    parts.put(SCHEDULE_TOPIC, 0, DELAY="1")
    for later_ms in (60_000, 120_000):
        deliver(schedule, parts.now_ms + later_ms)
    assert other.asked == []
    assert not schedule.offsets.get(1)
    parts.store.stop(parts.now_ms)
