# SPDX-License-Identifier: Apache-2.0
"""Who may import whom: the contracts of pyproject.toml, and where Twisted may be."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.parts import PARTS

MAY_USE_TWISTED = (
    "remoting/host/",
    "remoting/transport/",
    "namesrv/housekeeping.py",
    "namesrv/service.py",
    "broker/service.py",
    "broker/process.py",
    "broker/journal.py",
    "broker/work/notices.py",
    "broker/cluster/outer_api.py",
    "client/",
    "proxy/",
    "cli/",
    "testing/",
)
"""All else is pure: bytes and the time come in, bytes and events go out."""

PURE = (
    "txrocketmq.remoting.frame.connection",
    "txrocketmq.remoting.dispatch",
    "txrocketmq.remoting.message.record",
    "txrocketmq.remoting.protocol",
    "txrocketmq.broker.store.formats.formats",
    "txrocketmq.broker.store.message_store",
    "txrocketmq.namesrv.routes.route_table",
)
"""Importing one of these must not bring Twisted along, by any way."""


def test_the_layers_hold(root: Path) -> None:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-logo", "--no-cache"]
    environment = {**os.environ, "PYTHONPATH": "typings"}  # links to all parts, in one folder
    done = subprocess.run(
        command, cwd=root, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")


def test_twisted_stays_where_it_belongs(
    trees: dict[Path, ast.Module], modules: list[Path], listed: Callable[[list[str]], str]
) -> None:
    users = {
        str(module): name
        for module in modules
        for name in _imported(trees[module])
        if name.split(".")[0] == "twisted"
    }
    found = [
        f"{module} imports {name}"
        for module, name in users.items()
        if not module.startswith(MAY_USE_TWISTED)
    ]
    assert not found, listed(found)
    unused = [place for place in MAY_USE_TWISTED if not any(u.startswith(place) for u in users)]
    assert not unused, f"these do not use Twisted: {unused}"


def test_the_reactor_has_one_holder(
    trees: dict[Path, ast.Module], modules: list[Path], listed: Callable[[list[str]], str]
) -> None:
    """Whoever needs the time or a timer asks host/clock.py for it; tests bring their own."""
    holders = {"remoting/host/clock.py", "remoting/host/run.py"}
    found = [
        f"{module}:{node.lineno}"
        for module in modules
        if str(module) not in holders
        for node in ast.walk(trees[module])
        if isinstance(node, ast.ImportFrom)
        and node.module == "twisted.internet"
        and any(alias.name == "reactor" for alias in node.names)
    ]
    assert not found, listed(found)


def test_imports_are_absolute(
    trees: dict[Path, ast.Module], modules: list[Path], listed: Callable[[list[str]], str]
) -> None:
    found = [
        f"{module}: {name}"
        for module in modules
        for name in _imported(trees[module])
        if name.startswith(".") or name.split(".")[0] in PARTS
    ]
    assert not found, listed(found)


def test_pure_modules_come_without_twisted(root: Path) -> None:
    program = (
        f"import sys, importlib\nfor name in {PURE!r}:\n    importlib.import_module(name)\n"
        "    assert 'twisted' not in sys.modules, f'{name} brings twisted along'"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=root.parent, stderr=subprocess.PIPE, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_the_bare_names_are_refused(root: Path) -> None:
    """`import broker` in the checkout would make a second copy of every class."""
    program = (
        f"import importlib\nfor part in {sorted(PARTS)!r}:\n"
        "    try: importlib.import_module(part)\n    except ImportError as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=True
    )
    said = done.stdout.splitlines()
    for part, line in zip(sorted(PARTS), said, strict=True):
        assert f"import txrocketmq.{part}, not {part}" in line


def test_the_folder_of_the_package_itself_is_refused(root: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import package"], cwd=root, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert "import txrocketmq, not package" in done.stderr


MAY_CATCH_WHAT_IS_COLD = ("broker/store/", "broker/work/patience.py")


def _named(node: ast.AST) -> Iterator[str]:
    for each in ast.walk(node):
        if isinstance(each, ast.Name):
            yield each.id
        elif isinstance(each, ast.Attribute):
            yield each.attr


MAY_ASK_SETTINGS_FOR_THE_ROLE = (
    "broker/__main__.py",  # which reads the settings
    "broker/engines/role.py",
    "broker/replication/master.py",  # what kind of master it is
    "broker/store/",
)


def test_one_module_asks_for_the_role_of_a_broker(
    trees: dict[Path, ast.Module], modules: list[Path], listed: Callable[[list[str]], str]
) -> None:
    found = [
        f"{module}:{node.lineno} asks for {node.attr}"
        for module in modules
        if module.parts[0] == "broker" and not str(module).startswith(MAY_ASK_SETTINGS_FOR_THE_ROLE)
        for node in ast.walk(trees[module])
        if isinstance(node, ast.Attribute) and node.attr in ("is_slave", "broker_role")
    ]
    assert not found, listed(found)


def test_one_module_waits_for_the_disk(
    trees: dict[Path, ast.Module], modules: list[Path], listed: Callable[[list[str]], str]
) -> None:
    """Whoever else caught it would need a loop, a limit and a sentence of its own."""
    found = [
        f"{module}:{node.lineno} catches {name}"
        for module in modules
        if not str(module).startswith(MAY_CATCH_WHAT_IS_COLD)
        for node in ast.walk(trees[module])
        if isinstance(node, ast.ExceptHandler) and node.type is not None
        for name in _named(node.type)
        if name in ("NotInMemory", "NotYet")
    ]
    assert not found, listed(found)
