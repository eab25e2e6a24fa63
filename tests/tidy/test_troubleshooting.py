# SPDX-License-Identifier: Apache-2.0
"""The messages that docs/troubleshooting.md explains are those that the code has."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

FOLDERS: Final = ("remoting", "access", "namesrv", "broker", "client", "cli", "spark")
OF_CLIENTS: Final = {
    "No route info of this topic",
    "connect to",
    "failed",
    "topic not exist",
    "wait response on the channel",
    "timeout",
}
"""What Java and Go clients say by themselves."""
OF_SYSTEMS: Final = {
    "Too many open files", "Cannot allocate memory", "Permission denied", "No route info",
    "peer did not return a certificate", "unknown ca", "certificate verify failed",
    "No module named 'service_identity'",
}  # fmt: skip
_COMMANDS: Final = ("mqadmin ", "txrocketmq ", "make ", "pip ", "ulimit ", "CODE: ")
_TITLES: Final = ("Too many open files", "No memory or no space")


def _text(node: ast.expr) -> str:
    """A string of the source; a NUL where a value comes in."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    assert isinstance(node, ast.JoinedStr)
    return "".join(_text(v) if isinstance(v, ast.Constant) else "\0" for v in node.values)


def _said(root: Path) -> Iterator[str]:
    for folder in FOLDERS:
        for path in (root / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, (ast.Constant, ast.JoinedStr)):
                    yield _text(node)


def _quoted(page: str) -> Iterator[str]:
    """The constant parts of the messages: headings of the third level, and quotations."""
    messages = re.findall(r"^### (.+)$", page, re.MULTILINE)
    spans = re.findall(r"`([^`\n]+)`", page)
    messages += [span for span in spans if span.count(" ") >= 1 and not span.startswith(_COMMANDS)]
    for message in messages:
        for part in message.split("..."):
            text = part.strip(" ;,?():.[]")
            if len(text) > 3:
                yield text


def test_every_message_is_in_the_code(root: Path) -> None:
    page = (root / "docs" / "troubleshooting.md").read_text("utf-8")
    quoted = set(_quoted(page)) - OF_CLIENTS - OF_SYSTEMS
    assert len(quoted) > 50
    said = "\n".join({re.sub(r"\{\w+\}", "\0", text) for text in _said(root)})
    assert sorted(text for text in quoted if text not in said) == []


REFUSALS: Final = {
    "ResponseError": [
        "broker/processors/send/send_checks.py",
        "broker/processors/pull/pull_message.py",
    ],
    "ConfigError": [
        "remoting/settings/config_file.py",
        "broker/settings/config.py",
        "access/auth/settings.py",
        "broker/store",
    ],
    "weigh": ["broker/store/opening/recover.py"],
    "StoreError": ["broker/store"],
}
"""Calls that refuse a message or a start, and where they are made."""
_NOT_TOLD: Final = {
    "cannot change while the server runs",
}
"""Refusals of changes by mqadmin, which say themselves what to do."""


def _refused(root: Path) -> Iterator[str]:
    """The texts of all refusals."""
    for call, places in REFUSALS.items():
        for place in places:
            path = root / place
            for source in [path] if path.is_file() else sorted(path.rglob("*.py")):
                for node in ast.walk(ast.parse(source.read_text("utf-8"))):
                    if isinstance(node, ast.Call) and _name(node.func) == call:
                        args = node.args[:1] if call == "weigh" else node.args
                        texts = [a for a in args if isinstance(a, (ast.Constant, ast.JoinedStr))]
                        yield from (text for text in map(_text, texts) if len(text) > 12)


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def test_every_refusal_is_explained(root: Path) -> None:
    page = (root / "docs" / "troubleshooting.md").read_text("utf-8")
    quoted = {text for text in _quoted(page) if len(text) > 7} | _NOT_TOLD
    told = [t for t in _refused(root) if t.count("\0") * 4 < len(t)]
    assert len(told) > 30
    missing = [t for t in told if not any(part in t for part in quoted)]
    assert not missing, "\n".join(missing)
