# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections import Counter
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from txrocketmq.spark.ingest.copy_plan import CopiedRange, IngestSplit, LostRange
from txrocketmq.spark.ingest.job import Commit
from txrocketmq.spark.ingest.metrics import State, write_metrics
from txrocketmq.spark.ingest.task import SplitResult

RESULT = SplitResult(
    IngestSplit("a", 100, 900, first_is_boundary=True),
    rows=5, records=6, topics=Counter({'t"1': 5}),
    damaged=Counter({"crc": 1}), lost=[LostRange("a", 10, 30)],
)  # fmt: skip
COMMIT = Commit(3, (RESULT,), ())
STATE = State(3, 50, 1500, {"a": CopiedRange(900), "b": CopiedRange(7)})


def read(path: Path) -> dict[tuple[str, ...], float]:
    return {
        (
            sample.name.removeprefix("txrocketmq_ingest_"),
            sample.labels.pop("table"),
            *sample.labels.values(),
        ): sample.value
        for family in text_string_to_metric_families(path.read_text("utf-8"))
        for sample in family.samples
    }


def test_a_job_that_took_something(tmp_path: Path) -> None:
    path = tmp_path / "ingest.prom"
    write_metrics(str(path), "/t", 0, 2.5, [COMMIT, COMMIT], STATE, {"a": 1000})
    assert read(path) == {
        ("exit_code", "/t"): 0,
        ("duration_seconds", "/t"): 2.5,
        ("rows", "/t"): 10,
        ("log_bytes", "/t"): 1600,
        ("topic_rows", "/t", 't"1'): 10,
        ("quarantined_records", "/t", "crc"): 2,
        ("lost_bytes", "/t", "a"): 40,
        ("version", "/t"): 3,
        ("table_rows", "/t"): 50,
        ("last_commit_timestamp_seconds", "/t"): 1.5,
        ("position_bytes", "/t", "a"): 900,
        ("position_bytes", "/t", "b"): 7,
        ("lag_bytes", "/t", "a"): 100,
    }


def test_a_job_that_failed_before_anything_was_there(tmp_path: Path) -> None:
    path = tmp_path / "ingest.prom"
    write_metrics(str(path), "/t", 3, 0.5, [], None, {})
    assert read(path) == {
        ("exit_code", "/t"): 3, ("duration_seconds", "/t"): 0.5, ("rows", "/t"): 0,
        ("log_bytes", "/t"): 0,
    }  # fmt: skip
    assert [each.name for each in tmp_path.iterdir()] == ["ingest.prom"]
