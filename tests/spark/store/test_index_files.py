# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.spark.store_index import key_hash
from tests.spark.stores import Draft, StoreWriter
from txrocketmq.spark.arrow.errors import UnsupportedLayout
from txrocketmq.spark.store import index_files as index_module
from txrocketmq.spark.store.files import LocalFiles
from txrocketmq.spark.store.index_files import IndexFile, index_files
from txrocketmq.spark.store.store import Store


def _write(root: Path, slots: int = 32, items: int = 128) -> StoreWriter:
    writer = StoreWriter(root, index_slots=slots, index_items=items)
    writer.put_all(
        Draft(
            properties={"UNIQ_KEY": f"uk{number}", "KEYS": f"a{number % 10} b{number % 3}"},
            after_ms=900,
        )
        for number in range(100)
    )
    return writer


def _rows(found: list[IndexFile]) -> list[tuple[int, int]]:
    """Hash and place in the log of each item."""
    return [
        (int(row["key_hash"]), int(row["physical_offset"]))
        for file in found
        for piece in file.entries()
        for row in piece
    ]


@pytest.mark.parametrize(("slots", "items"), [(32, 128), (50, 200), (7, 1000), (101, 40)])
def test_the_number_of_slots_is_found(tmp_path: Path, slots: int, items: int) -> None:
    writer = _write(tmp_path / "store", slots, items)
    found = Store.open(str(writer.root)).index_files()
    assert len(found) == -(-300 // (items - 1))
    assert _rows(found) == [
        (key_hash("Topic", key), each.physical_offset)
        for each in writer.stored
        for key in " ".join(each.draft.properties.values()).split()
    ]


@pytest.mark.parametrize("search_bytes", [1, 7, 100])
def test_slots_are_looked_for_in_pieces(
    tmp_path: Path, search_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_module, "_SEARCH_BYTES", search_bytes)
    writer = _write(tmp_path / "store", 32, 100)
    (found, *_) = Store.open(str(writer.root)).index_files()
    assert sum(len(piece) for piece in found.entries()) == 99


def test_entries_as_columns(tmp_path: Path) -> None:
    writer = _write(tmp_path / "store")
    found = Store.open(str(writer.root)).index_files()
    rows = np.concatenate([piece for file in found for piece in file.entries()])
    wanted = [
        (key_hash("Topic", key), each.physical_offset)
        for each in writer.stored
        for key in " ".join(each.draft.properties.values()).split()
    ]
    assert list(zip(rows["key_hash"], rows["physical_offset"], strict=True)) == wanted
    times = np.repeat([each.store_timestamp for each in writer.stored], 3)
    assert (abs(rows["store_timestamp"] - times) < 1000).all()
    assert (rows["store_timestamp"] <= times).all()
    assert rows["item"][:3].tolist() == [1, 2, 3]


def test_golden_stores(
    golden_store: Callable[[str], Path],
    golden_messages: Callable[[str], list[dict[str, Any]]],
    golden_version: str,
) -> None:
    rows = set(_rows(Store.open(str(golden_store(golden_version) / "clean")).index_files()))
    for message in golden_messages(golden_version):
        properties = message["properties"]
        for key in (properties.get("UNIQ_KEY", ""), *properties.get("KEYS", "").split()):
            if key:
                assert (key_hash(message["topic"], key), message["commitLogOffset"]) in rows
        if "TAGS" in properties and golden_version == "5.4.0":
            tagged = key_hash(message["topic"], properties["TAGS"], "T")
            assert (tagged, message["commitLogOffset"]) in rows


def test_a_store_without_index(tmp_path: Path) -> None:
    assert index_files(LocalFiles(), str(tmp_path / "index")) == []


def test_a_file_that_was_just_made(tmp_path: Path) -> None:
    (tmp_path / "20261121000000001").write_bytes(bytes(1000))
    (found,) = index_files(LocalFiles(), str(tmp_path))
    assert list(found.entries()) == []


def test_a_file_that_is_gone_meanwhile(tmp_path: Path) -> None:
    writer = _write(tmp_path / "store")
    found = Store.open(str(writer.root)).index_files()[0]
    (tmp_path / "store/index" / found.name).unlink()
    with pytest.raises(FileNotFoundError):
        found.header()


def test_slots_that_cannot_be_told(tmp_path: Path) -> None:
    writer = _write(tmp_path / "store")
    found = Store.open(str(writer.root)).index_files()[0]
    with (tmp_path / "store/index" / found.name).open("r+b") as file:
        file.seek(24)
        file.write(b"\x7f" * 8)  # endPhyOffset, of which no item knows
    with pytest.raises(UnsupportedLayout, match="number of slots cannot be told"):
        list(found.entries())
