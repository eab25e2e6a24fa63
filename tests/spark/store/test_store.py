# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.spark.far_files import FarFiles
from tests.spark.stores import Draft, StoreWriter
from txrocketmq.remoting.message.compression import CompressionType
from txrocketmq.spark.arrow.errors import NotAStore, OptionError, StoreError, UnsupportedLayout
from txrocketmq.spark.log.log_end import end_of_log
from txrocketmq.spark.store.files import Entry, LocalFiles
from txrocketmq.spark.store.store import DEFAULT_CLUSTER, Segment, Store, has_pattern, resolve

_SEGMENT_BYTES = 4096


def _writer(root: Path, messages: int = 20, **options: Any) -> StoreWriter:
    writer = StoreWriter(root, segment_bytes=_SEGMENT_BYTES, **options)
    writer.put_all(Draft(body=b"b" * 300, queue_id=n % 3) for n in range(messages))
    return writer


# --- opening ---


def test_golden_stores(
    golden_store: Callable[[str], Path],
    golden_messages: Callable[[str], list[dict[str, Any]]],
    golden_version: str,
) -> None:
    messages = golden_messages(golden_version)
    for kind in ("clean", "crashed"):
        root = golden_store(golden_version) / kind
        store = Store.open(str(root))
        assert (store.broker_name, store.cluster) == ("broker-a", "DefaultCluster")
        assert store.queue_kind == "files"
        assert store.files == LocalFiles(spares_cache=kind == "crashed")
        assert store.min_offset() == 0
        assert store.gaps() == []
        queues = {(queue.topic, queue.queue_id): queue for queue in store.queues()}
        for message in messages:
            queue = queues[message["topic"], message["queueId"]]
            offset = message["queueOffset"]
            (unit,) = queue.units(offset, offset + 1)
            assert unit["physical_offset"] == message["commitLogOffset"]
            assert unit["size"] == message["storeSize"]
            found = store.message_at(message["commitLogOffset"])
            assert found is not None
            assert found.store_timestamp == message["storeTimestamp"]
            assert store.stored_at(message["commitLogOffset"]) == message["storeTimestamp"]


