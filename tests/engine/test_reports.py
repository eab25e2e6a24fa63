# SPDX-License-Identifier: Apache-2.0
"""The queries of the reports find what is in the messages."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.engine.messages import START, after, messages, several
from txrocketmq.spark import schema
from txrocketmq.spark.reports import catalog
from txrocketmq.spark.reports.frames import asked, frames, views
from txrocketmq.spark.reports.page import page
from txrocketmq.spark.reports.plot import svg
from txrocketmq.spark.reports.queries import parameters, query_of, run, run_all
from txrocketmq.spark.reports.report import (
    DEFAULT_RESERVED_HOURS,
    DEFAULT_TOP,
    Report,
    Result,
)
from txrocketmq.spark.reports.snapshot import ONE_TASK_ROWS, Snapshot, take
from txrocketmq.spark.reports.tuning import tune
from txrocketmq.spark.tables.reader import TABLES

PAGE = Path(__file__).parent.parent.parent / "docs" / "reports.md"
Ask = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def ask(spark: SparkSession) -> Ask:
    """Runs a report over messages; gives its rows."""

    def rows(
        report: Report,
        *stored: dict[str, Any],
        top: int = 20,
        **tables: DataFrame,
    ) -> list[dict[str, Any]]:
        frame = messages(spark, stored)
        made = {"messages": frame, "records": frame, "dead_letters": frame, **tables}
        with views(spark, made):
            found = run(spark, report, parameters(after(3600), top, 72))
        return [dict(row) for row in found.rows]

    return rows


def _table(
    spark: SparkSession, columns: Sequence[schema.Column], rows: list[dict[str, Any]]
) -> DataFrame:
    """A table of the source with these rows."""
    arrow = pa.Table.from_pylist(
        [{"brokerName": "broker-a", **row} for row in rows], schema=schema.arrow_schema(columns)
    )
    return spark.createDataFrame(arrow)


def _offsets(spark: SparkSession, *rows: tuple[Any, ...]) -> DataFrame:
    """The table of offsets; lag is what it has to be."""
    names = ("group", "topic", "queueId", "offset", "minOffset", "maxOffset", "oldestUnread")
    made = [dict(zip(names, row, strict=True)) for row in rows]
    return _table(
        spark,
        TABLES["offsets"].columns,
        [{**row, "lag": row["maxOffset"] - row["offset"]} for row in made],
    )


def test_overview_counts_each_broker(ask: Ask) -> None:
    rows = ask(
        catalog.OVERVIEW,
        *several(3),
        *several(2, brokerName="broker-b", storeSize=50, storeTimestamp=after(9)),
    )
    assert [(row["brokerName"], row["records"], row["bytes"]) for row in rows] == [
        ("broker-a", 3, 600),
        ("broker-b", 2, 100),
    ]
    assert rows[1]["first"] == rows[1]["last"] == after(9)


def test_lag_tells_what_is_unread_and_how_old_it_is(spark: SparkSession, ask: Ask) -> None:
    offsets = _offsets(
        spark,
        ("late", "orders", 0, 7, 5, 10, after(7)),
        ("late", "orders", 1, 0, 0, 0, None),
        ("lost", "orders", 0, 2, 5, 10, after(5)),
        ("level", "orders", 0, 10, 5, 10, None),
    )
    rows = ask(catalog.LAG, offsets=offsets)
    by_group = {row["group"]: row for row in rows}
    assert list(by_group) == ["lost", "late", "level"]
    assert by_group["late"] == {
        "group": "late", "topic": "orders", "queues": 2, "lag": 3, "gone": 0, "oldest": after(7),
        "age": 3593,
    }  # fmt: skip
    assert (by_group["lost"]["lag"], by_group["lost"]["gone"]) == (8, 3)
    assert (by_group["level"]["oldest"], by_group["level"]["age"]) == (None, None)


@pytest.mark.parametrize(
    ("span", "seconds"), [(0, 1), (199, 1), (200, 10), (3600, 60), (86400 * 1000, 86400 * 6)]
)
def test_throughput_has_a_row_for_every_stretch(ask: Ask, span: int, seconds: int) -> None:
    rows = ask(
        catalog.THROUGHPUT,
        *several(6, storeSize=100),
        {"storeTimestamp": after(span), "storeSize": 100},
    )
    assert {row["seconds"] for row in rows} == {seconds}
    assert len(rows) <= 201
    times = [row["time"] for row in rows]
    assert times == [times[0] + n * timedelta(seconds=seconds) for n in range(len(rows))]
    assert times[0] <= START
    assert times[-1] <= after(span) < times[-1] + timedelta(seconds=seconds)
    assert sum(row["messages"] for row in rows) == 7
    assert rows[0]["messagesPerSecond"] == round(rows[0]["messages"] / seconds, 1)


def test_hot_topics_come_first_and_with_their_share(ask: Ask) -> None:
    stored = [*several(1, topic="c"), *several(6, topic="a"), *several(3, topic="b", queueId=1)]
    rows = ask(catalog.TOPICS, *stored, top=2)
    assert [(row["topic"], row["messages"], row["percent"]) for row in rows] == [
        ("a", 6, 60.0),
        ("b", 3, 30.0),
    ]


def test_hot_queues_show_skew(ask: Ask) -> None:
    stored = [*several(6), *several(1, queueId=1), *several(2, queueId=1, brokerName="broker-b")]
    rows = ask(catalog.QUEUES, *stored)
    assert [(row["brokerName"], row["queueId"], row["skew"]) for row in rows] == [
        ("broker-a", 0, 2.0),
        ("broker-b", 1, 0.67),
        ("broker-a", 1, 0.33),
    ]


def test_every_word_of_keys_is_a_key(ask: Ask) -> None:
    stored = [{"keys": "a b"}, {"keys": "a", "queueId": 1}, {"keys": " "}, {"keys": None}]
    rows = ask(catalog.KEYS, *stored)
    assert [(row["key"], row["messages"], row["queues"]) for row in rows] == [
        ("a", 2, 2),
        ("b", 1, 1),
    ]


def test_tags_add_up_to_the_whole_topic(ask: Ask) -> None:
    stored = [{"tags": f"tag{n:02}"} for n in range(12) for _ in range(12 - n)]
    rows = ask(catalog.TAGS, *stored, *several(2, topic="quiet"), *several(1, topic="x"), top=2)
    assert [row["tag"] for row in rows[:11]] == [f"tag{n:02}" for n in range(10)] + ["(others)"]
    assert rows[10]["messages"] == 3
    assert sum(row["percent"] for row in rows[:11]) == pytest.approx(100, abs=0.6)
    assert rows[11:] == [
        {"topic": "quiet", "tag": "(none)", "messages": 2, "percent": 100.0, "bytes": 400}
    ]


def test_latency_is_of_messages_stored_for_the_first_time(ask: Ask) -> None:
    stored = [{"storeTimestamp": after(n / 1000)} for n in range(1, 101)]
    again = [{"reconsumeTimes": 1, "storeTimestamp": after(900)}]
    committed = [{"sysFlag": 8, "storeTimestamp": after(900)}]
    ahead = [{"storeTimestamp": after(-5)}]
    (row,) = ask(catalog.LATENCY, *stored, *again, *committed, *ahead)
    assert (row["messages"], row["p50"], row["p90"], row["max"]) == (101, 50, 90, 100)
    assert row["clockAhead"] == 1


def test_producers_are_told_apart_by_address_not_port(ask: Ask) -> None:
    stored = [
        {"bornHost": "10.0.0.1:1", "storeTimestamp": after(1)},
        {"bornHost": "10.0.0.1:2"},
        {"bornHost": "[fe80::1]:7", "topic": "b"},
    ]
    rows = ask(catalog.PRODUCERS, *stored)
    assert [(row["host"], row["messages"], row["max"]) for row in rows] == [
        ("10.0.0.1", 2, 1000),
        ("[fe80::1]", 1, 0),
    ]


def test_retries_and_dead_letters_by_group(spark: SparkSession, ask: Ask) -> None:
    stored = [
        *several(20, topic="orders"),
        *several(3, topic="%RETRY%g", reconsumeTimes=1),
        *several(1, topic="%RETRY%g+orders", reconsumeTimes=2),
        *several(1, topic="%DLQ%g", reconsumeTimes=16),
        *several(1, topic="%DLQ%unknown", reconsumeTimes=3),
    ]
    offsets = _offsets(
        spark,
        ("g", "orders", 0, 15, 10, 20, after(0)),
        ("g", "orders", 1, 3, 5, 20, after(0)),
        ("g", "payments", 0, 9, 0, 5, None),
        ("g", "%RETRY%g", 0, 3, 0, 4, None),
    )
    known, unknown = ask(catalog.RETRIES, *stored, offsets=offsets)
    assert (known["group"], known["consumed"], known["retries"], known["deadLetters"]) == (
        "g", 10, 4, 1,
    )  # fmt: skip
    assert (known["mostTries"], known["retryPercent"], known["deadPercent"]) == (16, 40.0, 10.0)
    assert (unknown["group"], unknown["consumed"], unknown["retryPercent"]) == (
        "unknown", None, None,
    )  # fmt: skip


def test_dead_letters_by_the_topic_they_come_from(ask: Ask) -> None:
    stored = [
        {"topic": "%DLQ%g", "properties": [("DLQ_ORIGIN_TOPIC", "a"), ("RETRY_TOPIC", "b")]},
        {"topic": "%DLQ%g", "properties": [("RETRY_TOPIC", "a")]},
        {"topic": "%DLQ%g", "properties": [("KEYS", "k")]},
        {"topic": "orders", "properties": []},
    ]
    rows = ask(catalog.DEAD_LETTERS, *stored)
    assert [(row["group"], row["origin"], row["messages"]) for row in rows] == [
        ("g", "a", 2),
        ("g", None, 1),
    ]


def test_unresolved_transactions(spark: SparkSession, ask: Ask) -> None:
    rows = [
        {"topic": "orders", "producerGroup": "p", "bodySize": 10, "checkTimes": 2,
         "storeTimestamp": after(0)},
        {"topic": "orders", "producerGroup": "p", "bodySize": 20, "checkTimes": 0,
         "storeTimestamp": after(10)},
        {"topic": "orders", "producerGroup": "q", "bodySize": 1, "storeTimestamp": after(3600)},
    ]  # fmt: skip
    table = _table(spark, TABLES["transactions"].columns, rows)
    first, second = ask(catalog.TRANSACTIONS, transactions=table)
    assert first == {
        "topic": "orders", "producerGroup": "p", "messages": 2, "bodyBytes": 30, "mostChecks": 2,
        "oldest": START, "age": 3600,
    }  # fmt: skip
    assert (second["producerGroup"], second["messages"], second["age"]) == ("q", 1, 0)


def test_scheduled_messages_that_are_due_and_not_yet(spark: SparkSession, ask: Ask) -> None:
    due = [after(3000), after(3700), after(7200)]
    rows: list[dict[str, Any]] = [
        {"topic": "orders", "delayLevel": 18, "bodySize": 5, "deliverTimestamp": at} for at in due
    ]
    rows.append({"topic": "orders", "bodySize": 5, "deliverTimestamp": after(3601)})
    table = _table(spark, TABLES["delay"].columns, rows)
    first, second = ask(catalog.SCHEDULED, delay=table)
    assert first == {
        "topic": "orders", "delayLevel": 18, "messages": 3, "bodyBytes": 15, "overdue": 1,
        "nextDue": due[0], "lastDue": due[2], "dueIn": 3600,
    }  # fmt: skip
    assert (second["delayLevel"], second["overdue"], second["dueIn"]) == (None, 0, 1)


def test_files_that_go_and_who_still_reads_them(spark: SparkSession, ask: Ask) -> None:
    rows: list[dict[str, Any]] = [
        {"firstOffset": 100, "usedBytes": 80, "firstTimestamp": after(60),
         "lastTimestamp": after(90)},
        {"firstOffset": 0, "usedBytes": 100, "firstTimestamp": START, "lastTimestamp": after(59)},
        {"firstOffset": 200, "usedBytes": 0},
    ]  # fmt: skip
    segments = _table(spark, TABLES["segments"].columns, rows)
    offsets = _offsets(
        spark,
        ("late", "a", 0, 0, 0, 10, after(30)),
        ("late", "b", 0, 0, 0, 10, after(70)),
        ("behind", "a", 0, 5, 0, 10, after(70)),
        ("level", "a", 0, 10, 0, 10, None),
    )
    found = ask(catalog.RETENTION, segments=segments, offsets=offsets)
    assert [(row["firstOffset"], row["waiting"]) for row in found] == [(0, 1), (100, 2), (200, 0)]
    assert found[0]["goes"] == after(59 + 72 * 3600)
    assert found[0]["goesIn"] == 59 + 71 * 3600
    assert found[2]["goes"] is None


def test_sizes_are_counted_in_powers_of_two(ask: Ask) -> None:
    stored = [{"bodySize": size} for size in (0, 1, 2, 3, 4, 1023, 1024, 4 << 20)]
    rows = ask(catalog.SIZES, *stored)
    assert [(row["fromBytes"], row["messages"], row["upTo"]) for row in rows] == [
        (0, 1, 12.5), (1, 1, 25.0), (2, 2, 50.0), (4, 1, 62.5), (512, 1, 75.0), (1024, 1, 87.5),
        (4 << 20, 1, 100.0),
    ]  # fmt: skip


def test_compression_by_topic(ask: Ask) -> None:
    stored = [*several(3, compression="zlib"), *several(1)]
    rows = ask(catalog.COMPRESSION, *stored)
    assert [(row["compression"], row["percent"], row["bodyBytes"]) for row in rows] == [
        ("zlib", 75.0, 300),
        ("none", 25.0, 100),
    ]


def test_who_fills_the_disk(ask: Ask) -> None:
    stored = [
        *several(3, storeSize=1000),
        {"topic": "SCHEDULE_TOPIC_XXXX", "storeSize": 1000, "storeTimestamp": after(7200)},
    ]
    rows = ask(catalog.DISK, *stored)
    assert [(row["topic"], row["bytes"], row["percent"]) for row in rows] == [
        ("orders", 3000, 75.0),
        ("SCHEDULE_TOPIC_XXXX", 1000, 25.0),
    ]
    assert (rows[0]["bytesPerHour"], rows[0]["atRetention"]) == (1500, 108_000)
    short = ask(catalog.DISK, *several(3))
    assert short[0]["bytesPerHour"] is None


def _sources(text: str) -> list[str]:
    """The Python of a page."""
    return re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def _taken(
    spark: SparkSession,
    store: Path,
    folder: Path,
    reports: Sequence[Report],
    values: Mapping[str, Any],
) -> list[Result]:
    """What the command finds, in a session whose settings are its own."""
    options = {"storePath": str(store)}
    snapshot = take(asked(options, reports), folder)
    own = spark.newSession()
    tune(own, max(snapshot.rows.values()), ONE_TASK_ROWS)
    with snapshot.frames(own, options):
        return run_all(own, reports, values)


def test_the_queries_of_the_page_are_the_reports(
    spark: SparkSession, golden_store: Callable[[str], Path], tmp_path: Path
) -> None:
    """Copied from docs/reports.md they give what the command finds."""
    store = golden_store("5.4.0") / "clean"
    loading, *queries = _sources(PAGE.read_text("utf-8"))
    names: dict[str, Any] = {"spark": spark, "path": str(store)}
    exec(loading, names)  # noqa: S102 - our own page
    values = parameters(names["now"], DEFAULT_TOP, DEFAULT_RESERVED_HOURS)
    made = _taken(spark, store, tmp_path, catalog.REPORTS, values)
    for report, query, found in zip(catalog.REPORTS, queries, made, strict=True):
        exec(query, names)  # noqa: S102 - our own page
        copied = names["result"].toArrow()
        assert found == Result(report, copied.column_names, copied.to_pylist())
        assert found.rows, report.name
        assert report.plot is None or svg(found), report.name
    spark.catalog.clearCache()


def test_any_time_that_a_producer_says_is_taken(spark: SparkSession, tmp_path: Path) -> None:
    """Also one before 1900, at which Spark asks which calendar a file's writer had."""
    schema_ = pa.schema([schema.columns_named(["bornTimestamp"], schema.MESSAGES)[0].arrow])
    born = [datetime(1, 1, 1, tzinfo=UTC), datetime(1850, 5, 4, 3, 2, 1, tzinfo=UTC), START]
    taken = Snapshot(tmp_path, {"old": schema_}, {"old": len(born)})
    (tmp_path / "old").mkdir()
    pq.write_table(pa.table([born], schema=schema_), tmp_path / "old" / "0.parquet")
    own = spark.newSession()
    tune(own, len(born), ONE_TASK_ROWS)
    with taken.frames(own, {}) as made:
        assert made["old"].toArrow()["bornTimestamp"].to_pylist() == born


