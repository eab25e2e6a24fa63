# SPDX-License-Identifier: Apache-2.0
"""Gets that do not wait for the disk: what is not in memory is zeros here until it is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from txrocketmq.broker.store.disk import in_memory
from txrocketmq.broker.store.disk.in_memory import CHUNK_BYTES, InMemory, NotInMemory
from txrocketmq.broker.store.disk.mapped_file import MappedFile
from txrocketmq.broker.store.formats.damage import Damage
from txrocketmq.broker.store.formats.put_message import PutMessage
from txrocketmq.broker.store.message_store import GetMessageStatus, GetResult, MessageStore
from txrocketmq.broker.store.queues.consume_queue import UNIT
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
    assert first == ("/file", CHUNK_BYTES, CHUNK_BYTES, -1)
    assert last == ("/file", 2 * CHUNK_BYTES, CHUNK_BYTES - PAGE_BYTES, -1)
    assert memory.missing(file, 2 * CHUNK_BYTES - 1, 2 * CHUNK_BYTES) == [first]
    files.read_ahead(*last[:3])
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


def test_what_lies_behind_what_was_read_of_the_log_is_read_too(
    files: Any, file: MappedFile
) -> None:
    memory = InMemory(files, "/")
    files.read_ahead("/file", 0, 3 * CHUNK_BYTES)
    assert not memory.missing(file, 0, 3 * CHUNK_BYTES - PAGE_BYTES)
    memory.tick()
    memory.tick()
    files.evict("/file")
    first, second, third = memory.missing(file, 0, 3 * CHUNK_BYTES - PAGE_BYTES)
    assert first == ("/file", 0, CHUNK_BYTES, 0)
    files.read_ahead("/file", 0, 3 * CHUNK_BYTES)
    memory.note([first])
    assert memory.missing(file, 0, 2 * CHUNK_BYTES) == [second]
    assert not memory.missing(file, 2 * CHUNK_BYTES, 2 * CHUNK_BYTES + 1)
    memory.note([second])
    memory.tick()
    memory.tick()
    assert memory.missing(file, 0, 3 * CHUNK_BYTES - PAGE_BYTES) == [third], "each only once"


def test_what_lies_behind_what_was_read_of_another_file_is_not(
    files: Any, file: MappedFile
) -> None:
    memory = InMemory(files, "/log")
    (chunk,) = memory.missing(file, 0, CHUNK_BYTES)
    files.read_ahead("/file", 0, 3 * CHUNK_BYTES)
    memory.note([chunk])
    assert not memory.missing(file, CHUNK_BYTES, 2 * CHUNK_BYTES)


def test_what_was_scrubbed_is_remembered_with_a_limit(
    files: Any, file: MappedFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_memory, "_MAX_KNOWN", 2)
    memory = InMemory(files, "/")
    memory.note(memory.missing(file, 0, 3 * CHUNK_BYTES - PAGE_BYTES))
    assert list(memory._scrubbed) == [("/file", 1), ("/file", 2)]


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
            result = store.get("Topic", 0, offset, 32, 1 << 22, codes)
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
        old._records.physical_bytes = 0
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
    with old._records.memory.waiting():
        assert isinstance(old.get("Topic", 0, 0, 32, 1 << 22), GetResult)
    assert files.read_ahead_of == []
    with pytest.raises(NotInMemory):
        old.get("Topic", 0, 0, 32, 1 << 22)


def test_what_this_process_has_written_lately_is_not_asked_for(
    old: MessageStore, files: Any, message: Callable[..., PutMessage]
) -> None:
    old.put([message(queue_id=7)], NOW_MS)
    assert old.get("Topic", 7, 0, 32, 1 << 22).count == 1
    assert files.read_ahead_of == []


@pytest.mark.parametrize("error", [FileNotFoundError(), OSError("Input/output error")])
def test_what_a_read_fails_with_is_told_but_that_a_file_has_expired(
    old: MessageStore, files: Any, monkeypatch: pytest.MonkeyPatch, error: OSError
) -> None:
    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr(files, "read_ahead", fails)
    with pytest.raises(NotInMemory) as cold:
        old.get("Topic", 0, 0, 32, 1 << 22)
    read = cold.value.read
    read.run()
    read.finish()
    has_expired = isinstance(error, FileNotFoundError)
    assert read.error is (None if has_expired else error)
    known = old._records.memory._known
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


def spoiled(store: MessageStore, files: Any, numbers: list[int]) -> list[Damage]:
    """Alters the bodies of messages of queue 0 on the disk; what is to be told of each."""
    found: list[Damage] = []
    path = "/store/commitlog/" + "0" * 20
    queue = store._queues.find("Topic", 0)
    assert queue is not None
    files.read_ahead("/store/consumequeue/Topic/0/" + "0" * 20, 0, 40_000)
    for number in numbers:
        unit = queue.stored(number)
        assert unit is not None
        offset, size, _ = unit
        page, at = divmod(offset + 600, PAGE_BYTES)
        data = bytearray(files.cold[path, page])
        data[at] ^= 1
        files.cold[path, page] = bytes(data)
        found.append(Damage(offset, size, path, offset, "Topic/0", number))
    files.evict("/store/consumequeue")
    return found


def test_a_body_that_has_changed_on_the_disk_is_told_once(old: MessageStore, files: Any) -> None:
    numbers = [0, 1, 120, 500, 899]
    expected = spoiled(old, files, numbers)
    told: list[Damage] = []
    old.wrong_bodies.listeners.append(lambda damage, _: told.append(damage))
    for codes in (None, frozenset([0])):
        assert drained(old, codes)[0] == wanted(codes), "it is delivered all the same"
        old.tick(NOW_MS)
        assert told == expected
        files.evict("/store/commitlog")
        old.tick(NOW_MS)
    assert old.wrong_bodies.count == len(numbers)
    assert old.damaged.count == 0


def test_a_body_that_has_changed_in_memory_is_nobodys_concern(
    old: MessageStore, files: Any
) -> None:
    drained(old)
    queue = old._queues.find("Topic", 0)
    assert queue is not None
    unit = queue.stored(3)
    assert unit is not None
    files.maps["/store/commitlog/" + "0" * 20][unit[0] + 600] ^= 1
    assert drained(old) == (wanted(None), 0)
    assert old.wrong_bodies.count == 0


def test_what_the_system_has_read_ahead_is_scrubbed(
    old: MessageStore, files: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Linux does: whoever reads in a row gets more than is asked for."""
    numbers = [0, 300, 600, 899]
    expected = spoiled(old, files, numbers)
    read_ahead = files.read_ahead

    def generous(path: str, position: int, size: int) -> bytes:
        read_ahead(path, 0, 4 << 20)
        data: bytes = read_ahead(path, position, size)
        return data

    monkeypatch.setattr(files, "read_ahead", generous)
    assert drained(old)[0] == wanted(None)
    assert old.wrong_bodies.count == len(expected)


def test_a_replica_reads_ahead_of_what_it_needs(old: MessageStore, files: Any) -> None:
    needed, ahead = CHUNK_BYTES, 2 * CHUNK_BYTES
    read = old.cold_raw(10, needed, ahead)
    assert read is not None
    assert len(read.chunks) == 3, "what begins at 10 ends in the third"
    assert files.read_ahead_of == []
    read.run()
    read.finish()
    assert old.cold_raw(10, needed, ahead) is None
    assert old.cold_raw(CHUNK_BYTES, needed, ahead) is None
    assert old.cold_raw(3 * CHUNK_BYTES, needed, ahead) is not None
    assert old.cold_raw(old.max_physical_offset, needed, ahead) is None
