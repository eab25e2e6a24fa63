# SPDX-License-Identifier: Apache-2.0
"""Writes docs/map_from_java.md from the docstrings that name Java classes; `make docs` runs it.

A docstring names them in a sentence that begins with "Java:" or "Counterpart of". Only what has no
counterpart here, which no docstring can say, is written down in this module.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

PAGE = Path(__file__).with_name("map_from_java.md")
ROOT = PAGE.parent.parent
PROTOCOL = Path("remoting/protocol")
"""Its modules name processors whose requests they declare; they come last."""

SECTIONS = {
    "Remoting and common": "remoting/",
    "Accounts": "access/",
    "Name server": "namesrv/",
    "Broker": "broker/",
    "Store": "broker/store/",
    "Client": "client/",
    "Proxy": "proxy/",
    "Tools": "cli/",
}
"""Headings, and the beginning of the places that belong below them; the longest one counts."""

MISSING = {
    "broker/": (
        "PopConsumerService, PopConsumerCache",
        "RequestTask, BrokerFastFailure, thread pools",
    ),
    "broker/store/": ("TransientStorePool", "RocksDBMessageStore, the tiered store"),
}
"""What has no counterpart, by where it would be."""

INTRODUCTION = """\
# Where a Java class went

<!-- Written by docs/generate_map_from_java.py from docstrings; see `make docs`. -->

This page is for developers who know the source of the original and look for the place of a class in
this repository. It lists the classes that docstrings name. Where no module has a whole class, those
are listed that have a part of it. "-" means that there is no counterpart, or not yet.
[compatibility.md](compatibility.md) says what works.
"""

_SENTENCE = re.compile(r"(?:Java:|[Cc]ounterpart of)\s+(.+?)(?=\.\s|\n\n|\Z)", re.DOTALL)
_CLASS = re.compile(r"(?<![\w/])((?:[a-z]+\.)*)([A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*)(?![\w/])")
_PART_BEFORE, _PART_AFTER = re.compile(r"\b(of|in|by)\s+\Z"), re.compile(r"\.\w|'s ")
"""What is around the name of a class if something in it is meant."""
_HUMPS = re.compile(r"[a-z0-9][A-Z]|^[A-Z]{2,}[a-z]")
_OTHER = frozenset({"JavaScript", "RocketMQ", "OpenSSL", "PyArrow", "LinkedBlockingQueue"})
"""Words with capitals inside that are no class of the original."""


def _docstrings(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield text


def classes_of(docstring: str) -> Iterator[tuple[str, bool]]:
    """Yields the Java classes that a docstring names, and whether it means the whole class."""
    for sentence in _SENTENCE.findall(docstring):
        if sentence.startswith("has no counterpart"):
            continue
        for match in _CLASS.finditer(sentence):
            package, name = match.groups()
            if (package or _HUMPS.search(name)) and name not in _OTHER:
                before = _PART_BEFORE.search(sentence, 0, match.start())
                yield name, not (before or _PART_AFTER.match(sentence, match.end()))


def found() -> dict[str, list[Path]]:
    """Java classes to the modules that have them: a whole class, or else parts of it."""
    whole: dict[str, dict[Path, bool]] = {}
    for part in sorted({start.partition("/")[0] for start in SECTIONS.values()}):
        for path in sorted((ROOT / part).rglob("*.py")):
            module = path.relative_to(ROOT)
            for docstring in _docstrings(ast.parse(path.read_text("utf-8"))):
                for name, is_whole in classes_of(docstring):
                    places = whole.setdefault(name, {})
                    places[module] = places.get(module, False) or is_whole
    return {
        name: sorted(
            (module for module in places if places[module] or not any(places.values())),
            key=lambda module: (module.is_relative_to(PROTOCOL), module),
        )
        for name, places in whole.items()
    }


def _name(module: Path) -> str:
    return f"{module.parent}/" if module.name == "__init__.py" else str(module)


def _section(place: str) -> str:
    return max((start, name) for name, start in SECTIONS.items() if place.startswith(start))[1]


def table() -> dict[str, list[str]]:
    """The rows of each section; classes that are found at the same places share a row."""
    names: dict[tuple[Path, ...], list[str]] = {}
    for name, places in sorted(found().items()):
        names.setdefault(tuple(places), []).append(name)
    rows: dict[str, list[str]] = {name: [] for name in SECTIONS}
    for modules, classes in names.items():
        here = ", ".join(f"`{_name(module)}`" for module in modules)
        rows[_section(str(modules[0]))].append(f"| {', '.join(classes)} | {here} |")
    for place, missing in MISSING.items():
        rows[_section(place)] += [f"| {classes} | - |" for classes in missing]
    return rows


def _lines() -> Iterator[str]:
    yield INTRODUCTION
    for section, rows in table().items():
        yield from (f"## {section}", "", "| Java | here |", "|---|---|", *rows, "")


def pages() -> dict[Path, str]:
    """Each page's path and what it has to be."""
    return {PAGE: "\n".join(_lines())}


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, "utf-8")
