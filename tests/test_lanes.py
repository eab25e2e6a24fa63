# SPDX-License-Identifier: Apache-2.0
"""Kinds of tests side by side, with a makefile of small kinds."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.lanes import duration

ROOT = Path(__file__).parent.parent
MAKEFILE = """
good fine:
\t@echo one; echo two
bad:
\t@echo wrong >&2; exit 7
# Each of these waits for the other.
ping:
\t@echo ping > to-pong; cat to-ping
pong:
\t@cat to-pong; echo pong > to-ping
priority compat:
\t@nice
forever:
\t@echo ready; exec sleep 600
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with that makefile."""
    (tmp_path / "Makefile").write_text(MAKEFILE)
    return tmp_path


def start(folder: Path, *lanes: str) -> subprocess.Popen[str]:
    """Runs these lanes there."""
    inherited = {name: value for name, value in os.environ.items() if "MAKE" not in name}
    return subprocess.Popen(
        [sys.executable, "-m", "tests.lanes", *lanes],
        cwd=folder, env={**inherited, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


def test_output_of_a_kind_is_shown_in_one_piece_and_failures_count(folder: Path) -> None:
    process = start(folder, "good", "bad fine")
    said = process.communicate(timeout=60)[0]
    assert process.returncode == 1
    assert said.count("one\ntwo\n") == 2
    assert "wrong\n" in said
    assert (folder / "var/test/good.log").read_text() == "one\ntwo\n"
    table = [line.split() for line in said.splitlines()[-4:]]
    assert sorted(row[:2] for row in table[:3]) == [
        ["bad", "FAILED"],
        ["fine", "passed"],
        ["good", "passed"],
    ]
    assert table[3][0] == "all"


def test_all_that_pass_pass(folder: Path) -> None:
    process = start(folder, "good")
    process.communicate(timeout=60)
    assert process.returncode == 0


def test_lanes_run_at_the_same_time(folder: Path) -> None:
    for name in ("to-ping", "to-pong"):
        os.mkfifo(folder / name)
    process = start(folder, "ping", "pong")
    said = process.communicate(timeout=60)[0]
    assert process.returncode == 0, said


def test_kinds_without_timers_give_way(folder: Path) -> None:
    process = start(folder, "priority compat")
    process.communicate(timeout=60)
    polite, usual = (
        int((folder / f"var/test/{kind}.log").read_text()) for kind in ("priority", "compat")
    )
    assert polite == min(usual + 5, 19)


def test_who_stops_it_stops_what_runs(folder: Path) -> None:
    process = start(folder, "forever good")
    assert process.stdout is not None
    assert "forever begins" in process.stdout.readline()
    log = folder / "var/test/forever.log"
    deadline = time.monotonic() + 60
    while not (log.exists() and log.read_text()):  # make does not stop what it is about to start
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    said = process.communicate(timeout=60)[0]
    assert process.returncode == 1
    assert "good begins" not in said


def test_durations_are_said_in_minutes() -> None:
    assert [duration(seconds) for seconds in (0.4, 59.6, 192)] == [
        "0 min  0 s",
        "1 min  0 s",
        "3 min 12 s",
    ]
