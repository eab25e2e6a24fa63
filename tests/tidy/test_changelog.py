# SPDX-License-Identifier: Apache-2.0
"""The version, the changelog and its fragments, and the command that makes releases of them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

TITLE = re.compile(r"^## (\d+\.\d+\.\d+)(?: \((\d{4}-\d\d-\d\d)\))?$", re.MULTILINE)
NAMES = {"README.md", "template.md.j2"}


@pytest.fixture(scope="session")
def project(root: Path) -> dict[str, Any]:
    """What pyproject.toml says."""
    return tomllib.loads((root / "pyproject.toml").read_text("utf-8"))


def _version(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(".")))


def test_fragments_have_a_name_a_kind_and_a_text(root: Path, project: dict[str, Any]) -> None:
    kinds = [kind["directory"] for kind in project["tool"]["towncrier"]["type"]]
    allowed = re.compile(rf"[a-z0-9]+(-[a-z0-9]+)*\.({'|'.join(kinds)})\.md")
    for path in (root / "changelog.d").iterdir():
        if path.name not in NAMES:
            assert allowed.fullmatch(path.name), f"{path.name}: see changelog.d/README.md"
            assert path.read_text("utf-8").strip(), f"{path.name} is empty"


def test_there_is_a_section_for_the_version_and_none_later(
    root: Path, project: dict[str, Any]
) -> None:
    """Only the newest may have no date, as it may not be released yet."""
    sections = TITLE.findall((root / "CHANGELOG.md").read_text("utf-8"))
    versions = [version for version, _ in sections]
    assert versions[0] == project["project"]["version"]
    assert versions == sorted(set(versions), key=_version, reverse=True)
    assert all(date for _, date in sections[1:])


def test_the_version_stands_in_one_place(
    repository_files: list[Path], project: dict[str, Any]
) -> None:
    version = re.escape(project["project"]["version"])
    named = re.compile(
        rf"txrocketmq(?:-|==|@v|:v?){version}\b|^version = \"{version}\"", re.MULTILINE
    )
    texts = [path for path in repository_files if path.suffix in {".md", ".py", ".toml", ".yaml"}]
    found = [path.name for path in texts if named.search(path.read_text("utf-8"))]
    assert found == ["pyproject.toml"]


DISTRIBUTION = """#!/bin/sh
grep -q 'version = "{version}"' pyproject.toml || exit 1
mkdir -p "$1" && touch "$1/txrocketmq-{version}.tar.gz" "$1/txrocketmq-{version}-py3-none-any.whl"
"""


class Checkout:
    """A small repository with what a release needs, whose archives are empty."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.folder = folder
        for name in ("pyproject.toml", "CHANGELOG.md", ".gitignore", "scripts/release"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(root / name, folder / name)
        (folder / "changelog.d").mkdir()
        for name in NAMES:
            shutil.copy(root / "changelog.d" / name, folder / "changelog.d")
        self.git("init", "--quiet", "--initial-branch", "main")
        self.git("config", "user.name", "Somebody")
        self.git("config", "user.email", "somebody@host.invalid")
        self.commit()

    def git(self, *arguments: str) -> str:
        """Runs git; returns what it prints."""
        command = ["git", "-C", str(self.folder), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def commit(self) -> None:
        """Commits all that is there."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "Work")

    def write(self, name: str, text: str) -> None:
        """Writes a file."""
        (self.folder / name).write_text(text)

    def release(self, version: str) -> str:
        """Makes a release; returns what is said if it is refused, else nothing."""
        program = self.folder / "scripts" / "distribution"
        program.write_text(DISTRIBUTION.replace("{version}", version))
        program.chmod(0o755)
        self.commit()
        return self.run(version)

    def run(self, version: str) -> str:
        """Makes a release with the archives of an earlier one."""
        head = self.git("rev-parse", "HEAD")
        done = subprocess.run(
            [self.folder / "scripts" / "release", version],
            env={**os.environ, "BIN": str(Path(sys.executable).parent)},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert (done.returncode == 0) == (self.git("rev-parse", "HEAD") != head), done.stderr
        return done.stderr


@pytest.fixture
def checkout(root: Path, tmp_path: Path) -> Checkout:
    """A small repository."""
    return Checkout(root, tmp_path)


def test_a_release_gathers_the_fragments(checkout: Checkout) -> None:
    checkout.write("changelog.d/one-more.added.md", "It does\n[more](../docs/more.md).\n")
    checkout.write("changelog.d/mended.fixed.md", "It no longer fails.\n")
    assert checkout.release("17.2.0") == ""
    assert sorted(path.name for path in (checkout.folder / "changelog.d").iterdir()) == sorted(
        NAMES
    )
    changelog = (checkout.folder / "CHANGELOG.md").read_text()
    notes = (checkout.folder / "dist" / "txrocketmq-17.2.0.md").read_text()
    assert notes.splitlines() == [
        "**Added**", "", "- It does", "  [more](docs/more.md).", "",
        "**Fixed**", "", "- It no longer fails.",
    ]  # fmt: skip
    (version, date), (earlier, _) = TITLE.findall(changelog)[:2]
    assert version == "17.2.0"
    assert date
    assert f"## {version} ({date})\n\n{notes}\n## {earlier}" in changelog
    assert 'version = "17.2.0"' in (checkout.folder / "pyproject.toml").read_text()
    assert checkout.git("status", "--porcelain") == ""
    assert checkout.git("log", "-1", "--format=%s %an") == "Release 17.2.0 Somebody\n"
    assert checkout.git("rev-parse", "v17.2.0^{}") == checkout.git("rev-parse", "HEAD")
    assert notes in checkout.git("cat-file", "tag", "v17.2.0")
    assert {path.suffix for path in (checkout.folder / "dist").iterdir()} == {".whl", ".gz", ".md"}


def test_a_section_that_was_written_by_hand_gets_its_date(checkout: Checkout) -> None:
    changelog = (checkout.folder / "CHANGELOG.md").read_text()
    by_hand = changelog.replace("<!-- releases -->\n", "<!-- releases -->\n\n## 17.2.0\n\nFirst.\n")
    checkout.write("CHANGELOG.md", by_hand)
    assert checkout.release("17.2.0") == ""
    (version, date), *_ = TITLE.findall((checkout.folder / "CHANGELOG.md").read_text())
    assert version == "17.2.0"
    assert date
    assert (checkout.folder / "dist" / "txrocketmq-17.2.0.md").read_text() == "First.\n"


def test_what_is_no_release_is_refused(checkout: Checkout) -> None:
    assert "nothing in changelog.d" in checkout.release("17.2.0")
    checkout.write("changelog.d/one.added.md", "One.\n")
    assert "not committed" in checkout.run("17.2.0")
    for version in ("", "17.2", "v17.2.0", "17.2.0rc1", "17.02.0"):
        assert "three numbers" in checkout.release(version)
    assert "later than 0.0.1" in checkout.release("0.0.1")
    checkout.git("tag", "v17.2.0")
    assert "a tag v17.2.0 already" in checkout.release("17.2.0")
    checkout.write("CHANGELOG.md", "## 17.3.0\n")
    assert "has a section 17.3.0 already" in checkout.release("17.3.0")
    checkout.git("checkout", "--quiet", "--detach")
    assert "no branch is checked out" in checkout.release("17.4.0")


def test_a_release_that_fails_leaves_nothing(checkout: Checkout) -> None:
    checkout.write("changelog.d/one.added.md", "One.\n")
    checkout.write("scripts/distribution", "#!/bin/sh\necho no index >&2; exit 1\n")
    (checkout.folder / "scripts" / "distribution").chmod(0o755)
    checkout.commit()
    assert "no index" in checkout.run("17.2.0")
    assert checkout.git("tag") == ""
    assert checkout.git("status", "--porcelain") == ""
    assert not (checkout.folder / "dist").exists()
