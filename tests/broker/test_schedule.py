# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.broker.conftest import STORE_HOST, Parts
from txrocketmq.broker import schedule as module
from txrocketmq.broker.inner_message import InnerMessage
from txrocketmq.broker.json_file import JsonFile
from txrocketmq.broker.schedule import RETRY_MS, DelayLevels, Schedule
from txrocketmq.broker.store.message_store import PutStatus
from txrocketmq.broker.store.put_message import refused
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
    write = parts.schedule.changes(parts.now_ms)
    if write is not None:
        write()
    later = Schedule(
        parts.delay_levels, parts.store, JsonFile(parts.folder / "delay.json"), parts.now_ms
    )
    later.load()
    table: dict[int, int] = later.table()["offsetTable"]
    return table


def test_levels() -> None:
    levels = DelayLevels()
    assert levels.max_level == 18
    assert [levels.delay_ms(level) for level in (1, 5, 17, 18)] == [
        1_000,
        60_000,
        3_600_000,
        7_200_000,
    ]
    assert (levels.clamp(3), levels.clamp(99)) == (3, 18)
    assert levels.deliver_ms(2, 500) == 5_500
    assert DelayLevels("2d").delay_ms(1) == 172_800_000


@pytest.mark.parametrize("text", ["", "1x", "s", "1", "-1s", "1s 2q"])
def test_levels_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match="messageDelayLevel"):
        DelayLevels(text)


def test_a_message_comes_when_it_is_due_and_not_before(parts: Parts) -> None:
    delayed(parts, 1, TAGS="a", KEYS="k")
    assert parts.schedule.tick(parts.now_ms + 999) == 0
    assert arrived(parts) == []
    assert parts.schedule.tick(parts.now_ms + 1_000) == 1
    assert parts.schedule.tick(parts.now_ms + 1_000) == 0
    (message,) = arrived(parts)
    assert message.body == b"later"
    assert message.born_timestamp == parts.now_ms - 9
    assert message.store_timestamp == parts.now_ms + 1_000


def test_it_keeps_all_its_properties_as_the_original_s_do(parts: Parts) -> None:
    delayed(parts, 1, TAGS="a", WAIT="true")
    parts.schedule.tick(parts.now_ms + 1_000)
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
    parts.schedule.tick(parts.now_ms + 1_000)
    (unit,) = parts.store.queue_units("T", 2, 0, 10)
    assert unit[2] == ord("a")


def test_levels_do_not_wait_for_each_other(parts: Parts) -> None:
    delayed(parts, 2, b"slow")
    delayed(parts, 1, b"fast")
    parts.schedule.tick(parts.now_ms + 1_000)
    assert [message.body for message in arrived(parts)] == [b"fast"]
    parts.schedule.tick(parts.now_ms + 5_000)
    assert [message.body for message in arrived(parts)] == [b"fast", b"slow"]


def test_a_clock_that_was_set_back_delays_nothing_forever(parts: Parts) -> None:
    parts.now_ms += 3_600_000
    delayed(parts, 1)
    assert parts.schedule.tick(parts.now_ms - 3_600_000) == 1


