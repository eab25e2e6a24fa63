# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.spark.far_files import FarFiles
from tests.spark.stores import Draft, StoreWriter
from txrocketmq.broker.store.formats import formats
from txrocketmq.remoting.message.tags import java_string_hash
from txrocketmq.spark.arrow.errors import StoreError
from txrocketmq.spark.store import queue_files
from txrocketmq.spark.store.files import LocalFiles
from txrocketmq.spark.store.listed_files import ListedFiles
from txrocketmq.spark.store.queue_files import MAX_UNITS, Queue
from txrocketmq.spark.store.store import Store


def _writer(root: Path, **options: int | bool) -> StoreWriter:
    return StoreWriter(root, segment_bytes=4096, queue_units=5, **options)  # type: ignore[arg-type]


def _queue(writer: StoreWriter, topic: str = "Topic") -> Queue:
    queue = Store.open(str(writer.root)).queue(topic, 0)
    assert queue is not None
    return queue


@pytest.mark.parametrize("files", [LocalFiles(), FarFiles()])
@settings(max_examples=examples(30))
@given(count=st.integers(1, 23), start=st.integers(0, 25), length=st.integers(0, 25))
def test_units_are_those_written(files: LocalFiles, count: int, start: int, length: int) -> None:
    with TemporaryDirectory() as name:
        writer = _writer(Path(name) / "store")
        stored = writer.put_all(
            Draft(properties={"TAGS": f"t{number}"}, body=bytes(number * 20))
            for number in range(count)
        )
        queue = Queue("Topic", 0, files, f"{name}/store/consumequeue/Topic/0")
        assert queue.min_index(0) == 0
        assert queue.max_index() == count
        units = queue.units(start, start + length)
        wanted = stored[start : start + length]
        assert units["queue_offset"].tolist() == [each.queue_offset for each in wanted]
        assert units["physical_offset"].tolist() == [each.physical_offset for each in wanted]
        assert units["size"].tolist() == [each.size for each in wanted]
        assert units["count"].tolist() == [1] * len(wanted)
        tags = [java_string_hash(each.draft.properties["TAGS"]) for each in wanted]
        assert units["tags_code"].tolist() == tags
        last = queue.last_unit()
        assert last is not None
        assert last["physical_offset"][0] == stored[-1].physical_offset


@pytest.mark.parametrize("has_ext", [False, True])
def test_the_log_decides_where_a_queue_begins(tmp_path: Path, has_ext: bool) -> None:
    writer = _writer(tmp_path / "store", ext=has_ext)
    stored = writer.put_all(Draft(body=bytes(500)) for _ in range(23))
    queue = _queue(writer)
    for each in stored:
        assert queue.min_index(each.physical_offset) == each.queue_offset
        assert queue.min_index(each.physical_offset + 1) == each.queue_offset + 1
        assert queue.next_physical(each.physical_offset) == each.physical_offset
        assert queue.last_physical(each.physical_offset + 1) == each.physical_offset
    assert queue.last_physical(0) is None
    assert queue.next_physical(writer.end) is None
    some = queue.units_in_log(stored[4].physical_offset, stored[11].physical_offset)
    assert some["queue_offset"].tolist() == list(range(4, 11))
    # Retention has deleted files of the queue, too.
    (tmp_path / "store/consumequeue/Topic/0" / f"{0:020d}").unlink()
    assert queue.min_index(0) == 5
    assert queue.units(0, 7)["queue_offset"].tolist() == [5, 6]


def test_a_queue_that_begins_with_blanks(tmp_path: Path) -> None:
    writer = _writer(tmp_path / "store")
    writer.put_all(Draft() for _ in range(9))
    blank = formats.CONSUME_QUEUE_UNIT.build(
        {"physical_offset": 0, "size": formats.CONSUME_QUEUE_PRE_BLANK_SIZE, "tags_code": 0}
    )
    path = tmp_path / "store/consumequeue/Topic/0" / f"{0:020d}"
    path.write_bytes(blank * 3 + path.read_bytes()[60:])
    queue = _queue(writer)
    assert queue.min_index(0) == 3
    assert queue.units(0, 9)["queue_offset"].tolist() == list(range(3, 9))
    path.write_bytes(blank * 5)
    assert queue.min_index(0) == 5


