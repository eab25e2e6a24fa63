# SPDX-License-Identifier: Apache-2.0
"""What there is only in memory reads like a file, and becomes one when there is time or need."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.disk import MemoryFiles
from txrocketmq.broker.store.disk.files import OsFiles
from txrocketmq.broker.store.queues.light_row import MEMORY_BYTES, LightRow

FILE_BYTES = 4 * MEMORY_BYTES
FIRST = "/q/00000000000000000000"


def row(files: MemoryFiles) -> LightRow:
    return LightRow(files, "/q", FILE_BYTES, "key")


def append(light: LightRow, data: bytes) -> None:
    file = light.last
    if file is None or file.is_full:
        file = light.roll(light.max_offset)
    file.append(data)


def test_the_first_bytes_need_no_file() -> None:
    files = MemoryFiles()
    files.room_bytes = 0
    light = row(files)
    append(light, b"unit")
    assert (light.is_made, files.maps, files.directories) == (False, {}, set())
    assert bytes(light.select(0, 4) or b"") == b"unit"
    assert light.unflushed() == []
    light.unmap()
    light.mapped_files[0].close()
    light.mapped_files[0].clear_tail()
    assert bytes(light.mapped_files[0].view[:5]) == b"unit\0"


def test_it_is_made_once_and_is_then_to_be_synced() -> None:
    files = MemoryFiles()
    light = row(files)
    append(light, b"unit")
    view = light.select(0, 4)
    light.flushed_offset = light.max_offset
    light.make()
    light.make()
    assert light.is_made
    assert files.maps[FIRST][:5] == b"unit\0"
    assert [file.path for file in light.unflushed()] == [FIRST]
    append(light, b"next")
    assert files.maps[FIRST][:8] == b"unitnext"
    assert view == b"unit"


def test_without_room_it_stays_in_memory() -> None:
    files = MemoryFiles()
    light = row(files)
    append(light, bytes(MEMORY_BYTES))
    files.room_bytes = 0
    with pytest.raises(OSError, match="No space"):
        light.make()
    with pytest.raises(OSError, match="No space"):
        append(light, b"unit")
    assert (light.max_offset, light.is_made, files.maps) == (MEMORY_BYTES, False, {})
    files.room_bytes = 1 << 20
    append(light, b"unit")
    assert files.maps[FIRST][: MEMORY_BYTES + 4] == bytes(MEMORY_BYTES) + b"unit"


def test_what_is_removed_before_leaves_no_trace() -> None:
    files = MemoryFiles()
    light = row(files)
    light.prepare(0, 20)
    light.discard_prepared()
    append(light, b"unit")
    for file in light.take_all():
        file.remove()
    assert (files.maps, files.removed) == ({}, [])


def test_a_second_file_may_be_there_before_the_first(tmp_path: Path) -> None:
    light = LightRow(OsFiles(), str(tmp_path / "q"), 40, "key")
    light.prepare(1, 20)
    for _ in range(3):
        append(light, bytes(20))
    assert not light.is_made
    light.make()
    assert sorted(path.name for path in (tmp_path / "q").iterdir()) == [
        "00000000000000000000",
        "00000000000000000040",
    ]


@given(st.lists(st.tuples(st.integers(1, 900), st.booleans()), max_size=12))
def test_it_reads_alike_whenever_it_is_made(parts: list[tuple[int, bool]]) -> None:
    files = MemoryFiles()
    light = row(files)
    written = b""
    for number, (size, makes) in enumerate(parts):
        data = bytes([number + 1]) * size
        file = light.last
        if file is not None and file.wrote_bytes + size > FILE_BYTES:
            break
        append(light, data)
        written += data
        if makes:
            light.make()
        assert bytes(light.select(0, len(written)) or b"") == written
    light.make()
    loaded = row(files)
    loaded.load()
    assert b"".join(bytes(file.view) for file in loaded.mapped_files)[: len(written)] == written
