# SPDX-License-Identifier: Apache-2.0
"""What servers do by themselves is declared beside the parts, and nothing of it is forgotten."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

SERVERS = ("broker", "namesrv")
LISTS = {"broker": Path("broker/all_parts.py"), "namesrv": Path("namesrv/service.py")}
"""Where the lives of all parts of a server are listed."""


def _of_servers(trees: dict[Path, ast.Module]) -> Iterator[tuple[Path, ast.Module]]:
    for module, tree in trees.items():
        if module.parts[0] in SERVERS:
            yield module, tree


def _attribute(node: ast.expr) -> str:
    """The last name of an expression such as `self.delivery.on_refused`."""
    return node.attr if isinstance(node, ast.Attribute) else ""


def _calls(tree: ast.AST, name: str) -> list[ast.Call]:
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and name in (_attribute(node.func), getattr(node.func, "id", ""))
    ]


def test_nothing_is_repeated_but_what_is_declared(
    trees: dict[Path, ast.Module], listed: Callable[[list[str]], str]
) -> None:
    """The clock is asked for repetitions in remoting/host/lives.py alone."""
    found = [
        f"{module}:{call.lineno} repeats a call: declare a beat in the life of a part"
        for module, tree in _of_servers(trees)
        for call in _calls(tree, "every")
    ]
    assert not found, listed(found)


def test_each_life_is_listed(
    trees: dict[Path, ast.Module], listed: Callable[[list[str]], str]
) -> None:
    """A class with a method `life` that nobody lists would never be loaded, ticked or stopped."""
    for server, place in LISTS.items():
        alive = [
            f"{module}: {node.name}"
            for module, tree in _of_servers(trees)
            if module.parts[0] == server
            for node in ast.walk(tree)
            if isinstance(node, ast.ClassDef)
            and any(isinstance(each, ast.FunctionDef) and each.name == "life" for each in node.body)
        ]
        in_list = [
            call for call in _calls(trees[place], "life") if isinstance(call.func, ast.Attribute)
        ]
        assert alive, server
        assert len(alive) == len(in_list), listed([f"{place} lists {len(in_list)} of:", *alive])
