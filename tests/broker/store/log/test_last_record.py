# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest

from tests.disk import MemoryFiles
from txrocketmq.broker.store.disk.mapped_file import MappedFile
from txrocketmq.broker.store.log import last_record as module
from txrocketmq.broker.store.log.last_record import is_blank, is_unfinished, last_record
from txrocketmq.broker.store.message_store import MessageStore, PutMessage
from txrocketmq.remoting.message.record import MAGIC_BLANK

NOW_MS = 1_700_000_000_000
OpenStore = Callable[..., MessageStore]
Build = Callable[..., PutMessage]


@pytest.fixture
def file(open_store: OpenStore, message: Build) -> tuple[MappedFile, list[int]]:
    """The only file of a log, and where its records begin, and the last one ends."""
    store = open_store(MemoryFiles())
    starts = []
    for number in range(20):
        (one,) = store.put([message(body=b"b" * (number * 31 % 300))], NOW_MS)
        starts.append(one.physical_offset)
    return store.log_files.mapped_files[0], [*starts, store.max_physical_offset]


@pytest.mark.parametrize("window", [16, 300, 1 << 16])
def test_the_last_record_before_any_place(
    file: tuple[MappedFile, list[int]], monkeypatch: pytest.MonkeyPatch, window: int
) -> None:
    monkeypatch.setattr(module, "_WINDOW_BYTES", window)
    log, starts = file
    for end in range(0, starts[-1] + 1, 3):
        whole = [start for start, after in pairwise(starts) if after <= end]
        found = last_record(log, end)
        assert (None if found is None else found.physical_offset) == (whole[-1] if whole else None)


def test_a_record_whose_end_is_missing(open_store: OpenStore, message: Build) -> None:
    for properties in (b"KEYS\x01k\x02TAGS\x01tag\x02", b"TAGS\x01tag", b""):
        store = open_store(MemoryFiles())
        store.put([message("Topic")._replace(properties=properties)], NOW_MS)
        log, end = store.log_files.mapped_files[0], store.max_physical_offset
        record = last_record(log, end)
        assert record is not None
        assert not is_unfinished(record)
        texts = len(properties) or len("Topic")
        behind = 0 if properties else 2  # an empty length is zeros, written or not
        for lacking in range(1, texts + 1):
            log.map()[end - behind - lacking : end - behind] = bytes(lacking)
            record = last_record(log, end)
            assert record is not None, "no CRC covers it"
            assert is_unfinished(record)


def test_the_beginning_of_a_blank(file: tuple[MappedFile, list[int]]) -> None:
    log, _ = file
    blank = (log.size_bytes - 100).to_bytes(4, "big") + MAGIC_BLANK.to_bytes(4, "big", signed=True)
    for size in range(9):
        assert is_blank(log, 100, blank[:size])
    assert is_blank(log, 100, blank + bytes(50))
    assert not is_blank(log, 101, blank)
    assert not is_blank(log, 100, b"\1")
