# SPDX-License-Identifier: Apache-2.0
"""No log call can raise, nor print "Unable to format event": each is given what its text names."""

from __future__ import annotations

import ast
import inspect
import string
from collections.abc import Callable, Iterator
from pathlib import Path

from twisted.logger import Logger

LEVELS = {"debug", "info", "warn", "error", "critical", "failure"}
TAKEN = set(inspect.signature(Logger.emit).parameters) | set(
    inspect.signature(Logger.failure).parameters
)
"""Keywords that Twisted's Logger takes itself: a field of this name is given twice."""
ADDED = {"log_level", "log_namespace", "log_source", "log_time", "log_failure"}


def calls(tree: ast.Module) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in LEVELS
            and isinstance(node.func.value, ast.Name | ast.Attribute)
            and (getattr(node.func.value, "id", "") or getattr(node.func.value, "attr", ""))
            in {"log", "_log"}
        ):
            yield node


def fields(text: str) -> set[str]:
    """The names in a format, without attributes, indices and call signs."""
    names = [name for _, name, _, _ in string.Formatter().parse(text) if name is not None]
    return {name.split(".")[0].split("[")[0].removesuffix("()") for name in names}


def wrong(call: ast.Call) -> str | None:
    if not call.args or not isinstance(call.args[0], ast.Constant):
        return "its format is no text that stands there"
    given = {keyword.arg for keyword in call.keywords}
    if None in given:
        return "what it is given cannot be seen"
    allowed = {"failure"} if getattr(call.func, "attr", "") == "failure" else set[str]()
    if taken := (given & TAKEN) - allowed:
        return f"Logger takes {sorted(map(str, taken))} itself"
    if missing := fields(str(call.args[0].value)) - given - ADDED:
        return f"it is not given {sorted(missing)}"
    return None


def test_every_log_call_can_be_formatted(
    root: Path, modules: list[Path], listed: Callable[[list[str]], str]
) -> None:
    found = 0
    broken = []
    for module in modules:
        for call in calls(ast.parse((root / module).read_text("utf-8"))):
            found += 1
            if why := wrong(call):
                broken.append(f"{module}:{call.lineno}: {why}")
    assert found > 20, "it looks at the log calls there are"
    assert not broken, listed(broken)


def test_it_finds_what_is_wrong() -> None:
    tree = ast.parse(
        """
log.warn("{level} stands still", level=1)
log.info("{a} and {b.c} of {d[0]}", a=1)
log.error(text, a=1)
self._log.info("{a}", **given)
log.info("fine: {a!r} {b()}", a=1, b=2)
log.failure("a task failed", failure=why)
"""
    )
    assert [wrong(call) for call in calls(tree)] == [
        "Logger takes ['level'] itself",
        "it is not given ['b', 'd']",
        "its format is no text that stands there",
        "what it is given cannot be seen",
        None,
        None,
    ]