@settings(max_examples=examples(40))
@given(
    count=st.integers(0, 23),
    queue_units=st.sampled_from((5, 50)),
    blanks=st.sampled_from((0, 0, 2)),
    edges=st.tuples(st.integers(0, 25), st.integers(0, 25)),
    between=st.integers(0, 1),
    bounds=st.tuples(st.integers(0, 25), st.integers(0, 25)),
    sample=st.integers(0, 30),
)
def test_the_span_of_a_part_of_the_log(
    count: int,
    queue_units: int,
    blanks: int,
    edges: tuple[int, int],
    between: int,
    bounds: tuple[int, int],
    sample: int,
) -> None:
    with TemporaryDirectory() as name:
        writer = StoreWriter(Path(name) / "store", queue_units=queue_units)
        stored = writer.put_all(Draft() for _ in range(max(1, count)))
        path = Path(name) / "store/consumequeue/Topic/0" / f"{0:020d}"
        data = path.read_bytes() if count else bytes(queue_units * 20)
        blank = formats.CONSUME_QUEUE_UNIT.build(
            {"physical_offset": 0, "size": formats.CONSUME_QUEUE_PRE_BLANK_SIZE, "tags_code": 0}
        )
        gone = min(blanks, count)
        path.write_bytes(blank * gone + data[gone * 20 :])
        start, end = sorted(
            stored[at].physical_offset + between if at < len(stored) else writer.end for at in edges
        )
        expected = [
            each.queue_offset
            for each in stored[gone:count]
            if start <= each.physical_offset < end and bounds[0] <= each.queue_offset < bounds[1]
        ]
        span = _queue(writer).span(start, end, *bounds, sample=sample)
        assert list(range(span.first, span.last)) == expected
        if span.sample is not None:
            assert len(span.sample) == 20 * min(sample, len(expected))
        assert (span.sample is None) == (count > queue_units)


def test_a_queue_without_units(tmp_path: Path) -> None:
    path = tmp_path / "queue"
    queue = Queue("Topic", 0, LocalFiles(), str(path))
    assert (queue.min_index(0), queue.max_index(), queue.last_unit()) == (0, 0, None)
    path.mkdir()
    (path / f"{600:020d}").write_bytes(bytes(100))
    assert (queue.min_index(0), queue.max_index(), queue.last_unit()) == (30, 30, None)
    assert not len(queue.units(0, 100))


def test_too_many_units_at_once(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"at most {MAX_UNITS} units"):
        Queue("Topic", 0, LocalFiles(), str(tmp_path)).units(0, MAX_UNITS + 1)


def test_a_file_name_that_is_no_unit(tmp_path: Path) -> None:
    (tmp_path / f"{7:020d}").write_bytes(bytes(100))
    with pytest.raises(StoreError, match="starts in the middle of a unit"):
        Queue("Topic", 0, LocalFiles(), str(tmp_path)).max_index()


def test_tags_codes_in_ext_files(tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path / "store", queue_units=50, ext=True)
    tags = [f"tag{number % 7}" for number in range(300)]
    writer.put_all(Draft(properties={"TAGS": tag}) for tag in tags)
    units = _queue(writer).units(0, 300)
    assert units["tags_code"].tolist() == [java_string_hash(tag) for tag in tags]
    files = sorted((tmp_path / "store/consumequeue_ext/Topic/0").iterdir())
    assert len(files) > 2
    files[1].unlink()
    codes = _queue(writer).units(0, 300)["tags_code"]
    is_unknown = codes <= formats.CONSUME_QUEUE_EXT_ADDRESS_MAX
    assert 0 < np.count_nonzero(is_unknown) < 300
    assert codes[~is_unknown].tolist() == units["tags_code"][~is_unknown].tolist()


@pytest.mark.parametrize("inner", [(), ((b"a", {}), (b"b", {}))])
def test_the_first_unit_behind_what_is_missing(
    tmp_path: Path, inner: tuple[tuple[bytes, dict[str, str]], ...]
) -> None:
    writer = _writer(tmp_path / "store")
    each = len(inner) or 1
    stored = writer.put_all(Draft(inner=inner) for _ in range(18))
    kind, unit_bytes = ("batchconsumequeue", 46) if inner else ("consumequeue", 20)
    (writer.root / kind / "Topic/0" / f"{5 * unit_bytes:020d}").unlink()
    queue = _queue(writer)
    for offset, expected in ((4 * each, 4), (5 * each, 10), (10 * each - 1, 10), (11 * each, 11)):
        unit = queue.first_unit(offset)
        assert unit is not None
        assert unit["physical_offset"][0] == stored[expected].physical_offset
    assert queue.first_unit(18 * each) is None


