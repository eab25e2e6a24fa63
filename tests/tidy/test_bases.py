# SPDX-License-Identifier: Apache-2.0
"""A class is inherited from because there are several kinds of it, not to cut it in two."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

ALLOWED = {
    "broker/store/get/stored_messages.py: StoredMessages",
}
"""Bases of which there is one kind. This list may only become shorter."""


def _name(expression: ast.expr) -> str:
    """The last word of what a name, an attribute or a subscript of one refers to."""
    while isinstance(expression, ast.Subscript):
        expression = expression.value
    if isinstance(expression, ast.Attribute):
        return expression.attr
    return expression.id if isinstance(expression, ast.Name) else ""


def _is_abstract(node: ast.ClassDef) -> bool:
    if {"ABC", "Protocol"} & {_name(base) for base in node.bases}:
        return True
    return any(
        _name(decorator) == "abstractmethod"
        for method in node.body
        if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef)
        for decorator in method.decorator_list
    )


def _named(tree: ast.Module) -> Iterator[tuple[ast.expr, bool]]:
    """What is called or handed on, such as to a function or as one of several kinds.

    For each expression, whether it is a base of a class instead.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield from ((base, True) for base in node.bases)
        elif isinstance(node, ast.Call) and _name(node.func) not in {"isinstance", "issubclass"}:
            yield node.func, False
            if isinstance(node.func, ast.Attribute):
                yield node.func.value, False
            yield from ((argument, False) for argument in node.args)
            yield from ((keyword.value, False) for keyword in node.keywords)
        elif isinstance(node, ast.Tuple | ast.List) and isinstance(node.ctx, ast.Load):
            yield from ((each, False) for each in node.elts)


def _part(module: str) -> str:
    return module.partition("/")[0]


def _lonely(trees: dict[str, ast.Module]) -> list[str]:
    """Concrete classes that nobody makes and that have one subclass, as "module: name".

    A name refers to a class of the same part, or to the one that the module imports.
    """
    made: set[tuple[str, str]] = set()
    bases: Counter[tuple[str, str]] = Counter()
    for module, tree in trees.items():
        part = {
            alias.name: imported.module.split(".")[1]
            for imported in ast.walk(tree)
            if isinstance(imported, ast.ImportFrom) and "." in (imported.module or "")
            for alias in imported.names
            if imported.module
        }
        for expression, is_base in _named(tree):
            name = _name(expression)
            key = (part.get(name, _part(module)), name)
            if is_base:
                bases[key] += 1
            else:
                made.add(key)
    return sorted(
        f"{module}: {node.name}"
        for module, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        and not _is_abstract(node)
        and bases[_part(module), node.name] == 1
        and (_part(module), node.name) not in made
    )


def test_bases_have_several_kinds(
    trees: dict[Path, ast.Module], modules: list[Path], listed: Callable[[list[str]], str]
) -> None:
    """A base is abstract, or is made itself, or has two subclasses."""
    found = _lonely({str(module): trees[module] for module in modules})
    new = [each for each in found if each not in ALLOWED]
    assert not new, listed(new)
    unused = sorted(ALLOWED - set(found))
    assert not unused, f"these are allowed, and not there: {unused}"


def test_a_class_cut_in_two_is_found() -> None:
    cut = "class Half: ...\nclass Whole(Half): ...\nWhole()"
    assert _lonely({"broker/a.py": ast.parse(cut)}) == ["broker/a.py: Half"]
    for fine in (
        cut + "\nHalf()",
        cut + "\nclass Other(Half): ...",
        cut.replace("Half: ...", "Half(ABC): ..."),
        cut.replace("...", "\n  @abstractmethod\n  def a(self): ...", 1),
    ):
        assert _lonely({"broker/a.py": ast.parse(fine)}) == []
