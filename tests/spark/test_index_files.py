# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.spark.stores import Draft, StoreWriter
from txrocketmq.remoting.message.tags import java_string_hash
from txrocketmq.spark import index_files as index_module
from txrocketmq.spark.errors import UnsupportedLayout
from txrocketmq.spark.files import LocalFiles
from txrocketmq.spark.index_files import index_files, key_hash, lookup
from txrocketmq.spark.store import Store


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


def _offsets(writer: StoreWriter, key: str) -> list[int]:
    return [
        each.physical_offset
        for each in reversed(writer.stored)
        if key in " ".join(each.draft.properties.values()).split()
    ]


@pytest.mark.parametrize(("slots", "items"), [(32, 128), (50, 200), (7, 1000), (101, 40)])
def test_lookup_finds_what_was_put(tmp_path: Path, slots: int, items: int) -> None:
    writer = _write(tmp_path / "store", slots, items)
    found = Store.open(str(writer.root)).index_files()
    assert len(found) == -(-300 // (items - 1))
    for key in ("uk0", "uk57", "a3", "b2"):
        assert lookup(found, "Topic", key) == _offsets(writer, key)
    assert lookup(found, "Topic", "missing") == []
    assert lookup(found, "Other", "a3") == []


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
    found = Store.open(str(golden_store(golden_version) / "clean")).index_files()
    for message in golden_messages(golden_version):
        properties = message["properties"]
        for key in (properties.get("UNIQ_KEY", ""), *properties.get("KEYS", "").split()):
            if key:
                assert message["commitLogOffset"] in lookup(found, message["topic"], key)
        if "TAGS" in properties and golden_version == "5.4.0":
            tagged = lookup(found, message["topic"], properties["TAGS"], "T")
            assert message["commitLogOffset"] in tagged


def test_a_store_without_index(tmp_path: Path) -> None:
    assert index_files(LocalFiles(), str(tmp_path / "index")) == []


def test_a_file_that_was_just_made(tmp_path: Path) -> None:
    (tmp_path / "20261121000000001").write_bytes(bytes(1000))
    (found,) = index_files(LocalFiles(), str(tmp_path))
    assert list(found.entries()) == []
    assert list(found.lookup(5)) == []


def test_a_file_that_is_gone_meanwhile(tmp_path: Path) -> None:
    writer = _write(tmp_path / "store")
    found = Store.open(str(writer.root)).index_files()
    first = tmp_path / "store/index" / found[0].name
    first.unlink()
    kept = lookup(found, "Topic", "b2")
    assert kept
    assert kept == _offsets(writer, "b2")[: len(kept)]


def test_slots_that_cannot_be_told(tmp_path: Path) -> None:
    writer = _write(tmp_path / "store")
    found = Store.open(str(writer.root)).index_files()[0]
    with (tmp_path / "store/index" / found.name).open("r+b") as file:
        file.seek(24)
        file.write(b"\x7f" * 8)  # endPhyOffset, of which no item knows
    with pytest.raises(UnsupportedLayout, match="number of slots cannot be told"):
        list(found.entries())


def test_a_chain_that_is_a_ring_ends(tmp_path: Path) -> None:
    writer = _write(tmp_path / "store", 1, 1000)
    found = Store.open(str(writer.root)).index_files()[0]
    with (tmp_path / "store/index" / found.name).open("r+b") as file:
        file.seek(40 + 4 + 20 * 3 + 16)
        file.write((200).to_bytes(4, "big"))  # of item 3: the one before it is item 200
    assert len(lookup([found], "Topic", "uk99")) == 1
    assert lookup([found], "Topic", "uk0") == []


@given(st.text(), st.text())
def test_hashes_are_java_hashes_without_sign(topic: str, key: str) -> None:
    java = java_string_hash(f"{topic}#{key}")
    assert key_hash(topic, key) == (0 if java == -(1 << 31) else abs(java))
    assert key_hash(topic, key, "T") == key_hash(f"{topic}#T", key)
