# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.broker.store.formats.test_scan import FROM_OFFSET, IPV4, IPV6, built
from tests.examples import examples
from tests.kernel.installed import kernel
from tests.stored import NOW_MS, SETTINGS, filled_store, spoil
from txrocketmq.broker.store.check import stretches
from txrocketmq.broker.store.check.check import StoreCheck
from txrocketmq.broker.store.check.stretches import StretchWalk, packed_stretch, read_stretch
from txrocketmq.broker.store.disk.dry_files import DryFiles
from txrocketmq.broker.store.disk.mapped_file import MappedFile
from txrocketmq.broker.store.disk.record_head import next_head
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.scan import RecordWalk
from txrocketmq.broker.store.log import packed_walk
from txrocketmq.broker.store.log.commit_log import CommitLog
from txrocketmq.broker.store.log.log_walk import LogWalk, RecordBatch, Run
from txrocketmq.broker.store.queues.consume_queues import ConsumeQueues
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.record import BLANK, MAGIC_BLANK, MAGIC_V1, MAGIC_V2

FILE_BYTES = 16384
PACKED = packed_walk.walk if kernel is None else kernel.walk
"""The walk of the compiled kernel, or its reference."""
PREPARED = MessageSysFlag.TRANSACTION_PREPARED_TYPE
shapes = st.fixed_dictionaries(
    {
        "magic": st.sampled_from([MAGIC_V1, MAGIC_V1, MAGIC_V2]),
        "sys_flag": st.sampled_from([0, 0, PREPARED, MessageSysFlag.BORN_HOST_V6, 0x20, 0x30]),
        "queue_id": st.integers(0, 2),
        "queue_offset": st.integers(0, 1 << 40),
        "store_timestamp": st.integers(0, 1 << 40),
        "body": st.binary(max_size=300),
        "topic": st.sampled_from([b"A", b"B", b"AB", b"Topic-8b", b"Topic-8b9", b"x" * 100]),
        "properties": st.sampled_from([b"", b"TAGS\x01A\x02", b"KEYS\x01key\x02"]),
    }
)


def record(at: int, shape: dict[str, Any]) -> bytes:
    hosts = {
        "born_host": IPV6 if shape["sys_flag"] & 0x10 else IPV4,
        "store_host": IPV6 if shape["sys_flag"] & 0x20 else IPV4,
    }
    return built(at, **{**shape, **hosts})


def file_of(files: Any, data: bytes, size: int = FILE_BYTES) -> MappedFile:
    file = MappedFile(files, f"/file-{size}", size, from_offset=FROM_OFFSET)
    mapped = file.map()
    mapped[: len(data)] = data
    mapped[len(data) :] = bytes(size - len(data))
    return file


def in_order(runs: Iterable[Run]) -> list[Run]:
    return sorted(runs, key=lambda run: run[:2])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(100))
@given(st.lists(shapes, max_size=20), st.data())
def test_what_is_vouched_for_is_what_the_walk_says(
    files: Any, made: list[dict[str, Any]], data: st.DataObject
) -> None:
    log = b""
    for shape in made:
        log += record(len(log), shape)
    blank = BLANK.build({"room": FILE_BYTES - len(log), "magic": MAGIC_BLANK})
    content = bytearray(log + data.draw(st.sampled_from([b"", blank])))
    is_damaged = bool(content) and data.draw(st.booleans())
    if is_damaged:
        at = data.draw(st.integers(0, len(content) - 1))
        content[at] = data.draw(st.integers(0, 255))
    check_crc = data.draw(st.booleans())
    file = file_of(files, bytes(content))
    expected = list(RecordWalk(file, 0, check_crc=check_crc))
    at_most = data.draw(st.integers(1, 30))
    found = read_stretch(file, 0, FILE_BYTES, at_most, check_crc=check_crc)
    records = [] if found is None else list(found.records())
    assert records == expected[:at_most]
    if found is not None:
        assert len(found) == len(records)
        assert found.end == records[-1].end
        assert in_order(found.runs()) == in_order(RecordBatch(records).runs())


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(100))
@given(st.lists(shapes, max_size=20), st.data())
def test_what_a_kernel_packs_is_what_the_walk_says(
    files: Any, made: list[dict[str, Any]], data: st.DataObject
) -> None:
    log = b""
    for shape in made:
        log += record(len(log), shape)
    content = bytearray(log)
    if content and data.draw(st.booleans()):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    check_crc = data.draw(st.booleans())
    file = file_of(files, bytes(content))
    expected = list(RecordWalk(file, 0, check_crc=check_crc))
    end = data.draw(st.sampled_from([FILE_BYTES, *(each.end for each in expected)]))
    found = packed_stretch(PACKED, file, 0, end, check_crc=check_crc)
    records = [] if found is None else list(found.records())
    assert records == [each for each in expected if each.end <= end]
    if found is not None:
        assert (len(found), found.end) == (len(records), records[-1].end)
        assert in_order(found.runs()) == in_order(RecordBatch(records).runs())


