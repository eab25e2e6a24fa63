# SPDX-License-Identifier: Apache-2.0
"""The command is killed with SIGKILL, all its processes at once, at every stage of a run.

One table lives through all of it: each kill meets what the one before has left, and between two
kills the store grows. In the end each message is in the table once.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.spark.ingest.tables import job_of, keys, keys_of, put_some, store_of
from tests.spark.stores import StoreWriter
from txrocketmq.cli import ingest
from txrocketmq.spark.ingest.stages import VARIABLE, Stage

pytestmark = pytest.mark.timeout(400)

COMMAND = [sys.executable, "-m", "txrocketmq.cli", "ingest"]
LONG_S = 300
"""A bound for what takes some seconds on a machine that has nothing else to do."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> StoreWriter:
    return store_of(tmp_path_factory.mktemp("killed") / "broker-a")


@pytest.fixture(scope="module")
def table(store: StoreWriter) -> Path:
    return store.root.parent / "table"


@contextmanager
def running(store: StoreWriter, table: Path, **variables: str) -> Iterator[subprocess.Popen[bytes]]:
    """The command in a session of its own; whatever is left of it at the end is killed."""
    process = subprocess.Popen(
        [*COMMAND, "--store", str(store.root), "--out", str(table)],
        env={**os.environ, **variables},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
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


def wait_for(path: Path, process: subprocess.Popen[bytes]) -> None:
    """Until the file is there; the process must not end before."""
    deadline = time.monotonic() + LONG_S
    while not path.exists():
        assert time.monotonic() < deadline, "it does not come to the stage"
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.05)
            assert path.exists(), process.stderr and process.stderr.read().decode()


@pytest.mark.parametrize("stage", list(Stage), ids=lambda stage: stage.value)
def test_killed_at_a_stage(stage: Stage, store: StoreWriter, table: Path, tmp_path: Path) -> None:
    here = tmp_path / "here"
    with running(store, table, **{VARIABLE: f"{stage.value}:{here}"}) as process:
        wait_for(here, process)
        kill_session(process.pid)
        assert process.wait(30) == -signal.SIGKILL
    found = keys(table)
    assert len(found) == len(set(found))
    commits = list(job_of([], table).ledger.commits())
    assert [commit.run for commit in commits] == list(range(1, len(commits) + 1))
    put_some(store, 20)


def test_in_the_end_each_message_is_there_once(store: StoreWriter, table: Path) -> None:
    with running(store, table) as process:
        _, said = process.communicate(timeout=LONG_S)
        assert process.returncode == ingest.DONE, said.decode()
    assert keys(table) == keys_of(store)
    commits = list(job_of([], table).ledger.commits())
    assert sum(commit.rows for commit in commits) == len(store.stored)
    left = [path.name for path in (table / "_ingest").rglob("*") if path.is_file()]
    assert sorted(left) == ["lock", "table.json"]
