# SPDX-License-Identifier: Apache-2.0
"""The command is killed with SIGKILL, all its processes at once, at every stage of a run.

One table lives through all of it: each kill meets what the one before has left, and between two
kills the store grows. In the end each message is in the table once. Then a run on Spark's workers,
and a command of which one process ends.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.spark.ingest.tables import job_of, keys, keys_of, put_some, store_of
from tests.spark.stores import StoreWriter
from txrocketmq.cli import ingest
from txrocketmq.cli.ending import INTERRUPTED
from txrocketmq.spark.ingest.stages import VARIABLE, Stage

pytestmark = pytest.mark.timeout(400)

COMMAND = (sys.executable, "-m", "txrocketmq.cli", "ingest")
ON_SPARK = """
import sys
from txrocketmq.cli import ingest
from txrocketmq.spark.ingest.job import Silent
from txrocketmq.spark.ingest.spark_runner import spark_runner
from txrocketmq.spark.session import session

options = ingest.parse_arguments(sys.argv[1:])
with session("killed") as spark:
    list(ingest.make_job(options, Silent(), lambda: spark_runner(spark)).run())
"""
QUICK_JAVA = {"JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1"}
"""For a machine that starts and does little."""
LONG_S = 300
"""A bound for what takes some seconds on a machine that has nothing else to do."""
SHORT_S = 30
"""A bound for what takes none."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> StoreWriter:
    return store_of(tmp_path_factory.mktemp("killed") / "broker-a")


@pytest.fixture(scope="module")
def table(store: StoreWriter) -> Path:
    return store.root.parent / "table"


@contextmanager
def running(
    store: StoreWriter, table: Path, command: Sequence[str] = COMMAND, **variables: str
) -> Iterator[subprocess.Popen[str]]:
    """The command in a session of its own; whatever is left of it at the end is killed."""
    process = subprocess.Popen(
        [*command, "--store", str(store.root), "--out", str(table)],
        env={**os.environ, **QUICK_JAVA, **variables},
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


@contextmanager
def standing_still(
    stage: Stage, store: StoreWriter, table: Path, tmp_path: Path, command: Sequence[str] = COMMAND
) -> Iterator[subprocess.Popen[str]]:
    """The command, when one of its processes has come to the stage."""
    here = tmp_path / "here"
    variables = {VARIABLE: f"{stage.value}:{here}"}
    with running(store, table, command, **variables) as process:
        wait_for(here.exists, process, LONG_S)
        yield process


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


def take_up(store: StoreWriter, table: Path) -> None:
    """Runs the command to its end; then the table has each message once, and nothing else."""
    with running(store, table) as process:
        _, said = process.communicate(timeout=LONG_S)
        assert process.returncode == ingest.DONE, said
    assert keys(table) == keys_of(store)
    left = [path.name for path in (table / "_ingest").rglob("*") if path.is_file()]
    assert sorted(left) == ["lock", "table.json"]


@pytest.mark.parametrize("stage", list(Stage), ids=lambda stage: stage.value)
def test_killed_at_a_stage(stage: Stage, store: StoreWriter, table: Path, tmp_path: Path) -> None:
    with standing_still(stage, store, table, tmp_path) as process:
        kill_session(process.pid)
        assert process.wait(SHORT_S) == -signal.SIGKILL
    found = keys(table)
    assert len(found) == len(set(found))
    commits = list(job_of([], table).ledger.commits())
    assert [commit.run for commit in commits] == list(range(1, len(commits) + 1))
    put_some(store, 20)


def test_in_the_end_each_message_is_there_once(store: StoreWriter, table: Path) -> None:
    take_up(store, table)
    commits = list(job_of([], table).ledger.commits())
    assert sum(commit.rows for commit in commits) == len(store.stored)


def test_killed_on_spark_and_taken_up_without_it(tmp_path: Path) -> None:
    store, table = store_of(tmp_path / "broker-a"), tmp_path / "table"
    program = (sys.executable, "-c", ON_SPARK)
    with standing_still(Stage.ONE_PART_IN_PLACE, store, table, tmp_path, program) as process:
        kill_session(process.pid)
    assert keys(table)
    put_some(store, 20)
    take_up(store, table)


Half = tuple[subprocess.Popen[str], Callable[[], None]]


@pytest.fixture
def half_written(tmp_path: Path) -> Iterator[Half]:
    """A command of which a worker stands still, and what finds its table good in the end."""
    store, table = store_of(tmp_path / "broker-a"), tmp_path / "table"
    with standing_still(Stage.PART_HALF_WRITTEN, store, table, tmp_path) as process:
        assert workers(process.pid)
        yield process, lambda: take_up(store, table)


def test_workers_end_with_a_command_that_is_killed(half_written: Half) -> None:
    process, take_up_the_rest = half_written
    process.kill()
    assert process.wait(SHORT_S) == -signal.SIGKILL
    deadline = time.monotonic() + SHORT_S
    while left := list(_processes(process.pid)):
        assert time.monotonic() < deadline, left
        time.sleep(0.01)
    take_up_the_rest()


def test_a_worker_that_is_killed_ends_the_run(half_written: Half) -> None:
    process, take_up_the_rest = half_written
    os.kill(workers(process.pid)[0], signal.SIGKILL)
    _, said = process.communicate(timeout=SHORT_S)
    assert process.returncode == ingest.FAILED
    first, last = said.splitlines()
    assert first.startswith("run 1: ")
    assert last.startswith("txrocketmq ingest: a worker process was killed, ")
    take_up_the_rest()


def check_interrupted(process: subprocess.Popen[str]) -> None:
    """Ctrl-C, which a terminal sends to all processes, ends them all and is told once."""
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=SHORT_S)
    assert process.returncode == INTERRUPTED, said
    first, *others, last = said.splitlines()
    assert not others, said
    assert first.startswith("run 1: ")
    assert last == "txrocketmq ingest: interrupted; the next run goes on where this one was"
    assert not workers(process.pid)


def test_ctrl_c_while_tasks_run(half_written: Half) -> None:
    process, take_up_the_rest = half_written
    check_interrupted(process)
    take_up_the_rest()


def test_ctrl_c_while_workers_start(tmp_path: Path) -> None:
    store, table = store_of(tmp_path / "broker-a"), tmp_path / "table"
    with running(store, table) as process:
        wait_for(lambda: bool(workers(process.pid)), process, SHORT_S)
        check_interrupted(process)
    take_up(store, table)
