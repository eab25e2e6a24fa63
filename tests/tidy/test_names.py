# SPDX-License-Identifier: Apache-2.0
"""A public name of a class or of a type stands once in a part, so that a search finds one thing."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

ALLOWED: set[str] = set()
"""Names that stand more often. This list may only become shorter."""

FACES = {f"client/{face}.py" for face in ("aio", "blocking", "compat", "tx")}
"""What users import: the faces of the client give the same names to each other's counterparts."""

_CAMEL_CASE = re.compile(r"[A-Z]\w*[a-z]\w*")


def _public_names(tree: ast.Module) -> Iterator[str]:
    """The names of classes and of types that are given a name, but not those of type variables."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign) and not isinstance(node.value, ast.Call):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (target.id for target in targets if isinstance(target, ast.Name))


def _repeated(trees: dict[str, ast.Module]) -> dict[str, list[str]]:
    """The modules of each name that several modules of a part have, by "part: name"."""
    found: dict[str, list[str]] = defaultdict(list)
    for module, tree in trees.items():
        for name in _public_names(tree):
            if _CAMEL_CASE.fullmatch(name):
                found[f"{module.partition('/')[0]}: {name}"].append(module)
    return {name: modules for name, modules in found.items() if len(modules) > 1}


def test_a_public_name_stands_once_in_a_part(
    trees: dict[Path, ast.Module], modules: list[Path], listed: Callable[[list[str]], str]
) -> None:
    found = _repeated({str(m): trees[m] for m in modules if str(m) not in FACES})
    new = [f"{name} in {', '.join(where)}" for name, where in found.items() if name not in ALLOWED]
    assert not new, listed(new)
    unused = sorted(ALLOWED - set(found))
    assert not unused, f"these are allowed to stand more often, and do not: {unused}"


def test_faces_exist(root: Path) -> None:
    assert [face for face in sorted(FACES) if not (root / face).exists()] == []


def test_a_name_that_stands_twice_is_found() -> None:
    sources = {
        "broker/a.py": "class Walk: ...\nclass _Own: ...\nPlace = tuple[str, int]\nT = 5",
        "broker/b.py": "Walk: TypeAlias = int\nclass _Own: ...\nLIMIT = 5\nKind = TypeVar('Kind')",
        "broker/c.py": "Place = str\nLIMIT = 5\nKind = TypeVar('Kind')",
        "spark/a.py": "class Walk: ...",
    }
    found = _repeated({name: ast.parse(text) for name, text in sources.items()})
    assert found == {
        "broker: Walk": ["broker/a.py", "broker/b.py"],
        "broker: Place": ["broker/a.py", "broker/c.py"],
    }
