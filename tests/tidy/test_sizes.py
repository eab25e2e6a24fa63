# SPDX-License-Identifier: Apache-2.0
"""Modules of at most 500 lines, functions of at most 60: what is longer has a second noun in it."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

MODULE_LINES = 500
FUNCTION_LINES = 60


def test_modules_are_short(
    root: Path, python_files: list[Path], listed: Callable[[list[str]], str]
) -> None:
    long = []
    for path in python_files:
        lines = len(path.read_text("utf-8").splitlines())
        if lines > MODULE_LINES:
            long.append(f"{path.relative_to(root)}: {lines} lines")
    assert not long, listed(long)


def test_functions_are_short(
    trees: dict[Path, ast.Module], listed: Callable[[list[str]], str]
) -> None:
    long = []
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > FUNCTION_LINES:
                    long.append(f"{path}:{node.lineno} {node.name}: {lines}")
    assert not long, listed(long)
