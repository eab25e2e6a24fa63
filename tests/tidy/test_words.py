# SPDX-License-Identifier: Apache-2.0
"""Pages for users speak plain English: programs do not know, want or trust; sentences have nouns.

The reference of the client and the settings are made of docstrings, so these are looked at, too,
and so are the texts and comments of all modules.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Callable
from pathlib import Path

PARTS = (
    "brokers?|servers?|clients?|consumers?|producers?|stores?|programs?|tasks?|machines?|queues?|"
    "readers?|listeners?|workers?|processe?s?|sources?|Spark|types|nobody|kernels?|class(?:es)?|"
    "originals?|senders?|receivers?|members?|prox(?:y|ies)|tables?"
)
PERSONS_ONLY = re.compile(
    rf"\b(?i:{PARTS})(?: that| which| must| may| can| cannot| does not| do not| did not)?"
    r" (?:knows?|trusts?|wants?|hears?|believes?|forgets?|likes?)\b"
)
"""A part of a system, and then what only people do."""
IN_CODE = re.compile(
    rf"\b(?i:{PARTS}|peers?|groups?|callers?|senders?|name servers?|the original|JSON|transports?|"
    r"units?|4\.9)(?: that| which| must| may| can| cannot| does not| do not| did not)?"
    r" (?:knows?|knew|trusts?|wants?|believes?)\b"
)
"""The same for docstrings, comments and texts of modules, which have more parts and fewer verbs."""
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


def words_of(source: str) -> str:
    """The texts and comments of a module, each on a line of its own."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    kinds = tokenize.STRING, tokenize.COMMENT
    texts = (each.string for each in tokens if each.type in kinds and " " in each.string)
    return "\n".join(" ".join(text.replace("\n    # ", " ").split()) for text in texts)


def test_texts_of_modules_have_no_programs_that_know(
    root: Path, repository_files: list[Path], listed: Callable[[list[str]], str]
) -> None:
    folders = {"access", "broker", "cli", "client", "docs", "namesrv", "package", "proxy"}
    folders |= {"remoting", "spark", "testing"}
    modules = [
        path
        for path in repository_files
        if path.suffix == ".py" and path.relative_to(root).parts[0] in folders
    ]
    assert len(modules) > 500
    hits = [
        f"{module.relative_to(root)}: {hit.group()}"
        for module in modules
        for hit in IN_CODE.finditer(words_of(module.read_text()))
    ]
    assert not hits, listed(hits)


def test_words_of_modules_are_found() -> None:
    source = (
        '"""A broker that\n    knows all."""\nknows = want  # a queue wants this\n"broker knows"\n'
    )
    found = [hit.group() for hit in IN_CODE.finditer(words_of(source))]
    assert found == ["broker that knows", "queue wants", "broker knows"]


def test_such_words_are_found() -> None:
    text = "# What is read\n\nBrokers know\nwhat is stored.\n\n- What is lost stays lost."
    assert faults(text) == ["Brokers know", "- What is"]
    assert faults("The server trusts everybody. A topic that no store knows.") == [
        "server trusts", "store knows",
    ]  # fmt: skip
    assert faults("```sh\nWhat is this\n```\nPeople who want to know what is stored.") == []
