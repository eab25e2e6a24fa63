# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cli.store.test_store_compare import continued
from tests.stored import NOW_MS, SETTINGS, filled_store, spoil
from txrocketmq.broker.store.check import comparison
from txrocketmq.broker.store.check.check import StoreCheck
from txrocketmq.broker.store.check.comparison import Comparison, around, ends_file, found_at
from txrocketmq.broker.store.formats.config import StoreConfig

FILE_BYTES = SETTINGS["mapped_file_size_commit_log"]


def opened(root: Path) -> StoreCheck:
    check = StoreCheck(StoreConfig(store_path_root_dir=str(root), **SETTINGS))
    assert check.open(NOW_MS)
    return check


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    filled_store(tmp_path / "first")
    shutil.copytree(tmp_path / "first", tmp_path / "second")
    return tmp_path / "first", tmp_path / "second"


@pytest.mark.parametrize("piece", [7, 1000, 1 << 20])
def test_any_byte_that_differs(
    pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, piece: int
) -> None:
    monkeypatch.setattr(comparison, "_PIECE_BYTES", piece)
    one = opened(pair[0])
    places = [record.physical_offset for each in one.structure().batches(0, one.end)
              for record in each.records()]  # fmt: skip
    body = next(at for at in places if at > FILE_BYTES + 1_000)
    path = pair[1] / "commitlog" / f"{FILE_BYTES:020d}"
    data = path.read_bytes()
    spoil(path, data.index(b"body-", body - FILE_BYTES), b"B")
    one.close()
    one, other = opened(pair[0]), opened(pair[1])
    compared = Comparison(one, other)
    steps = list(compared.run())
    assert compared.differs
    assert compared.equal_to == body
    assert body <= sum(steps) < body + 135
    assert max(steps) <= piece
    first, second = compared.found(0), compared.found(1)
    assert first is not None
    assert second is not None
    assert (first.is_sound, second.is_sound) == (True, False)
    rests = compared.rests()
    assert rests[0].messages == sum(at >= body for at in places)
    assert rests[0].size_bytes == one.end - body
    one.close()
    other.close()


def test_the_same_logs(pair: tuple[Path, Path]) -> None:
    end = continued(pair[1], range(30))
    one, other = opened(pair[0]), opened(pair[1])
    for first, second in ((one, other), (other, one), (one, one)):
        compared: Any = Comparison(first, second)
        for _ in compared.run():
            pass
        assert not compared.differs
        if one in (first, second):
            assert compared.equal_to == end
    one.close()
    other.close()


def test_the_places_around_an_offset(pair: tuple[Path, Path]) -> None:
    check = opened(pair[0])
    records = [record for each in check.structure().batches(0, check.end)
               for record in each.records()]  # fmt: skip
    ends = sorted({0, check.end, *(each.physical_offset for each in records),
                   *(each.physical_offset + each.size_bytes for each in records),
                   *range(0, check.end, FILE_BYTES)})  # fmt: skip
    for offset in range(0, check.end, 41):
        low = max(end for end in ends if end <= offset)
        high = min(end for end in ends if end >= offset)
        assert around(check, offset) == (low, high)
    blank = next(end for end in ends if end not in [each.physical_offset for each in records])
    assert ends_file(check, blank)
    assert not ends_file(check, 0)
    assert found_at(check, blank) is None
    assert found_at(check, check.end) is None
    check.close()
