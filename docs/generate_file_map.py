# SPDX-License-Identifier: Apache-2.0
"""Writes the file map of docs/architecture.md from the modules' docstrings; `make docs` runs it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from docs.sections import replaced

PAGE = Path(__file__).with_name("architecture.md")
ROOT = PAGE.parent.parent
FOLDERS = (
    ("remoting", "the wire: frames, headers, calls, messages, connections"),
    ("namesrv", "the name server: who is where"),
    ("broker", "the broker, and in `broker/store` the messages on disk"),
    ("client", "the Python client"),
    ("cli", "the command `txrocketmq`"),
    ("testing", "a broker for tests"),
    ("spark", "readers for Spark"),
    ("compat_tests", "official clients and servers against ours"),
    ("benchmarks", "ours and the original, measured in turn"),
)
_SENTENCE = re.compile(r"^(.+?)[.](\s|$)", re.DOTALL)


def first_sentence(module: Path) -> str:
    """What the module's docstring says first, on one line."""
    text = ast.get_docstring(ast.parse(module.read_text("utf-8"))) or ""
    found = _SENTENCE.match(text.partition("\n\n")[0])
    sentence = " ".join((found.group(1) if found else text).split())
    return sentence.rstrip(":")


def _paragraphs() -> Iterator[str]:
    for folder, what in FOLDERS:
        rows = [
            f"| [`{path}`](../{path}) | {first_sentence(ROOT / path)} |"
            for path in sorted(m.relative_to(ROOT) for m in (ROOT / folder).rglob("*.py"))
            if path.name != "__init__.py"
        ]
        if rows:
            yield "\n".join(
                [f"**{folder}**: {what}", "", "| module | what it is |", "|---|---|", *rows, ""]
            )


def pages() -> dict[Path, str]:
    """Each page's path and what it has to be."""
    return {PAGE: replaced(PAGE.read_text("utf-8"), "file map", _paragraphs())}


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, "utf-8")
