# SPDX-License-Identifier: Apache-2.0
"""The page about adding something is followed literally, in a copy of the repository."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests import fakes
from tests.broker.conftest import Parts
from tests.pages import ROOT
from tests.parts import PARTS
from txrocketmq.remoting.protocol.offset import GetMaxOffsetRequestHeader

PAGE = ROOT / "docs" / "adding.md"
COPIED = (*PARTS, "package", "tests", "typings", "docs", "setup.py", "pyproject.toml")
REQUEST, MESSAGE, PART = (
    "Adding a request code", "Adding a kind of message", "Adding a part",
)  # fmt: skip
_BLOCK = re.compile(r"^( *)```(?:python|text)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)


class Step(NamedTuple):
    """A block of the page: a new module, or lines that are below another one of a module."""

    path: str
    below: str
    text: str
    is_new: bool

    def take(self, copy: Path) -> None:
        """Writes the block into a copy of the repository."""
        module = copy / self.path
        if self.is_new:
            assert not module.exists(), f"{self.path} is not new"
            module.write_text(self.text)
            return
        lines = module.read_text().splitlines(keepends=True)
        (at,) = (number for number, line in enumerate(lines) if line.strip() == self.below)
        indent = re.match(" *", lines[at if not self.below.endswith("{") else at + 1])
        assert indent is not None
        lines.insert(at + 1, textwrap.indent(self.text, indent[0]))
        module.write_text("".join(lines))

    def undo(self, copy: Path) -> None:
        """Takes the lines of the block out of a copy of the repository, which has them."""
        module = copy / self.path
        text, lines = module.read_text(), self.text.splitlines(keepends=True)
        pattern = "".join(f"^ *{re.escape(line)}" for line in lines)
        found = re.findall(pattern, text, re.MULTILINE)
        assert len(found) == 1, f"{self.path} does not have it once:\n{self.text}"
        module.write_text(re.sub(pattern, "", text, count=1, flags=re.MULTILINE))


def steps(heading: str) -> Iterator[Step]:
    """The blocks below a heading of the page."""
    section = PAGE.read_text("utf-8").partition(f"## {heading}\n")[2].partition("\n## ")[0]
    for indent, block in _BLOCK.findall(section):
        first, _, text = textwrap.dedent(indent + block.removeprefix(indent)).partition("\n")
        place, _, below = first.removeprefix("# ").partition(", below: ")
        yield Step(place.removesuffix(" (new)"), below, text, place.endswith(" (new)"))


def _left_out(folder: str, names: list[str]) -> set[str]:
    """What is of no use in the copy: tests of other parts."""
    kept = ("broker", "tidy", "testing")
    is_tests = Path(folder) == ROOT / "tests"
    return {
        name
        for name in names
        if name == "__pycache__"
        or (is_tests and (ROOT / "tests" / name).is_dir() and name not in kept)
    }


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the repository, in which `txrocketmq` are its own modules."""
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tmp_path / name, symlinks=True, ignore=_left_out)
        else:
            shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def run(copy: Path, *arguments: str) -> tuple[int, str]:
    """Runs a module in the copy; returns its exit code and what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy / "typings"), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def pytest_says(copy: Path, *which: str) -> tuple[int, str]:
    """Runs tests of the copy."""
    return run(copy, "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider", *which)


def check(copy: Path, taken: list[Step], *which: str) -> None:
    """What was written has the right form, and these tests pass."""
    modules = sorted({step.path for step in taken})
    for arguments in ("format", "--check"), ("check",):
        code, said = run(copy, "ruff", *arguments, *modules)
        assert code == 0, said
    code, said = pytest_says(copy, *which)
    assert code == 0, said


def test_a_new_kind_of_message(copy: Path) -> None:
    taken = list(steps(MESSAGE))
    assert len(taken) == 5
    *before, last = taken
    for step in before:
        step.take(copy)
    listed = "tests/broker/intake/test_all_transforms.py"
    code, said = pytest_says(copy, listed)
    assert code == 1, said
    assert "TAKEN_BY" in said, said
    last.take(copy)
    check(copy, taken, listed, "tests/broker/intake/transforms/test_taken_by.py")


LEAVING = """
from pathlib import Path
from tests.broker.conftest import Parts
from tests.fakes import FakePeer

