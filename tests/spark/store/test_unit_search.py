# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from txrocketmq.broker.store.formats import formats
from txrocketmq.spark.store import unit_search
from txrocketmq.spark.store.files import LocalFiles, NumberedFile, OpenFile
from txrocketmq.spark.store.unit_search import UnitSearch

UNIT_BYTES = formats.CONSUME_QUEUE_UNIT.sizeof()
BLANK = formats.CONSUME_QUEUE_PRE_BLANK_SIZE


def _units(places: list[int], blanks: int = 0) -> bytes:
    build = formats.CONSUME_QUEUE_UNIT.build
    blank = build({"physical_offset": 0, "size": BLANK, "tags_code": 0})
    units = [build({"physical_offset": at, "size": 100, "tags_code": 0}) for at in places]
    return bytes(blank * blanks + b"".join(units))


def _search(path: Path, *, spares_cache: bool = False) -> UnitSearch:
    file = NumberedFile(0, path.stat().st_size, str(path))
    return UnitSearch(LocalFiles(spares_cache=spares_cache), file, UNIT_BYTES)


@pytest.mark.parametrize("block_units", [1, 7, 200])
@settings(max_examples=examples(40))
@given(
    blanks=st.sampled_from((0, 0, 3, 250)),
    written=st.integers(0, 600),
    room=st.integers(0, 900),
    has_holes=st.booleans(),
    spares_cache=st.booleans(),
    asked=st.lists(st.integers(-1, 70_000), max_size=5),
)
def test_it_finds_what_a_look_at_all_units_finds(
    block_units: int,
    blanks: int,
    written: int,
    room: int,
    has_holes: bool,
    spares_cache: bool,
    asked: list[int],
) -> None:
    places = [100 * (number + 1) for number in range(written)]
    data = _units(places, blanks)
    with TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(unit_search, "BLOCK_UNITS", block_units)
        path = Path(name) / "file"
        path.write_bytes(data if has_holes else data + bytes(room * UNIT_BYTES))
        with path.open("r+b") as file:
            file.truncate(len(data) + room * UNIT_BYTES)
        with _search(path, spares_cache=spares_cache) as search:
            assert search.written == blanks + written
            for physical in asked:
                behind = sum(place < physical for place in places)
                found = search.first_in_log(physical)
                assert found == (blanks if behind < written else 0) + behind + (
                    blanks if behind == written else 0
                )
            for start in (0, max(0, search.written - 5)):
                assert search.raw(start, search.written) == data[start * UNIT_BYTES :]


@pytest.mark.parametrize("written", [1, 150, 5000, 300_000])
def test_a_file_of_full_size_is_looked_at_a_few_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: int
) -> None:
    """Bisection of its 300,000 units would be 19 reads, and as many opened files."""
    path = tmp_path / "file"
    path.write_bytes(_units([100 * number for number in range(written)]))
    with path.open("r+b") as file:
        file.truncate(6_000_000)
    reads = []
    read = OpenFile.read

    def counted(file: OpenFile, offset: int, length: int) -> bytes:
        reads.append(length)
        return read(file, offset, length)

    monkeypatch.setattr(OpenFile, "read", counted)
    with _search(path) as search:
        assert search.written == written
        assert search.first_in_log(0) == 0
        assert search.first_in_log(100 * written) == written
        assert len(search.raw(max(0, written - 100), written)) == UNIT_BYTES * min(100, written)
    assert len(reads) <= 3
    assert max(reads) <= unit_search.BLOCK_UNITS * UNIT_BYTES


def test_without_holes_it_bisects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OpenFile, "first_hole", lambda _: 6_000_000)
    path = tmp_path / "file"
    path.write_bytes(_units([100 * number for number in range(1234)]))
    with path.open("r+b") as file:
        file.truncate(6_000_000)
    with _search(path) as search:
        assert search.written == 1234
        assert search.first_in_log(50_000) == 500


def test_a_file_that_is_gone_or_shorter_than_it_was(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with pytest.raises(FileNotFoundError):
        UnitSearch(LocalFiles(), NumberedFile(0, 600, str(path)), UNIT_BYTES)
    path.write_bytes(_units([100, 200]))
    with UnitSearch(LocalFiles(), NumberedFile(0, 600, str(path)), UNIT_BYTES) as search:
        assert search.written == 2
    path.write_bytes(b"")
    with UnitSearch(LocalFiles(), NumberedFile(0, 600, str(path)), UNIT_BYTES) as search:
        assert (search.written, search.first_in_log(0)) == (0, 0)
