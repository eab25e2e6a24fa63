# SPDX-License-Identifier: Apache-2.0
"""Stores and tables in a bucket: moto's S3 server on the loopback address."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyarrow import fs

from tests.spark.ingest.stores_and_tables import SETTINGS, keys_of, put_some, store_of
from txrocketmq.spark.arrow.errors import TableBusy
from txrocketmq.spark.ingest.job import IngestJob
from txrocketmq.spark.ingest.runners.runner import Outcome, Task, run_here
from txrocketmq.spark.ingest.tables.delta_lake import DeltaLakeTable, location
from txrocketmq.spark.ingest.verification import verify
from txrocketmq.spark.store.store import Store

SERVER = """
import threading
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
threading.Event().wait()
"""


class Killed(BaseException):
    """As sudden as SIGKILL, but for one process."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The options of a URI that lead to the server.

    In a process of its own: the deltalake package keeps the interpreter while it waits.
    """
    command, out = [sys.executable, "-c", SERVER], subprocess.PIPE
    with subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL) as moto:
        try:
            assert moto.stdout is not None
            port = int(moto.stdout.readline())
            yield (
                f"endpoint_override=127.0.0.1:{port}&scheme=http&region=us-east-1"
                "&allow_bucket_creation=true&allow_bucket_deletion=true"
            )
        finally:
            moto.kill()


@pytest.fixture
def bucket(server: str) -> Iterator[Callable[[str], str]]:
    """The URI of a path in a bucket that is empty."""

    def uri(path: str) -> str:
        return f"s3://key:secret@lake/{path}?{server}"

    files, _ = fs.FileSystem.from_uri(uri(""))
    files.create_dir("lake")
    yield uri
    files.delete_dir_contents("lake")


def run_elsewhere(tasks: Sequence[Task]) -> Iterator[tuple[int, Outcome]]:
    """As workers do: what a task needs travels with it."""
    return run_here(pickle.loads(pickle.dumps(list(tasks))))  # noqa: S301


def job_of(stores: Sequence[str], table: str) -> IngestJob:
    return IngestJob(
        stores=[Store.open(uri, broker_name="broker-a") for uri in stores],
        table=DeltaLakeTable(table),
        settings=SETTINGS,
        start_runner=lambda: run_elsewhere,
    )


def keys(table: str) -> list[tuple[Any, ...]]:
    at, options = location(table)
    read = DeltaTable(at, storage_options=options).to_pyarrow_table()
    columns = ("topic", "queueId", "queueOffset")
    return sorted(zip(*(read[name].to_pylist() for name in columns), strict=True))


def upload(source: Path, uri: str) -> None:
    files, path = fs.FileSystem.from_uri(uri)
    fs.copy_files(str(source), path, fs.LocalFileSystem(), files)


def test_from_bucket_to_bucket(bucket: Callable[[str], str], tmp_path: Path) -> None:
    store = store_of(tmp_path / "broker-a")
    with store.segment(0).open("r+b") as file:
        file.seek(store.stored[0].physical_offset + 4)
        file.write(b"oops")
    upload(store.root, bucket("broker-a"))
    job = job_of([bucket("broker-a")], bucket("table"))
    (commit,) = job.run()
    assert commit.rows == 59
    put_some(store, 20)
    upload(store.root, bucket("broker-a"))
    (later,) = job_of([bucket("broker-a")], bucket("table")).run()
    assert later.rows == 20
    assert verify(job.table, job.stores, run_elsewhere).is_good
    assert keys(bucket("table")) == [key for key in keys_of(store) if key != ("Orders", 0, 0)]
    assert job.table.quarantined().num_rows == 1
    assert "secret" not in job.table.name


@pytest.mark.parametrize("step", ["create", "expect", "commit"])
def test_killed_runs_are_taken_up(
    bucket: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    store = store_of(tmp_path / "broker-a", 30)
    with monkeypatch.context() as patch:

        def killed(*_: object) -> None:
            raise Killed

        patch.setattr(DeltaLakeTable, step, killed)
        with pytest.raises(Killed):
            list(job_of([str(store.root)], bucket("table")).run())
    put_some(store, 5)
    list(job_of([str(store.root)], bucket("table")).run())
    assert keys(bucket("table")) == keys_of(store)


def test_of_two_runs_at_once_one_is_committed(bucket: Callable[[str], str], tmp_path: Path) -> None:
    """The server says which was first: it takes a commit only where none is."""
    store = store_of(tmp_path / "broker-a", 10)
    table = bucket("table")
    first = job_of([str(store.root)], table)

    def meddling(tasks: Sequence[Task]) -> Iterator[tuple[int, Outcome]]:
        list(job_of([str(store.root)], table).run())
        yield from run_elsewhere(tasks)

    with pytest.raises(TableBusy):
        list(replace(first, start_runner=lambda: meddling).run())
    assert keys(table) == keys_of(store)
