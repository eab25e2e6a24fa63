# SPDX-License-Identifier: Apache-2.0
"""No dictionary loses its first entry again and again: it looks through all places that went.

What drops its oldest entry is a FifoCache, and what is taken from the front an OrderedDict.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

ALLOWED = {
    "broker/transaction/copies.py": "it is read once, at a start",
    "client/consumer/popping/deliveries.py": "for consumers with hooks only",
    "proxy/http2/header_decoder.py": "it has four entries",
}
"""Modules that do so, and why that is no harm. This list may only become shorter."""


def _loses_its_first(node: ast.AST) -> bool:
    """Whether this is `del table[next(iter(table))]`, or `table.pop(next(iter(table)))`."""
    if isinstance(node, ast.Delete) and isinstance(node.targets[0], ast.Subscript):
        table, key = node.targets[0].value, node.targets[0].slice
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
        table, key = node.func.value, node.args[0]
        if node.func.attr != "pop":
            return False
    else:
        return False
    return ast.unparse(key) == f"next(iter({ast.unparse(table)}))"


def _guilty(trees: dict[Path, ast.Module], modules: list[Path]) -> set[str]:
    return {str(m) for m in modules if any(map(_loses_its_first, ast.walk(trees[m])))}


def test_no_dictionary_loses_its_first_entry(
    trees: dict[Path, ast.Module], modules: list[Path], listed: Callable[[list[str]], str]
) -> None:
    found = _guilty(trees, modules)
    assert not found - ALLOWED.keys(), listed(sorted(found - ALLOWED.keys()))
    assert not ALLOWED.keys() - found, f"these do not any more: {sorted(ALLOWED.keys() - found)}"


def test_what_is_found() -> None:
    sources = {
        "a.py": "del self._known[next(iter(self._known))]",
        "b.py": "size -= len(kept.pop(next(iter(kept))).body)",
        "c.py": "del known[key]; kept.pop(next(iter(others))); next(iter(kept))",
    }
    trees = {Path(name): ast.parse(text) for name, text in sources.items()}
    assert _guilty(trees, list(trees)) == {"a.py", "b.py"}