def test_a_golden_store_has_what_was_sent(
    golden_store: Callable[[str], Path],
    golden_messages: Callable[[str], list[dict[str, Any]]],
    golden_version: str,
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    """Whatever the Java client pulled is counted; its own numbers are the judge."""
    pulled = golden_messages(golden_version)
    by_topic = Counter(message["topic"] for message in pulled)
    store = golden_store(golden_version) / "clean"
    chosen = [catalog.TOPICS, catalog.RETRIES, catalog.DEAD_LETTERS, catalog.LAG]
    values = parameters(after(0), 1000, 72)
    made = _taken(spark, store, tmp_path, chosen, values)
    topics, retries, dead, _ = (each.rows for each in made)
    found = {row["topic"]: row["messages"] for row in topics}
    assert {topic: found.get(topic, 0) for topic in by_topic} == by_topic
    (golden,) = (row for row in retries if row["group"] == "golden_retry")
    assert golden["deadLetters"] == found["%DLQ%golden_retry"]
    assert golden["retries"] == found["%RETRY%golden_retry"]
    assert [(row["group"], row["origin"]) for row in dead] == [("golden_retry", "Retry")]


def test_every_query_reads_what_was_kept_and_not_the_store_again(
    spark: SparkSession,
    golden_store: Callable[[str], Path],
    capsys: pytest.CaptureFixture[str],
) -> None:
    chosen = [catalog.TOPICS, catalog.LATENCY, catalog.RETRIES]
    values = parameters(START, 20, 72)
    with frames(spark, {"storePath": str(golden_store("5.4.0") / "clean")}, chosen):
        for report in chosen:
            run(spark, report, values)
            query_of(spark, report, values).explain()
            plan = capsys.readouterr().out
            assert plan.count("InMemoryTableScan") == len(report.frames)
            assert plan.count("BatchScan rocketmq") == plan.count("InMemoryRelation")


def test_an_empty_store_has_a_report(spark: SparkSession, tmp_path: Path) -> None:
    """Without a file in it, and without config."""
    store, folder = tmp_path / "store", tmp_path / "taken"
    (store / "commitlog").mkdir(parents=True)
    folder.mkdir()
    results = _taken(spark, store, folder, catalog.REPORTS, parameters(START, 20, 72))
    assert [(each.rows, each.problem) for each in results] == [([], None)] * len(results)
    assert page(str(tmp_path), START, results).count("Nothing of this kind") == len(results)


def test_the_command(golden_store: Callable[[str], Path], tmp_path: Path) -> None:
    """In a process of its own, with the session that it makes itself."""
    store, html = golden_store("5.4.0") / "crashed", tmp_path / "report.html"
    command = [str(Path(sys.executable).with_name("txrocketmq")), "report", "--store", str(store)]
    command += ["--only", "topics,lag", "--json", "--html", str(html)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["reports"]
    assert {"Plain", "Orders"} <= {row["topic"] for row in found["topics"]}
    assert "golden_retry" in {row["group"] for row in found["lag"]}
    assert html.read_text("utf-8").count("<svg") == 2
