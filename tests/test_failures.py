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
ATTEMPTS = []

def test_flaky():
    print("printed", 1 + len(ATTEMPTS))
    ATTEMPTS.append(1)
    assert list(range(800)) == list(range(len(ATTEMPTS) * 400))

def test_broken():
    assert list(range(400)) == list(range(800))
"""


def run(folder: Path, *flags: str) -> list[str]:
    """What pytest prints where nobody looks on."""
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_both.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-c", os.devnull, "--rootdir", str(folder)]
    environment = {**os.environ, "CI": "true", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider", "--reruns", "1", *flags, str(folder)],
        env=environment, cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "1 failed, 1 passed, 2 rerun" in done.stdout, done.stdout + done.stderr
    return done.stdout.splitlines()


def test_each_attempt_says_in_few_lines_why_it_failed(tmp_path: Path) -> None:
    lines = run(tmp_path, "-rfER")
    why = [at for at, line in enumerate(lines) if "why tests were run again" in line]
    assert len(why) == 1, "told once"
    told = "\n".join(lines[why[0] :])
    for name in ("flaky", "broken"):
        assert f"test_both.py::test_{name}: attempt 1" in told
    assert "attempt 2" not in told
    assert "Left contains 400 more items, first extra item: 400" in told
    assert "printed 1" in told
    assert "printed 2" not in told
    assert len(lines) < 5 * MAX_LINES


def test_who_asks_for_everything_gets_it(tmp_path: Path) -> None:
    assert len(run(tmp_path, "-vv")) > 1000


def test_the_middle_is_left_out() -> None:
    lines = [str(number) for number in range(100)]
    assert bounded(lines, 100) == lines
    assert bounded(lines, 8, "E ") == [*lines[:6], "E [... 92 lines ...]", *lines[98:]]
    (cut,) = bounded(["x" * 5000], 8)
    assert cut == "x" * MAX_COLUMNS + " [... 5000 characters]"
