# SPDX-License-Identifier: Apache-2.0
"""Pulls of messages that are not in memory: the disk is waited for in threads only."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.broker.conftest import Parts
from tests.broker.processors.pull.test_pull_message import (
    COMMIT,
    OWN,
    SUSPEND,
    Pulling,
    bodies,
    facts,
)
from tests.fakes import outcome_of, request
from txrocketmq.broker.processors.pull.offset import OffsetProcessor
from txrocketmq.broker.store.disk.files import OsFiles
from txrocketmq.broker.store.disk.in_memory import Chunk
from txrocketmq.broker.store.disk.steps import MOST_READS
from txrocketmq.broker.work.patience import MAX_WAITING
from txrocketmq.remoting.call import PendingReply, Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.protocol.offset import SearchOffsetRequestHeader


@pytest.fixture
def pulling(parts: Parts) -> Pulling:
    parts.topic("T")
    return Pulling(parts)


class SlowDisk:
    """A disk whose files are not in memory until they are read ahead, in a thread."""

    def __init__(self, pulling: Pulling, monkeypatch: pytest.MonkeyPatch) -> None:
        self.pulling = pulling
        self.is_in_thread = False
        self.read: set[tuple[str, int]] = set()
        self.error: OSError | None = None
        monkeypatch.setattr(OsFiles, "is_in_memory", self._is_in_memory)
        monkeypatch.setattr(OsFiles, "read_ahead", self._read_ahead)
        # As if the broker had been started after the messages came.
        store = pulling.parts.store
        store._records.written_from = store.max_physical_offset

    def _is_in_memory(self, *_: object) -> bool:
        return False

    def _read_ahead(self, path: str, offset_bytes: int, length_bytes: int) -> bytes:
        assert self.is_in_thread, "the disk is waited for where everybody waits"
        if self.error is not None:
            raise self.error
        self.read.add((path, offset_bytes))
        return b""

    def bring(self) -> None:
        """What was asked for is read."""
        threads, self.pulling.threads[:] = list(self.pulling.threads), []
        for work, done in threads:
            self.is_in_thread = True
            work()
            self.is_in_thread = False
            done(None)


@pytest.fixture
def slow(pulling: Pulling, monkeypatch: pytest.MonkeyPatch) -> SlowDisk:
    for index in range(3):
        pulling.parts.put(body=b"%d" % index, TAGS="a")
    return SlowDisk(pulling, monkeypatch)


@pytest.mark.parametrize("subscription", ["*", "a"])
def test_old_messages_are_read_in_a_thread(
    pulling: Pulling, slow: SlowDisk, subscription: str
) -> None:
    pending = pulling.pull(sys_flag=OWN | COMMIT, subscription=subscription, commit_offset=2)
    assert isinstance(pending, PendingReply)
    assert pulling.parts.offsets.query("g", "T", 0) == 2
    slow.bring()
    assert not pending.done, "the queue is there, the log is not"
    slow.bring()
    assert bodies(outcome_of(pending)) == [b"0", b"1", b"2"]
    assert len(slow.read) == 2


def test_sends_and_young_messages_wait_for_no_disk(pulling: Pulling, slow: SlowDisk) -> None:
    pending = pulling.pull()
    pulling.parts.put(queue_id=1, body=b"young")
    queue = pulling.parts.store._queues.find("T", 1)
    assert queue is not None
    (units,) = queue.files.mapped_files
    pulling.parts.store._records.memory.note([Chunk(units.path, 0, 20)])
    assert bodies(pulling.pull(queue_id=1)) == [b"young"]
    assert not pending.done
    assert slow.read == set()


def test_a_cold_pull_that_finds_nothing_is_held_as_any_other(
    pulling: Pulling, slow: SlowDisk
) -> None:
    pending = pulling.pull(sys_flag=OWN | SUSPEND, queue_offset=1, subscription="b")
    slow.bring()
    assert facts(outcome_of(pending))[:3] == (
        ResponseCode.PULL_RETRY_IMMEDIATELY, "NO_MATCHED_MESSAGE", 3,
    )  # fmt: skip
    pending = pulling.pull(sys_flag=OWN | SUSPEND, queue_offset=3)
    assert len(pulling.polling) == 1
    assert not pending.done


def test_a_disk_that_fails_is_an_answer(pulling: Pulling, slow: SlowDisk) -> None:
    slow.error = OSError("Input/output error")
    pending = pulling.pull()
    slow.bring()
    error = outcome_of(pending)
    assert isinstance(error, ResponseError)
    assert error.code == ResponseCode.SYSTEM_ERROR
    assert "Input/output error" in (error.remark or "")


def test_where_too_many_wait_for_the_disk_one_more_is_refused(
    pulling: Pulling, slow: SlowDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("txrocketmq.broker.work.patience.MAX_WAITING", 0)
    error = outcome_of(pulling.pull())
    assert isinstance(error, ResponseError)
    assert error.code == ResponseCode.SYSTEM_BUSY


def test_who_has_gone_gets_nothing_read(pulling: Pulling, slow: SlowDisk) -> None:
    pending = pulling.pull()
    pulling.patience.disconnected(pulling.peer, 0)
    slow.bring()
    assert not pending.done
    assert len(pulling.patience) == 0


def test_no_pull_is_read_for_without_end(
    pulling: Pulling, slow: SlowDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pulling.parts.store._records.memory, "note", lambda _: None)
    pending = pulling.pull()
    for _ in range(MOST_READS):
        assert not pending.done
        slow.bring()
    slow.bring()
    assert bodies(outcome_of(pending)) == [b"0", b"1", b"2"]


def test_a_topic_that_goes_while_the_disk_is_read_is_told(pulling: Pulling, slow: SlowDisk) -> None:
    pending = pulling.pull()
    pulling.parts.topics.delete("T")
    slow.bring()
    error = outcome_of(pending)
    assert isinstance(error, ResponseError)
    assert error.code == ResponseCode.TOPIC_NOT_EXIST


def test_a_search_by_time_waits_for_the_disk_in_a_thread(pulling: Pulling, slow: SlowDisk) -> None:
    parts = pulling.parts
    processor = OffsetProcessor(
        parts.offsets, parts.groups, parts.topics, parts.store, parts.schedule, parts.walks,
        pulling.patience,
    )  # fmt: skip
    header = SearchOffsetRequestHeader(topic="T", queue_id=0, timestamp=parts.now_ms)
    pending = processor.search(request(header))
    assert isinstance(pending, PendingReply)
    while not pending.done:
        assert pulling.threads
        slow.bring()
    assert outcome_of(pending).header.offset == 0
    assert len(slow.read) == 2, "the queue and the log"
    slow.error = OSError(5, "Input/output error")
    parts.store._records.memory.tick()
    parts.store._records.memory.tick()
    pending = processor.search(request(header))
    slow.bring()
    refusal = outcome_of(pending)
    assert isinstance(refusal, ResponseError)
    assert refusal.code == ResponseCode.SYSTEM_ERROR
    assert "could not be read from the disk" in (refusal.remark or "")


def test_a_search_ends_though_nothing_stays_in_memory(pulling: Pulling, slow: SlowDisk) -> None:
    parts = pulling.parts
    memory = parts.store._records.memory
    asked: list[bool] = []

    def ask() -> Reply[NoHeader]:
        asked.append(memory._is_waiting)
        memory.tick()
        memory.tick()
        parts.store.offset_by_time("T", 0, parts.now_ms)
        return Reply()

    pending = pulling.patience.answer(pulling.peer, ask)
    while pulling.threads:
        slow.bring()
    assert outcome_of(pending).code == ResponseCode.SUCCESS
    assert asked == [False] * (MOST_READS + 1) + [True]


def test_too_many_that_wait_are_refused(pulling: Pulling, slow: SlowDisk) -> None:
    pulling.patience._waiting = MAX_WAITING
    for peer, code in ((pulling.peer, ResponseCode.SYSTEM_BUSY), (None, None)):
        pending = pulling.patience.answer(
            peer, lambda: Reply(remark=str(pulling.parts.store.offset_by_time("T", 0, 5)))
        )
        assert isinstance(pending, PendingReply)
        refusal: Any = pending.outcome
        assert getattr(refusal, "code", None) == code


@pytest.mark.parametrize(("attributes", "least"), [({"queue.type": "BatchCQ"}, -1), ({}, 0)])
def test_an_empty_queue_of_batches_begins_nowhere(
    parts: Parts, attributes: dict[str, str], least: int
) -> None:
    parts.topic("T")
    parts.topics._topics["T"] = replace(parts.topics.all()["T"], attributes=attributes)
    answer = Pulling(parts).pull().header
    assert (answer.next_begin_offset, answer.min_offset, answer.max_offset) == (0, least, 0)
