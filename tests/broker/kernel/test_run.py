# SPDX-License-Identifier: Apache-2.0
"""What a run says of itself, and what it does not do. What it writes: see test_raw_sends.py."""

from __future__ import annotations

import random
from mmap import mmap
from typing import Any

import pytest

from tests.broker.kernel.random_frames import Frames
from tests.broker.kernel.test_header_holes import header_of
from tests.broker.kernel.two_brokers import with_each_kernel
from txrocketmq.broker.kernel.chosen import Kernel
from txrocketmq.broker.processors.send.send_answers import Stored, prepared_answers
from txrocketmq.broker.store.formats.put_message import PutStatus
from txrocketmq.remoting.codes import SerializeType
from txrocketmq.remoting.frame.frame import FrameDecoder
from txrocketmq.remoting.message import record

HOST = bytes([127, 0, 0, 1, 0, 0, 0, 9])


class Taken:
    """A run of two sends, of which the second is one-way, and its table."""

    def __init__(self, kernel: Kernel) -> None:
        frames = Frames(random.Random(5))
        self.frames = [frames.usual(e="1"), frames.usual(e="1", a="other")]
        self.table = kernel.new_table([], [], [], b"OWN\1x\2")
        queue = self.table.add_queue("queue", b"\6orders", record.MAGIC_V1, 1)
        for frame, oneway, code in zip(self.frames, (False, True), (310, 10), strict=True):
            kind, header = header_of(frame)
            assert self.table.learn(
                kind, header, queue, False, oneway, 0, 0, 0, code, None, 0, None
            )
        self.run: Any = self.table.take(b"".join(self.frames), 0)
        self.rows = kernel.new_rows()
        self.mapped = mmap(-1, 4096)

    def write(self, at: int = 0, offset: int = 0, nexts: tuple[int, ...] = (7,)) -> list[Any]:
        """Writes it."""
        units: list[Any] = self.run.write(
            self.table, self.mapped, at, offset, list(nexts), 1_000, HOST, HOST, self.rows
        )
        return units


@with_each_kernel
def test_it_counts_kinds_and_those_that_want_an_answer(kernel: Kernel) -> None:
    taken = Taken(kernel)
    assert taken.run.kinds() == [(310, False, 1), (10, True, 1)]
    assert (taken.run.answered, taken.run.commands, taken.run.waits) == (1, 2, True)


@with_each_kernel
def test_it_writes_records_units_and_rows(kernel: Kernel) -> None:
    taken = Taken(kernel)
    ((queue, first_offset, (offset, units, end_offset)),) = taken.write(at=100, offset=5_000)
    assert (queue, first_offset) == ("queue", 7)
    assert (offset, end_offset) == (5_000, 5_000 + taken.run.size_bytes)
    first = record.RECORD.parse(taken.mapped[100 : 100 + taken.run.size_bytes // 2])
    assert (first.queue_offset, first.physical_offset) == (7, 5_000)
    assert (first.topic, first.body) == (b"orders", b"body")
    assert first.properties.endswith(b"WAIT\1true\2OWN\1x\2")
    assert len(units) == 40
    assert len(taken.rows) == 2
    assert taken.mapped[:100] == bytes(100)


@with_each_kernel
@pytest.mark.parametrize("how", ["no room", "no queue", "no address", "twice"])
def test_it_writes_nothing_that_does_not_fit(kernel: Kernel, how: str) -> None:
    taken = Taken(kernel)
    run = taken.run
    if how == "twice":
        taken.write()
    before = taken.mapped[:]
    at = 4096 - run.size_bytes + 1 if how == "no room" else 0
    nexts = [] if how == "no queue" else [7]
    born = HOST[:4] if how == "no address" else HOST
    with pytest.raises(ValueError, match="."):
        run.write(taken.table, taken.mapped, at, 0, nexts, 1_000, born, HOST, None)
    assert taken.mapped[:] == before


@with_each_kernel
@pytest.mark.parametrize("form", [SerializeType.JSON, SerializeType.ROCKETMQ])
@pytest.mark.parametrize("status", [PutStatus.PUT_OK, PutStatus.FLUSH_DISK_TIMEOUT])
def test_answers_are_those_that_are_prepared_for_all(
    kernel: Kernel, form: SerializeType, status: PutStatus
) -> None:
    taken = Taken(kernel)
    taken.write(offset=500)
    fields = {"MSG_REGION": "100% here", "TRACE_ON": "true"}
    answers = prepared_answers(fields, HOST, form)[status]
    said = taken.run.answers(taken.table, *answers.pieces, answers.host)
    (command,) = FrameDecoder().receive(taken.frames[0])
    key = (command.ext_fields or {})["i"].split("\2")[0].split("\1")[1]
    assert said == answers.frames([Stored(500, b"1", 7, key, command.opaque)])
