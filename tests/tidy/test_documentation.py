# SPDX-License-Identifier: Apache-2.0
"""The index has all pages, README begins with what readers need first, and words are translated."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import txrocketmq.client

READERS = {
    "You have a program in Java or Go": "java.md",
    "You write programs in Python": "tutorial.md",
    "You run servers": "operations.md",
    "You analyse messages": "spark.md",
    "You change the code": "../CONTRIBUTING.md",
}
"""The headings of the index, and a page that each path has to contain."""
SCREEN_LINES = 25


def _page(root: Path, name: str) -> str:
    return (root / name).read_text("utf-8")


def _links(text: str) -> list[str]:
    return [link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text)]


def test_the_index_has_a_path_for_each_reader(root: Path) -> None:
    _, *paths = re.split(r"^## ", _page(root, "docs/README.md"), flags=re.MULTILINE)
    found = {path.partition("\n")[0]: _links(path) for path in paths}
    assert found.keys() == READERS.keys()
    for title, page in READERS.items():
        assert page in found[title], f"{title}: {page} is missing"


def test_the_index_has_every_page(root: Path) -> None:
    listed = set(_links(_page(root, "docs/README.md")))
    pages = {path.name for path in (root / "docs").glob("*.md")} - {"README.md"}
    assert not pages - listed


def test_the_readme_says_first_what_it_is_not_for(root: Path) -> None:
    screen = "\n".join(_page(root, "README.md").splitlines()[:SCREEN_LINES])
    start = screen.index("It is not for")
    for limit in ("replication", "access control", "Windows", "one core"):
        assert limit in screen[start:], f"README's first screen does not name {limit}"
    assert {"docs/README.md", "docs/tutorial.md"} <= set(_links(screen))


@pytest.mark.parametrize("title", ["Things", "Producing", "Consuming", "Settings of brokers"])
def test_words_for_those_of_kafka_exist(root: Path, title: str) -> None:
    """Every setting, method and class in the second column is in the reference or the settings."""
    section = (
        _page(root, "docs/kafka_words.md").partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    )
    rows = [re.split(r"(?<!\\)\|", line) for line in section.splitlines() if line.startswith("| ")]
    spans = [span for row in rows for span in re.findall(r"`([^`]+)`", row[2])]
    names = {name for span in spans for name in re.findall(r"[A-Za-z]\w{3,}", span)}
    known = _page(root, "docs/config.md") + _page(root, "docs/client_api.md")
    unknown = {
        name
        for name in names
        if not re.search(rf"\b{name}\b", known) and not hasattr(txrocketmq.client, name)
    }
    assert len(names) >= 2
    assert not unknown - {"txrocketmq", "message", "messages", "query", "tail", "SYNC_MASTER"}
