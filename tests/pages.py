# SPDX-License-Identifier: Apache-2.0
"""The fenced blocks of README, CONTRIBUTING and docs, and the commands in them."""

from __future__ import annotations

import doctest
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parent.parent
PAGES: Final = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
_FENCE: Final = re.compile(r"^( *)```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A fenced block of a page."""

    page: str
    language: str
    text: str


def blocks() -> Iterator[Block]:
    """Yields the blocks of all pages."""
    for page in PAGES:
        for _, language, text in _FENCE.findall(page.read_text("utf-8")):
            yield Block(str(page.relative_to(ROOT)), language, text)


def commands(block: Block) -> Iterator[tuple[str, str]]:
    """Yields the commands of a console block, each with its output."""
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output


def steps(page: str) -> Iterator[tuple[str, str]]:
    """Yields the commands in the console blocks of a page, each with its output."""
    for block in blocks():
        if block.page == page and block.language == "console":
            yield from commands(block)


def check_printed(command: str, wanted: str, got: str) -> None:
    """Checks that the command printed what the page shows, where "..." stands for anything."""
    like = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    assert doctest.OutputChecker().check_output(wanted, got, like), (
        f"{command}\nprints\n{got}\nand not\n{wanted}"
    )
