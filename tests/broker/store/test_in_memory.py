# SPDX-License-Identifier: Apache-2.0
"""Gets that do not wait for the disk: what is not in memory is zeros here until it is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from txrocketmq.broker.store import in_memory
from txrocketmq.broker.store.consume_queue import UNIT
from txrocketmq.broker.store.in_memory import CHUNK_BYTES, InMemory, NotInMemory
from txrocketmq.broker.store.mapped_file import MappedFile
from txrocketmq.broker.store.message_store import GetMessageStatus, GetResult, MessageStore
from txrocketmq.broker.store.put_message import PutMessage
from txrocketmq.remoting.message.message import decode_messages

NOW_MS = 1_700_000_000_000
LARGE: dict[str, Any] = {
    "mapped_file_size_commit_log": 4 << 20,
    "mapped_file_size_consume_queue": 40_000,
}
PAGE_BYTES = 4096


@pytest.fixture
def file(files: Any) -> MappedFile:
    """A file of four chunks, of which a page less than three is written."""
    file = MappedFile(files, "/file", 4 * CHUNK_BYTES, wrote_bytes=3 * CHUNK_BYTES - PAGE_BYTES)
    file.map()
    files.evict("/file")
    return file


def test_what_is_missing_comes_in_chunks_of_what_is_written(files: Any, file: MappedFile) -> None:
    memory = InMemory(files)
    first, last = memory.missing(file, CHUNK_BYTES + 5, 2 * CHUNK_BYTES + 1)
    assert first == ("/file", CHUNK_BYTES, CHUNK_BYTES)
    assert last == ("/file", 2 * CHUNK_BYTES, CHUNK_BYTES - PAGE_BYTES)
    assert memory.missing(file, 2 * CHUNK_BYTES - 1, 2 * CHUNK_BYTES) == [first]
    files.read_ahead(*last)
    assert not memory.missing(file, 2 * CHUNK_BYTES, 2 * CHUNK_BYTES + 1)


def test_what_is_known_holds_for_a_tick_or_two(files: Any, file: MappedFile) -> None:
    memory = InMemory(files)
    (chunk,) = memory.missing(file, 0, 1)
    memory.note([chunk])
    assert not memory.missing(file, 0, 1)
    memory.tick()
    assert not memory.missing(file, 0, 1)
    memory.tick()
    assert memory.missing(file, 0, 1) == [chunk]


def test_what_is_known_is_limited(
    files: Any, file: MappedFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_memory, "_MAX_KNOWN", 1)
    memory = InMemory(files)
    chunks = memory.missing(file, 0, 3 * CHUNK_BYTES - PAGE_BYTES)
    memory.note(chunks)
    assert memory.missing(file, 0, 3 * CHUNK_BYTES - PAGE_BYTES) == chunks[:1]


@pytest.fixture
def old(
    files: Any, open_store: Callable[..., MessageStore], message: Callable[..., PutMessage]
) -> MessageStore:
    """A store that was opened with 900 messages of 1 KiB for each of two queues, none in memory."""
    store = open_store(**LARGE)
    for start in range(0, 1_800, 200):
        numbers = range(start, start + 200)
        store.put(
            [message(queue_id=each % 2, body=bytes(1024), tags_code=each % 3) for each in numbers],
            NOW_MS,
        )
    store.stop(NOW_MS)
    store = open_store(**LARGE)
    files.evict("/store/commitlog")
    files.evict("/store/consumequeue")
    return store


def drained(store: MessageStore, codes: frozenset[int] | None = None) -> tuple[list[int], int]:
    """The queue offsets of all messages of a queue, and how many reads that took."""
    offset = reads = 0
    found: list[int] = []
    while True:
        try:
            result = store.get("Topic", 0, offset, 32, 1 << 22, codes, only_in_memory=True)
        except NotInMemory as cold:
            reads += 1
            cold.read.run()
            cold.read.finish()
            continue
        if result.status is GetMessageStatus.OFFSET_OVERFLOW_ONE:
            return found, reads
        found += [each.queue_offset for each in decode_messages(b"".join(result.buffers))]
        assert result.next_begin_offset > offset
        offset = result.next_begin_offset


def wanted(codes: frozenset[int] | None) -> list[int]:
    return [each for each in range(900) if codes is None or 2 * each % 3 in codes]


@pytest.mark.parametrize("codes", [None, frozenset([2]), frozenset([0, 1, 2])])
@pytest.mark.parametrize("is_recent", [True, False])
def test_what_is_cold_is_read_first_and_given_whole(
    old: MessageStore, files: Any, codes: frozenset[int] | None, is_recent: bool
) -> None:
    if not is_recent:
        old._reader.physical_bytes = 0
    found, reads = drained(old, codes)
    assert found == wanted(codes)
    assert old.damaged.count == 0, "nothing was looked at before it was read"
    log = [each for each in files.read_ahead_of if "commitlog" in each[0]]
    assert len(log) == len(set(log)), "each chunk once"
    assert 5 <= reads <= len(files.read_ahead_of)


def test_what_is_warm_raises_nothing(old: MessageStore, files: Any) -> None:
    drained(old)
    files.read_ahead_of.clear()
    assert drained(old) == (wanted(None), 0)


def test_what_was_read_and_lost_again_is_read_again(old: MessageStore, files: Any) -> None:
    drained(old)
    files.evict("/store/commitlog")
    files.evict("/store/consumequeue")
    for _ in range(2):
        old.tick(NOW_MS)
    assert drained(old)[0] == wanted(None)


def test_who_may_wait_is_not_told(old: MessageStore, files: Any) -> None:
    assert isinstance(old.get("Topic", 0, 0, 32, 1 << 22), GetResult)
    assert files.read_ahead_of == []


def test_what_this_process_has_written_lately_is_not_asked_for(
    old: MessageStore, files: Any, message: Callable[..., PutMessage]
) -> None:
    old.put([message(queue_id=7)], NOW_MS)
    assert old.get("Topic", 7, 0, 32, 1 << 22, only_in_memory=True).count == 1
    assert files.read_ahead_of == []


@pytest.mark.parametrize("error", [FileNotFoundError(), OSError("Input/output error")])
def test_what_a_read_fails_with_is_told_but_that_a_file_has_expired(
    old: MessageStore, files: Any, monkeypatch: pytest.MonkeyPatch, error: OSError
) -> None:
    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr(files, "read_ahead", fails)
    with pytest.raises(NotInMemory) as cold:
        old.get("Topic", 0, 0, 32, 1 << 22, only_in_memory=True)
    read = cold.value.read
    read.run()
    read.finish()
    has_expired = isinstance(error, FileNotFoundError)
    assert read.error is (None if has_expired else error)
    known = old._reader.memory._known
    assert bool(known) is has_expired, "what was not read is not taken to be in memory"


@pytest.mark.parametrize("codes", [None, frozenset([0])])
def test_a_damaged_unit_asks_for_no_part_of_the_log(
    old: MessageStore, files: Any, codes: frozenset[int] | None
) -> None:
    drained(old)
    units = files.maps["/store/consumequeue/Topic/0/" + "0" * 20]
    for offset, unit in enumerate([(1 << 50, 2**31 - 2), (-5, 100), (0, -1), (0, 2**30)]):
        UNIT.pack_into(units, offset * UNIT.size, *unit, 0)
    files.read_ahead_of.clear()
    found, _ = drained(old, codes)
    assert found == [each for each in wanted(codes) if each >= 4]
    assert files.read_ahead_of == []
