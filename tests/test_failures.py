# SPDX-License-Identifier: Apache-2.0
"""The hooks of tests/failures.py, in a run of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.failures import MAX_COLUMNS, MAX_LINES, bounded

ROOT = Path(__file__).parent.parent
CONFTEST = """
import sys
from tests import failures

def pytest_configure(config):
    failures.register(config)
    failures.register(config)
"""
TESTS = """
def test_long():
    assert list(range(800)) == list(range(400))
"""


def run(folder: Path, *flags: str) -> list[str]:
    """What pytest prints where nobody looks on."""
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_one.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-c", os.devnull, "--rootdir", str(folder)]
    environment = {**os.environ, "CI": "true", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider", *flags, str(folder)],
        env=environment, cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "1 failed" in done.stdout, done.stdout + done.stderr
    return done.stdout.splitlines()


def test_a_failure_says_in_few_lines_why(tmp_path: Path) -> None:
    lines = run(tmp_path, "-rfE")
    assert "Left contains 400 more items, first extra item: 400" in "\n".join(lines)
    assert len(lines) < 2 * MAX_LINES


def test_who_asks_for_everything_gets_it(tmp_path: Path) -> None:
    assert len(run(tmp_path, "-vv")) > 400


def test_the_middle_is_left_out() -> None:
    lines = [str(number) for number in range(100)]
    assert bounded(lines, 100) == lines
    assert bounded(lines, 8, "E ") == [*lines[:6], "E [... 92 lines ...]", *lines[98:]]
    (cut,) = bounded(["x" * 5000], 8)
    assert cut == "x" * MAX_COLUMNS + " [... 5000 characters]"
