# SPDX-License-Identifier: Apache-2.0
"""Pages for users speak plain English: programs do not know, want or trust; sentences have nouns.

The reference of the client and the settings are made of docstrings, so these are looked at, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

PARTS = (
    "brokers?|servers?|clients?|consumers?|producers?|stores?|programs?|tasks?|machines?|queues?|"
    "readers?|listeners?|workers?|processe?s?|sources?|Spark|types|nobody"
)
PERSONS_ONLY = re.compile(
    rf"\b(?i:{PARTS})(?: that| which| must| may| can| cannot| does not| do not| did not)?"
    r" (?:knows?|trusts?|wants?|hears?|believes?|forgets?|likes?)\b"
)
"""A part of a system, and then what only people do."""
WITHOUT_NOUN = re.compile(r"(?:^|[-*|.:;] )What (?:is|was|were|has|had|must|grows|goes|comes)\b")
"""A sentence that begins with "what" where the name of a thing should be."""
CLIPPED = (
    "if they are to count", "without a word", "for programs that wait", "in full windows",
    "proves the tests", "come to trust", "on a Mac", "needs room there", "is tried once",
    "Python operations", "promise less", "relies on them only where", "a machine that goes down",
)  # fmt: skip
SPARED = {"folders.md", "request_codes.md", "map_from_java.md", "CHANGELOG.md"}
"""Generated of the code for developers, or a record of earlier releases."""
_CODE = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#+ .*$", re.MULTILINE)


def faults(text: str) -> list[str]:
    """The words of a page that should be others."""
    prose = _HEADING.sub("", _CODE.sub("", text))
    found = []
    for paragraph in re.split(r"\n{2,}|\n(?= *[-*|] )", prose):
        line = " ".join(paragraph.split())
        found += [hit.group() for hit in PERSONS_ONLY.finditer(line)]
        found += [hit.group() for hit in WITHOUT_NOUN.finditer(line)]
        found += [words for words in CLIPPED if words in line]
    return found


def test_pages_have_none_of_them(
    root: Path, repository_files: list[Path], listed: Callable[[list[str]], str]
) -> None:
    pages = [
        page
        for page in repository_files
        if page.suffix == ".md" and page.parent.name != "adr" and page.name not in SPARED
    ]
    assert len(pages) > 30
    hits = [
        f"{page.relative_to(root)}: {hit}" for page in pages for hit in faults(page.read_text())
    ]
    assert not hits, listed(hits)


def test_such_words_are_found() -> None:
    text = "# What is read\n\nBrokers know\nwhat is stored.\n\n- What is lost stays lost."
    assert faults(text) == ["Brokers know", "- What is"]
    assert faults("The server trusts everybody. A topic that no store knows.") == [
        "server trusts", "store knows",
    ]  # fmt: skip
    assert faults("```sh\nWhat is this\n```\nPeople who want to know what is stored.") == []
