# SPDX-License-Identifier: Apache-2.0
"""Spark and DuckDB find the same with the queries of the reports."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.spark.reports.messages import START, after, messages, offsets, table
from txrocketmq.spark.reports import catalog, views
from txrocketmq.spark.reports.duck import database
from txrocketmq.spark.reports.frames import messages_sql
from txrocketmq.spark.reports.job import ReportJob
from txrocketmq.spark.reports.page.plot import svg
from txrocketmq.spark.reports.report import (
    DEFAULT_RESERVED_HOURS,
    DEFAULT_TOP,
    Report,
    Result,
    parameters,
)
from txrocketmq.spark.store.store import resolve

PAGE = Path(__file__).parent.parent.parent / "docs" / "reports.md"
VALUES = parameters(after(3600), 5, 72)


class Deaf:
    """A listener that does not care."""

    def reading(self, done: int, of: int) -> None: ...

    def asking(self, done: int, of: int) -> None: ...


def _of_duck(store: Path, reports: Sequence[Report], values: Mapping[str, Any]) -> list[Result]:
    """What the command finds."""
    options = {"storePath": str(store)}
    return ReportJob(resolve(str(store)), options, reports, values).results(Deaf())


def _made_up(chance: random.Random, count: int) -> dict[str, pa.Table]:
    """Frames with some of everything: ties, nulls, zeros, clocks that differ."""
    topics = ["orders", "payments", "%RETRY%g", "%RETRY%g+a", "%DLQ%g", "%DLQ%h", "rmq_sys_x",
              "SCHEDULE_TOPIC_XXXX", "a", "b", "c", "\u6d88\u606f"]  # fmt: skip
    span = chance.choice([5, 600, 86400 * 9])

    def time() -> datetime:
        return after(chance.randrange(-span * 1000, span * 1000) / 1000)

    def either(*values: Any) -> Any:
        return chance.choice(values)

    records = [
        {
            "topic": either(*topics), "queueId": chance.randrange(3), "queueOffset": number,
            "brokerName": either("broker-a", "broker-b"), "bornTimestamp": time(),
            "storeTimestamp": time(), "tags": either(None, "A", "B", f"t{chance.randrange(20)}"),
            "keys": either(None, "", " ", "k", f"k{chance.randrange(9)} k"),
            "bornHost": either("10.0.0.1:1", "10.0.0.1:2", "[fe80::1]:7", "\u00fc"),
            "storeSize": chance.randrange(100, 5000), "sysFlag": either(0, 0, 0, 4, 8, 12, 1),
            "bodySize": either(0, 1, 2, 4095, 4096, 4 << 20, chance.randrange(1 << 20)),
            "reconsumeTimes": either(0, 0, 0, 3), "compression": either("none", "zlib"),
            "properties": either(
                [], [("DLQ_ORIGIN_TOPIC", "a")], [("RETRY_TOPIC", "b"), ("x", "y")]
            ),
        }
        for number in range(count)
    ]  # fmt: skip
    read = [
        (either("g", "h", "CID_RMQ_SYS_x", "late"), topic, queue, chance.randrange(9),
         chance.randrange(9), 9 + chance.randrange(9), either(None, time()))
        for topic in topics for queue in range(3)
    ] if count else []  # fmt: skip
    waiting = [
        {"topic": either(*topics), "delayLevel": either(None, 1, 18), "bodySize": 5,
         "deliverTimestamp": either(time(), None), "producerGroup": either(None, "p", "q"),
         "checkTimes": either(None, 0, 3), "storeTimestamp": time()}
        for _ in range(count)
    ]  # fmt: skip

    def some(name: str) -> pa.Table:
        known = set(table(name, []).column_names)
        return table(name, [{k: v for k, v in row.items() if k in known} for row in waiting])

    named = [
        {"topic": topic, "brokerName": either("broker-a", "broker-b")} for topic in topics[::2]
    ]
    files = [
        {"firstOffset": at, "usedBytes": either(0, 100), "firstTimestamp": time(),
         "lastTimestamp": either(time(), None)}
        for at in range(0, count and 500, 100)
    ]  # fmt: skip
    return {
        "records": messages(records), "dead_letters": messages(records), "offsets": offsets(*read),
        "delay": some("delay"), "transactions": some("transactions"),
        "segments": table("segments", files), "topics": table("topics", named),
    }  # fmt: skip


def _comparable(result: Result) -> list[Any]:
    """Rows; a figure that was rounded may differ by a last digit, and no more."""

    def value(each: Any) -> Any:
        return pytest.approx(each, abs=0.11, rel=1e-6) if isinstance(each, float) else each

    return [{name: value(each) for name, each in row.items()} for row in result.rows]


@pytest.mark.parametrize(("seed", "count"), [(1, 400), (2, 7), (3, 0)])
def test_spark_and_duckdb_find_the_same(spark: SparkSession, seed: int, count: int) -> None:
    frames = _made_up(random.Random(seed), count)
    with database() as made:
        for name, frame in frames.items():
            made.load(name, frame.schema, frame.to_batches())
            spark.createDataFrame(frame).createOrReplaceTempView(name)
        made.load_messages({})
        spark.sql(messages_sql({})).createOrReplaceTempView("messages")
        for report in catalog.REPORTS:
            here, there = made.run(report, VALUES), views.run(spark, report, VALUES)
            assert here.columns == there.columns, report.name
            assert here.rows == _comparable(there), report.name
            assert bool(here.rows) == bool(count), report.name


def test_the_queries_of_the_page_are_the_reports(
    spark: SparkSession, golden_store: Callable[[str], Path]
) -> None:
    """Copied from docs/reports.md, they give in Spark what the command finds."""
    store = golden_store("5.4.0") / "clean"
    loading, *queries = re.findall(
        r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    names: dict[str, Any] = {"spark": spark, "path": str(store)}
    exec(loading, names)  # noqa: S102 - our own page
    values = parameters(names["now"], DEFAULT_TOP, DEFAULT_RESERVED_HOURS)
    made = _of_duck(store, catalog.REPORTS, values)
    for report, query, found in zip(catalog.REPORTS, queries, made, strict=True):
        exec(query, names)  # noqa: S102 - our own page
        copied = names["result"].toArrow()
        there = Result(report, copied.column_names, copied.to_pylist())
        assert found.columns == there.columns
        assert found.rows == _comparable(there), report.name
        assert found.rows, report.name
        assert report.plot is None or svg(found), report.name
    spark.catalog.clearCache()


def test_a_golden_store_has_what_was_sent(
    golden_store: Callable[[str], Path],
    golden_messages: Callable[[str], list[dict[str, Any]]],
    golden_version: str,
) -> None:
    """Whatever the Java client pulled is counted; its own numbers are the judge."""
    pulled = golden_messages(golden_version)
    by_topic = Counter(message["topic"] for message in pulled)
    store = golden_store(golden_version) / "clean"
    chosen = [catalog.TOPICS, catalog.RETRIES, catalog.DEAD_LETTERS, catalog.LAG]
    made = _of_duck(store, chosen, parameters(after(0), 1000, 72))
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
    views.register_views(spark, str(golden_store("5.4.0") / "clean"), reports=chosen)
    values = parameters(START, 20, 72)
    for report in chosen:
        assert views.run(spark, report, values).rows
        used = {name: values[name] for name in report.parameters}
        spark.sql(report.query(), args=used).explain()
        plan = capsys.readouterr().out
        assert plan.count("InMemoryTableScan") >= len(report.frames)
        assert plan.count("BatchScan rocketmq") == plan.count("InMemoryRelation")
    spark.catalog.clearCache()


def test_the_command(golden_store: Callable[[str], Path], tmp_path: Path) -> None:
    """In a process of its own, and as a program of spark-submit: both find the same."""
    store, html = golden_store("5.4.0") / "crashed", tmp_path / "report.html"
    scripts = Path(sys.executable).parent
    arguments = ["--store", str(store), "--only", "topics,lag", "--json"]
    arguments += ["--now", "2026-11-22T00:00:00"]
    command = [str(scripts / "txrocketmq"), "report", *arguments, "--html", str(html)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == f"wrote {html}\n"
    found = json.loads(done.stdout)["reports"]
    assert {"Plain", "Orders"} <= {row["topic"] for row in found["topics"]}
    assert "golden_retry" in {row["group"] for row in found["lag"]}
    assert html.read_text("utf-8").count("<svg") == 2
    program = tmp_path / "program.py"
    program.write_text(
        "import sys; from txrocketmq.cli.spark.report import main; sys.exit(main())\n"
    )
    submit = [str(scripts / "spark-submit"), "--master", "local[2]", str(program), *arguments]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    submitted = subprocess.run(submit, capture_output=True, text=True, check=False, env=environment)
    assert submitted.returncode == 0, submitted.stderr
    # What Python libraries write to standard error, spark-submit puts on standard output.
    assert json.loads(submitted.stdout.splitlines()[-1])["reports"] == found
