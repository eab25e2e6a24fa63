# SPDX-License-Identifier: Apache-2.0
"""What is defined has a user that is no test: some module, a generated page, or a reader of docs.

Names are compared, not things: a method counts as used when any method of that name is called.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

HOOKS = {
    "_format_action_invocation",  # of argparse's HelpFormatter, as are the next three
    "_format_text",
    "add_arguments",
    "add_usage",
    "_missing_",  # of Python's Enum
    "format_options",  # of click's Command
    "get_short_help_str",  # of click's Command
    "get_command",  # of click's Group
    "resolve_command",  # of click's Group
    "shell_complete",  # of click's Group
    "pytest_configure",
    "_flow_control_change_from_settings",  # of h2, as are the next two
    "_stream_closed_by",
    "open_inbound_streams",
    "render_GET",  # of Twisted's Resource
}
"""What libraries call by its name. Names in camel case, as Twisted and Spark have them, need not be
listed, since none of ours is.
"""

FOR_TESTS = {
    "build_batch_entry",  # the reference for what is made faster
    "build_record",  # likewise
    "decode_unique_key",
    "exposition",
    "lag_by_topic",  # for programs, in what the admin client returns
    "transaction_type",
}
"""What has no user but tests. This list may only become shorter."""

DECLARED = (
    "client/compat.py",
    "client/faces/compat_messages.py",
    "remoting/formats.py",
    "remoting/message/properties.py",
    "remoting/protocol/",
    "broker/store/formats/formats.py",
)
"""Places that state the formats and names of RocketMQ whole, or the interface of another client,
whether we use each or not.
"""

_DEFINED = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_WORD = re.compile(r"[A-Za-z_]\w*")


def _is_registered(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    """Whether a decorator may keep it and call it, as `@serves(...)` does."""
    return any(isinstance(each, ast.Call) for each in node.decorator_list)


def _definitions(node: ast.AST) -> Iterator[str]:
    """Functions, classes and methods that are not registered, and constants of modules."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _DEFINED):
            if not _is_registered(child):
                yield child.name
            yield from _definitions(child)
        elif isinstance(node, ast.Module) and isinstance(child, ast.Assign | ast.AnnAssign):
            targets = child.targets if isinstance(child, ast.Assign) else [child.target]
            yield from (target.id for target in targets if isinstance(target, ast.Name))
        elif not isinstance(child, ast.Assign | ast.AnnAssign):
            yield from _definitions(child)


def _uses(node: ast.AST, inside: tuple[str, ...] = ()) -> Iterator[str]:
    """Names that are read or called; what a function does with its own name does not count."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
            continue  # a docstring
        name = ""
        if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Load):
            name = child.id
        elif isinstance(child, ast.Attribute):
            name = child.attr
        elif isinstance(child, ast.Constant) and isinstance(child.value, str):
            # Names in texts: of grammars, of getattr, of modules that are imported when needed.
            yield from (word for word in _WORD.findall(child.value) if "_" in word)
            if child.value.isidentifier():
                yield child.value
        if name and name not in inside:
            yield name
        if isinstance(child, _DEFINED) and not _is_registered(child):
            yield from _uses(child, (*inside, child.name))
        else:
            yield from _uses(child, inside)


def _is_hook(name: str) -> bool:
    """Whether it is in camel case that begins small, or special to Python."""
    is_camel_case = name[0].islower() and name != name.lower() and "_" not in name
    return is_camel_case or (name.startswith("__") and name.endswith("__")) or name == "_"


def _unused(trees: dict[str, ast.Module], others: set[str]) -> dict[str, list[str]]:
    """The names without a user, each with its modules; `others` are what is used elsewhere."""
    used = others.union(*(_uses(tree) for tree in trees.values()))
    found: dict[str, list[str]] = {}
    for module, tree in trees.items():
        for name in _definitions(tree):
            if name not in used and not _is_hook(name):
                found.setdefault(name, []).append(module)
    return found


def _words(paths: list[Path]) -> set[str]:
    return {word for path in paths for word in _WORD.findall(path.read_text("utf-8"))}


def test_what_is_defined_has_a_user(
    root: Path,
    trees: dict[Path, ast.Module],
    modules: list[Path],
    listed: Callable[[list[str]], str],
) -> None:
    docs = [*(root / "docs").glob("*.md"), root / "README.md"]
    tools = [path for path in trees if path.parts[0] in {"docs", "scripts", "benchmarks"}]
    others = _words(docs).union(*(_uses(trees[path]) for path in tools))
    found = _unused({str(module): trees[module] for module in modules}, others)
    allowed = HOOKS | FOR_TESTS
    new = [
        f"{name} in {', '.join(where)}"
        for name, where in found.items()
        if name not in allowed and not all(each.startswith(DECLARED) for each in where)
    ]
    assert not new, listed(new)
    unneeded = sorted(allowed - set(found))
    assert not unneeded, f"these are used, or not there: {unneeded}"


def test_what_nobody_uses_is_found() -> None:
    source = '''
LIMIT = 5
UNUSED = 6
def called(): return LIMIT
def again(): return again()
class Kind:
    """Not a use of UNUSED."""
    FIELD = 1
    def method(self): return called
    def doRead(self): ...
@serves(Kind)
def served(): ...
'''
    assert sorted(_unused({"broker/a.py": ast.parse(source)}, set())) == [
        "UNUSED",
        "again",
        "method",
    ]
    assert sorted(_unused({"broker/a.py": ast.parse(source)}, {"again", "method"})) == ["UNUSED"]
