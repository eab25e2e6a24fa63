# SPDX-License-Identifier: Apache-2.0
"""Who may import whom: the contracts of pyproject.toml, and where Twisted may be."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

PARTS = {"remoting", "namesrv", "broker", "client", "spark", "cli", "testing"}

MAY_USE_TWISTED = (
    "remoting/transport/",
    "namesrv/service.py",
    "broker/service.py",
    "broker/long_polling.py",
    "broker/outer_api.py",
    "broker/ha/master.py",
    "broker/ha/slave.py",
    "client/",
    "cli/",
    "testing/",
)
"""All else is pure: bytes and the time come in, bytes and events go out."""

PURE = (
    "txrocketmq.remoting.connection",
    "txrocketmq.remoting.dispatch",
    "txrocketmq.remoting.message.record",
    "txrocketmq.remoting.protocol",
    "txrocketmq.broker.store.formats",
    "txrocketmq.broker.store.message_store",
    "txrocketmq.namesrv.route_table",
)
"""Importing one of these must not bring Twisted along, by any way."""


def test_the_layers_hold(root: Path) -> None:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-logo", "--no-cache"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def _imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")


def test_twisted_stays_where_it_belongs(
    root: Path, modules: list[Path], listed: Callable[[list[str]], str]
) -> None:
    found = [
        f"{module} imports {name}"
        for module in modules
        if not str(module).startswith(MAY_USE_TWISTED)
        for name in _imported(ast.parse((root / module).read_text("utf-8")))
        if name.split(".")[0] == "twisted"
    ]
    assert not found, listed(found)


def test_the_reactor_has_one_holder(
    root: Path, modules: list[Path], listed: Callable[[list[str]], str]
) -> None:
    """Whoever needs the time or a timer asks transport/clock.py for it; tests bring their own."""
    holders = {"remoting/transport/clock.py", "remoting/transport/run.py"}
    found = [
        f"{module}:{node.lineno}"
        for module in modules
        if str(module) not in holders
        for node in ast.walk(ast.parse((root / module).read_text("utf-8")))
        if isinstance(node, ast.ImportFrom)
        and node.module == "twisted.internet"
        and any(alias.name == "reactor" for alias in node.names)
    ]
    assert not found, listed(found)


def test_imports_are_absolute(
    root: Path, modules: list[Path], listed: Callable[[list[str]], str]
) -> None:
    found = [
        f"{module}: {name}"
        for module in modules
        for name in _imported(ast.parse((root / module).read_text("utf-8")))
        if name.startswith(".") or name.split(".")[0] in PARTS
    ]
    assert not found, listed(found)


@pytest.mark.parametrize("name", PURE)
def test_pure_modules_come_without_twisted(name: str, root: Path) -> None:
    program = f"import sys, {name}; sys.exit('twisted' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], cwd=root.parent, check=False)
    assert done.returncode == 0, f"{name} does not import, or brings twisted along"


def test_the_bare_names_are_refused(root: Path) -> None:
    """`import broker` in the checkout would make a second copy of every class."""
    for part in sorted(PARTS):
        done = subprocess.run(
            [sys.executable, "-c", f"import {part}"],
            cwd=root,
            capture_output=True,
            text=True,
            check=False,
        )
        assert f"import txrocketmq.{part}, not {part}" in done.stderr