def test_a_kernel_that_fails_packs_nothing(files: Any) -> None:
    def fail(*_: object) -> tuple[int, int, bytes]:
        raise RuntimeError("a fault of the kernel")

    file = file_of(files, built(0))
    assert packed_stretch(fail, file, 0, FILE_BYTES, check_crc=True) is None


def test_records_begin_before_the_end_that_is_asked_for(files: Any) -> None:
    first = built(0)
    file = file_of(files, first + built(len(first)))
    for end, count in ((len(first), 1), (len(first) + 1, 2)):
        found = read_stretch(file, 0, end, 10, check_crc=True)
        assert found is not None
        assert len(found) == count


def test_a_record_without_room_for_a_blank_is_left_to_the_walk(files: Any) -> None:
    data = built(0)
    for room, is_vouched in ((7, False), (8, True)):
        file = file_of(files, data, len(data) + room)
        found = read_stretch(file, 0, len(data) + room, 10, check_crc=True)
        assert (found is not None) == is_vouched


@pytest.mark.parametrize("at", [3, 7, 11, 35, 87, 92, 99, 106])
def test_a_wrong_byte_is_not_vouched_for(files: Any, at: int) -> None:
    """In the size, the magic, the CRC, the place, lengths, and the last byte of all."""
    data = bytearray(built(0))
    assert len(data) == 107
    data[at] ^= 1
    found = read_stretch(file_of(files, bytes(data)), 0, FILE_BYTES, 10, check_crc=True)
    assert (found is None) == (at != 106)


def test_a_topic_at_the_end_of_the_file_is_read(files: Any) -> None:
    data = built(0, topic=b"x" * 9, properties=b"")
    found = read_stretch(file_of(files, data, len(data) + 8), 0, 4096, 10, check_crc=True)
    assert found is not None
    assert [run.topic for run in found.runs()] == [b"x" * 9]


def test_a_page_of_text_that_was_not_written_is_no_record(files: Any) -> None:
    data = bytearray(built(0, bytes(3900), properties=b"k\x01" + b"v" * 5000 + b"\x02"))
    file = file_of(files, bytes(data))
    assert read_stretch(file, 0, FILE_BYTES, 10, check_crc=True) is not None
    data[4096:8192] = bytes(4096)
    file = file_of(files, bytes(data))
    assert read_stretch(file, 0, FILE_BYTES, 10, check_crc=True) is None
    assert read_stretch(file, 0, FILE_BYTES, 10, check_crc=False) is not None


def test_items_that_name_records_of_one_file(tmp_path: Path) -> None:
    filled_store(tmp_path)
    files, config = DryFiles(()), StoreConfig(store_path_root_dir=str(tmp_path), **SETTINGS)
    log = CommitLog(files, config).files
    log.load()
    walk = StretchWalk(log, (), check_crc=True)
    offsets = [each.physical_offset for each in LogWalk(log, (), check_crc=True).records(0)]
    end = offsets[-1] + 1000

    def named(*offsets: int, start: int = 0) -> bool:
        items = b"".join(struct.pack(">iqii", 1, offset, 2, 3) for offset in offsets)
        return walk.names_records(memoryview(items), start, end)

    assert named(*offsets[:5])
    assert not named(*offsets[:5], offsets[5] + 1)
    assert not named(offsets[0], -1)
    assert not named(offsets[0], 1 << 40)
    assert not named(1 << 40)
    assert not named(offsets[0], offsets[-1])
    assert named(3, offsets[5], start=offsets[5])
    assert named(3, start=offsets[5])
    assert not named(3, start=0)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(60))
@given(st.lists(shapes, max_size=30), st.integers(1, 40), st.integers(50, 4_000), st.data())
def test_records_are_found_in_lanes_as_one_after_the_other(
    files: Any, made: list[dict[str, Any]], lanes: int, lane_bytes: int, data: st.DataObject
) -> None:
    log = b""
    for shape in made:
        log += record(len(log), shape)
    content = bytearray(log)
    if content and data.draw(st.booleans()):
        content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    file = file_of(files, bytes(content))
    end = data.draw(st.integers(0, FILE_BYTES))
    one_by_one = stretches._starts(file.view, 0, end, 1_000).tolist()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stretches, "_LANES", lanes)
        patch.setattr(stretches, "_LANE_BYTES", lane_bytes)
        in_lanes = stretches._starts_in_lanes(file, 0, end).tolist()
    assert in_lanes == one_by_one[: len(in_lanes)]
    if content == log:
        expected = [start for start in one_by_one if start < lanes * lane_bytes]
        assert in_lanes == expected
    else:
        assert bool(in_lanes) == bool(one_by_one)


