# SPDX-License-Identifier: Apache-2.0
"""A master and its slaves, whose connections are in the test's hands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from twisted.logger import capturedLogs, formatEvent

from tests.broker.conftest import Parts
from tests.broker.replication.slaves import FakeSlave
from tests.fakes import NOW_MS
from txrocketmq.broker.replication import master as module
from txrocketmq.broker.store.log.commit_point import Ticket
from txrocketmq.broker.store.message_store import PutStatus
from txrocketmq.broker.store.replication.frames import HEAD_BYTES
from txrocketmq.broker.store.replication.replicas import MOST_OF_HOST, MOST_SLAVES
from txrocketmq.broker.work import notices
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.process.log_limit import Seldom


def whole(parts: Parts) -> bytes:
    return bytes(parts.store.read_raw(0, 1 << 30) or b"")


def test_a_slave_gets_the_log_and_what_follows(parts: Parts) -> None:
    parts.put("T")
    slave = FakeSlave(parts)
    slave.report(0)
    assert slave.log == whole(parts)
    parts.put("T")
    assert slave.log == whole(parts)


def test_metrics_say_how_many_slaves_there_are_and_what_the_last_one_lacks(parts: Parts) -> None:
    gauges = {each.name: each.value for each in parts.master.life().gauges}
    assert gauges["txrocketmq_slaves"]() == gauges["txrocketmq_slave_behind_bytes"]() == 0
    parts.put("T")
    first, end = FakeSlave(parts), parts.store.max_physical_offset
    assert gauges["txrocketmq_slaves"]() == 0, "it has not said where its log ends"
    first.report(0)
    FakeSlave(parts).report(0)
    assert (gauges["txrocketmq_slaves"](), gauges["txrocketmq_slave_behind_bytes"]()) == (2, end)
    first.report(end)
    assert gauges["txrocketmq_slave_behind_bytes"]() == end, "the other one is farther behind"


@pytest.mark.parametrize(
    ("role", "delay_ms", "first"), [("SYNC_MASTER", 0, 1), ("ASYNC_MASTER", 10, 0)]
)
def test_slaves_are_woken_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, role: str, delay_ms: int, first: int
) -> None:
    """For what senders wait for, the first put of a turn wakes them besides."""
    parts = Parts(tmp_path, store_settings={"broker_role": role})
    turn: list[Callable[[], None]] = []
    delays_ms: list[float] = []

    def later(ms: float, call: Callable[[], None]) -> None:
        turn.append(call)
        delays_ms.append(ms)

    monkeypatch.setattr(parts.master, "_later", later)
    slave = FakeSlave(parts)
    slave.report(0)
    wakes = slave.wakes
    for _ in range(3):
        parts.put("T")
    assert (len(turn), slave.wakes) == (1, wakes + first)
    turn.pop()()
    assert (slave.wakes, slave.log) == (wakes + first + 1, whole(parts))
    parts.put("T")
    assert len(turn) == 1
    assert delays_ms == [delay_ms] * 2
    parts.store.stop(parts.now_ms)


def test_a_slave_has_what_it_is_waited_for_before_the_master_dispatches_it(
    sync_master: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts, turn = sync_master, list[Callable[[], None]]()
    monkeypatch.setattr(parts.master, "_later", lambda _, call: turn.append(call))
    slave = FakeSlave(parts)
    slave.report(0)
    shown: list[tuple[int, int]] = []
    wake = slave.wake

    def woken() -> None:
        wake()
        shown.append((len(slave.log), parts.store.max_offset("T", 0)))

    monkeypatch.setattr(slave, "wake", woken)
    parts.put("T")
    end = parts.store.max_physical_offset
    assert shown == [(end, 0)]
    assert parts.store.max_offset("T", 0) == 1
    turn.pop()()
    assert len(shown) == 1, "there was nothing more"


def test_what_was_put_is_dispatched_though_a_slave_cannot_be_woken(
    sync_master: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    slave = FakeSlave(sync_master)
    slave.report(0)

    def fails() -> None:
        raise RuntimeError("unforeseen")

    monkeypatch.setattr(slave, "wake", fails)
    with pytest.raises(RuntimeError, match="unforeseen"):
        sync_master.put("T")
    assert sync_master.store.max_offset("T", 0) == 1


def test_without_slaves_nothing_is_told(parts: Parts) -> None:
    plain = parts.store._confirmed.add
    one, other = FakeSlave(parts), FakeSlave(parts)
    assert parts.store._confirmed.add != plain
    one.slave.ended("gone")
    assert parts.store._confirmed.add != plain
    other.slave.leave("enough")
    assert other.is_closed
    assert parts.store._confirmed.add == plain


def test_reports_confirm_sends(sync_master: Parts) -> None:
    parts = sync_master
    slave = FakeSlave(parts)
    slave.report(0)
    parts.put("T")
    outcome = parts.store.commit.outcome(parts.store.max_physical_offset)
    assert isinstance(outcome, Ticket)
    slave.report(parts.store.max_physical_offset)
    assert outcome.outcome is PutStatus.PUT_OK


def test_late_senders_are_told_soon(sync_master: Parts) -> None:
    parts = sync_master
    FakeSlave(parts).report(0)
    parts.put("T")
    outcome = parts.store.commit.outcome(parts.store.max_physical_offset)
    assert isinstance(outcome, Ticket)
    for ms in range(0, 3_001, 100):
        assert outcome.outcome is None
        parts.master.tick(NOW_MS, NOW_MS + ms)
    assert outcome.outcome is PutStatus.FLUSH_SLAVE_TIMEOUT


def test_a_report_that_cannot_be_ends_the_connection(sync_master: Parts) -> None:
    parts = sync_master
    slave = FakeSlave(parts)
    slave.report(99_000_000)
    assert slave.is_closed
    slave.report(0)
    assert slave.slave.pieces() == ()
    parts.put("T")
    outcome = parts.store.commit.outcome(parts.store.max_physical_offset)
    assert outcome is PutStatus.SLAVE_NOT_AVAILABLE
    assert len(parts.master.replicas) == 0


def test_a_silent_slave_is_let_go(parts: Parts) -> None:
    silent, living = FakeSlave(parts), FakeSlave(parts)
    silent.report(0)
    parts.now_ms += 15_000
    living.report(0)
    parts.now_ms += 6_000
    parts.master.tick(parts.now_ms, parts.now_ms)
    assert (silent.is_closed, living.is_closed) == (True, False)
    assert set(living.frames) == {(0, b"")}, "heartbeats"


def test_there_may_be_too_many(parts: Parts) -> None:
    for port in range(MOST_OF_HOST):
        FakeSlave(parts, port=port)
    assert parts.master.begin("10.0.0.1", 99, FakeSlave(parts, "10.0.0.2")) is None


def test_many_slaves_are_sent_no_more_in_a_turn_than_one(parts: Parts) -> None:
    for _ in range(4 * module.BUDGET_BYTES // 30_000):
        parts.put("T", body=bytes(30_000))
    slaves = [FakeSlave(parts, f"10.0.0.{number}") for number in range(MOST_SLAVES)]
    for slave in slaves:
        slave.room = 0
        slave.report(0)
    sent_bytes = sum(len(piece) for slave in slaves for piece in slave.slave.pieces())
    assert 0 < sent_bytes <= module.BUDGET_BYTES + MOST_SLAVES * 2 * HEAD_BYTES


def test_a_slave_that_comes_and_goes_does_not_fill_the_log(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notices, "_slaves", Seldom(3))
    with capturedLogs() as lines:
        for port in range(10):
            slave = FakeSlave(parts, port=port)
            slave.report(0)
            slave.slave.ended("gone")
    said = [formatEvent(line) for line in lines]
    assert [sum(what in line for line in said) for what in ("has the log", "no more")] == [3, 3]


def test_what_a_slave_needs_is_kept(parts: Parts) -> None:
    needed = parts.store._retention.needed_from
    assert needed() is None
    parts.put("T")
    slave = FakeSlave(parts)
    assert needed() is None
    slave.room = 30
    slave.report(0)
    assert needed() == 0
    slave.slave.ended("gone")
    assert needed() is None


def test_what_is_not_in_memory_is_read_ahead(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    parts.put("T", body=bytes(30_000))
    monkeypatch.setattr(module, "BUDGET_BYTES", 1_000)
    asked: list[tuple[int, int, int]] = []
    begun: list[Callable[[object], None]] = []

    def cold(offset: int, needed_bytes: int, ahead_bytes: int) -> object:
        asked.append((offset, needed_bytes, ahead_bytes))
        return None if len(asked) > 1 else object()

    monkeypatch.setattr(parts.store, "cold_raw", cold)
    monkeypatch.setattr(parts.patience, "wait", lambda who, read, go_on: begun.append(go_on))
    slave = FakeSlave(parts)
    slave.report(0)
    slave.wake()
    assert (asked, slave.frames, len(begun)) == ([(0, 1_000, module.AHEAD_BYTES)], [], 1)
    begun[0](None)
    assert slave.log == whole(parts)


def test_a_file_that_cannot_be_mapped_ends_the_connection(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise OSError("no memory")

    slave = FakeSlave(parts)
    slave.report(0)
    other = FakeSlave(parts, "10.0.0.2")
    other.report(0)
    monkeypatch.setattr(slave.slave.feed, "pieces", fails)
    parts.put("T")
    assert (slave.is_closed, other.log) == (True, whole(parts))


def test_a_disk_that_fails_ends_the_connection(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts.put("T")
    error = ResponseError(ResponseCode.SYSTEM_ERROR, "the disk fails")
    monkeypatch.setattr(parts.store, "cold_raw", lambda *_: object())
    monkeypatch.setattr(parts.patience, "wait", lambda who, read, go_on: go_on(error))
    slave = FakeSlave(parts)
    slave.report(0)
    assert slave.is_closed
