# SPDX-License-Identifier: Apache-2.0
"""Stores in a bucket: moto's S3 server on the loopback address, read through pyarrow.

No engine is needed, but sockets are; so it is not among the unit tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from moto.server import ThreadedMotoServer
from pyarrow import fs

from tests.spark.stores import Draft, StoreWriter
from txrocketmq.spark.arrow.errors import NotAStore, StoreError
from txrocketmq.spark.arrow.records import Records
from txrocketmq.spark.log.log_end import end_of_log
from txrocketmq.spark.log.log_reader import WINDOW_BYTES, LostBytes, read_log, read_picks
from txrocketmq.spark.store.files import files_of
from txrocketmq.spark.store.store import Store, resolve


@pytest.fixture(scope="module")
def bucket() -> Iterator[Callable[[str], str]]:
    """The URI of a path in an empty bucket."""
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    options = f"endpoint_override={host}:{port}&scheme=http&region=us-east-1"
    options += "&allow_bucket_creation=true"

    def uri(path: str) -> str:
        return f"s3://key:secret@stores/{path}?{options}"

    files, _ = fs.FileSystem.from_uri(uri(""))
    files.create_dir("stores")
    yield uri
    server.stop()


def _upload(root: Path, uri: str) -> None:
    target, path = fs.FileSystem.from_uri(uri)
    fs.copy_files(str(root), path, fs.LocalFileSystem(), target)


def _records(store: Store, window_bytes: int = WINDOW_BYTES) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    end = end_of_log(store)
    log = read_log(
        store, store.min_offset(), end, first_is_boundary=True, window_bytes=window_bytes
    )
    for each in log:
        assert isinstance(each, Records), each
        found |= _bytes_of(each)
    return found


def _bytes_of(records: Records) -> dict[int, bytes]:
    return {
        int(offset): records.buffer[start : start + size].tobytes()
        for offset, start, size in zip(
            records.physical_offset, records.starts, records.total_size, strict=True
        )
    }


def test_a_store_in_a_bucket_is_the_local_one(bucket: Callable[[str], str], tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path / "broker-a", segment_bytes=65_536)
    writer.put_all(
        Draft(
            queue_id=number % 2, body=b"b" * number * 5, fakes=number % 2, properties={"KEYS": "k"}
        )
        for number in range(150)
    )
    writer.write_config({"Topic@group": {0: 3, 1: 4}})
    root, uri = writer.root, bucket("prod/broker-a")
    _upload(root, uri)
    local, remote = Store.open(str(root)), Store.open(uri)
    assert remote.uri == "s3://stores/prod/broker-a"
    assert (remote.broker_name, remote.cluster) == (local.broker_name, local.cluster)
    assert remote.config.consumer_offsets() == local.config.consumer_offsets()
    assert [s[:2] for s in remote.segments()] == [s[:2] for s in local.segments()]
    assert end_of_log(remote) == end_of_log(local)
    assert _records(remote, window_bytes=10_000) == _records(local)
    assert len(_records(local)) == 150
    (index,), (same,) = remote.index_files(), local.index_files()
    pieces = zip(index.entries(), same.entries(), strict=True)
    assert [each.tolist() for each, _ in pieces] == [each.tolist() for each in same.entries()]
    for ours, theirs in zip(remote.queues(), local.queues(), strict=True):
        assert ours.max_index() == theirs.max_index()
        units = ours.units(0, ours.max_index())
        assert units.tolist() == theirs.units(0, theirs.max_index()).tolist()
        picked: dict[int, bytes] = {}
        for each in read_picks(remote, units):
            assert isinstance(each, Records)
            picked |= _bytes_of(each)
        assert list(picked) == units["physical_offset"].tolist()


def test_several_stores_by_a_pattern(bucket: Callable[[str], str], tmp_path: Path) -> None:
    for name in ("broker-a", "broker-b"):
        writer = StoreWriter(tmp_path / name)
        writer.put(Draft())
        _upload(writer.root, bucket(f"many/{name}/store"))
    found = resolve(bucket("many/broker-*/store"))
    assert [store.broker_name for store in found] == ["broker-a", "broker-b"]
    assert [len(_records(store)) for store in found] == [1, 1]


def test_objects_that_are_deleted_while_they_are_read(
    bucket: Callable[[str], str], tmp_path: Path
) -> None:
    writer = StoreWriter(tmp_path / "store", segment_bytes=4096)
    writer.put_all(Draft(body=bytes(900)) for _ in range(12))
    uri = bucket("deleted")
    _upload(writer.root, uri)
    store = Store.open(uri)
    reading = read_log(store, 0, writer.end, window_bytes=4096, first_is_boundary=True)
    next(reading)
    files, path = fs.FileSystem.from_uri(uri)
    files.delete_file(f"{path}/commitlog/{4096:020d}")
    assert next(reading) == LostBytes(4096, 8192)
    assert isinstance(next(reading), Records)
    assert not list(reading)


def test_what_is_not_there(bucket: Callable[[str], str]) -> None:
    with pytest.raises(NotAStore, match=r"^s3://stores/nothing: there is no such directory$"):
        Store.open(bucket("nothing"))
    missing = urlsplit(bucket("x"))._replace(netloc="key:secret@nowhere").geturl()
    with pytest.raises(StoreError, match="s3://nowhere/x"):
        Store.open(missing)


def test_ranges_and_ends_of_objects(bucket: Callable[[str], str], tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"0123456789")
    _upload(tmp_path, bucket("ranges"))
    files, path = files_of(bucket("ranges"))
    buffer = bytearray(4)
    assert files.read_into(f"{path}/file", 8, memoryview(buffer)) == 2
    assert buffer == b"89\0\0"
    assert files.read_into(f"{path}/file", 20, memoryview(buffer)) == 0
    with pytest.raises(FileNotFoundError):
        files.read_into(f"{path}/missing", 0, memoryview(buffer))