def test_names_are_given_or_told_by_topics_or_path(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    writer = _writer(tmp_path / "broker-x" / "store")
    assert Store.open(str(writer.root)).broker_name == "broker-x"
    assert Store.open(str(writer.root)).cluster == DEFAULT_CLUSTER
    opened = Store.open(str(writer.root), broker_name="b", cluster="c")
    assert (opened.broker_name, opened.cluster) == ("b", "c")
    (writer.root / "config" / "topics.json").write_text("{broken")
    assert not caplog.messages
    for _ in range(3):
        assert Store.open(str(writer.root)).broker_name == "broker-x"
    (told,) = caplog.messages
    assert "broker-x/store are named after its folder" in told
    assert "topics.json" in told


def test_it_travels(tmp_path: Path) -> None:
    store = Store.open(str(_writer(tmp_path / "store").root))
    assert len(pickle.dumps(store)) < 1000
    assert pickle.loads(pickle.dumps(store)) == store  # noqa: S301 - our own bytes


@pytest.mark.parametrize(
    ("make", "message"),
    [
        ([], "there is no such directory"),
        (["root/"], "is not a store: it has no directory commitlog/; name the directory of"),
        (["root/store/commitlog/"], r"did you mean .*root/store\?"),
        ([f"root/{0:020d}"], "is a commitlog directory; name the directory above it"),
        (["root"], "is a file"),
    ],
)
def test_what_is_no_store(tmp_path: Path, make: list[str], message: str) -> None:
    for each in make:
        path = tmp_path / each
        if each.endswith("/"):
            path.mkdir(parents=True)
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(b"")
    with pytest.raises(NotAStore, match=message):
        Store.open(str(tmp_path / "root"))


def test_a_dledger_log(tmp_path: Path) -> None:
    (tmp_path / "dledger-n0" / "data").mkdir(parents=True)
    (tmp_path / "commitlog").mkdir()
    with pytest.raises(UnsupportedLayout, match=r"DLedger log \(dledger-n0/\).* nameServer"):
        Store.open(str(tmp_path))


def test_a_log_over_several_directories(tmp_path: Path) -> None:
    writer = _writer(tmp_path / "store", 50)
    for number, path in enumerate(sorted((writer.root / "commitlog").iterdir())):
        if number % 2:
            path.unlink()
    with pytest.raises(UnsupportedLayout, match="storePathCommitLog with several paths"):
        Store.open(str(writer.root))


@pytest.mark.parametrize("place", ["consumequeue", "consumequeue_r"])
def test_rocksdb_queues_leave_the_log(tmp_path: Path, place: str) -> None:
    writer = _writer(tmp_path / "store")
    (writer.root / "consumequeue_r").mkdir()
    assert Store.open(str(writer.root)).queue_kind == "files"  # made, but not used
    (writer.root / place / "CURRENT").write_text("MANIFEST-000001\n")
    store = Store.open(str(writer.root))
    assert store.queue_kind == "rocksdb"
    assert store.queues() == []
    assert store.queue("Topic", 0) is None
    assert store.queues_of("Topic") == []
    assert end_of_log(store) == writer.end


def test_an_empty_store(tmp_path: Path) -> None:
    store = Store.open(str(StoreWriter(tmp_path / "store").root))
    assert store.queue_kind == "none"
    assert (store.segments(), store.min_offset(), end_of_log(store)) == ([], 0, 0)
    assert (store.queues(), store.index_files()) == ([], [])


# --- the log ---


def test_segments(tmp_path: Path) -> None:
    writer = _writer(tmp_path / "store", 50, first_offset=3 * _SEGMENT_BYTES)
    directory = writer.root / "commitlog"
    count = -(-(writer.end - 3 * _SEGMENT_BYTES) // _SEGMENT_BYTES)
    (directory / f"{writer.end:020d}.tmp").write_bytes(b"x")
    (directory / f"{100 * _SEGMENT_BYTES:020d}").write_bytes(b"")
    store = Store.open(str(writer.root))
    firsts = [(3 + number) * _SEGMENT_BYTES for number in range(count)]
    assert store.segments() == [
        Segment(first, _SEGMENT_BYTES, f"{directory}/{first:020d}") for first in firsts
    ]
    assert store.min_offset() == firsts[0]
    writer.delete_segment()
    assert store.min_offset() == firsts[1]
    writer.segment(firsts[2]).unlink()
    assert store.gaps() == [(firsts[2], firsts[3])]
    assert store.segment_of(firsts[2]) is None
    assert store.file_of(firsts[2]) == str(directory)
    assert store.file_of(firsts[3] + 5) == f"{directory}/{firsts[3]:020d}"


def test_read(tmp_path: Path) -> None:
    writer = _writer(tmp_path / "store")
    store = Store.open(str(writer.root))
    for each in writer.stored:
        assert store.read(each.physical_offset, each.size) == each.data
    assert len(store.read(_SEGMENT_BYTES - 3, 10)) == 3
    with pytest.raises(FileNotFoundError, match="no file of the log holds 99999"):
        store.read(99_999, 1)


@settings(max_examples=examples(20))
@given(st.integers(0, 2000), st.booleans(), st.booleans())
def test_a_message_of_the_log(size: int, born_ipv6: bool, store_ipv6: bool) -> None:
    draft = Draft(
        body=bytes(size),
        compression=CompressionType.ZLIB,
        born_ipv6=born_ipv6,
        store_ipv6=store_ipv6,
    )
    with TemporaryDirectory() as name:
        writer = StoreWriter(Path(name) / "store")
        stored = writer.put(draft)
        store = Store.open(str(writer.root))
        message = store.message_at(0)
        assert message is not None
        assert message.body == stored.fields["body"]
        assert store.stored_at(0) == stored.store_timestamp
        for place in (1, stored.size, 10**9):
            assert store.message_at(place) is None
            assert store.stored_at(place) is None
        with writer.segment(0).open("r+b") as file:
            file.seek(88 + 12 * (born_ipv6 + store_ipv6))
            file.write(b"\xff")  # in the body
        assert store.message_at(0) is None


# --- queues ---


@pytest.mark.parametrize("files", [LocalFiles(), FarFiles()])
def test_whether_there_are_very_many_queues(tmp_path: Path, files: LocalFiles) -> None:
    writer = StoreWriter(tmp_path / "s")
    writer.put_all(Draft(f"Topic{n}", queue_id=q) for n in range(30) for q in range(2))
    listed = Counter[str]()

    class Counted(LocalFiles):
        def list(self, path: str) -> list[Entry]:
            listed["list"] += 1
            return super().list(path)

    store = Store.open(str(writer.root))
    for count in (0, 1, 59):
        assert replace(store, files=files).has_more_queues_than(count)
    assert not store.has_more_queues_than(60)
    assert not replace(store, queue_kind="none").has_more_queues_than(0)
    assert replace(store, files=Counted()).has_more_queues_than(4)
    assert listed["list"] <= 4, "not all of them are listed"


def test_queues(tmp_path: Path) -> None:
    writer = _writer(tmp_path / "store")
    writer.put(Draft(topic="Batches", queue_id=2, inner=((b"a", {}), (b"b", {}))))
    writer.put(Draft(topic="%RETRY%g"))
    (writer.root / "consumequeue" / "Topic" / "notes").mkdir()
    store = Store.open(str(writer.root))
    assert [(q.topic, q.queue_id, q.is_batch) for q in store.queues()] == [
        ("%RETRY%g", 0, False),
        ("Batches", 2, True),
        ("Topic", 0, False),
        ("Topic", 1, False),
        ("Topic", 2, False),
    ]
    for queue in store.queues():
        assert store.queue(queue.topic, queue.queue_id) == queue
    assert store.queues_of("Topic") == store.queues()[2:]
    assert store.queue("Topic", 9) is None
    (writer.root / "batchconsumequeue/Topic/1").mkdir(parents=True)
    (writer.root / "consumequeue/Batches/2").mkdir(parents=True)
    assert [q.is_batch for q in store.queues()] == [False, True, False, False, False], "as before"
    for queue in store.queues():
        assert store.queue(queue.topic, queue.queue_id) == queue
    assert store.queues_of("Topic") == store.queues()[2:]
    assert store.queue("../config", 0) is None
    assert store.queues_of("../consumequeue") == []


# --- several ---


@pytest.fixture
def brokers(tmp_path: Path) -> Path:
    for name in ("broker-a", "broker-b", "other"):
        _writer(tmp_path / name / "store", 1)
    return tmp_path


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        ("{}/broker-a/store", ["broker-a"]),
        ("{}/broker-a/store/", ["broker-a"]),
        ("{0}/broker-b/store, {0}/broker-a/store", ["broker-b", "broker-a"]),
        ("{}/broker-*/store", ["broker-a", "broker-b"]),
        ("{}/broker-[b]/sto?e", ["broker-b"]),
        ("file:{}/*/store", ["broker-a", "broker-b", "other"]),
        ("{0}/broker-*/store,{0}/other/store", ["broker-a", "broker-b", "other"]),
    ],
)
def test_resolve(brokers: Path, paths: str, names: list[str]) -> None:
    found = resolve(paths.format(brokers))
    assert [store.broker_name for store in found] == names
    assert all(end_of_log(store) > 0 for store in found)


