# SPDX-License-Identifier: Apache-2.0
"""Writes docs/folders.md, and what docs/architecture.md says of folders and Twisted.

Folders are described by their own `__init__.py`, layers by the contracts in pyproject.toml, and
those that may use Twisted by the test that checks it.
"""

from __future__ import annotations

import textwrap
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from docs.file_map import PARTS, ROOT, first_sentence
from docs.sections import replaced
from tests.tidy.test_layers import MAY_USE_TWISTED

ARCHITECTURE = ROOT / "docs" / "architecture.md"
PAGE = ROOT / "docs" / "folders.md"
WIDTH = 120

INTRODUCTION = """\
# Folders and layers

<!-- Written by docs/generate_folders.py; see `make docs`. -->

This page is for developers who look for the room of a module, or want to know what it may import.
[architecture.md](architecture.md) has the packages, and `make map ARGS=broker` prints a sentence
about each module of a package.
"""

OF_LAYERS = """\
## Layers

The contracts are those of `pyproject.toml`. A module or folder imports what is on lower lines only.
Those that are separated by a bar do not import each other either; a colon permits it.
"""


def _folders(folder: Path) -> list[Path]:
    return sorted(path.parent for path in folder.glob("*/__init__.py"))


def _inside(folder: Path) -> str:
    inside = " ".join(_inside(each) for each in _folders(folder))
    return f"{folder.name} ({inside})" if inside else folder.name


def tree() -> Iterator[str]:
    """Draws all folders: a paragraph for each package, in brackets what is inside a folder."""
    yield "```text"
    for part in PARTS:
        inside = "  ".join(_inside(folder) for folder in _folders(ROOT / part))
        yield from textwrap.wrap(
            f"{part + '/':<12}{inside}",
            WIDTH,
            subsequent_indent=" " * 12,
            break_on_hyphens=False,
        )
    yield "```"


def twisted(places: Sequence[str] = MAY_USE_TWISTED) -> Iterator[str]:
    """Who may use Twisted, as a rule in a list."""
    *others, last = (f"`{place}`" for place in places)
    yield from textwrap.wrap(
        f"- **Twisted** is imported only in {', '.join(others)} and {last}. Everything else "
        "receives bytes and times as arguments, so tests need neither sockets nor sleep.",
        WIDTH,
        subsequent_indent="  ",
        break_on_hyphens=False,
    )


def _sentences() -> Iterator[str]:
    for part in PARTS:
        yield f"## {part}"
        yield ""
        yield "| folder | contains |"
        yield "|---|---|"
        for path in sorted((ROOT / part).rglob("__init__.py")):
            sentence = first_sentence(path)
            if path.parent != ROOT / part:
                yield f"| `{path.parent.relative_to(ROOT)}/` | {sentence} |"
        yield ""


def _contract(contract: dict[str, Any]) -> Iterator[str]:
    containers = ", ".join(contract.get("containers", []))
    yield f"**{contract['name']}**" + (f" (in `{containers}`)" if containers else "")
    yield ""
    yield "```text"
    yield from contract["layers"]
    yield "```"
    yield ""


def _layers() -> Iterator[str]:
    yield OF_LAYERS
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    for contract in settings["tool"]["importlinter"]["contracts"]:
        if contract["type"] == "layers":
            yield from _contract(contract)


def pages() -> dict[Path, str]:
    """Each page's path and what it has to be."""
    text = replaced(ARCHITECTURE.read_text("utf-8"), "folders", tree())
    return {
        ARCHITECTURE: replaced(text, "twisted", twisted()),
        PAGE: "\n".join((INTRODUCTION, *_sentences(), *_layers())),
    }


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, "utf-8")