def test_a_lane_to_which_no_record_leads_does_not_count(
    files: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record in the body of a message that says that it is where it is."""
    inner = built(88 + 300, b"inner")
    outer = built(0, bytes(300) + inner + bytes(50))
    file = file_of(files, outer + built(len(outer)))
    monkeypatch.setattr(stretches, "_LANE_BYTES", 200)
    assert next_head(file.map(), FROM_OFFSET, 1, FILE_BYTES) == 88 + 300
    assert stretches._starts_in_lanes(file, 0, FILE_BYTES).tolist() == [0]


@pytest.fixture(params=["at once", "in lanes", "packed"])
def in_lanes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small stores have few records: they are looked at as they are, as if there were many, and
    with the walk of a kernel.
    """
    packed = PACKED if request.param == "packed" else None
    monkeypatch.setattr(stretches, "compiled_walk", lambda: packed)
    if request.param == "in lanes":
        monkeypatch.setattr(stretches, "_RECORDS_AT_ONCE", 64)
        monkeypatch.setattr(stretches, "_LANE_BYTES", 700)


@pytest.mark.usefixtures("in_lanes")
@pytest.mark.parametrize("spoiled", [(), (5000,), (0, 9000), (8200, 8300, 16000)])
def test_both_walks_are_the_same(tmp_path: Path, spoiled: tuple[int, ...]) -> None:
    filled_store(tmp_path)
    for offset in spoiled:
        path = tmp_path / "commitlog" / f"{offset // 8192 * 8192:020d}"
        spoil(path, offset % 8192, bytes([path.read_bytes()[offset % 8192] ^ 1]))

    def walked(kind: type[LogWalk], go: Callable[[LogWalk], int]) -> tuple[object, ...]:
        files, config = DryFiles(()), StoreConfig(store_path_root_dir=str(tmp_path), **SETTINGS)
        log, queues = CommitLog(files, config).files, ConsumeQueues(files, config)
        log.load()
        queues.load()
        for queue in queues:
            queue.recover()
        walk = kind(log, queues, check_crc=True)
        return go(walk), walk.position, walk.damages, walk.last_ms, walk.newest_ms

    expected = walked(LogWalk, lambda walk: sum(1 for _ in walk.records(0)))
    assert walked(StretchWalk, lambda walk: walk.pass_all(0)) == expected
    assert walked(LogWalk, lambda walk: walk.pass_all(0)) == expected
    for kind in (LogWalk, StretchWalk):
        assert walked(kind, lambda walk: sum(map(len, walk.batches(0)))) == expected


def looked_at(root: Path, kind: type[LogWalk], monkeypatch: pytest.MonkeyPatch) -> tuple[Any, ...]:
    monkeypatch.setattr("txrocketmq.broker.store.check.check._fastest_walk", lambda: kind)
    config = StoreConfig(store_path_root_dir=str(root), message_index_enable=False, **SETTINGS)
    check = StoreCheck(config)
    looked = []
    if check.open(NOW_MS):
        looked = [check.look(part) for part in check.parts()]
        check.findings += check.finish(looked)
    check.close()
    return check.findings, looked, str(check.refusal)


@pytest.mark.usefixtures("in_lanes")
@pytest.mark.parametrize("seed", range(12))
def test_both_find_the_same_in_a_damaged_store(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled_store(tmp_path)
    random = Random(seed)
    paths = sorted(each for each in (tmp_path / "commitlog").iterdir())
    paths += sorted((tmp_path / "consumequeue").rglob("0*")) if seed % 2 else []
    for _ in range(3):
        path = random.choice([each for each in paths if each.is_file()])
        at = random.randrange(path.stat().st_size - 50)
        if random.random() < 0.5:  # a body; else most likely something that lengths depend on
            at = max(path.read_bytes().find(b"body-", at), at)
        spoil(path, at, random.choice([b"B", bytes([random.randrange(256)]), bytes(50)]))
    one_by_one = looked_at(tmp_path, LogWalk, monkeypatch)
    assert looked_at(tmp_path, StretchWalk, monkeypatch) == one_by_one