lives = Parts(Path("store")).walked()
lives.forget(FakePeer(), 0)
print({each.name: each.value() for each in lives.gauges()}["departures"])
"""


def test_a_new_part(copy: Path) -> None:
    taken = list(steps(PART))
    assert len(taken) == 6
    lists = [step for step in taken if step.path == "broker/all_parts.py"]
    for step in taken:
        if step not in lists:
            step.take(copy)
    code, said = pytest_says(copy, "tests/tidy/test_lives.py")
    assert code == 1, said
    assert "broker/tables/departures.py: Departures" in said, said
    for step in lists:
        step.take(copy)
    check(
        copy, taken, "tests/broker/tables/test_departures.py", "tests/broker/test_all_parts.py",
        "tests/tidy/test_lives.py",
    )  # fmt: skip
    (copy / "departed.py").write_text(LEAVING)
    code, said = run(copy, "departed")
    assert (code, said.splitlines()[-1:]) == (0, ["1"]), said


FINDS = {
    "broker/processors/pull/offset.py": (
        "tests/broker/test_all_processors.py::test_what_is_served", "30",
    ),
    "tests/broker/test_turns.py": (
        "tests/broker/test_largest_requests.py::test_every_request_is_looked_at",
        "<RequestCode.GET_MAX_OFFSET: 30>",
    ),
}  # fmt: skip
"""The tests that find what was forgotten, and what they say of it."""
OWN_TEST = "tests/broker/processors/pull/test_offset.py"


@pytest.mark.parametrize("path", FINDS)
def test_a_request_code(copy: Path, path: str) -> None:
    """What the page shows is in the repository; and what is forgotten of it is found."""
    shown = {step.path: step for step in steps(REQUEST)}
    assert shown.keys() == {"remoting/protocol/offset.py", OWN_TEST, *FINDS}
    for step in shown.values():
        if step.path != path:
            before = (copy / step.path).read_text()
            step.undo(copy)
            (copy / step.path).write_text(before)
    shown[path].undo(copy)
    test, found = FINDS[path]
    code, said = pytest_says(copy, test)
    assert code == 1, said
    extra = re.search(r"^E +Extra items in the \w+ set:\nE +(.+)$", said, re.MULTILINE)
    assert extra is not None, said
    assert extra[1] == found


def test_names_of_the_original_and_helpers_of_tests_exist() -> None:
    """Those that the page has of a request code."""
    section = PAGE.read_text("utf-8").partition(f"## {REQUEST}\n")[2].partition("\n## ")[0]
    package, _, name = GetMaxOffsetRequestHeader.java_class.rpartition(".")
    assert f"`{package}`" in section
    assert f"`{name}`" in section
    for name in ("request", "reply_of", "refused"):
        assert f"`{name}`" in section
        assert callable(getattr(fakes, name))
    for name in ("topic", "put", "consumer", "set"):
        assert f"`{name}`" in section
        assert callable(getattr(Parts, name))


def test_tests_that_the_page_names_ask_every_request() -> None:
    text = PAGE.read_text("utf-8").partition(f"## {REQUEST}\n")[2].partition("\n## ")[0]
    for name in (
        "tests/broker/test_turns.py", "tests/broker/largest.py", "tests/broker/test_cold.py",
        "tests/broker/test_largest_requests.py", "tests/broker/test_all_processors.py",
        "tests/namesrv/test_turns.py",
    ):  # fmt: skip
        assert f"`{name}`" in text
    for name, table in re.findall(r"`([A-Z_]+)` (?:of|in)\s+`([\w/.]+)`", text):
        assert re.search(rf"^{name}\b.*=", (ROOT / table).read_text("utf-8"), re.MULTILINE), name
