# SPDX-License-Identifier: Apache-2.0
"""The repository is whole by itself: nothing points outside it, links lead somewhere."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

SPDX = "# SPDX-License-Identifier: Apache-2.0"
OUTSIDE = re.compile(r"\.\./shared" + r"|/work/(main|shared)|/tmp/(brief|jars|src)|/root/")
LOOSE_END = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_BINARY = {".xz", ".png", ".jar", ".gz"}


def _texts(files: list[Path]) -> Iterator[tuple[Path, str]]:
    for path in files:
        if path.suffix not in _BINARY:
            yield path, path.read_text("utf-8")


def _hits(root: Path, files: list[Path], pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{path.relative_to(root)}:{number}: {line.strip()}"
        for path, text in _texts(files)
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line) and path.name not in {"test_repository.py", "LICENSE"}
    ]


def test_nothing_refers_to_a_place_outside(
    root: Path, repository_files: list[Path], listed: Callable[[list[str]], str]
) -> None:
    hits = _hits(root, repository_files, OUTSIDE)
    assert not hits, listed(hits)


def test_no_loose_ends(
    root: Path, repository_files: list[Path], listed: Callable[[list[str]], str]
) -> None:
    hits = _hits(root, repository_files, LOOSE_END)
    assert not hits, listed(hits)


def test_every_python_file_names_its_licence(
    root: Path, python_files: list[Path], listed: Callable[[list[str]], str]
) -> None:
    without = [
        str(path.relative_to(root))
        for path in python_files
        if SPDX not in path.read_text("utf-8").splitlines()[:2]
    ]
    assert not without, listed(without)


def _anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#{1,6} +(.+?) *#*$", _FENCE.sub("", text), re.MULTILINE)
    plain = [re.sub(r"\[([^\]]*)\]\([^)]*\)|[`*]", r"\1", heading) for heading in headings]
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in plain}


def test_links_of_the_pages_resolve(
    root: Path, repository_files: list[Path], listed: Callable[[list[str]], str]
) -> None:
    broken = []
    links = 0
    for page in repository_files:
        if page.suffix != ".md":
            continue
        text = page.read_text("utf-8")
        for target in _LINK.findall(_FENCE.sub("", text)):
            if re.match(r"[a-z]+:", target):
                continue
            links += 1
            name, _, anchor = target.partition("#")
            path = (page.parent / name).resolve() if name else page
            if not path.is_relative_to(root) or not path.exists():
                broken.append(f"{page.relative_to(root)}: {target}: no such file here")
            elif anchor and anchor not in _anchors(path.read_text("utf-8")):
                broken.append(f"{page.relative_to(root)}: {target}: no such heading")
    assert links > 0, "the pattern for links finds none"
    assert not broken, listed(broken)


def test_modules_that_pages_name_exist(
    root: Path, repository_files: list[Path], listed: Callable[[list[str]], str]
) -> None:
    """A path in backticks, as in `broker/tables/topic.py`, is in the repository."""
    pages = [path for path in repository_files if path.suffix == ".md"]
    gone = [
        f"{page.relative_to(root)}: {name}"
        for page in pages
        for name in re.findall(r"`([a-z_]+/[\w/.]+(?:\.py|/))`", page.read_text("utf-8"))
        if not (root / name).exists() and name != "store/"
    ]
    assert not gone, listed(gone)


def test_scripts_are_executable(root: Path) -> None:
    for name in (".ci/run", *(f"scripts/{path.name}" for path in (root / "scripts").iterdir())):
        assert (root / name).stat().st_mode & 0o111, f"{name} is not executable"


def test_no_test_is_repeated_until_it_passes(
    root: Path, repository_files: list[Path], listed: Callable[[list[str]], str]
) -> None:
    """A test that fails now and then is mended; see docs/adr/0050-tests-in-half-an-hour.md."""
    repeats = re.compile(r"--reruns|mark\.flaky|rerunfailures|flaky\(reruns")
    hits = _hits(root, repository_files, repeats)
    assert not hits, listed(hits)
