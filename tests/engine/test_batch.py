# SPDX-License-Identifier: Apache-2.0
"""Batches over stores through Spark: golden stores, conditions, schemas, SQL, early errors."""

from __future__ import annotations

import base64
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

from tests.spark.stores import Draft, StoreWriter
from txrocketmq.spark import check_workers
from txrocketmq.spark.arrow.errors import SparkSourceError
from txrocketmq.spark.arrow.schema import MESSAGES
from txrocketmq.spark.options import needs

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TRANSIENT = {"MIN_OFFSET", "MAX_OFFSET", "CLUSTER"}
"""Properties that the Java client adds to what it pulled."""


def _load(spark: SparkSession, path: Path | str, **options: str) -> DataFrame:
    return spark.read.format("rocketmq").options(**options).load(str(path))


def _moment(ms: int) -> datetime:
    return EPOCH + timedelta(milliseconds=ms)


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Stores of two brokers: 90 messages of Many and 10 of Few in each."""
    root = tmp_path_factory.mktemp("stores")
    for broker in ("broker-a", "broker-b"):
        writer = StoreWriter(root / broker, segment_bytes=8192)
        for number in range(100):
            topic = "Few" if number % 10 == 0 else "Many"
            tags = {"TAGS": f"T{number % 3}", "KEYS": f"k{number}"}
            writer.put(Draft(topic, number % 2, b"%d" % number, tags, after_ms=1000))
        writer.write_config()
    return root


def test_golden_stores_are_what_the_java_client_pulled(
    spark: SparkSession,
    golden_version: str,
    golden_store: Callable[[str], Path],
    golden_messages: Callable[[str], list[dict[str, Any]]],
) -> None:
    names = ",".join(column.name for column in MESSAGES)
    frame = _load(spark, golden_store(golden_version) / "clean", columns=names)
    rows = {row["physicalOffset"]: row for row in frame.collect()}
    messages = golden_messages(golden_version)
    assert sorted(rows) == sorted(message["commitLogOffset"] for message in messages)
    for message in messages:
        row = rows[message["commitLogOffset"]].asDict()
        for column in ("topic", "queueId", "queueOffset", "storeSize", "bodyCRC", "flag",
                       "reconsumeTimes", "preparedTransactionOffset"):  # fmt: skip
            assert row[column] == message[column], column
        assert bytes(row["body"]) == base64.b64decode(message["bodyBase64"])
        stored = {k: v for k, v in message["properties"].items() if k not in TRANSIENT}
        assert {k: v for k, v in row["properties"].items() if k not in TRANSIENT} == stored
        assert row["bornTimestamp"].replace(tzinfo=UTC) == _moment(message["bornTimestamp"])
        assert row["storeTimestamp"].replace(tzinfo=UTC) == _moment(message["storeTimestamp"])
        assert row["bornHost"].split(":")[0] == message["bornHost"]
        assert row["storeHost"] == message["storeHost"].lstrip("/")
        assert row["msgId"] == message["offsetMsgId"]
        assert row["tags"] == message["properties"].get("TAGS")
        assert row["keys"] == message["properties"].get("KEYS")
        assert row["uniqKey"] == message["properties"].get("UNIQ_KEY")
        assert row["sysFlag"] & ~1 == message["sysFlag"] & ~1
        assert row["crcOk"]


CONDITIONS = (
    "topic = 'Few'",
    "tags = 'T1'",
    "brokerName = 'broker-b' AND queueOffset >= 3 AND topic = 'Few'",
    "storeTimestamp >= '2025-11-13 02:13:30' AND storeTimestamp < '2025-11-13 02:14:00.001'",
    "topic LIKE 'Fe%' AND tags <=> 'T0' AND flag BETWEEN -1 AND 5",
    "tags IN ('T0', 'T2') AND queueId != 0 AND topic > 'G'",
)


def test_conditions_of_a_load_mean_what_they_mean_in_a_query(
    spark: SparkSession, stores: Path
) -> None:
    everything = _load(spark, f"{stores}/*").cache()
    for condition in CONDITIONS:
        expected = sorted(everything.where(condition).collect())
        assert expected, condition
        assert sorted(_load(spark, f"{stores}/*", where=condition).collect()) == expected
    everything.unpersist()


def test_a_deleted_topic_is_there_for_a_condition_too(spark: SparkSession, tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path / "store", segment_bytes=8192)
    for number in range(200):
        after_ms = -3_600_000 if number == 150 else 1000
        writer.put(
            Draft("Gone" if number % 2 else "Here", 0, bytes(60), {"TAGS": "A"}, after_ms=after_ms)
        )
    shutil.rmtree(writer.root / "consumequeue" / "Gone")
    moment = _moment(writer.stored[20].store_timestamp).strftime("%Y-%m-%d %H:%M:%S.%f")
    late = sum(each.store_timestamp < writer.stored[20].store_timestamp for each in writer.stored)
    for condition, count in (
        ("topic = 'Gone'", 100), ("tags = 'A'", 200), (f"storeTimestamp < '{moment}'", late),
    ):  # fmt: skip
        columns = "topic,tags,storeTimestamp"
        assert _load(spark, writer.root, columns=columns).where(condition).count() == count
        assert _load(spark, writer.root, columns=columns, where=condition).count() == count


def test_a_condition_on_a_small_topic_reads_little(spark: SparkSession, stores: Path) -> None:
    frame = _load(spark, stores / "broker-a", where="topic = 'Few'")
    assert frame.count() == 10
    assert frame.rdd.getNumPartitions() == 1, "by the queues, not a partition for each file"
    assert _load(spark, stores / "broker-a", minPartitions="3").rdd.getNumPartitions() >= 3


def test_workers_are_asked_what_they_have(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_workers(spark, 4)
    monkeypatch.setattr(needs, "LEAST", {"numpy": (99,)})
    with pytest.raises(SparkSourceError, match=r"workers lack .*: .* on .* has numpy .*"):
        check_workers(spark, 2)


def test_sql(spark: SparkSession, stores: Path) -> None:
    spark.sql(
        "CREATE OR REPLACE TEMPORARY VIEW few USING rocketmq"
        f" OPTIONS (storePath '{stores}/broker-a,{stores}/broker-b', topic 'Few')"
    )
    rows = spark.sql("SELECT brokerName, count(*) AS n FROM few GROUP BY ALL ORDER BY 1").collect()
    assert [tuple(row) for row in rows] == [("broker-a", 10), ("broker-b", 10)]


def test_the_old_name_reads_too(spark: SparkSession, stores: Path) -> None:
    name = "org.apache.spark.sql.rocketmq.RocketMQSourceProvider"
    frame = spark.read.format(name).option("storePath", str(stores / "broker-a")).load()
    assert frame.columns[:9] == [
        "topic", "queueId", "queueOffset", "body", "properties", "brokerName", "flag",
        "bornTimestamp", "storeTimestamp",
    ]  # fmt: skip
    assert frame.count() == 100


def test_a_schema_chooses_columns(spark: SparkSession, stores: Path) -> None:
    schema = "TOPIC string NOT NULL, keys string"
    frame = spark.read.format("rocketmq").schema(schema).load(str(stores / "broker-a"))
    assert frame.columns == ["TOPIC", "keys"]
    assert frame.where("TOPIC = 'Few'").agg(F.min("keys")).first()[0] == "k0"  # type: ignore[index]


def test_the_columns_of_kafka(spark: SparkSession, stores: Path) -> None:
    frame = _load(spark, stores / "broker-a", kafkaNames="true", topic="Few")
    assert frame.columns == [
        "key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "brokerName",
    ]  # fmt: skip
    rows = frame.where("partition = 0 AND offset = 3").selectExpr("CAST(key AS STRING)", "value")
    assert [tuple(row) for row in rows.collect()] == [("k30", b"30")]
    more = {"kafkaNames": "true", "includeHeaders": "true"}
    headers = _load(spark, stores / "broker-a", **more)
    assert headers.columns[-2:] == ["headers", "brokerName"]
    first = headers.first()
    assert first is not None
    assert [(each["key"], bytes(each["value"])) for each in first["headers"]] == [
        ("TAGS", b"T0"), ("KEYS", b"k0"),
    ]  # fmt: skip


def test_offsets_as_for_kafka(spark: SparkSession, stores: Path) -> None:
    asked = {"startingOffsets": '{"Few": {"0": 3}}', "endingOffsets": '{"Few": {"0": 5}}'}
    path = stores / "broker-a"
    frame = _load(spark, path, topic="Few", columns="queueId,queueOffset", **asked)
    assert {tuple(row) for row in frame.collect()} == {(0, 3), (0, 4)}


def test_an_altered_table_is_refused(spark: SparkSession, stores: Path) -> None:
    path = stores / "broker-a"
    options = f"OPTIONS (storePath '{path}', topic 'Few', columns 'topic,queueId')"
    spark.sql(f"CREATE TABLE altered USING rocketmq {options}")
    try:
        assert spark.table("altered").count()
        for change in ("ADD COLUMNS (tags STRING)", "RENAME COLUMN queueId TO q"):
            spark.sql(f"ALTER TABLE altered {change}")
            with pytest.raises(PySparkException, match="changed by ALTER TABLE, which tables of"):
                spark.table("altered").count()
        spark.sql("ALTER TABLE altered DROP COLUMN topic")
        with pytest.raises(PySparkException, match="first column may also have been dropped"):
            spark.table("altered").count()
    finally:
        spark.sql("DROP TABLE altered")


REFUSED_AT_ONCE = (
    "ALTER TABLE {} SET SERDEPROPERTIES ('x' = 'y')",
    "ALTER TABLE {} ADD PARTITION (topic = 'Few')",
    "ALTER TABLE {} RECOVER PARTITIONS",
    "TRUNCATE TABLE {}",
)
REFUSED_WHEN_READ = (
    "ALTER TABLE {} ALTER COLUMN topic COMMENT 'c'",
    "COMMENT ON COLUMN {}.topic IS 'c'",
    "ALTER TABLE {} ALTER COLUMN topic AFTER queueId",
    "ALTER TABLE {} ALTER COLUMN queueId TYPE BIGINT",
    "ALTER TABLE {} ALTER COLUMN queueId SET DEFAULT 4",
)
WITHOUT_EFFECT = (
    "ALTER TABLE {} SET TBLPROPERTIES ('topic' = 'Other')",
    "ALTER TABLE {} UNSET TBLPROPERTIES ('topic')",
    "ALTER TABLE {} SET LOCATION '/nowhere'",
    "COMMENT ON TABLE {} IS 'c'",
)


def test_what_becomes_of_each_kind_of_alteration(spark: SparkSession, stores: Path) -> None:
    """What `docs/spark.md` says; should Spark come to ask sources, this test is to be changed."""
    options = f"OPTIONS (storePath '{stores / 'broker-a'}', topic 'Few', columns 'topic,queueId')"
    spark.sql(f"CREATE TABLE changed USING rocketmq {options}")
    count = spark.table("changed").count()
    for statement in REFUSED_AT_ONCE:
        with pytest.raises(PySparkException):
            spark.sql(statement.format("changed"))
    for statement in WITHOUT_EFFECT:
        spark.sql(statement.format("changed"))
        assert spark.table("changed").count() == count
    spark.sql("DROP TABLE changed")
    for number, statement in enumerate(REFUSED_WHEN_READ):
        if statement.startswith("COMMENT ON COLUMN") and spark.version.startswith("4.0."):
            continue  # it has no such statement
        table = f"changed{number}"
        spark.sql(f"CREATE TABLE {table} USING rocketmq {options}")
        spark.sql(statement.format(table))
        with pytest.raises(PySparkException, match="changed by ALTER TABLE, which tables of"):
            spark.table(table).count()
        spark.sql(f"DROP TABLE {table}")


def test_the_same_rows_however_the_log_is_split(spark: SparkSession, stores: Path) -> None:
    whole = _load(spark, stores / "broker-a", columns="physicalOffset,body")
    split = _load(spark, stores / "broker-a", columns="physicalOffset,body", minPartitions="9")
    assert split.rdd.getNumPartitions() >= 9
    assert sorted(split.collect()) == sorted(whole.collect())


def test_an_empty_store_has_no_rows(spark: SparkSession, tmp_path: Path) -> None:
    StoreWriter(tmp_path / "empty")
    assert _load(spark, tmp_path / "empty").count() == 0


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"topics": "a"}, "unknown option topics .did you mean topic"),
        ({"view": "both"}, "option view='both' is not valid; valid: logical, physical"),
        ({"columns": "bodi"}, "option columns='bodi' is not valid; valid: topic"),
        ({"nameServer": "n"}, "storePath and nameServer are both given"),
    ],
)
def test_wrong_options_fail_before_any_job(
    spark: SparkSession, stores: Path, options: dict[str, str], why: str
) -> None:
    with pytest.raises(PySparkException, match=why):
        _load(spark, stores / "broker-a", **options)


def test_wrong_paths_fail_before_any_job(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(PySparkException, match="NotAStore.*there is no such directory"):
        _load(spark, tmp_path / "nowhere")
    with pytest.raises(PySparkException, match="storePath .* or nameServer .* is needed"):
        spark.read.format("rocketmq").load()


def test_a_damaged_record_fails_the_query_or_is_put_aside(
    spark: SparkSession, tmp_path: Path
) -> None:
    writer = StoreWriter(tmp_path / "store")
    stored = writer.put_all(Draft(body=b"%d" % number) for number in range(5))
    path = writer.segment(0)
    data = bytearray(path.read_bytes())
    data[stored[2].physical_offset + 4] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(PySparkException, match="BadRecordError.*physical offset"):
        _load(spark, writer.root).collect()
    aside = tmp_path / "aside"
    frame = _load(spark, writer.root, badRecords=f"quarantine={aside}", columns="body")
    assert [bytes(row["body"]) for row in frame.collect()] == [b"0", b"1", b"3", b"4"]
    (row,) = spark.read.parquet(str(aside)).collect()
    assert (row["physicalOffset"], row["reason"]) == (stored[2].physical_offset, "magic")
    assert _load(spark, writer.root, badRecords="skip").count() == 4


def test_what_is_gone_fails_the_query_or_is_left_out(spark: SparkSession, tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path / "broker-a", segment_bytes=4096)
    writer.put_all(Draft(body=b"x" * 100) for _ in range(60))
    asked = {"startingOffsets": '{"log": {"broker-a": 0}}'}
    writer.delete_segment()
    with pytest.raises(PySparkException, match="DataLossError.*failOnDataLoss=false"):
        _load(spark, writer.root, **asked).count()
    left = sum(each.physical_offset >= 4096 for each in writer.stored)
    assert _load(spark, writer.root, failOnDataLoss="false", **asked).count() == left


def test_tables_of_sql(spark: SparkSession, stores: Path) -> None:
    """Permanent ones, and temporary ones with a list of columns; names of options in any case."""
    path = f"{stores}/broker-a"
    spark.sql(
        f"CREATE TABLE permanent USING rocketmq OPTIONS (STOREPATH '{path}', Topic 'Few',"
        " columns 'topic,queueOffset') COMMENT 'of few'"
    )
    spark.sql(f"CREATE TABLE located USING rocketmq LOCATION '{path}'")
    spark.sql(
        f"CREATE TABLE queues USING rocketmq OPTIONS (storePath '{path}', `table` 'queues')"
        " TBLPROPERTIES ('made.by' = 'test')"
    )
    spark.sql(
        "CREATE TEMPORARY VIEW listed (topic STRING, body BINARY) USING rocketmq"
        f" OPTIONS (storePath '{path}')"
    )
    spark.sql(f"CREATE TABLE unread (topic STRING) USING rocketmq OPTIONS (storePath '{path}')")
    try:
        described = spark.sql("DESCRIBE permanent").collect()
        assert [row["col_name"] for row in described] == ["topic", "queueOffset"]
        for table, count in (("permanent", 10), ("located", 100), ("listed", 100), ("queues", 3)):
            assert spark.table(table).count() == count
        assert spark.sql("SELECT * FROM permanent WHERE queueOffset < 3").count() == 3
        with pytest.raises(PySparkException, match="with a list of columns: create it without one"):
            spark.table("unread").count()
    finally:
        for table in ("permanent", "located", "queues", "unread"):
            spark.sql(f"DROP TABLE {table}")
        spark.catalog.dropTempView("listed")
