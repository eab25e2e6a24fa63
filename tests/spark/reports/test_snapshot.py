# SPDX-License-Identifier: Apache-2.0
"""What is taken of stores. That Spark reads it right is in tests/engine/test_reports.py."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.datasource import DataSourceReader, InputPartition

from tests.spark.stores import Draft, write_store
from txrocketmq.spark.errors import SparkSourceError, UnsupportedLayout
from txrocketmq.spark.ingest.errors import RunFailed
from txrocketmq.spark.ingest.runner import Outcome, Task, run_here
from txrocketmq.spark.reports import snapshot
from txrocketmq.spark.reports.catalog import LAG, REPORTS, RETRIES, TOPICS
from txrocketmq.spark.reports.frames import asked
from txrocketmq.spark.reports.snapshot import TakeTask, reader_of, take

COUNT = 30


@pytest.fixture
def store(tmp_path: Path) -> dict[str, str]:
    """The options of a store of some files, with one dead letter."""
    drafts = [Draft(topic="orders", properties={"KEYS": f"k{n}"}) for n in range(COUNT - 1)]
    write_store(tmp_path / "store", [*drafts, Draft(topic="%DLQ%g")])
    return {"storePath": str(tmp_path / "store"), "minPartitions": "3"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty one."""
    path = tmp_path / "taken"
    path.mkdir()
    return path


def _rows(folder: Path) -> list[dict[str, object]]:
    files = sorted(folder.iterdir(), key=lambda file: int(file.stem))
    rows: list[dict[str, object]] = pa.concat_tables(map(pq.read_table, files)).to_pylist()
    return rows


def test_each_frame_has_the_rows_that_spark_would_read(store: dict[str, str], folder: Path) -> None:
    wanted = asked(store, REPORTS)
    made = take(wanted, folder)
    assert set(made.schemas) == set(wanted)
    assert made.rows["records"] == COUNT
    assert made.rows["dead_letters"] == 1
    for name, options in wanted.items():
        reader, schema = reader_of(options)
        batches = [b for part in reader.partitions() for b in reader.read(part)]
        assert _rows(folder / name) == pa.Table.from_batches(batches, schema).to_pylist(), name
        assert made.schemas[name] == schema
    assert len(list((folder / "records").iterdir())) > 2


def test_rows_come_in_large_groups(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of a few kilobytes each would make files that are slow to read."""
    monkeypatch.setattr(snapshot, "_ROWS_OF_GROUP", 40)
    schema = pa.schema([("queueId", pa.int32())])

    class Reader(DataSourceReader):
        def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
            for start in range(0, 100, 10):
                values = pa.array(range(start, start + 10), pa.int32())
                yield pa.RecordBatch.from_arrays([values], schema=schema)

    file = folder / "0.parquet"
    assert TakeTask(Reader(), InputPartition(None), schema, file)() == b"100"
    groups = pq.read_metadata(file)
    assert [groups.row_group(n).num_rows for n in range(groups.num_row_groups)] == [40, 40, 20]
    assert pq.read_table(file)["queueId"].to_pylist() == list(range(100))


def test_it_is_told_how_far_it_is(store: dict[str, str], folder: Path) -> None:
    told: list[tuple[int, int]] = []

    def tell(done: int, of: int) -> bool:
        told.append((done, of))
        return True

    take(asked(store, [TOPICS]), folder, at_once=2, tell=tell)
    total = len(list((folder / "records").iterdir()))
    assert total > 2
    assert told == [(done, total) for done in [*range(0, total, 2), total]]


def test_it_can_be_ended(store: dict[str, str], folder: Path) -> None:
    made = take(asked(store, [TOPICS]), folder, tell=lambda done, of: done < 1 < of)
    assert 0 < made.rows["records"] < COUNT
    assert len(list((folder / "records").iterdir())) == 1


def test_tasks_go_to_the_runner_so_many_at_once(store: dict[str, str], folder: Path) -> None:
    given: list[int] = []

    def runner(tasks: Sequence[Task]) -> list[Outcome]:
        given.append(len(tasks))
        return run_here(tasks)

    take(asked(store, [TOPICS]), folder, runner=runner, at_once=3)
    assert given[0] == 3
    assert sum(given) == len(list((folder / "records").iterdir()))


def _fails(error: SparkSourceError) -> list[Outcome]:
    return [Outcome(None, error)]


def test_what_a_store_has_not_is_a_problem_of_what_reads_it(
    store: dict[str, str], folder: Path
) -> None:
    def runner(tasks: Sequence[Task]) -> list[Outcome]:
        if tasks[0].file.parent.name == "offsets":  # type: ignore[attr-defined]
            return _fails(UnsupportedLayout("queues are in RocksDB"))
        return run_here(tasks)

    made = take(asked(store, [TOPICS, LAG]), folder, runner=runner)
    assert made.problem(LAG) == made.problem(RETRIES) == "queues are in RocksDB"
    assert made.problem(TOPICS) is None
    assert set(made.schemas) == {"records"}


def test_other_errors_are_raised(store: dict[str, str], folder: Path) -> None:
    with pytest.raises(SparkSourceError, match="damaged"):
        take(asked(store, [LAG]), folder, runner=lambda _: _fails(SparkSourceError("damaged")))


def test_a_worker_that_dies_is_told_without_words_of_ingest(
    store: dict[str, str], folder: Path
) -> None:
    def runner(tasks: Sequence[Task]) -> list[Outcome]:
        raise RunFailed("a worker process was killed; the next run goes on where this one was")

    with pytest.raises(SparkSourceError, match="not read: a worker process was killed$"):
        take(asked(store, [LAG]), folder, runner=runner)


def test_an_error_of_arrow_is_a_sentence(store: dict[str, str], folder: Path) -> None:
    def runner(tasks: Sequence[Task]) -> list[Outcome]:
        raise pa.ArrowInvalid("out of bounds timestamp")

    with pytest.raises(SparkSourceError, match="not read: out of bounds timestamp$"):
        take(asked(store, [LAG]), folder, runner=runner)
