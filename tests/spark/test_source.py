# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from tests.spark.stores import StoreWriter
from txrocketmq.spark.arrow.errors import NotAStore, OptionError, SparkSourceError
from txrocketmq.spark.batch import StoreReader
from txrocketmq.spark.live.batch import LiveReader
from txrocketmq.spark.live.stream import LiveStreamReader
from txrocketmq.spark.source import OldNameSource, RocketMQSource
from txrocketmq.spark.stream import StoreStreamReader
from txrocketmq.spark.tables.reader import TableReader

SCHEMA = StructType([StructField("topic", StringType(), nullable=False)])


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(StoreWriter(tmp_path / "s").root)


def test_importing_the_package_brings_no_pyspark_along() -> None:
    program = "import sys, txrocketmq.spark; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_reading_a_store_brings_no_server_along() -> None:
    program = "import sys, txrocketmq.spark.batch; sys.exit('twisted' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_batches_and_tables_need_no_more_than_pyspark_4_0() -> None:
    """Which has no Filter, no Arrow writer of streams, and no limits of streams."""
    program = """
import sys
import pyspark.sql.datasource as datasource
of_4_0 = {
    "DataSource", "DataSourceReader", "DataSourceStreamReader", "SimpleDataSourceStreamReader",
    "DataSourceWriter", "DataSourceArrowWriter", "DataSourceStreamWriter", "InputPartition",
    "WriterCommitMessage", "DataSourceRegistration",
}
for name in set(datasource.__all__) - of_4_0:
    delattr(datasource, name)
sys.modules["pyspark.sql.streaming.datasource"] = None
import txrocketmq.spark.batch, txrocketmq.spark.live.batch, txrocketmq.spark.source
import txrocketmq.spark.sink.writer, txrocketmq.spark.tables.reader
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_what_is_missing_is_said_and_harms_no_other_source() -> None:
    """Spark imports the source of each package called pyspark_*: one that fails stops all."""
    program = """
import sys
for name in ("numpy", "pyarrow", "construct", "orjson", "lz4", "zstandard"):
    sys.modules[name] = None
from importlib import metadata
has = metadata.version
def version(name):
    if name == "pyarrow":
        raise metadata.PackageNotFoundError(name)
    return {"numpy": "1.26.4"}.get(name) or has(name)
metadata.version = version
from txrocketmq.spark.arrow.errors import SparkSourceError
from txrocketmq.spark.pyspark_rocketmq import DefaultSource
try:
    DefaultSource({"path": "/nowhere"})
except SparkSourceError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert "has numpy 1.26.4 instead of 2.0 or later, no pyarrow: pip install" in done.stdout


