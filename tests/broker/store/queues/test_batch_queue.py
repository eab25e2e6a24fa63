# SPDX-License-Identifier: Apache-2.0
"""Queues of batches, by themselves and in a store, beside a list that says what should be there."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.broker.store.batches import batched, kind_of, plain
from tests.broker.store.conftest import NOW_MS, SMALL
from tests.disk import MemoryFiles
from tests.examples import examples
from txrocketmq.broker.store.check.check import StoreCheck
from txrocketmq.broker.store.disk.mapped_file import MappedFileQueue
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.errors import StoreError
from txrocketmq.broker.store.message_store import GetMessageStatus, MessageStore
from txrocketmq.broker.store.queues.batch_queue import BATCH_UNIT_BYTES, BatchQueue, BatchUnit
from txrocketmq.broker.store.queues.consume_queues import encode_topic

T = "Batches"
DIRECTORY = "/store/batchconsumequeue/Batches/0"
FILE_BYTES = 4 * BATCH_UNIT_BYTES
UNITS = [(0, 1), (1, 3), (4, 1), (5, 5), (10, 2), (12, 1), (13, 4), (20, 1), (21, 2)]
"""Offsets and numbers of messages; those from 17 to 19 are missing."""


def queue_on(files: MemoryFiles) -> BatchQueue:
    row = MappedFileQueue(files, DIRECTORY, FILE_BYTES, "key")
    return BatchQueue(T, 0, *encode_topic(T), row)


def fields(number: int, count: int) -> list[int]:
    return [number * 100, 100, number, *[0] * 3 * (count - 1)]


@pytest.fixture
def queue(files: MemoryFiles) -> BatchQueue:
    queue = queue_on(files)
    for number, (offset, count) in enumerate(UNITS):
        assert queue.dispatch_all(offset, fields(number, count), NOW_MS + number // 2)
    return queue


def number_of(offset: int) -> int | None:
    """Which unit has an offset."""
    return next((n for n, (at, count) in enumerate(UNITS) if at <= offset < at + count), None)


def test_units_are_as_the_original_writes_them(files: MemoryFiles) -> None:
    queue = queue_on(files)
    queue.append([7, 90, -5, 0, 0, 0], NOW_MS)
    assert files.read(f"{DIRECTORY}/{0:020}")[:BATCH_UNIT_BYTES] == struct.pack(
        ">qiqqqhii", 7, 90, -5, NOW_MS, 0, 2, -1, 0
    )


def test_each_offset_leads_to_its_record(queue: BatchQueue) -> None:
    assert (queue.min_offset, queue.max_offset, queue.max_physical_offset) == (0, 23, 900)
    for offset in range(-1, 25):
        number = number_of(offset)
        found = None if number is None else (number * 100, 100, number)
        assert queue.stored(offset) == found
        there = [each for each in range(23) if number_of(each) is not None]
        after = [each for each in there if each >= offset]
        before = [each for each in there if each < offset]
        assert queue.written_from(offset) == (after or [23])[0]
        assert queue.written_before(offset) == (before or [-1])[-1]
    assert [unit.tags_code for unit in queue.units(15, 7)] == [6, 6, 0, 0, 0, 7, 8]


def test_what_is_there_is_not_written_again(queue: BatchQueue) -> None:
    assert not queue.dispatch_all(21, fields(8, 2), NOW_MS)
    assert not queue.dispatch_all(22, fields(9, 2), NOW_MS), "it would overlap"
    assert queue.dispatch_all(21, fields(8, 2) + fields(9, 1), NOW_MS)
    assert queue.max_offset == 24


@pytest.mark.parametrize("number", range(len(UNITS) + 1))
def test_truncated_queues_end_before_the_place(
    queue: BatchQueue, files: MemoryFiles, number: int
) -> None:
    offset = UNITS[number][0] if number < len(UNITS) else 23
    assert queue.offset_of(number * 100) == offset
    queue.truncate(number * 100)
    end = sum(UNITS[number - 1]) if 0 < number < len(UNITS) else offset
    assert (queue.max_offset, queue.next_offset) == (end, end)
    again = queue_on(files)
    again.load()
    again.recover()
    assert again.max_offset == end
    assert [unit.physical_offset for unit in again.columns()] == list(range(0, number * 100, 100))


@pytest.mark.parametrize("offset", range(24))
def test_cut_queues_keep_whole_records_before_the_offset(queue: BatchQueue, offset: int) -> None:
    queue.cut(offset)
    kept = [each for each in UNITS if sum(each) <= offset]
    assert [unit.queue_offset for unit in queue.columns()] == [at for at, _ in kept]


@pytest.mark.parametrize("number", range(len(UNITS) + 1))
def test_the_queue_follows_the_log(queue: BatchQueue, number: int) -> None:
    taken = queue.take_files_before(number * 100)
    assert queue.min_offset == (UNITS[number][0] if number < len(UNITS) else 23)
    assert len(taken) == min(number // 4, 2)
    assert queue.stored(22) is not None, "the last file stays"


@pytest.mark.parametrize(
    ("ms", "lower", "upper"),
    [(-1, 0, 0), (0, 0, 1), (1, 4, 5), (3, 13, 20), (4, 21, 21), (5, 21, 21)],
)
def test_search_by_time(queue: BatchQueue, ms: int, lower: int, upper: int) -> None:
    def search(*, upper: bool) -> int:
        return queue.offset_by_time(NOW_MS + ms, lambda _: 0, upper=upper)

    assert (search(upper=False), search(upper=True)) == (lower, upper)


def test_units_that_were_not_finished_end_the_queue(queue: BatchQueue, files: MemoryFiles) -> None:
    queue.files.mapped_files[1].overwrite(BATCH_UNIT_BYTES * 2, bytes(BATCH_UNIT_BYTES * 2))
    queue.files.mapped_files[2].remove()
    again = queue_on(files)
    again.load()
    again.recover()
    assert again.max_offset == 13


def test_a_unit_of_nothing_is_not_written() -> None:
    assert BatchUnit(0, 1, 0, 0, 0, 1).is_written
    for wrong in (
        BatchUnit(-1, 1, 0, 0, 0, 1), BatchUnit(0, 0, 0, 0, 0, 1), BatchUnit(0, 1, 0, 0, -1, 1),
        BatchUnit(0, 1, 0, 0, 0, 0),
    ):  # fmt: skip
        assert not wrong.is_written


# --- in a store ---

BATCH_FILE = {"mapper_file_size_batch_consume_queue": FILE_BYTES}


def opened(files: MemoryFiles, kind: Callable[[str], bool | None] = kind_of) -> MessageStore:
    config = StoreConfig(store_path_root_dir="/store", **{**SMALL, **BATCH_FILE})
    store = MessageStore(config, files=files)
    store.load(NOW_MS, kind_of=kind)
    return store


def put(store: MessageStore, sizes: list[int], ms: int) -> None:
    """A record for each size, of that many messages, of which one alone is no batch."""
    made = [plain(T) if size == 1 else batched(plain(T), [b"x"] * size) for size in sizes]
    results = store.put([*made, plain("Plain")], ms)
    assert {result.status.name for result in results} == {"PUT_OK"}


def content(store: MessageStore) -> list[tuple[int, int]]:
    """The offset of each record of the queue and how many messages it has, as gets tell."""
    found: list[tuple[int, int]] = []
    offset = store.min_offset(T, 0)
    while offset < store.max_offset(T, 0):
        got = store.get(T, 0, offset, 1, 1 << 20)
        assert got.status is GetMessageStatus.FOUND
        ((record,), count) = got.buffers, got.count
        assert int.from_bytes(record[20:28], "big") == offset
        found.append((offset, count))
        assert got.next_begin_offset == offset + count
        offset = got.next_begin_offset
    return found


def ends(sizes: list[int]) -> list[tuple[int, int]]:
    return [(sum(sizes[:at]), size) for at, size in enumerate(sizes)]


SIZES = st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=6), min_size=1, max_size=5)


@settings(max_examples=examples(40), deadline=None)
@given(runs=SIZES, harm=st.sampled_from(["none", "kill", "all", "first", "last", "unit", "half"]))
def test_what_was_put_is_got_and_found_again(runs: list[list[int]], harm: str) -> None:
    files = MemoryFiles()
    store = opened(files)
    for at, sizes in enumerate(runs):
        put(store, sizes, NOW_MS + at)
    sizes = [size for run in runs for size in run]
    assert content(store) == ends(sizes)
    if harm == "kill":
        files = files.after_kill()
    else:
        store.stop(NOW_MS + 100)
        do_harm(files, harm)
    store = opened(files)
    assert content(store) == ends(sizes)
    queue = store._queues.find(T, 0)
    assert isinstance(queue, BatchQueue)
    stored = [NOW_MS + at for at, run in enumerate(runs) for _ in run]
    assert [unit.stored_ms for unit in queue.columns()] == stored
    assert store.max_offset("Plain", 0) == len(runs)
    put(store, [3], NOW_MS + 9)
    assert content(store) == ends([*sizes, 3])
    store.stop(NOW_MS + 200)


def do_harm(files: MemoryFiles, harm: str) -> None:
    """What happens to the files of the queue while the store is closed."""
    paths = sorted(path for path in files.maps if path.startswith(DIRECTORY))
    gone = {"all": paths, "first": paths[:1], "last": paths[-1:]}
    for path in gone.get(harm, []):
        files.remove(path)
    count = {"unit": BATCH_UNIT_BYTES, "half": BATCH_UNIT_BYTES // 2}.get(harm, 0)
    if count:
        files.map(paths[-1], FILE_BYTES)[:count] = bytes(count)


def test_a_check_tells_what_is_wrong(tmp_path: Path) -> None:
    store = MessageStore(on_disk(tmp_path))
    store.load(NOW_MS, kind_of=kind_of)
    put(store, [1, 4, 2, 1, 3, 1], NOW_MS)
    store.stop(NOW_MS)
    assert checked(tmp_path) == []
    path = tmp_path / "batchconsumequeue" / T / "0" / f"{0:020}"
    sound = path.read_bytes()
    for place, said in [(28 + 7, "where the log has a message"), (11, "Queues lacked")]:
        at = BATCH_UNIT_BYTES * 2 + place  # of the third record: its offset, its size
        path.write_bytes(sound[:at] + bytes([sound[at] ^ 1]) + sound[at + 1 :])
        texts = checked(tmp_path)
        assert any(said in text for text in texts), texts
        assert path.read_bytes() != sound


def on_disk(root: Path) -> StoreConfig:
    settings = {**SMALL, **BATCH_FILE, "message_index_enable": False}
    return StoreConfig(store_path_root_dir=str(root), **settings)


def checked(root: Path) -> list[str]:
    look = StoreCheck(on_disk(root), kind_of)
    assert look.open(NOW_MS)
    looked = [look.look(part) for part in look.parts()]
    found = look.findings + [each for one in looked for each in one.findings]
    found += look.finish(looked)
    look.close()
    return [each.text for each in found]


def test_a_deleted_topic_begins_anew_with_other_queues(files: MemoryFiles) -> None:
    store = opened(files)
    put(store, [3, 1], NOW_MS)
    assert store.delete_topic(T)
    store.removals.run_all()
    assert not [path for path in files.maps if path.startswith("/store/batchconsumequeue")]
    store._queues.kind_of = lambda _: False
    (result,) = store.put([plain(T)], NOW_MS)
    assert result.queue_offset == 0
    assert store.get(T, 0, 0, 1, 1000).count == 1
    store.stop(NOW_MS)
    assert opened(files, lambda _: False).max_offset(T, 0) == 1


@pytest.mark.parametrize("topic", [T, "Plain"])
def test_queues_of_the_other_type_are_refused(files: MemoryFiles, topic: str) -> None:
    store = opened(files)
    put(store, [3, 1], NOW_MS)
    store.stop(NOW_MS)
    with pytest.raises(StoreError, match=f"The queues of the topic {topic} are"):
        opened(files, lambda name: kind_of(name) is not (name == topic))
    assert opened(files, lambda _: None).max_offset(T, 0) == 4, "where nobody knows, files tell"


def test_queues_follow_a_log_that_has_lost_files(files: MemoryFiles) -> None:
    store = opened(files)
    for at in range(30):
        made = [batched(plain(T), [b"x" * 100] * 3), plain(T, b"y" * 400)]
        assert {each.status.name for each in store.put(made, NOW_MS + at)} == {"PUT_OK"}
    for file in store._log.files.take_first(1):
        file.remove()
    for _ in store.follow_log() or ():
        pass
    first = store.min_offset(T, 0)
    assert 0 < first < store.max_offset(T, 0) == 120
    assert content(store)[0][0] == first
    store.stop(NOW_MS + 100)
    assert opened(files).min_offset(T, 0) == first