def test_the_first_unit_behind_messages_that_no_unit_stands_for(tmp_path: Path) -> None:
    writer = _writer(tmp_path / "store")
    inner: tuple[tuple[bytes, dict[str, str]], ...] = ((b"a", {}), (b"b", {}))
    writer.put_all([Draft(inner=inner), Draft(inner=inner)])
    writer._next["Topic", 0] += 3
    writer.put_all([Draft(inner=inner), Draft(inner=inner)])
    firsts = [_queue(writer).first_unit(offset) for offset in (3, 4, 6, 7, 8)]
    assert [int(unit["queue_offset"][0]) for unit in firsts if unit is not None] == [2, 7, 7, 7, 7]


def test_queues_of_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = _writer(tmp_path / "store")
    inner = [tuple((b"%d" % n, {"TAGS": "t"}) for n in range(count)) for count in (3, 1, 4) * 4]
    stored = writer.put_all(Draft(topic="Batches", inner=each) for each in inner)
    queue = _queue(writer, "Batches")
    assert queue.is_batch
    assert queue.min_index(0) == 0
    assert queue.max_index() == 32
    assert queue.min_index(stored[2].physical_offset) == 4
    units = queue.units(2, 9)
    assert units["queue_offset"].tolist() == [0, 3, 4, 8]
    assert units["count"].tolist() == [3, 1, 4, 3]
    assert queue.units(0, 32)["physical_offset"].tolist() == [e.physical_offset for e in stored]
    assert queue.units(8, 8)["queue_offset"].tolist() == []
    firsts = [queue.first_unit(offset) for offset in (0, 2, 3, 7, 8)]
    assert [int(unit["queue_offset"][0]) for unit in firsts if unit is not None] == [0, 0, 3, 4, 8]
    assert queue.first_unit(32) is None
    for step in (1, 2, 5, 100):
        monkeypatch.setattr(queue_files, "_STEP_UNITS", step)
        steps = [units["queue_offset"].tolist() for units in queue.units_in_steps(2, 9)]
        assert [offset for each in steps for offset in each] == [0, 3, 4, 8]
        assert all(steps)


UNITS_OF_A_FILE = 300_000
RECORD_BYTES = 800


def _far_queue(path: Path, written: int, first_file: int = 0, every: int = 160) -> Queue:
    """A queue to which about one record in `every` goes, in a file made at full size."""
    gaps = np.random.default_rng(written).poisson(every, written).cumsum()
    units = np.zeros(UNITS_OF_A_FILE, [("at", ">i8"), ("size", ">i4"), ("tags", ">i8")])
    units["at"][:written] = gaps * RECORD_BYTES
    units["size"][:written] = RECORD_BYTES
    path.mkdir(parents=True)
    (path / f"{first_file:020d}").write_bytes(units.tobytes())
    return Queue("Topic", 0, ListedFiles(FarFiles()), str(path))


@pytest.mark.parametrize("written", [1, 399, 400, 401, 9_000, 150_000, 299_999, 300_000])
def test_the_end_of_a_far_queue_by_few_reads(tmp_path: Path, written: int) -> None:
    """Also of one that has ended long before the log does."""
    for name, factor, most in (("lives", 1, 8), ("ended", 30, 16)):
        queue = _far_queue(tmp_path / name, written)
        far = _far(queue)
        log_end = written * 160 * RECORD_BYTES * factor
        assert queue.max_index(log_end) == written
        assert far.counts["read"] <= most
        newest = queue.last_unit(log_end)
        assert newest is not None
        assert newest["queue_offset"][0] == written - 1
        assert far.counts["read"] <= most + 1
        assert far.counts["list"] == 1
        assert queue.max_index() == written


@pytest.mark.parametrize("written", [1, 400, 9_000, 150_000, 299_999])
def test_how_many_units_a_far_queue_has_about(tmp_path: Path, written: int) -> None:
    queue = _far_queue(tmp_path / "queue", written)
    count, sample = queue.estimate(written * 160 * RECORD_BYTES)
    assert written / 3 <= count <= 3 * written
    assert sample["size"].tolist() == [RECORD_BYTES] * min(written, 400)
    assert _far(queue).counts["read"] <= 2
    assert Queue("Topic", 0, queue.files, str(tmp_path / "none")).estimate(5)[0] == 0


def _far(queue: Queue) -> FarFiles:
    assert isinstance(queue.files, ListedFiles)
    files = queue.files._files
    assert isinstance(files, FarFiles)
    return files
