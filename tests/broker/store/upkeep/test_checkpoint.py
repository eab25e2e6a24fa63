# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
from typing import Any

import pytest

from txrocketmq.broker.store.formats import formats
from txrocketmq.broker.store.formats.errors import StoreLocked
from txrocketmq.broker.store.upkeep.checkpoint import Checkpoint, MarkerFiles


def test_timestamps_survive(files: Any) -> None:
    checkpoint = Checkpoint(files, "/store/checkpoint")
    checkpoint.load()
    assert checkpoint.min_timestamp_ms == 0
    checkpoint.physic_msg_timestamp_ms = 10_000
    checkpoint.logics_msg_timestamp_ms = 9_000
    checkpoint.index_msg_timestamp_ms = 8_000
    checkpoint.save()
    again = Checkpoint(files, checkpoint.path)
    again.load()
    assert again.min_timestamp_ms == 6_000
    assert again.index_msg_timestamp_ms == 8_000


def test_the_file_is_the_originals(files: Any) -> None:
    checkpoint = Checkpoint(files, "/store/checkpoint")
    checkpoint.load()
    checkpoint.physic_msg_timestamp_ms, checkpoint.master_flushed_offset = 1, 4
    checkpoint.save()
    data = files.maps["/store/checkpoint"][:]
    assert len(data) == 4096
    parsed = formats.CHECKPOINT.parse(data)
    assert (parsed.physic_msg_timestamp, parsed.master_flushed_offset) == (1, 4)
    assert not any(data[40:])


def test_what_is_written_survives_closing(files: Any) -> None:
    checkpoint = Checkpoint(files, "/store/checkpoint")
    checkpoint.load()
    checkpoint.physic_msg_timestamp_ms = 7
    checkpoint.save()
    checkpoint.close()
    checkpoint.load()
    assert checkpoint.physic_msg_timestamp_ms == 7


def test_the_lock_keeps_others_out(files: Any) -> None:
    first, second = MarkerFiles(files, "/store"), MarkerFiles(files, "/store")
    first.lock()
    assert files.small["/store/lock"] == b"lock"
    with pytest.raises(StoreLocked, match="/store/lock"):
        second.lock()
    second.unlock()
    first.unlock()
    second.lock()


def test_the_abort_file_tells_of_a_store_left_open(files: Any) -> None:
    marks = MarkerFiles(files, "/store")
    assert not marks.is_aborted
    marks.open(4096)
    assert files.small["/store/abort"] == f"{os.getpid()}:4096".encode()
    assert marks.log_start == 4096
    assert marks.is_aborted
    files.boot_ms = files.modified["/store/abort"] - 1
    assert not marks.is_machine_down
    files.boot_ms += 2
    assert marks.is_machine_down
    marks.close()
    assert not marks.is_aborted
    assert marks.log_start is None


def test_the_abort_file_tells_of_a_replica(files: Any) -> None:
    marks = MarkerFiles(files, "/store")
    assert not marks.was_replica
    marks.open(0)
    assert not marks.was_replica
    marks.open(4096, is_replica=True)
    marks.note_start(8192)
    assert marks.log_start == 8192
    assert marks.was_replica
    assert MarkerFiles(files, "/store").was_replica
    marks.open(8192)
    assert not marks.was_replica


@pytest.mark.parametrize("content", [b"", b"4711", b"4711:", b"\xff:1", b"1:2:3"])
def test_an_abort_file_of_somebody_else_does_not_say_where_the_log_begins(
    files: Any, content: bytes
) -> None:
    files.write("/store/abort", content)
    assert MarkerFiles(files, "/store").log_start is None
