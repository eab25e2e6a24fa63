# SPDX-License-Identifier: Apache-2.0
"""Layouts of bytes are declared once, in construct: nobody writes one by hand beside it."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

PLACES = ("remoting", "namesrv", "broker", "client")
BY_HAND = {
    "broker/store/log/packed_walk.py": (1, "rows in memory, in the byte order of the machine"),
    "remoting/primitives/packing.py": (6, "the one place that makes layouts of declarations"),
    "remoting/settings/config_file.py": (1, "units of UTF-16 in an escape"),
    "remoting/message/allocation.py": (1, "a number out of a digest"),
    "remoting/message/tags.py": (4, "arithmetic on many hashes at once, in wide integers"),
    "remoting/protocol/body/pop.py": (3, "a set of bits as Java's BitSet writes it"),
    "broker/store/log/long_run.py": (1, "places of records of one length, with what lies between"),
    "broker/store/index/index_file.py": (2, "byte order of whole arrays"),
    "broker/store/index/index_rows.py": (9, "as in tags.py: arithmetic on many hashes at once"),
}
"""Modules with layouts of their own: how many, and why they may. This list may only get shorter."""

_OF_STRUCT = {"Struct", "pack", "pack_into", "unpack", "unpack_from", "iter_unpack", "calcsize"}
_OF_NUMBERS = {"from_bytes", "to_bytes"}


def _by_hand(tree: ast.Module) -> Iterator[int]:
    """Lines where the module `struct` is given a layout, or a number is cut into bytes."""
    taken = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "struct"
        for alias in node.names
    }
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=name)) if name in taken:
                yield node.lineno
            case ast.Call(func=ast.Attribute(attr=name)) if name in _OF_NUMBERS:
                yield node.lineno
            case ast.Call(func=ast.Attribute(value=ast.Name(id="struct"), attr=name)) if (
                name in _OF_STRUCT
            ):
                yield node.lineno


def test_no_layout_is_written_by_hand(
    trees: dict[Path, ast.Module], modules: list[Path], listed: Callable[[list[str]], str]
) -> None:
    counted = Counter(
        {
            str(module): len(list(_by_hand(trees[module])))
            for module in modules
            if module.parts[0] in PLACES
        }
    )
    allowed = Counter({module: count for module, (count, _) in BY_HAND.items()})
    found = [
        f"{module}: {counted[module]} layouts by hand, {allowed[module]} are allowed: declare them"
        " in construct and take them by remoting/primitives/packing.py, or shorten the list"
        for module in sorted({*counted, *allowed})
        if counted[module] != allowed[module]
    ]
    assert not found, listed(found)


def test_what_is_by_hand_is_seen() -> None:
    source = """
import struct
from struct import Struct as Codec, pack
A = struct.Struct(">i")
B = Codec(">i")
C = pack(">i", 1)
D = struct.unpack_from(">i", b"1234")
E = int.from_bytes(b"12", "big")
F = (5).to_bytes(2, "big")
G = Struct("a" / Int32sb)
H = fixed(G).struct.unpack(b"1234")
"""
    assert sorted(_by_hand(ast.parse(source))) == [4, 5, 6, 7, 8, 9]
