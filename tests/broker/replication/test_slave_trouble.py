# SPDX-License-Identifier: Apache-2.0
"""A slave that cannot go on: it says so once, and tries again; see test_slave.py."""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest

from tests.broker.replication.wire import Open, Scene, Wire, assert_same, master_of, said
from tests.fakes import NOW_MS
from txrocketmq.broker.replication.slave import LONGEST_PAUSE_MS
from txrocketmq.broker.store.log.commit_point import Ticket
from txrocketmq.broker.store.message_store import PutStatus
from txrocketmq.broker.store.replication.frames import HEAD_CODEC


def times(scene: Scene, ms: int, use: Callable[[Wire], object] | None = None) -> list[int]:
    """After how many ms connections are attempted, of which each is used and then ends."""
    start, found = scene.parts.now_ms, []
    count = len(scene.wires)
    while scene.parts.now_ms < start + ms:
        scene.pass_ms(100)
        if len(scene.wires) > count:
            count = len(scene.wires)
            found.append(scene.parts.now_ms - start)
            scene.settle() if use is None else use(scene.wire)
            scene.wire.break_off()
    return found


def test_a_full_disk_is_said_once_and_tried_again_less_and_less_often(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    master_of(scene).put()
    monkeypatch.setattr(scene.parts.store, "append_raw", fails)
    attempts: list[int] = []
    lines = said(lambda: attempts.extend(times(scene, 240_000)))
    assert attempts == [100, 5_100, 15_100, 35_100, 75_100, 135_100, 195_100]
    assert len([each for each in lines if "does not take what it sends" in each]) == 1
    monkeypatch.undo()
    scene.pass_ms(LONGEST_PAUSE_MS)
    scene.settle()
    assert_same(scene)
    monkeypatch.setattr(scene.parts.store, "append_raw", fails)
    master_of(scene).put()
    lines = said(scene.settle)
    assert "does not take what it sends" in lines[-1]


@pytest.mark.parametrize(
    ("role", "at_once", "later"),
    [
        ("ASYNC_MASTER", PutStatus.PUT_OK, PutStatus.PUT_OK),
        ("SYNC_MASTER", PutStatus.FLUSH_SLAVE_TIMEOUT, PutStatus.SLAVE_NOT_AVAILABLE),
    ],
)
def test_the_master_of_a_slave_whose_disk_is_full_goes_on_by_its_policy(
    opened: Open,
    monkeypatch: pytest.MonkeyPatch,
    role: str,
    at_once: PutStatus,
    later: PutStatus,
) -> None:
    def fails(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    scene = opened(role=role)
    master = master_of(scene)
    scene.pass_ms(100)
    scene.settle()
    monkeypatch.setattr(scene.parts.store, "append_raw", fails)

    def sent() -> PutStatus | None:
        """What the sender of a message is told, at the latest after four seconds."""
        master.put()
        outcome = master.store.commit.outcome(master.store.max_physical_offset)
        scene.settle()
        if scene.wire.is_closed:
            scene.wire.break_off()
        for _ in range(40):
            master.now_ms += 100
            master.master.tick(NOW_MS, master.now_ms)
        return outcome.outcome if isinstance(outcome, Ticket) else outcome

    assert sent() is at_once
    assert sent() is later
    assert master.store.max_offset("T", 0) == 2, "both are stored, and consumers see them"
    assert scene.parts.store.max_physical_offset == 0
    monkeypatch.undo()
    scene.pass_ms(LONGEST_PAUSE_MS)
    scene.settle()
    assert_same(scene)


def test_a_disk_that_has_failed_is_not_tried(scene: Scene) -> None:
    scene.parts.store.flush.error = OSError(errno.EIO, "broken")
    lines = said(lambda: scene.pass_ms(60_000))
    assert scene.wires == []
    assert len(lines) == 1
    assert "nothing can be appended, since the disk failed: " in lines[0]


def test_a_disk_that_fails_ends_the_connection(scene: Scene) -> None:
    scene.pass_ms(100)
    scene.parts.store.flush.error = OSError(errno.EIO, "broken")
    lines = said(lambda: scene.pass_ms(100))
    assert scene.wire.near.is_closed
    assert "since the disk failed: " in lines[0]


def test_what_found_no_room_in_queues_is_dispatched_later(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    master_of(scene).put()
    monkeypatch.setattr(scene.parts.store._reput, "run", fails)
    scene.pass_ms(100)
    scene.settle()
    assert scene.parts.store.max_offset("T", 0) == 0
    assert not scene.wire.is_closed, "the log has it"
    monkeypatch.undo()
    scene.pass_ms(100)
    scene.settle()
    assert_same(scene)


def test_frames_that_do_not_follow_are_said_once(scene: Scene) -> None:
    def send(wire: Wire) -> None:
        wire.link.received(HEAD_CODEC.pack(77, 1) + b"x")

    scene.append(10)
    lines = said(lambda: times(scene, 600_000, send))
    told = [each for each in lines if "does not follow the master" in each]
    assert len(told) == 1
    assert "it sends the log from 77 on, but this slave's log ends at 10" in told[0]


@pytest.mark.parametrize("file_bytes", [32_768, 131_072])
def test_files_of_another_size_are_said(opened: Open, file_bytes: int) -> None:
    scene = opened(mapped_file_size_commit_log=file_bytes)
    for _ in range(5):
        master_of(scene).put(body=bytes(30_000))

    lines = said(lambda: times(scene, 600_000))
    told = [each for each in lines if "does not follow" in each]
    assert len(told) == 1
    assert "mappedFileSizeCommitLog the same on both sides?" in told[0]


def test_another_log_is_said_and_not_followed(scene: Scene) -> None:
    scene.pass_ms(100)
    scene.wire.report()
    scene.wire.link.received(HEAD_CODEC.pack(0, 200) + b"\xff" * 200)
    lines = said(scene.turn)
    assert "there is no message at 0 of this slave's log, where one should begin" in lines[-1]
    assert scene.wire.near.is_closed
    scene.pass_ms(10 * LONGEST_PAUSE_MS)
    assert len(scene.wires) == 1


def test_a_master_that_is_empty_again_is_left(scene: Scene) -> None:
    scene.append(500)
    lines = said(lambda: times(scene, 60_000, lambda wire: wire.report()))
    assert scene.wire.far.is_closed
    assert "is served no more: its log ends at 500" in lines[0]
    assert len([each for each in lines if "does not follow" in each]) == 1