def test_a_turn_delivers_so_many_of_a_level(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BATCH", 2)
    for number in range(3):
        delayed(parts, 1, b"%d" % number)
    assert parts.schedule.tick(parts.now_ms + 1_000) == 2
    assert parts.schedule.tick(parts.now_ms + 1_000) == 1
    assert [message.body for message in arrived(parts)] == [b"0", b"1", b"2"]


def test_a_level_rests_when_its_messages_cannot_be_put(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    delayed(parts, 1)
    due_ms = parts.now_ms + 1_000
    with monkeypatch.context() as broken:
        broken.setattr(
            parts.store,
            "put",
            lambda messages, now_ms: [
                refused(PutStatus.SERVICE_NOT_AVAILABLE, now_ms) for _ in messages
            ],
        )
        assert parts.schedule.tick(due_ms) == 0
    assert parts.schedule.tick(due_ms + RETRY_MS - 1) == 0
    assert parts.schedule.tick(due_ms + RETRY_MS) == 1


def test_a_message_that_is_refused_holds_up_its_level_and_repeats_nothing(parts: Parts) -> None:
    for body in (b"before", b"x" * 2_000, b"behind"):
        delayed(parts, 1, body)
    whole = parts.store.config
    parts.store.configure(dataclasses.replace(whole, max_message_size=1_000))
    refusals: list[tuple[int, str, str]] = []
    parts.schedule.on_refused = lambda *refusal: refusals.append(refusal)
    for turn in range(5):
        parts.schedule.tick(parts.now_ms + 1_000 + turn * RETRY_MS)
    assert refusals == [(1, "T", "MESSAGE_ILLEGAL")] * 5
    assert [message.body for message in arrived(parts)] == [b"before", b"behind"]
    parts.store.configure(whole)
    for turn in range(5, 8):
        parts.schedule.tick(parts.now_ms + 1_000 + turn * RETRY_MS)
    assert [message.body[:2] for message in arrived(parts)] == [b"be", b"be", b"xx", b"be"]


def test_progress_is_saved_when_what_was_delivered_is_durable(parts: Parts) -> None:
    """Or else a loss of power would cost the message: the log's copy, and its turn."""
    delayed(parts, 1)
    parts.store.flush.flush_all()
    assert parts.schedule.tick(parts.now_ms + 1_000) == 1
    assert parts.schedule.progress() == {1: (1, 1)}
    parts.schedule.tick(parts.now_ms + 2_000)
    assert saved(parts) in ({}, {1: 0})
    delayed(parts, 1)
    job = parts.store.flush.begin()
    assert job is not None
    assert parts.schedule.tick(parts.now_ms + 1_000) == 1
    job.run()
    parts.store.flush.finish(job)
    parts.schedule.tick(parts.now_ms + 1_000)
    assert saved(parts) == {1: 1}, "though the next one is not durable yet"
    parts.store.flush.flush_all()
    assert saved(parts) == {1: 2}


def test_progress_beyond_the_end_of_a_level_is_corrected(parts: Parts) -> None:
    """A crash has cost the log its last messages, but not the file of the progress."""
    (parts.folder / "delay.json").write_text('{"offsetTable":{1:5}}')
    parts.schedule.load()
    parts.schedule.correct()
    delayed(parts, 1)
    assert parts.schedule.tick(parts.now_ms + 1_000) == 1


def test_a_message_without_destination_is_passed_over(parts: Parts) -> None:
    parts.put(SCHEDULE_TOPIC, 0, body=b"stray", REAL_TOPIC="T")
    delayed(parts, 1)
    assert parts.schedule.tick(parts.now_ms + 2_000) == 1
    assert [message.body for message in arrived(parts)] == [b"later"]


def test_progress_survives(parts: Parts) -> None:
    delayed(parts, 1)
    delayed(parts, 1)
    assert parts.schedule.changes(0) is None
    parts.schedule.tick(parts.now_ms + 1_000)
    delayed(parts, 1)
    assert parts.schedule.progress() == {1: (2, 3)}
    parts.store.flush.flush_all()
    write = parts.schedule.changes(parts.now_ms)
    assert write is not None
    write()
    assert parts.schedule.changes(parts.now_ms) is None
    later = Schedule(
        parts.delay_levels, parts.store, JsonFile(parts.folder / "delay.json"), parts.now_ms
    )
    later.load()
    assert later.table()["offsetTable"] == {1: 2}
    assert later.tick(parts.now_ms + 2_000) == 1


def test_the_original_s_file_is_read(
    golden_store: Callable[[str], Path], golden_version: str, parts: Parts
) -> None:
    path = golden_store(golden_version) / "clean" / "config" / "delayOffset.json"
    schedule = Schedule(parts.delay_levels, parts.store, JsonFile(path), 0)
    schedule.load()
    assert schedule.table()["offsetTable"][1] == 3
