# SPDX-License-Identifier: Apache-2.0
"""Many queries over one load: none changes another, whatever the settings of the session are."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from tests.engine.programs import Load, expected, program, run
from tests.examples import examples
from tests.spark.stores import Draft, StoreWriter
from txrocketmq.spark.planning.execution import is_later, now_ms

ROOT = Path(__file__).resolve().parent.parent.parent
PUSH_DOWN = "spark.sql.python.filterPushdown.enabled"
COLUMNS = "topic,queueId,queueOffset,tags,body,physicalOffset"
STEPS = 12


def _write(root: Path, count: int = 120) -> StoreWriter:
    writer = StoreWriter(root, segment_bytes=8192)
    for number in range(count):
        tags = {"TAGS": "xy"[number % 2]} if number % 3 else {}
        writer.put(Draft("ABC"[number % 3], number % 4, b"%d" % number * 20, tags))
    return writer


def _load(spark: SparkSession, path: Path, **options: str) -> DataFrame:
    return spark.read.format("rocketmq").options(columns=COLUMNS, **options).load(str(path))


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("one") / "s"
    _write(root)
    return root


@pytest.fixture(params=["true", "false"])
def pushing(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[str]:
    """Push-down in the whole session, as its user or another source may have switched it."""
    before = spark.conf.get(PUSH_DOWN)
    spark.conf.set(PUSH_DOWN, request.param)
    yield request.param
    spark.conf.set(PUSH_DOWN, str(before))


def test_register_changes_no_setting(spark: SparkSession) -> None:
    assert spark.conf.get(PUSH_DOWN) == "false"


@pytest.mark.parametrize("seed", range(examples(2)))
def test_random_programs(
    spark: SparkSession, root: Path, pushing: str, seed: int, tmp_path: Path
) -> None:
    frame = _load(spark, root, minPartitions="3")
    name = f"one_load_{pushing}_{seed}"
    frame.createOrReplaceTempView(f"{name}_view")
    spark.sql(
        f"CREATE TABLE {name} USING rocketmq OPTIONS (storePath '{root}', columns '{COLUMNS}')"
    )
    rows = [row.asDict() for row in _load(spark, root).collect()]
    assert len(rows) == 120
    steps = program(seed, STEPS)
    load = Load(spark, frame, f"{name}_view", name, tmp_path)
    try:
        assert run(load, steps) == expected(rows, steps)
    finally:
        spark.sql(f"DROP TABLE {name}")


def test_a_condition_of_a_load_is_that_of_the_load_alone(
    spark: SparkSession, root: Path, pushing: str
) -> None:
    of_a = _load(spark, root, where="topic = 'A'")
    everything = _load(spark, root)
    for _ in range(2):
        assert of_a.count() == 40
        assert everything.count() == 120
        assert of_a.where("queueId = 1").count() == 10
        assert everything.where("queueId = 1").count() == 30
    assert of_a.union(everything).count() == 160
    assert of_a.where("topic = 'B'").count() == 0
    spark.sql(
        "CREATE OR REPLACE TEMPORARY VIEW few USING rocketmq"
        f" OPTIONS (storePath '{root}', where \"topic = 'A' AND queueOffset < 5\")"
    )
    assert spark.sql("SELECT count(*) FROM few").collect()[0][0] == 20


def test_push_down_is_refused_by_name(spark: SparkSession, root: Path) -> None:
    with pytest.raises(PySparkException, match="pushFilters=true is not offered any more"):
        _load(spark, root, pushFilters="true")
    assert _load(spark, root, pushFilters="false").count() == 120


def test_options_of_a_table_cannot_be_changed_for_one_read(spark: SparkSession, root: Path) -> None:
    """Spark would give the rows of A twice."""
    spark.sql(f"CREATE TABLE changed USING rocketmq OPTIONS (storePath '{root}')")
    part = "SELECT topic FROM changed WITH (topic = '{}')"
    both = f"{part.format('A')} UNION ALL {part.format('B')}"
    try:
        for query in (part.format("A"), both):
            with pytest.raises(PySparkException, match="option topic is given for .* permanent"):
                spark.sql(query).count()
    finally:
        spark.sql("DROP TABLE changed")


def test_a_frame_a_view_and_a_table_see_what_a_new_load_sees(
    spark: SparkSession, tmp_path: Path
) -> None:
    writer = _write(tmp_path / "s")
    frame = _load(spark, writer.root)
    few = _load(spark, writer.root, topic="A")
    frame.createOrReplaceTempView("seen_view")
    spark.sql(f"CREATE TABLE seen USING rocketmq OPTIONS (storePath '{writer.root}')")
    as_read = spark.table("seen")
    queues = _table(spark, writer.root, "queues")

    def counts() -> list[int]:
        frames = (frame, few, spark.table("seen_view"), spark.table("seen"), as_read, queues)
        return [each.count() for each in frames] + [len(frame.collect()), frame.rdd.count()]

    def fresh() -> list[int]:
        every, of_a = _load(spark, writer.root).count(), _load(spark, writer.root, topic="A")
        new_queues = _table(spark, writer.root, "queues").count()
        return [every, of_a.count(), *[every] * 3, new_queues, every, every]

    try:
        assert counts() == [120, 40, 120, 120, 120, 12, 120, 120] == fresh()
        writer.put(Draft("A", 0))
        writer.put(Draft("New", 0))
        assert counts() == [122, 41, 122, 122, 122, 13, 122, 122] == fresh()
        writer.delete_segment()
        assert counts() == fresh()
        assert frame.count() < 122
        shutil.rmtree(writer.root)
        _write(writer.root, 300)
        assert counts() == [300, 100, 300, 300, 300, 12, 300, 300] == fresh()
    finally:
        spark.sql("DROP TABLE seen")


def _table(spark: SparkSession, path: Path, table: str) -> DataFrame:
    return spark.read.format("rocketmq").option("table", table).load(str(path))


def test_tasks_know_whether_their_execution_made_the_plan(
    spark: SparkSession, pushing: str
) -> None:
    """So the first one keeps to it: parts of a query, and repeated tasks, see the same messages."""

    class Reader(DataSourceReader):
        def __init__(self) -> None:
            self._planned_ms = now_ms()

        def partitions(self) -> list[InputPartition]:
            return [InputPartition(number) for number in range(3)]

        def read(self, partition: InputPartition) -> Iterator[tuple[bool]]:
            yield (is_later(self._planned_ms),)

    class Later(DataSource):
        def schema(self) -> str:
            return "later boolean"

        def reader(self, schema: object) -> DataSourceReader:
            return Reader()

    def answers(frame: DataFrame) -> set[bool]:
        return {row[0] for row in frame.collect()}

    spark.dataSource.register(Later)
    frame = spark.read.format("Later").load()
    both = frame.union(frame.repartition(2)).union(frame.groupBy("later").count().select("later"))
    assert answers(both) == {False}
    assert answers(frame) == {False}, "a frame that is older than the plan, used for the first time"
    assert answers(frame) == answers(frame.repartition(2)) == {True}


# ------------------------------------------------------------------------ other kinds of sessions

NEEDED = ("grpc", "grpc_status", "google.rpc", "pandas", "zstandard")
PROGRAM = """
import json, sys
from pathlib import Path
from pyspark.sql import SparkSession
from tests.engine.programs import Load, run
from txrocketmq.spark import register
given = json.loads(sys.argv[1])
builder = SparkSession.builder
builder = builder.remote(given["remote"]) if "remote" in given else builder.master(given["master"])
for name, value in {
    "spark.sql.warehouse.dir": given["scratch"] + "/warehouse", "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2", "spark.sql.session.timeZone": "UTC",
    "spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1",
    "spark.executor.memory": "512m", "spark.driver.memory": "1g",
    "spark.sql.python.filterPushdown.enabled": "true", "spark.local.dir": given["scratch"] + "/l",
}.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
register(spark)
frame = (spark.read.format("rocketmq").option("columns", given["columns"])
         .option("minPartitions", 4).load(given["path"]))
