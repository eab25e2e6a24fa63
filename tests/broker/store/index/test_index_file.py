# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import re
import time
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from txrocketmq.broker.store.disk.steps import finished
from txrocketmq.broker.store.formats import formats
from txrocketmq.broker.store.index.index_file import Index, IndexEntry, index_file_name
from txrocketmq.remoting.message.tags import java_string_hash

SLOTS, ITEMS = 7, 40
NOW_MS = 1_700_000_000_000
FAR_MS = 1 << 50


def new_index(files: Any, *, items: int = ITEMS) -> Index:
    return Index(files, "/index", SLOTS, items)


def entry(
    offset: int,
    uniq_key: str | None = None,
    keys: str | None = None,
    tags: str | None = None,
    *,
    topic: str = "T",
    stored_ms: int = NOW_MS,
) -> IndexEntry:
    return topic, uniq_key, keys, tags, offset, stored_ms


def write(index: Index, *entries: IndexEntry) -> None:
    index.pending.add(entries)
    index.write_pending(NOW_MS)
    assert index.waiting == 0
    assert index.waiting == 0


def found(index: Index, key: str, index_type: str | None = None, **bounds: Any) -> list[int]:
    asked = {"max_count": 64, "begin_ms": 0, "end_ms": FAR_MS, **bounds}
    return finished(index.find("T", key, index_type=index_type, **asked)).physical_offsets


def test_a_message_is_found_by_its_unique_key_its_keys_and_its_tag(files: Any) -> None:
    index = new_index(files)
    write(index, entry(10, "7F00000100000001", "a  b", "Tag"), entry(20, None, "b"))
    assert found(index, "7F00000100000001") == [10]
    assert found(index, "a") == [10]
    assert found(index, "b") == [20, 10], "newest first"
    assert found(index, "Tag", "T") == [10]
    assert found(index, "Tag") == []
    assert found(index, "a", "T") == []
    assert found(index, "") == []
    assert finished(index.find("Other", "a", 64, 0, FAR_MS, None)).physical_offsets == []


def test_the_bytes_are_the_originals(files: Any) -> None:
    index = new_index(files)
    write(index, entry(10, "U", "k", "Tag"), entry(20, "U", stored_ms=NOW_MS + 2999))
    (path,) = files.maps
    assert re.fullmatch(r"/index/\d{17}", path)
    data = files.maps[path][:]
    header = formats.INDEX_HEADER.parse(data)
    assert (header.begin_timestamp, header.end_timestamp) == (NOW_MS, NOW_MS + 2999)
    assert (header.begin_physical_offset, header.end_physical_offset) == (10, 20)
    assert header.index_count == 5
    hashes = [abs(java_string_hash(text)) for text in ("T#U", "T#k", "T#T#Tag", "T#U")]
    slots = [value % SLOTS for value in hashes]
    assert header.hash_slot_count == len(set(slots))
    newest: dict[int, int] = {}
    for number, value in enumerate(hashes, start=1):
        item = formats.INDEX_ITEM.parse(data[40 + 4 * SLOTS + 20 * number :])
        assert item.key_hash == value
        assert item.physical_offset == (20 if number == 4 else 10)
        assert item.seconds_since_begin == (2 if number == 4 else 0)
        assert item.previous_item == newest.get(value % SLOTS, 0)
        newest[value % SLOTS] = number
    for slot in range(SLOTS):
        assert int.from_bytes(data[40 + 4 * slot : 44 + 4 * slot], "big") == newest.get(slot, 0)
    assert not any(data[40 + 4 * SLOTS : 40 + 4 * SLOTS + 20]), "items count from 1"


KEYS = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        ["7F00000100000001", "7F00000100000002", "7F0000010000FFFF", "é123", "polygenelubricants"]
    ),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(KEYS, KEYS, KEYS), max_size=20), st.booleans())
def test_all_that_is_written_is_found(
    files: Any, texts: list[tuple[str, str, str]], one_by_one: bool
) -> None:
    files.maps.clear()
    index = new_index(files)
    entries = [
        entry(100 * at, uniq_key, keys, tags, stored_ms=NOW_MS + 700 * at)
        for at, (uniq_key, keys, tags) in enumerate(texts)
    ]
    for each in entries:
        index.pending.add([each])
        if one_by_one:
            index.write_pending(NOW_MS)
    index.write_pending(NOW_MS)
    again = new_index(files)
    again.load(None)
    for _, uniq_key, keys, tags, offset, _ in entries:
        assert uniq_key is not None
        assert keys is not None
        assert offset in found(again, uniq_key)
        assert all(offset in found(again, word) for word in keys.split(" ") if word)
        assert not tags or offset in found(again, tags, "T")


def test_the_time_is_matched_to_the_second(files: Any) -> None:
    index = new_index(files)
    write(index, *(entry(each, "k", stored_ms=NOW_MS + 1000 * each) for each in range(10)))
    assert found(index, "k", begin_ms=NOW_MS + 3000, end_ms=NOW_MS + 5999) == [5, 4, 3]
    assert found(index, "k", begin_ms=0, end_ms=NOW_MS - 1) == []
    assert found(index, "k", begin_ms=NOW_MS + 9001) == []
    assert found(index, "k", max_count=2) == [9, 8]


