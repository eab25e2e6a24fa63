# SPDX-License-Identifier: Apache-2.0
"""Docstrings read well: no one or two words stand alone on a second line."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

WORDS = 2
ALLOWED: set[str] = set()
"""Modules that have such docstrings. This list may only become shorter."""


def _docstrings(tree: ast.Module) -> Iterator[ast.Constant]:
    """Strings that stand alone: docstrings, also those of attributes and constants."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            yield node.value


def _has_orphans(text: str) -> bool:
    """Whether the first paragraph has two lines, and the second one only a word or two."""
    lines = text.strip("\n").partition("\n\n")[0].rstrip().split("\n")
    return len(lines) == 2 and len(lines[1].split()) <= WORDS


def test_no_words_stand_alone(
    trees: dict[Path, ast.Module], listed: Callable[[list[str]], str]
) -> None:
    """Such a sentence is shortened, or says something more."""
    found = [
        (str(path), f"{path}:{docstring.lineno} {docstring.value!r}")
        for path, tree in trees.items()
        for docstring in _docstrings(tree)
        if _has_orphans(str(docstring.value))
    ]
    new = [text for path, text in found if path not in ALLOWED]
    assert not new, listed(new)
    unused = sorted(ALLOWED - {path for path, _ in found})
    assert not unused, f"these have none: {unused}"


def test_words_that_stand_alone_are_found() -> None:
    assert _has_orphans("Returns what there is, and\n    no more.\n    ")
    assert _has_orphans("Returns what there is, and\n    nothing.\n\n    It is empty at first.\n")
    assert not _has_orphans("Returns what there is, and\n    nothing more\n    at all.")
    assert not _has_orphans("Returns what there is, and\n    not what was.\n    ")
    assert not _has_orphans("Returns what there is.")
