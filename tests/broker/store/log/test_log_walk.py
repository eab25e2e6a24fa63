# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.log import log_walk
from txrocketmq.broker.store.log.commit_log import CommitLog
from txrocketmq.broker.store.log.log_walk import LogWalk, UnreadableStretch, agrees, record_at
from txrocketmq.broker.store.log.packed_walk import walk
from txrocketmq.broker.store.message_store import Appended, MessageStore, PutMessage
from txrocketmq.broker.store.queues.consume_queues import ConsumeQueues

NOW_MS = 1_700_000_000_000
LOG = "/store/commitlog/"


class Opened:
    """Log and queues of a store of 60 messages in three log files, without the store."""

    def __init__(self, files: Any, config: StoreConfig, stored: list[Appended]) -> None:
        self.log, self.queues = CommitLog(files, config).files, ConsumeQueues(files, config)
        self.log.load()
        self.queues.load()
        for queue in self.queues:
            queue.recover()
        self.stored = stored
        self.ends = [each.physical_offset + each.size for each in stored]

    def walk(self, *, check_crc: bool = True, proven: bool = True) -> tuple[list[int], LogWalk]:
        walk = LogWalk(self.log, self.queues if proven else (), check_crc=check_crc)
        return [record.physical_offset for record in walk.records(0)], walk


@pytest.fixture
def opened(
    files: Any,
    config: Callable[..., StoreConfig],
    open_store: Callable[..., MessageStore],
    message: Callable[..., PutMessage],
) -> Opened:
    store = open_store()
    messages = [message("AB"[each % 2], each % 3, bytes(300)) for each in range(60)]
    stored = [result for each in messages for result in store.put([each], NOW_MS)]
    return Opened(files, config(), stored)


def flip(files: Any, offset: int) -> None:
    files.maps[LOG + f"{offset - offset % 8192:020}"][offset % 8192] ^= 1


def test_a_sound_log_is_read_over_the_ends_of_its_files(opened: Opened) -> None:
    found, walk = opened.walk()
    assert found == [each.physical_offset for each in opened.stored]
    assert walk.position == opened.ends[-1]
    assert (walk.damages, walk.last_ms, walk.units_behind()) == ([], NOW_MS, 0)


@pytest.mark.parametrize("number", [0, 7, 30, 58])
def test_reading_goes_on_where_a_queue_proves_the_next_record(
    opened: Opened, files: Any, number: int
) -> None:
    lost = opened.stored[number]
    flip(files, lost.physical_offset + 120)
    found, walk = opened.walk()
    assert len(found) == 59
    following = opened.stored[number + 1].physical_offset
    assert walk.damages == [UnreadableStretch(lost.physical_offset, following, 1)]


def test_without_proof_it_goes_on_in_the_next_file(opened: Opened, files: Any) -> None:
    flip(files, opened.stored[3].physical_offset + 4)
    found, walk = opened.walk(proven=False)
    assert found == [each.physical_offset for each in opened.stored[:3]] + [
        each.physical_offset for each in opened.stored if each.physical_offset >= 8192
    ]
    assert walk.damages == [UnreadableStretch(opened.stored[3].physical_offset, 8192, 0)]


def test_a_file_older_than_what_was_read_proves_nothing(opened: Opened, files: Any) -> None:
    flip(files, opened.stored[3].physical_offset + 4)
    walk = LogWalk(opened.log, (), check_crc=True)
    walk.last_ms = NOW_MS + 1
    for record in walk.records(0):
        walk.last_ms = record.store_timestamp_ms + 1
    assert walk.position == opened.stored[3].physical_offset


def test_the_end_is_where_nothing_more_is_proven(opened: Opened, files: Any) -> None:
    for lost in opened.stored[50:]:
        flip(files, lost.physical_offset + 4)
    found, walk = opened.walk()
    assert len(found) == 50
    assert walk.position == opened.stored[50].physical_offset
    assert walk.units_behind() == 10
    assert walk.damages == []


def test_a_known_end_is_gone_to(opened: Opened) -> None:
    walk = LogWalk(opened.log, opened.queues, check_crc=False)
    walk.known_end = opened.ends[-1], NOW_MS
    assert walk.pass_all(0) == 0
    assert (walk.position, walk.last_ms, walk.newest_ms) == (opened.ends[-1], NOW_MS, NOW_MS)
    assert (walk.damages, walk.units_behind()) == ([], 0)


@pytest.mark.parametrize("spoiled", [(), (41,)])
@pytest.mark.parametrize("end", [-1, 40, 41, 1 << 40])
def test_a_known_end_behind_which_more_is_proven_is_not_believed(
    opened: Opened, files: Any, end: int, spoiled: tuple[int, ...]
) -> None:
    for number in spoiled:
        flip(files, opened.stored[number].physical_offset + 4)
    expected = LogWalk(opened.log, opened.queues, check_crc=False)
    expected.pass_all(0)
    walk = LogWalk(opened.log, opened.queues, check_crc=False)
    walk.known_end = opened.ends[end] if 0 <= end < 60 else end, NOW_MS + 5
    assert walk.pass_all(0) == 60 - len(spoiled)
    assert (walk.position, walk.last_ms, walk.newest_ms, walk.damages) == (
        expected.position, expected.last_ms, expected.newest_ms, expected.damages,
    )  # fmt: skip


def test_a_walk_may_end_earlier(opened: Opened) -> None:
    walk = LogWalk(opened.log, opened.queues, check_crc=False)
    part = list(walk.records(opened.ends[4], opened.ends[9]))
    assert [record.physical_offset for record in part] == [
        each.physical_offset for each in opened.stored[5:10]
    ]


def test_a_unit_agrees_with_its_record_in_everything(opened: Opened, files: Any) -> None:
    queue = opened.queues.find("A", 0)
    assert queue is not None
    assert agrees(opened.log, queue, 1, check_crc=True)
    unit = queue.stored(1)
    assert unit is not None
    assert record_at(opened.log, unit[0] + 1, check_crc=False) is None
    queue.topic = "C"
    assert not agrees(opened.log, queue, 1)
    queue.topic, queue.queue_id = "A", 1
    assert not agrees(opened.log, queue, 1)
    queue.queue_id = 0
    assert not agrees(opened.log, queue, 99)
    flip(files, unit[0] + 120)
    assert agrees(opened.log, queue, 1)
    assert not agrees(opened.log, queue, 1, check_crc=True)


@pytest.mark.parametrize("number", [None, 0, 7, 30, 58])
def test_a_walk_over_many_records_at_once_passes_the_same(
    opened: Opened, files: Any, number: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if number is not None:
        flip(files, opened.stored[number].physical_offset + 120)
    passed = []
    for its in (None, walk):
        monkeypatch.setattr(log_walk, "compiled_walk", lambda its=its: its)
        once = LogWalk(opened.log, opened.queues, check_crc=True)
        passed.append((
            once.pass_all(0), once.position, once.last_ms, once.newest_ms, once.damages,
            once.units_behind(),
        ))  # fmt: skip
    assert passed[0] == passed[1]
    assert passed[0][0] == 60 - (number is not None)


def test_a_walk_goes_on_in_python_when_the_compiled_one_fails(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> Any:
        raise RuntimeError

    monkeypatch.setattr(log_walk, "compiled_walk", lambda: fail)
    once = LogWalk(opened.log, opened.queues, check_crc=True)
    assert (once.pass_all(0), once.position) == (60, opened.ends[-1])
