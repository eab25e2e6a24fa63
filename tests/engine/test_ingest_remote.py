# SPDX-License-Identifier: Apache-2.0
"""Stores and tables in a bucket: moto's S3 server on the loopback address, through pyarrow."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from moto.server import ThreadedMotoServer
from pyarrow import fs

from tests.spark.ingest.tables import SETTINGS, keys, keys_of, put_some, store_of
from txrocketmq.spark.errors import DataLossError
from txrocketmq.spark.ingest import ledger, parts, task
from txrocketmq.spark.ingest.documents import SplitResult
from txrocketmq.spark.ingest.errors import TableBusy
from txrocketmq.spark.ingest.folder import folder_of
from txrocketmq.spark.ingest.job import Job
from txrocketmq.spark.ingest.runner import Outcome, Task, run_here
from txrocketmq.spark.ingest.stages import Stage
from txrocketmq.spark.ingest.verify import verify
from txrocketmq.spark.store import Store


class Killed(BaseException):
    """As sudden as SIGKILL, but for one process."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The options of a URI that lead to the server."""
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield (
        f"endpoint_override={host}:{port}&scheme=http&region=us-east-1"
        "&allow_bucket_creation=true&allow_bucket_deletion=true"
    )
    server.stop()


@pytest.fixture
def bucket(server: str) -> Iterator[Callable[[str], str]]:
    """The URI of a path in a bucket that is empty."""

    def uri(path: str) -> str:
        return f"s3://key:secret@lake/{path}?{server}"

    files, _ = fs.FileSystem.from_uri(uri(""))
    files.create_dir("lake")
    yield uri
    files.delete_dir_contents("lake")


def run_elsewhere(tasks: Sequence[Task]) -> list[Outcome]:
    """As workers do: what a task needs travels with it."""
    return run_here(pickle.loads(pickle.dumps(list(tasks))))  # noqa: S301


def job_of(stores: Sequence[str], table: str) -> Job:
    return Job(
        stores=[Store.open(uri, broker_name="broker-a") for uri in stores],
        folder=folder_of(table),
        settings=SETTINGS,
        start_runner=lambda: run_elsewhere,
    )


def download(uri: str, target: Path) -> Path:
    """A copy of the table."""
    files, path = fs.FileSystem.from_uri(uri)
    fs.copy_files(path, str(target), files, fs.LocalFileSystem())
    return target


def upload(source: Path, uri: str) -> None:
    files, path = fs.FileSystem.from_uri(uri)
    fs.copy_files(str(source), path, fs.LocalFileSystem(), files)


def test_from_bucket_to_bucket(bucket: Callable[[str], str], tmp_path: Path) -> None:
    store = store_of(tmp_path / "broker-a")
    upload(store.root, bucket("broker-a"))
    job = job_of([bucket("broker-a")], bucket("table"))
    (commit,) = job.run()
    assert commit.rows == 60
    put_some(store, 20)
    upload(store.root, bucket("broker-a"))
    (later,) = job.run()
    assert later.rows == 20
    assert verify(job.ledger, job.stores, run_elsewhere).is_good
    local = download(bucket("table"), tmp_path / "copy")
    assert keys(local) == keys_of(store)
    text = "".join(path.read_text("utf-8") for path in local.rglob("*.json"))
    assert "secret" not in text


@pytest.mark.parametrize(
    "stage",
    [
        Stage.PLANNED,
        Stage.ONE_PART_IN_PLACE,
        Stage.SPLIT_DONE,
        Stage.BEFORE_COMMIT,
        Stage.COMMITTED,
    ],
)
def test_killed_runs_are_taken_up(
    bucket: Callable[[str], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    stage: Stage,
) -> None:
    store = store_of(tmp_path / "broker-a", 30)
    job = job_of([str(store.root)], bucket("table"))
    with monkeypatch.context() as patch:

        def reached(here: Stage) -> None:
            if here is stage:
                raise Killed

        for each in (ledger, parts, task):
            patch.setattr(each, "reached", reached)
        with pytest.raises(Killed):
            list(job.run())
    put_some(store, 5)
    list(job.run())
    local = download(bucket("table"), tmp_path / "copy")
    assert keys(local) == keys_of(store)
    assert [path.name for path in (local / "_ingest").rglob("*.*")] == ["table.json"]


def test_a_part_that_fails_is_never_seen(bucket: Callable[[str], str], tmp_path: Path) -> None:
    store = store_of(tmp_path / "broker-a")
    job = job_of([str(store.root)], bucket("table"))
    job.dry_run()
    (store.root / "commitlog" / f"{4096:020d}").unlink()
    with pytest.raises(DataLossError):
        list(job.run())
    done = {part.path for result in _results(job) for part in result.parts}
    assert set(job.ledger.data_files()) == done


def _results(job: Job) -> list[SplitResult]:
    plan = job.ledger.plan(1)
    assert plan is not None
    return list(job.ledger.results(plan).values())


def test_two_runs_at_once_are_noticed(bucket: Callable[[str], str], tmp_path: Path) -> None:
    """There is no lock: the one whose plan was written over gives up."""
    store = store_of(tmp_path / "broker-a", 10)
    table = bucket("table")

    def meddling(tasks: Sequence[Task]) -> list[Outcome]:
        outcomes = run_elsewhere(tasks)
        _, plan = job_of([str(store.root)], bucket("elsewhere")).dry_run()
        assert plan is not None
        folder_of(table).write("_ingest/plans/0000000001.json", plan.to_json())
        return outcomes

    first = job_of([str(store.root)], table)
    object.__setattr__(first, "start_runner", lambda: meddling)
    with pytest.raises(TableBusy, match="replaced the plan of run 1"):
        list(first.run())
    list(job_of([str(store.root)], table).run())
    assert keys(download(table, tmp_path / "copy")) == keys_of(store)
