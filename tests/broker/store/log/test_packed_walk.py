# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
from hypothesis import given

from tests.kernel.random_records import logs
from txrocketmq.broker.store.formats.scan import RecordWalk, dispatched
from txrocketmq.broker.store.log import packed_walk
from txrocketmq.broker.store.log.packed_walk import ROW, compiled_walk, walk
from txrocketmq.remoting.message.properties import DELAY


class _Part:
    def __init__(self, data: bytes, from_offset: int) -> None:
        self.view, self.from_offset = memoryview(data), from_offset


@given(logs())
def test_rows_say_what_a_walk_over_single_records_finds(log: tuple[bytes, int, list[int]]) -> None:
    data, from_offset, begins = log
    found = list(RecordWalk(_Part(data, from_offset), 0, check_crc=True))
    position, count, rows = walk(memoryview(data), from_offset, 0, len(data), True)
    assert (position, count) == (begins[-1], len(found))
    for record, row in zip(found, ROW.iter_unpack(rows), strict=True):
        offset, queue_offset, stored_ms, code, size, queue_id, flag, topic_at, length, plain = row
        assert (offset, size, queue_id, queue_offset, flag, stored_ms) == record[:6]
        assert data[topic_at : topic_at + length] == record.topic
        known = dispatched(record, {})
        assert plain or code == 0
        if plain:
            assert code == known.tags_code
            assert known[5:] == (None, None, None)
            assert DELAY.encode() not in bytes(record.properties)


def test_the_compiled_form_is_that_of_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    class Kernel:
        walk = object()

    monkeypatch.setattr(packed_walk, "wanted_kernel", lambda: Kernel)
    assert compiled_walk() is Kernel.walk
    monkeypatch.setattr(packed_walk, "wanted_kernel", lambda: None)
    assert compiled_walk() is None
