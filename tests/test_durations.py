# SPDX-License-Identifier: Apache-2.0
"""The hook of tests/durations.py, with workers and without."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.durations import long_modules

ROOT = Path(__file__).parent.parent
CONFTEST = """
import pytest

from tests import durations

def pytest_configure(config):
    durations.register(config)
    durations.register(config)

@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    report = yield
    report.duration = 5.0 if item.path.name == "test_long.py" else 1.0
    return report
"""
LONG = """
def test_one():
    pass

def test_two():
    assert False
"""


def report(nodeid: str, when: str, duration: float) -> pytest.TestReport:
    """What pytest tells of a phase of a test."""
    place = (nodeid.partition("::")[0], 1, "test")
    return pytest.TestReport(nodeid, place, {}, "passed", None, when, duration=duration)  # type: ignore[arg-type]


def test_all_phases_of_all_tests_of_a_module_count() -> None:
    reports = [
        report("tests/a.py::one", "setup", 4.0),
        report("tests/a.py::one", "call", 3.0),
        report("tests/a.py::two[x::y]", "teardown", 3.5),
        report("tests/b.py::one", "call", 9.9),
        report("tests/c.py::one", "call", 11.0),
        object(),
    ]
    assert long_modules(reports) == [("tests/c.py", 11.0), ("tests/a.py", 10.5)]


@pytest.mark.parametrize("flags", [(), ("-n", "2")])
def test_long_modules_are_named_once(tmp_path: Path, flags: tuple[str, ...]) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_long.py").write_text(LONG)
    (tmp_path / "test_short.py").write_text("def test_it():\n    pass\n")
    command = [sys.executable, "-m", "pytest", "-c", os.devnull, "--rootdir", str(tmp_path)]
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider", *flags, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    said = [line.split() for line in done.stdout.splitlines() if " s  " in line]
    assert said == [["30", "s", "test_long.py"]], done.stdout + done.stderr
