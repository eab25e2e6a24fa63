# SPDX-License-Identifier: Apache-2.0
"""Every module has its test, at the place where one looks for it."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

WITHOUT_TEST = {
    "broker/store/formats/original_keys.py": "a list of words, used by the tests of config.py",
    "namesrv/original_keys.py": "a list of words, used by the tests of namesrv/config.py",
    "proxy/original_keys.py": "a list of words, used by the tests of proxy/config.py",
}
"""Modules that need no test of their own, and why. This list may only get shorter."""


def _test_of(module: Path) -> Path:
    name = "main" if module.stem == "__main__" else module.stem
    return Path("tests") / module.parent / f"test_{name}.py"


def test_every_module_has_its_test(
    root: Path, modules: list[Path], listed: Callable[[list[str]], str]
) -> None:
    missing = [
        f"{module}: no {_test_of(module)}"
        for module in modules
        if module.name != "__init__.py"
        and str(module) not in WITHOUT_TEST
        and not (root / _test_of(module)).exists()
    ]
    assert not missing, listed(missing)


def test_the_exceptions_are_needed(root: Path) -> None:
    for name in WITHOUT_TEST:
        assert (root / name).exists(), f"{name} is gone; take it from the list"
        assert not (root / _test_of(Path(name))).exists(), f"{name} has a test; take it out"


def test_a_test_that_mirrors_no_module_says_what_it_tests(
    root: Path, modules: list[Path], listed: Callable[[list[str]], str]
) -> None:
    mirrored = {_test_of(module) for module in modules}
    silent = []
    for part in {module.parts[0] for module in modules}:
        for path in sorted((root / "tests" / part).rglob("test_*.py")):
            inside = path.relative_to(root)
            if inside not in mirrored and not ast.get_docstring(ast.parse(path.read_text("utf-8"))):
                silent.append(f"{inside}: mirrors no module, and has no docstring that says why")
    assert not silent, listed(silent)


def test_packages_are_empty_but_for_the_name_guard(root: Path, modules: list[Path]) -> None:
    """So that importing a format never imports a server."""
    registers = {
        Path("client/__init__.py"),
        Path("remoting/protocol/__init__.py"),
        Path("spark/__init__.py"),
        Path("spark/pyspark_rocketmq/__init__.py"),
    }
    for module in modules:
        if module.name != "__init__.py" or module in registers:
            continue
        tree = ast.parse((root / module).read_text("utf-8"))
        body = tree.body[1:] if ast.get_docstring(tree) else tree.body
        if len(module.parts) == 2:
            assert [type(statement) for statement in body] == [ast.If], f"{module}: the guard"
        else:
            assert not body, f"{module} is more than a docstring"
