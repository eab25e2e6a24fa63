# SPDX-License-Identifier: Apache-2.0
"""The command is killed with SIGKILL, all its processes at once, at random moments of its runs.

One table lives through all of it: each kill meets what those before have left, and between kills
the store grows. In the end the table is the one that a single run makes. INGEST_KILLS says how many
kills there are, INGEST_SEED which moments. Then a command of which one process ends.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.spark.ingest.stores_and_tables import (
    keys,
    keys_of,
    put_some,
    quarantined,
    rows,
    store_of,
)
from tests.spark.stores import StoreWriter
from txrocketmq.cli.ending import INTERRUPTED
from txrocketmq.cli.spark import ingest

KILLS = int(os.environ.get("INGEST_KILLS", "6"))
SEED = int(os.environ.get("INGEST_SEED", "4711"))
PROGRAM = """
from txrocketmq.spark.ingest import job
job.COMMIT_BYTES = 1  # a commit for each file of the log
from txrocketmq.cli.spark.ingest import main
raise SystemExit(main())
"""
COMMAND = (sys.executable, "-c", PROGRAM)
LONG_S = 300
"""A bound for what takes some seconds on a machine that has nothing else to do."""
SHORT_S = 60
"""A bound for what takes none."""

pytestmark = pytest.mark.timeout(LONG_S + KILLS * SHORT_S)


@contextmanager
def running(store: StoreWriter, table: Path, *more: str) -> Iterator[subprocess.Popen[str]]:
    """The command in a session of its own; whatever is left of it at the end is killed."""
    process = subprocess.Popen(
        [*COMMAND, "--store", str(store.root), "--out", str(table), *more],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        kill_session(process.pid)
        process.communicate()


def kill_session(session: int) -> None:
    """SIGKILL to all processes of a session: the command, the JVM, Python's workers."""
    deadline = time.monotonic() + 30
    while found := list(_processes(session)):
        assert time.monotonic() < deadline, found
        for process in found:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)


def _processes(session: int) -> Iterator[int]:
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        with suppress(OSError):
            state, _, _, its_session = (
                entry.joinpath("stat").read_text().rpartition(")")[2].split()[:4]
            )
            if int(its_session) == session and state != "Z":
                yield int(entry.name)


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str], bound_s: float) -> None:
    """Until the condition holds; the process must not end before."""
    deadline = time.monotonic() + bound_s
    while not condition():
        assert time.monotonic() < deadline, "it does not come to this"
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.02)
            assert condition(), process.stderr and process.stderr.read()


def workers(command: int) -> list[int]:
    """The processes that run the tasks of a command."""
    found = []
    for process in _processes(command):
        with suppress(OSError):
            if b"spawn_main" in Path(f"/proc/{process}/cmdline").read_bytes():
                found.append(process)
    return found


def take_up(store: StoreWriter, table: Path, *more: str) -> None:
    """Runs the command to its end."""
    with running(store, table, *more) as process:
        _, said = process.communicate(timeout=LONG_S)
        assert process.returncode == ingest.DONE, said


def contents(table: Path) -> list[str]:
    """All rows of the table and of its quarantine."""
    return sorted(map(str, [*rows(table), *quarantined(table)]))


def files(table: Path) -> int:
    """How many there are, of the table and of its log."""
    return sum(1 for _ in table.rglob("*.*"))


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_killed_at_random_moments_the_table_is_that_of_one_run(tmp_path: Path, kind: str) -> None:
    store, table = store_of(tmp_path / "broker-a"), tmp_path / "table" / kind
    more = ("--format", kind)
    for number in (5, 40):
        with store.segment(store.stored[number].physical_offset // 4096 * 4096).open("r+b") as file:
            file.seek(store.stored[number].physical_offset % 4096 + 4)
            file.write(b"oops")
    began = time.monotonic()
    take_up(store, tmp_path / "first" / kind, *more)
    whole_s = time.monotonic() - began
    chance = random.Random(SEED)
    killed = 0
    for _ in range(KILLS):
        before = files(table)
        with running(store, table, *more) as process:
            if chance.random() < 0.3:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(chance.random() * whole_s)
            else:  # in the middle of its work
                wanted = before + chance.randrange(1, 25)
                deadline = time.monotonic() + LONG_S
                while files(table) < wanted and process.poll() is None:
                    assert time.monotonic() < deadline
            killed += process.poll() is None
            kill_session(process.pid)
        found = keys(table)
        assert len(found) == len(set(found))
        put_some(store, 20)
    assert killed
    take_up(store, table, "--verify", *more)
    whole = tmp_path / "whole" / kind
    take_up(store, whole, *more)
    assert contents(table) == contents(whole)
    assert len(quarantined(table)) == 2
    assert len(keys(table)) == len(keys_of(store)) - 2


Half = tuple[subprocess.Popen[str], Callable[[], None]]


@pytest.fixture
def half_done(tmp_path: Path) -> Iterator[Half]:
    """A command whose workers read slowly, and what finds its table good in the end."""
    store, table = store_of(tmp_path / "broker-a", 4_000, segment_bytes=1 << 18), tmp_path / "table"

    def take_up_the_rest() -> None:
        take_up(store, table)
        assert keys(table) == keys_of(store)

    with running(store, table, "--max-bytes-per-second", "64k") as process:
        wait_for(lambda: bool(workers(process.pid)), process, LONG_S)
        wait_for(lambda: DeltaTable.is_deltatable(str(table)), process, LONG_S)
        yield process, take_up_the_rest


def test_workers_end_with_a_command_that_is_killed(half_done: Half) -> None:
    process, take_up_the_rest = half_done
    process.kill()
    assert process.wait(SHORT_S) == -signal.SIGKILL
    deadline = time.monotonic() + SHORT_S
    while left := list(_processes(process.pid)):
        assert time.monotonic() < deadline, left
        time.sleep(0.01)
    take_up_the_rest()


def test_a_worker_that_is_killed_ends_the_run(half_done: Half) -> None:
    process, take_up_the_rest = half_done
    os.kill(workers(process.pid)[0], signal.SIGKILL)
    _, said = process.communicate(timeout=SHORT_S)
    assert process.returncode == ingest.FAILED, said
    first, *_, last = said.splitlines()
    assert first.startswith("new: ")
    assert last.startswith("txrocketmq ingest: a worker process was killed, ")
    take_up_the_rest()


def test_ctrl_c_ends_all_processes_and_is_told_once(half_done: Half) -> None:
    process, take_up_the_rest = half_done
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=SHORT_S)
    assert process.returncode == INTERRUPTED, said
    assert said.count("interrupted") == 1
    assert (
        said.splitlines()[-1] == "txrocketmq ingest: interrupted; the next run continues from here"
    )
    assert "Traceback" not in said
    assert not workers(process.pid)
    take_up_the_rest()