def test_full_files_are_followed_by_new_ones(files: Any) -> None:
    index = new_index(files)
    write(index, *(entry(each, "k", stored_ms=NOW_MS + each) for each in range(100)))
    assert len(files.maps) == 3  # of 39 items each
    assert found(index, "k", max_count=200) == list(range(99, -1, -1))
    assert [file.end_physical_offset for file in index.full_files] == [38, 77]
    last = formats.INDEX_HEADER.parse(files.maps[index.paths()[-1]][:])
    assert (last.begin_physical_offset, last.begin_timestamp) == (78, NOW_MS + 78)
    assert finished(index.find("T", "k", 1, 0, FAR_MS, None))[1:3] == (NOW_MS + 99, 99)
    assert index.next_offset == 100
    again = new_index(files)
    again.load(None)
    assert found(again, "k", max_count=200) == list(range(99, -1, -1))
    write(again, entry(100, "k"))
    assert found(again, "k", max_count=1) == [100]


def test_names_tell_the_time_and_do_not_collide(files: Any) -> None:
    local = time.strftime("%Y%m%d%H%M%S", time.localtime(NOW_MS // 1000))
    assert index_file_name(NOW_MS + 7) == local + "007"
    index = new_index(files)
    write(index, *(entry(each, "k") for each in range(100)))
    assert index.paths() == [f"/index/{local}{each:03}" for each in range(3)]


def test_files_keep_their_order_when_the_clock_is_set_back(files: Any) -> None:
    index = new_index(files)
    write(index, *(entry(each, "k") for each in range(39)))
    index.pending.add([entry(each, "k") for each in range(39, 78)])
    index.write_pending(NOW_MS - 3_600_000)
    again = new_index(files)
    again.load(None)
    assert again.paths() == index.paths()
    assert found(again, "k", max_count=200) == list(range(77, -1, -1))
    assert again.next_offset == 78


def test_nothing_is_written_without_room_and_nothing_is_lost(files: Any) -> None:
    index = new_index(files)
    write(index, entry(0, "a"))
    files.room_bytes = 0
    index.pending.add([entry(each, "b") for each in range(1, 60)])
    with pytest.raises(OSError, match="No space"):
        index.write_pending(NOW_MS)
    assert index.waiting == 59
    files.room_bytes = None
    index.write_pending(NOW_MS)
    assert sorted(set(found(index, "b"))) == list(range(1, 60))


def test_files_of_messages_that_are_gone_are_given_up(files: Any) -> None:
    index = new_index(files)
    write(index, *(entry(each, "k") for each in range(100)))
    assert index.take_files_before(38) == []
    first, second, last = sorted(files.maps)
    assert [file.path for file in index.take_files_before(39)] == [first]
    assert [file.path for file in index.take_files_before(1000)] == [second], "the last stays"
    assert index.paths() == [last]
    assert files.removed == [], "that is done elsewhere"


def test_files_with_messages_behind_the_log_are_dropped(files: Any) -> None:
    index = new_index(files)
    write(index, *(entry(each, "k") for each in range(100)))
    assert index.drop_after(100) == []
    assert len(files.maps) == 3
    paths = sorted(files.maps)
    assert index.drop_after(60) == [paths[2], paths[1]]
    assert len(files.maps) == 1
    index.drop_after(0)
    assert not files.maps
    assert index.next_offset == 0
    assert finished(index.find("T", "k", 9, 0, FAR_MS, None))[:3] == ([], 0, 0)


def test_the_first_message_may_lie_at_0(files: Any) -> None:
    index = new_index(files)
    assert index.next_offset == 0
    write(index, entry(0, "k"))
    assert index.next_offset == 1


def test_after_a_crash_of_the_machine_young_files_go(files: Any) -> None:
    index = new_index(files)
    write(index, *(entry(each, "k", stored_ms=NOW_MS + each) for each in range(100)))
    again = new_index(files)
    again.load(NOW_MS + 77)
    assert found(again, "k", max_count=200) == list(range(77, -1, -1))
    assert len(files.maps) == 3, "nothing is removed by looking"
    again.remove_unfinished()
    assert len(files.maps) == 2


def test_slots_that_a_killed_process_left_behind_are_set_again(files: Any) -> None:
    index = new_index(files)
    write(index, *(entry(each, f"key{each:04}") for each in range(30)))
    (mapped,) = files.maps.values()
    mapped[40 : 40 + 4 * SLOTS] = bytes(4 * SLOTS)
    again = new_index(files)
    again.load(None, redo=True)
    assert all(found(again, f"key{each:04}") == [each] for each in range(30))


def test_full_files_that_a_killed_process_left_behind_are_to_be_made_durable(files: Any) -> None:
    index = new_index(files)
    write(index, *(entry(each, "k", stored_ms=NOW_MS + each) for each in range(100)))
    again = new_index(files)
    again.load(None, redo=True)
    assert [file.end_physical_offset for file in again.full_files] == [38, 77]


def test_slots_and_chains_that_are_damaged_end_a_search(files: Any) -> None:
    index = new_index(files)
    write(index, *(entry(each, "k") for each in range(5)))
    (mapped,) = files.maps.values()
    slot = 40 + 4 * (abs(java_string_hash("T#k")) % SLOTS)
    for number in (6, 1000, 0x7FFFFFFF, -1):
        mapped[slot : slot + 4] = number.to_bytes(4, "big", signed=True)
        assert found(index, "k") == []
    mapped[slot : slot + 4] = (5).to_bytes(4, "big")
    item = 40 + 4 * SLOTS + 20 * 5
    mapped[item + 16 : item + 20] = (5).to_bytes(4, "big")
    assert found(index, "k") == [4], "an item that is its own predecessor"
    mapped[item + 12 : item + 16] = (-1).to_bytes(4, "big", signed=True)
    assert found(index, "k") == []
    mapped[slot : slot + 4] = (77).to_bytes(4, "big")
    write(index, entry(9, "k"))
    assert found(index, "k") == [9]


def test_a_file_of_another_size_is_damaged(files: Any) -> None:
    write(new_index(files), entry(0, "k"))
    index = new_index(files, items=50)
    index.load(None)
    ((path, why),) = index.damaged
    assert path in files.maps
    assert "it has 868 bytes, where maxHashSlotNum and maxIndexNum make it 1068" in why
    assert found(index, "k") == []


@pytest.mark.parametrize(
    ("at", "value"), [(36, 41), (36, -1), (36, 0x7FFFFFFF), (32, 999), (32, -1), (16, 5000)]
)
def test_a_header_that_cannot_be_is_damaged_and_so_is_all_behind(
    files: Any, at: int, value: int
) -> None:
    write(new_index(files), *(entry(each, "k") for each in range(100)))
    second = sorted(files.maps)[1]
    size = 8 if at < 32 else 4
    files.maps[second][at : at + size] = value.to_bytes(size, "big", signed=True)
    index = new_index(files)
    index.load(None)
    assert [path for path, _ in index.damaged] == sorted(files.maps)[1:]
    assert index.spans() == [(0, 38)]
    assert index.next_offset == 39


@pytest.mark.parametrize(
    ("start", "end"), [(40, 40 + 4 * SLOTS), (40 + 4 * SLOTS, 40 + 4 * SLOTS + 400), (800, 868)]
)
def test_a_file_with_a_zeroed_stretch_is_damaged(files: Any, start: int, end: int) -> None:
    write(new_index(files), *(entry(each, f"k{each}") for each in range(1, 40)))
    (path,) = files.maps
    files.maps[path][start:end] = bytes(end - start)
    index = new_index(files)
    index.load(None)
    assert [each for each, _ in index.damaged] == [path]
    assert index.next_offset == 0


def test_other_names_are_left_alone(files: Any) -> None:
    files.write("/index/.DS_Store", b"x")
    index = new_index(files)
    index.load(None)
    assert index.foreign == ["/index/.DS_Store"]
    assert files.exists("/index/.DS_Store")


def test_files_may_be_dropped_from_one_on(files: Any) -> None:
    index = new_index(files)
    write(index, *(entry(each, "k") for each in range(100)))
    assert index.drop_from(1) == sorted(files.maps)[1:]
    assert index.next_offset == 39
    assert list(index.extents().values()) == [[0, 38, 40]]


def test_a_file_that_a_crash_left_empty_is_removed(files: Any) -> None:
    files.write("/index/20231114221320000", b"")
    index = new_index(files)
    index.load(None)
    index.remove_unfinished()
    assert not files.exists("/index/20231114221320000")


def test_directories_beside_the_files_are_left_alone(files: Any) -> None:
    write(new_index(files), entry(0, "k"))
    files.make_directory("/index/old")
    index = new_index(files)
    index.load(None)
    assert found(index, "k") == [0]


def test_the_one_hash_without_a_positive_counterpart_is_0(files: Any) -> None:
    key = "1LG3HE3"
    assert java_string_hash(f"T#{key}") == -(1 << 31)
    index = new_index(files)
    write(index, entry(1, key), entry(2, None, key))
    assert found(index, key) == [2, 1]
    (mapped,) = files.maps.values()
    item = formats.INDEX_ITEM.parse(mapped[40 + 4 * SLOTS + 20 :])
    assert item.key_hash == 0


def test_items_that_were_zeroed_are_told_and_not_passed_over_in_silence(files: Any) -> None:
    index = new_index(files)
    write(index, entry(10, None, "a"), entry(20, None, "b"))
    (path,) = files.maps
    first = 40 + 4 * SLOTS + 20
    files.maps[path][first : first + 40] = bytes(40)
    answer = finished(index.find("T", "b", 9, 0, FAR_MS, None))
    assert answer.physical_offsets == []
    assert [(each.path, each.position) for each in answer.broken] == [(path, first + 20)]
