# SPDX-License-Identifier: Apache-2.0
"""Every record of a log once, however it is cut, damaged or deleted while it is read."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.spark.stores import Draft, StoreWriter, drafts, write_store
from txrocketmq.remoting.message import record
from txrocketmq.remoting.message.flags import transaction_type
from txrocketmq.remoting.primitives.packing import fixed
from txrocketmq.spark.arrow.records import Records
from txrocketmq.spark.columns.decode import MAX_BAD_BYTES, BadRecord
from txrocketmq.spark.log.log_end import end_of_log
from txrocketmq.spark.log.log_reader import LogFinding, LostBytes, pieces, read_log, read_picks
from txrocketmq.spark.store.queue_files import UNITS
from txrocketmq.spark.store.store import Store

_SEGMENT_BYTES = 16_384


class _Read:
    """What a reading gave; the records as offsets and bytes, since their buffer is used again."""

    def __init__(self, found: Iterable[LogFinding]) -> None:
        self.records: dict[int, bytes] = {}
        self.bad: list[BadRecord] = []
        self.lost: list[LostBytes] = []
        for each in found:
            if isinstance(each, LostBytes):
                self.lost.append(each)
            elif isinstance(each, BadRecord):
                self.bad.append(each)
            else:
                self._add(each)

    def _add(self, records: Records) -> None:
        ends = records.starts + records.total_size
        places = records.starts.tolist(), ends.tolist(), records.physical_offset.tolist()
        for start, end, offset in zip(*places, strict=True):
            assert offset not in self.records, "given twice"
            self.records[offset] = records.buffer[start:end].tobytes()

    @property
    def is_clean(self) -> bool:
        return not self.bad and not self.lost


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "store"


def _whole(store: Store, **options: Any) -> _Read:
    start, end = store.min_offset(), end_of_log(store)
    return _Read(read_log(store, start, end, first_is_boundary=True, **options))


def _written(writer: StoreWriter) -> dict[int, bytes]:
    return {each.physical_offset: each.data for each in writer.stored}


def _overwrite(writer: StoreWriter, offset: int, data: bytes) -> None:
    first = offset - offset % writer.segment_bytes
    with writer.segment(first).open("r+b") as file:
        file.seek(offset - first)
        file.write(data)


def _drop_queues(root: Path) -> None:
    for kind in ("consumequeue", "batchconsumequeue"):
        shutil.rmtree(root / kind, ignore_errors=True)


@given(
    st.lists(drafts(), min_size=1, max_size=40),
    st.lists(st.floats(0, 1), max_size=6),
    st.booleans(),
    st.sampled_from((0, 3 * _SEGMENT_BYTES)),
    st.sampled_from((200, 4096, 1 << 20)),
)
def test_any_cut_gives_each_record_once(
    messages: list[Draft], cuts: list[float], has_queues: bool, first_offset: int, window: int
) -> None:
    with TemporaryDirectory() as name:
        root = Path(name) / "store"
        writer = write_store(
            root, messages, segment_bytes=_SEGMENT_BYTES, first_offset=first_offset
        )
        writer.put(Draft())  # behind texts that end with a zero byte, as torn ones do
        if not has_queues:
            _drop_queues(root)
        store = Store.open(str(root))
        start, end = store.min_offset(), end_of_log(store)
        assert (start, end) == (first_offset, writer.end)
        places = sorted({start, end, *(start + int(cut * (end - start)) for cut in cuts)})
        read = _Read(_ranges(store, places, window))
        assert read.is_clean
        assert read.records == _written(writer)


def _ranges(store: Store, places: list[int], window: int) -> Iterator[LogFinding]:
    for start, end in pairwise(places):
        yield from read_log(store, start, end, window_bytes=window, first_is_boundary=False)


def _three(root: Path, **options: Any) -> StoreWriter:
    writer = StoreWriter(root, segment_bytes=_SEGMENT_BYTES, **options)
    writer.put_all(
        Draft(body=b"body %d" % number, properties={"KEYS": "k"}, fakes=number % 2 * 2)
        for number in range(8)
    )
    return writer


_HEAD = fixed(record.RECORD_FIXED)
_STRUCTURE = {
    "total_size": ("length", "magic", "chain"),
    "magic": ("magic",),
    "physical_offset": ("chain",),
    "body_length": ("length",),
}


@pytest.mark.parametrize("field", _STRUCTURE)
@pytest.mark.parametrize("value", [-1, 0, 1, 100, 1 << 20, (1 << 31) - 1])
@pytest.mark.parametrize("number", [0, 3, 7])
def test_a_damaged_field_costs_its_record_only(
    root: Path, field: str, value: int, number: int
) -> None:
    writer = _three(root)
    damaged = writer.stored[number]
    width = 8 if field == "physical_offset" else 4
    at = damaged.physical_offset + _HEAD.offset_of(field)
    _overwrite(writer, at, value.to_bytes(width, "big", signed=True))
    read = _whole(Store.open(str(root)))
    wanted = _written(writer)
    del wanted[damaged.physical_offset]
    if field == "physical_offset" and value == damaged.physical_offset:
        return  # that was no damage
    assert read.records == wanted
    assert not read.lost
    (bad,) = read.bad
    assert (bad.physical_offset, bad.length) == (damaged.physical_offset, damaged.size)
    assert bad.reason in _STRUCTURE[field]
    assert bad.detail
    assert len(bad.data) == min(damaged.size, MAX_BAD_BYTES)


@given(
    st.lists(drafts(), min_size=2, max_size=20),
    st.floats(0, 1, exclude_max=True),
    st.binary(min_size=1, max_size=200),
)
def test_overwritten_bytes_cost_no_other_record(
    messages: list[Draft], place: float, junk: bytes
) -> None:
    with TemporaryDirectory() as name:
        root = Path(name) / "store"
        writer = write_store(root, messages, segment_bytes=_SEGMENT_BYTES)
        last = [m for m in writer.stored if transaction_type(m.draft.sys_flag) in (0, 8)][-1:]
        if not last:
            return  # no queue knows of any record
        at = int(place * (last[0].physical_offset + last[0].size))
        junk = junk[: _SEGMENT_BYTES - at % _SEGMENT_BYTES]
        _overwrite(writer, at, junk)
        read = _whole(Store.open(str(root)))
        covered = [(bad.physical_offset, bad.physical_offset + bad.length) for bad in read.bad]
        for each in writer.stored:
            end = each.physical_offset + each.size
            is_touched = each.physical_offset < at + len(junk) and at < end
            is_covered = any(a <= each.physical_offset < b for a, b in covered)
            if each.physical_offset >= last[0].physical_offset + last[0].size:
                continue  # may be beyond the end of the log: not dispatched, after damage
            if not is_touched and transaction_type(each.draft.sys_flag) in (0, 8):
                assert read.records.get(each.physical_offset) == each.data
            else:
                assert is_covered or each.physical_offset in read.records
        assert all(offset in _written(writer) for offset in read.records)


def test_without_queues_reading_goes_on_behind_the_damage(root: Path) -> None:
    writer = _three(root)
    _overwrite(writer, writer.stored[3].physical_offset, b"\xff" * 60)
    _drop_queues(root)
    read = _whole(Store.open(str(root)))
    wanted = _written(writer)
    del wanted[writer.stored[3].physical_offset]
    assert read.records == wanted
    assert [(bad.physical_offset, bad.length, bad.reason) for bad in read.bad] == [
        (writer.stored[3].physical_offset, writer.stored[3].size, "magic")
    ]


def test_a_torn_tail_is_not_read_at_any_byte(root: Path) -> None:
    writer = _three(root)
    end = writer.end
    torn = writer.put(Draft(body=b"torn", properties={"TAGS": "t"}), dispatch=False)
    for length in range(torn.size):
        _overwrite(writer, end, torn.data[:length] + bytes(torn.size - length))
        store = Store.open(str(root))
        # A record without its last zeros is the whole record.
        assert end_of_log(store) == end or torn.data[length:] == bytes(torn.size - length)
    wanted = _written(writer)
    del wanted[torn.physical_offset]
    _overwrite(writer, end, torn.data[:-1] + b"\x00")
    read = _whole(Store.open(str(root)))
    assert read.is_clean
    assert read.records == wanted


def test_a_segment_deleted_before_reading_is_named(root: Path) -> None:
    writer = StoreWriter(root, segment_bytes=4096)
    writer.put_all(Draft(body=bytes(900)) for _ in range(12))
    end = writer.end
    writer.delete_segment()
    store = Store.open(str(root))
    read = _Read(read_log(store, 0, end, first_is_boundary=True))
    assert read.lost == [LostBytes(0, 4096)]
    assert list(read.records) == [offset for offset in _written(writer) if offset >= 4096]


def test_a_segment_deleted_while_reading_is_named(root: Path) -> None:
    writer = StoreWriter(root, segment_bytes=4096)
    writer.put_all(Draft(body=bytes(900)) for _ in range(12))
    reading = read_log(
        Store.open(str(root)), 0, writer.end, window_bytes=4096, first_is_boundary=True
    )
    first = next(reading)
    assert isinstance(first, Records)
    (root / "commitlog" / f"{4096:020d}").unlink()  # after the list was made
    read = _Read(reading)
    assert read.lost == [LostBytes(4096, 8192)]
    assert min(read.records) == 8192


def test_a_gap_between_segments_is_named(root: Path) -> None:
    writer = StoreWriter(root, segment_bytes=4096)
    writer.put_all(Draft(body=bytes(900)) for _ in range(20))
    writer.segment(4096).unlink()
    read = _whole(Store.open(str(root)))
    assert read.lost == [LostBytes(4096, 8192)]


def test_a_segment_that_was_cut_short_is_named(root: Path) -> None:
    writer = StoreWriter(root, segment_bytes=4096)
    writer.put_all(Draft(body=bytes(900)) for _ in range(12))
    store = Store.open(str(root))
    reading = read_log(store, 0, writer.end, window_bytes=1200, first_is_boundary=True)
    next(reading)
    with writer.segment(0).open("r+b") as file:
        file.truncate(2048)
    read = _Read(reading)
    (lost,) = read.lost
    assert lost.end == 4096
    assert lost.start <= 2048


def test_what_is_put_while_reading_is_read_next(root: Path) -> None:
    writer = StoreWriter(root, segment_bytes=4096)
    store: Store | None = None
    at = 0
    records: dict[int, bytes] = {}
    for number in range(40):
        writer.put(Draft(body=b"x" * (number * 37 % 900)), dispatch=number % 3 != 0)
        store = store or Store.open(str(root))
        end = end_of_log(store)
        read = _Read(read_log(store, at, end, first_is_boundary=True))
        assert read.is_clean
        records |= read.records
        at = end
    assert records == _written(writer)


def test_a_record_larger_than_the_window(root: Path) -> None:
    writer = StoreWriter(root, segment_bytes=1 << 20)
    writer.put_all(Draft(body=bytes([number]) * 90_000) for number in range(5))
    read = _whole(Store.open(str(root)), window_bytes=8192)
    assert read.is_clean
    assert read.records == _written(writer)


def test_golden_stores(
    golden_store: Callable[[str], Path],
    golden_messages: Callable[[str], list[dict[str, Any]]],
    golden_version: str,
) -> None:
    for kind in ("clean", "crashed"):
        read = _whole(Store.open(str(golden_store(golden_version) / kind)))
        assert read.is_clean
        sizes = {offset: len(data) for offset, data in read.records.items()}
        for message in golden_messages(golden_version):
            assert sizes[message["commitLogOffset"]] == message["storeSize"]


# --- picks ---


def _units(store: Store) -> Any:
    units = [
        queue.units(queue.min_index(store.min_offset()), queue.max_index())
        for queue in store.queues()
    ]
    return np.sort(np.concatenate(units), order="physical_offset")


@given(st.lists(drafts(), min_size=1, max_size=40), st.sampled_from((200, 4096, 1 << 20)))
def test_picks_give_what_the_queues_know(messages: list[Draft], window: int) -> None:
    with TemporaryDirectory() as name:
        root = Path(name) / "store"
        writer = write_store(root, messages, segment_bytes=_SEGMENT_BYTES)
        store = Store.open(str(root))
        if store.queue_kind == "none":
            return  # none of the messages is one that queues know
        read = _Read(read_picks(store, _units(store), window_bytes=window))
        assert read.is_clean
        assert read.records == {
            each.physical_offset: each.data
            for each in writer.stored
            if transaction_type(each.draft.sys_flag) in (0, 8)
        }


def test_a_pick_that_is_gone_or_damaged_is_named(root: Path) -> None:
    writer = StoreWriter(root, segment_bytes=4096)
    writer.put_all(Draft(body=bytes(900)) for _ in range(12))
    store = Store.open(str(root))
    units = _units(store)
    writer.delete_segment()
    for number, field, data in ((5, "magic", b"\0\0\0\0"), (7, "body_length", b"\0\0\0\1")):
        at = writer.stored[number].physical_offset
        _overwrite(writer, at + _HEAD.offset_of(field), data)
    units["size"][9] += 1
    units["size"][11] = 1 << 30
    read = _Read(read_picks(store, units))
    gone = [each for each in writer.stored if each.physical_offset < 4096]
    assert read.lost == [LostBytes(0, gone[-1].physical_offset + gone[-1].size)]
    assert [bad.physical_offset for bad in read.bad] == [
        units["physical_offset"][number] for number in (5, 7, 9, 11)
    ] or {bad.physical_offset for bad in read.bad} == {
        writer.stored[number].physical_offset for number in (5, 7, 9, 11)
    }
    assert len(read.records) == 12 - len(gone) - 4


def test_no_picks(root: Path) -> None:
    _three(root)
    assert not list(read_picks(Store.open(str(root)), np.empty(0, UNITS)))


def test_picks_of_a_store_without_a_log(root: Path) -> None:
    writer = _three(root)
    store = Store.open(str(root))
    units = _units(store)
    writer.delete_segment()
    read = _Read(read_picks(store, units))
    assert read.lost == [LostBytes(0, writer.end)]
    assert not read.records


@given(st.lists(st.integers(1, 100)), st.integers(1, 200))
def test_pieces_are_whole_and_not_too_large(sizes: list[int], most: int) -> None:
    cuts = pieces(np.array(sizes, np.int32), most)
    assert [row for start, end in cuts for row in range(start, end)] == list(range(len(sizes)))
    for start, end in cuts:
        assert sum(sizes[start:end]) <= most or end - start == 1
