# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json

from txrocketmq.broker.tables.encoded_table import EncodedTable
from txrocketmq.remoting.serialize.json import HOLE


def test_only_values_that_are_others_are_encoded_again() -> None:
    encoded: list[str] = []

    def encode(name: str, value: list[int]) -> bytes:
        encoded.append(name)
        return f"{name}={value}".encode()

    table: EncodedTable[list[int]] = EncodedTable(encode)
    first, second = [1], [2]
    assert table.members({"b": second, "a": first}) == b"a=[1],b=[2]"
    assert encoded == ["a", "b"]
    assert table.members({"a": first, "b": [3], "c": first}) == b"a=[1],b=[3],c=[1]"
    assert encoded == ["a", "b", "b", "c"]
    assert table.members({"c": first}) == b"c=[1]"
    assert table.members({"a": first, "c": first}) == b"a=[1],c=[1]"
    assert encoded == ["a", "b", "b", "c", "a"]
    assert table.members({}) == b""


def test_the_text_of_a_file_has_the_table_in_its_place() -> None:
    table: EncodedTable[int] = EncodedTable(
        lambda name, value: b'\n\t\t"%s":%d' % (name.encode(), value)
    )
    text = table.text({"version": 1, "table": HOLE, "last": []}, {"b": 2, "a": 1})
    assert json.loads(text) == {"version": 1, "table": {"a": 1, "b": 2}, "last": []}
    assert json.loads(table.text({"table": HOLE}, {})) == {"table": {}}