frame.createOrReplaceTempView("seen")
spark.sql(f"CREATE TABLE kept USING rocketmq OPTIONS (storePath '{given['path']}',"
          f" columns '{given['columns']}')")
load = Load(spark, frame, "seen", "kept", Path(given["scratch"]))
print(json.dumps(run(load, given["steps"])))
spark.stop()
"""


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


@pytest.mark.parametrize(
    "session",
    [
        pytest.param(
            {"remote": "local[2]"},
            marks=pytest.mark.skipif(
                not all(map(_is_there, NEEDED)), reason="pip install 'pyspark[connect]'"
            ),
            id="connect",
        ),
        pytest.param({"master": "local-cluster[2,1,1024]"}, id="two-workers"),
    ],
)
def test_random_programs_in_other_sessions(
    spark: SparkSession, session: dict[str, str], root: Path, tmp_path: Path
) -> None:
    """In a process of its own: Connect, and executors in processes of their own."""
    steps = program(7, STEPS // 2)
    rows = [row.asDict() for row in _load(spark, root).collect()]
    given = {
        **session, "path": str(root), "scratch": str(tmp_path), "columns": COLUMNS, "steps": steps,
    }  # fmt: skip
    environment = {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": str(tmp_path / "work"),
        "PYTHONPATH": str(ROOT),
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(given)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == expected(rows, steps)