def test_streams_say_which_pyspark_they_need(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("txrocketmq.spark.options.needs.version_of", lambda name: "4.0.2")
    source = RocketMQSource({"path": path})
    assert isinstance(source.reader(SCHEMA), StoreReader)
    with pytest.raises(SparkSourceError, match=r"a stream needs PySpark 4\.2 or .* 4\.0\.2"):
        source.streamReader(SCHEMA)
    with pytest.raises(SparkSourceError, match=r"writing a stream needs PySpark 4\.1 or later"):
        source.streamWriter(SCHEMA, overwrite=False)


def test_all_columns_are_worth_a_warning(path: str, caplog: pytest.LogCaptureFixture) -> None:
    for given, warnings in (({}, 1), ({"columns": "*"}, 0), ({"kafkaNames": "true"}, 0)):
        caplog.clear()
        source = RocketMQSource({"path": path, **given})
        source.reader(source.schema())
        assert len(caplog.records) == warnings, given
    RocketMQSource({"path": path}).reader(SCHEMA)
    assert not caplog.records, "a schema that the user has given"


def test_names() -> None:
    assert RocketMQSource.name() == "rocketmq"
    assert OldNameSource.name() == "org.apache.spark.sql.rocketmq.RocketMQSourceProvider"


def test_which_reader(path: str) -> None:
    def reader(**options: str) -> object:
        return type(RocketMQSource({"path": path, **options}).reader(SCHEMA))

    assert reader() is reader(pushFilters="false") is StoreReader
    assert reader(table="topics") is TableReader
    with pytest.raises(OptionError, match=r"pushFilters=true is not offered .* option where"):
        reader(pushFilters="true")


def test_options_of_a_permanent_table_are_not_changed_for_one_read(path: str) -> None:
    """Spark makes one source for all scans of a table in a statement, with options of the first."""
    of_table = {"provider": "rocketmq", "option.storepath": path, "option.columns": "topic"}
    schema = RocketMQSource(of_table).schema()
    for same in ({}, {"storePath": path}):
        assert isinstance(RocketMQSource(same).reader(schema), StoreReader)
    for stream in (False, True):
        source = RocketMQSource({"storePath": path, "topic": "A"})
        with pytest.raises(OptionError, match=r"option topic is given for .* permanent table"):
            source.streamReader(schema) if stream else source.reader(schema)


def test_which_stream_reader(path: str) -> None:
    live = RocketMQSource({"nameServer": "127.0.0.1:1", "topic": "t"})
    assert type(live.streamReader(SCHEMA)) is LiveStreamReader
    assert type(RocketMQSource({"path": path}).streamReader(SCHEMA)) is StoreStreamReader
    assert type(live.reader(SCHEMA)) is LiveReader


def test_schemas(path: str) -> None:
    topic = StructField("topic", StringType(), nullable=False)
    assert RocketMQSource({"path": path}).schema()[0] == topic
    assert RocketMQSource({"path": path, "columns": "topic"}).schema() == StructType([topic])
    schema = RocketMQSource({"path": path, "table": "delayoffsets"}).schema()
    assert schema.simpleString().startswith("struct<brokerName:string,level:int")
    schema = RocketMQSource({"path": path, "table": "delayoffsets", "columns": "level"}).schema()
    assert schema == StructType([StructField("level", IntegerType())])


def test_errors_come_when_a_source_is_made(path: str) -> None:
    with pytest.raises(OptionError, match="unknown option Topics"):
        RocketMQSource({"path": path, "Topics": "t"})
    with pytest.raises(NotAStore, match="no such directory"):
        RocketMQSource({"path": f"{path}/none"}).schema()
    with pytest.raises(OptionError, match="storePath .* or nameServer"):
        RocketMQSource({}).schema()


def test_conditions_are_of_messages_of_stores() -> None:
    live = RocketMQSource({"nameServer": "127.0.0.1:1", "topic": "t", "where": "queueId = 1"})
    with pytest.raises(OptionError, match=r"where has no meaning here .batch over a cluster."):
        live.reader(SCHEMA)


def test_errors_come_when_a_reader_is_made(path: str) -> None:
    wrong = StructType([StructField("topic", IntegerType())])
    with pytest.raises(OptionError, match="maxBytesPerTrigger has no meaning here"):
        RocketMQSource({"path": path, "maxBytesPerTrigger": "1m"}).reader(SCHEMA)
    with pytest.raises(OptionError, match="schema says topic int, but topic is string"):
        RocketMQSource({"path": path}).reader(wrong)
    with pytest.raises(OptionError, match="schema says topic int, but it is string"):
        RocketMQSource({"path": path, "table": "topics"}).reader(wrong)
    strict = StructType([StructField(name, StringType(), False) for name in ("topic", "tags")])
    with pytest.raises(OptionError, match="schema says tags NOT NULL, but tags is null where"):
        RocketMQSource({"path": path}).streamReader(strict)
    for more in ({"columns": "queueId"}, {"columns": "topic,queueId,body"}):
        for make in (RocketMQSource.reader, RocketMQSource.streamReader):
            with pytest.raises(OptionError, match="option columns and the schema"):
                make(RocketMQSource({"path": path, **more}), SCHEMA)
    with pytest.raises(OptionError, match="option columns and the schema"):
        RocketMQSource({"path": path, "table": "topics", "columns": "perm"}).reader(SCHEMA)
    with pytest.raises(OptionError, match="endingOffsets has no meaning here"):
        RocketMQSource({"path": path, "endingOffsets": "latest"}).streamReader(SCHEMA)
    with pytest.raises(OptionError, match="storePath has no meaning here .writing."):
        RocketMQSource({"path": path}).writer(SCHEMA, overwrite=False)
    with pytest.raises(OptionError, match="nameServer is needed to write"):
        RocketMQSource({"topic": "t"}).streamWriter(SCHEMA, overwrite=False)


def test_a_permanent_table_is_read_with_the_options_it_was_created_with(path: str) -> None:
    """As Spark does it: the schema is asked for once, and the reader is given nothing else."""
    told = {"option.storepath": path, "storepath": path, "provider": "rocketmq", "owner": "root"}
    kept = RocketMQSource({**told, "option.columns": "topic"}).schema()
    assert kept.names == ["topic"]
    assert isinstance(RocketMQSource({}).reader(kept), StoreReader)
    queues = RocketMQSource({**told, "option.table": "queues"}).schema()
    assert isinstance(RocketMQSource({}).reader(queues), TableReader)
    with pytest.raises(OptionError, match="created with a list of columns: create it without one"):
        RocketMQSource({}).reader(SCHEMA)
    with pytest.raises(OptionError, match="pullBatchSize has no meaning here"):
        RocketMQSource({**told, "option.pullbatchsize": "1"}).schema()
