# SPDX-License-Identifier: Apache-2.0
"""Folders are rooms: few modules each, and a sentence that says what they are about."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable
from pathlib import Path

MODULES = 12
"""How many modules a folder has at most, beside its folders."""


def test_folders_are_small(modules: list[Path], listed: Callable[[list[str]], str]) -> None:
    counted = Counter(module.parent for module in modules if module.name != "__init__.py")
    large = [f"{folder}: {n} modules" for folder, n in sorted(counted.items()) if n > MODULES]
    assert not large, listed(large)


def test_folders_say_what_they_are_about(
    root: Path, modules: list[Path], listed: Callable[[list[str]], str]
) -> None:
    """The folders at the top are described in docs/architecture.md."""
    silent = [
        str(module.parent)
        for module in modules
        if module.name == "__init__.py"
        and len(module.parts) > 2
        and not ast.get_docstring(ast.parse((root / module).read_text("utf-8")))
    ]
    assert not silent, listed(silent)
