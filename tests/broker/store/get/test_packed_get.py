# SPDX-License-Identifier: Apache-2.0
"""What a kernel answers is what get_message.py returns; see test_raw_pulls.py, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.broker.store.get.test_get_message import MANY, Rig
from txrocketmq.broker.kernel.pulls import pull_answer
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.put_message import PutMessage
from txrocketmq.broker.store.get.get_message import get_message
from txrocketmq.broker.store.get.get_result import Request
from txrocketmq.broker.store.get.packed_get import PackedGet, get_packed

UNITS = 5
"""How many units the files of the queue have: no more are read at once."""
PIECES = [b"{", b"|", b"|", b"#", b"}"]


@pytest.fixture
def rig(files: Any, config: Callable[..., StoreConfig], message: Callable[..., PutMessage]) -> Rig:
    rig = Rig(files, config(), message)
    rig.put(*[(number % 2, 0) for number in range(40)], size=700)
    return rig


def packed(rig: Rig, offset: int, count: int = 32, most: int = MANY) -> PackedGet | None:
    """What a kernel finds; if it finds something, that is what is found without one."""
    request = Request(offset, count, most, None, None)
    found = get_packed(rig.records, rig.queue, request, pull_answer, PIECES, 5)
    if found is not None:
        result = get_message(rig.records, rig.queue, request)
        head = b"{%d|0|20#5}" % result.next_begin_offset
        assert b"".join(found.buffers)[8:] == head + b"".join(result.buffers)
        assert found[:3] == (result.next_begin_offset, result.count, result.size_bytes)
    return found


def messages(rig: Rig, offset: int, count: int = 32, most: int = MANY) -> int:
    """How many messages a kernel finds, or 0."""
    found = packed(rig, offset, count, most)
    return 0 if found is None else found.messages


def test_it_finds_what_is_found_without_it(rig: Rig) -> None:
    assert [messages(rig, offset) for offset in (0, 3, 19)] == [UNITS, UNITS - 3, 1]
    assert [messages(rig, 2, count) for count in (-1, 0, 1, 5)] == [1, 1, 1, 3]
    assert [messages(rig, 0, most=most) for most in (-5, 0, 3_000, 100_000)] == [1, 1, 3, UNITS]


def test_there_is_nothing_behind_the_end(rig: Rig) -> None:
    assert packed(rig, 20) is None


def test_what_is_not_recent_is_not_taken(rig: Rig) -> None:
    rig.set_recent(2_000)
    assert packed(rig, 0) is None
    assert messages(rig, 19) == 1


def test_what_was_written_earlier_is_taken_if_it_is_in_memory(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.records.written_from = rig.log.max_offset
    assert messages(rig, 0) == UNITS
    monkeypatch.setattr(rig.records.memory, "missing", lambda *_: ["a chunk"])
    assert packed(rig, 0) is None
    monkeypatch.undo()
    monkeypatch.setattr("txrocketmq.broker.store.get.packed_get._MOST_APART_BYTES", 5_000)
    assert packed(rig, 0) is None
    assert messages(rig, 18) == 2


def test_damaged_records_are_not_taken(rig: Rig) -> None:
    file = rig.log.files.find(0)
    assert file is not None
    file.map()[4] ^= 1
    assert packed(rig, 0) is None
    assert messages(rig, 1) == UNITS - 1