def test_a_relative_pattern(brokers: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(brokers)
    assert [store.broker_name for store in resolve("broker-*/store")] == ["broker-a", "broker-b"]


def test_a_directory_with_a_comma_and_a_star(tmp_path: Path) -> None:
    writer = _writer(tmp_path / "a,b*", 1)
    (store,) = resolve(str(writer.root))
    assert store.broker_name == "a,b*"


def test_a_pattern_may_find_others_later(brokers: Path, tmp_path: Path) -> None:
    literal = tmp_path / "[a]" / "store"
    _writer(literal, 1)
    bucket = "s3://bucket/{}/store?endpoint_override=localhost:1&scheme=http&region=x"
    for paths in (f"{brokers}/broker-a/store", str(literal), literal.as_uri(), bucket.format("a")):
        assert not has_pattern(paths)
    for paths in (f"/x,{brokers}/broker-?/store", "file:/none/[ab]", bucket.format("*")):
        assert has_pattern(paths)
    (store,) = resolve(f"file:{literal}")
    assert end_of_log(store) > 0


def test_what_cannot_be_resolved(brokers: Path) -> None:
    with pytest.raises(OptionError, match="option storePath=' , ' is not valid"):
        resolve(" , ")
    with pytest.raises(OptionError, match=r"nothing-\*' matches no directory"):
        resolve(f"{brokers}/nothing-*")
    with pytest.raises(OptionError, match="are both of broker 'broker-a'"):
        resolve(f"{brokers}/broker-a/store,{brokers}/broker-a/../broker-a/store")
    with pytest.raises(OptionError, match="names one broker, but .* has 2 stores"):
        resolve(f"{brokers}/broker-*/store", broker_name="x")
    with pytest.raises(NotAStore):
        resolve(f"{brokers}/broker-a/store,{brokers}/missing")
    bucket = "s3://key:secret@bucket/{}?endpoint_override=localhost:1&scheme=http&region=x"
    with pytest.raises(OptionError, match="has 2 stores") as raised:
        resolve(f"{bucket.format('a')},{bucket.format('b')}", broker_name="x")
    assert "secret" not in str(raised.value)


def test_a_directory_that_may_not_be_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(files: LocalFiles, path: str) -> list[Entry]:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(LocalFiles, "list", refuse)
    with pytest.raises(StoreError, match=r"cannot be listed: .*Permission denied"):
        Store.open(str(tmp_path))
