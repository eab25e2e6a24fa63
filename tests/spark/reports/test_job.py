# SPDX-License-Identifier: Apache-2.0
"""How reading and asking fit together, without Spark. With it: tests/engine/test_reports.py."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import PySparkException

from tests.spark.stores import Draft, write_store
from txrocketmq.spark.errors import NotAStore, SparkSourceError
from txrocketmq.spark.ingest.runner import run_here
from txrocketmq.spark.reports import job, queries, snapshot
from txrocketmq.spark.reports.catalog import LAG, TOPICS
from txrocketmq.spark.reports.job import Job
from txrocketmq.spark.reports.report import Report, Result
from txrocketmq.spark.reports.snapshot import Snapshot
from txrocketmq.spark.store import resolve


class Heard:
    """Notes how far the work is."""

    def __init__(self) -> None:
        self.said: list[tuple[str, int, int]] = []

    def reading(self, done: int, of: int) -> None:
        self.said.append(("reading", done, of))

    def asking(self, done: int, of: int) -> None:
        self.said.append(("asking", done, of))


class Spark:
    """Stands for Spark: notes what is asked of it."""

    def __init__(self) -> None:
        self.jvm_options: list[str] = []
        self.settings: dict[str, str] = {}
        self.conf = SimpleNamespace(set=self.settings.__setitem__)
        self.sparkContext = SimpleNamespace(defaultParallelism=2)
        self.rows: dict[str, int] = {}
        self.folders: list[Path] = []
        self.loaded: list[str] = []
        self.registered: list[str] = []
        self.error: Exception | None = None

    @contextmanager
    def session(self, name: str, jvm_options: str = "") -> Iterator[Spark]:
        self.jvm_options.append(jvm_options)
        yield self

    @contextmanager
    def taken_frames(self, taken: Snapshot) -> Iterator[None]:
        self.rows = taken.rows
        self.folders.append(taken.folder)
        assert all(any((taken.folder / name).iterdir()) for name in taken.schemas)
        yield

    @contextmanager
    def own_frames(self, options: Any, reports: Sequence[Report]) -> Iterator[None]:
        self.loaded.append(options["minPartitions"])
        yield

    def run_all(self, reports: Sequence[Report], tell: Any) -> list[Result]:
        if self.error is not None:
            raise self.error
        tell(len(reports), len(reports))
        return [Result(report, ["n"], [{"n": 1}]) for report in reports]


@pytest.fixture
def spark(monkeypatch: pytest.MonkeyPatch) -> Spark:
    """Instead of the real one."""
    made = Spark()
    monkeypatch.setattr(job, "session", made.session)
    monkeypatch.setattr(
        job, "frames", lambda _, options, reports: made.own_frames(options, reports)
    )
    monkeypatch.setattr(Snapshot, "frames", lambda self, *_: made.taken_frames(self))
    monkeypatch.setattr(
        queries, "run_all", lambda _, reports, __, tell: made.run_all(reports, tell)
    )
    monkeypatch.setattr(job, "register", lambda _: made.registered.append("rocketmq"))
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    return made


@pytest.fixture
def work(tmp_path: Path) -> Job:
    """Two reports over a store of 20 messages."""
    write_store(tmp_path / "store", [Draft(topic="orders") for _ in range(20)])
    options = {"storePath": str(tmp_path / "store")}
    return Job(resolve(options["storePath"]), options, [LAG, TOPICS], {})


def test_what_spark_is_asked_about_is_taken_first_and_deleted_then(spark: Spark, work: Job) -> None:
    heard = Heard()
    assert [each.report for each in work.results(heard)] == [LAG, TOPICS]
    assert spark.rows["records"] == 20
    assert heard.said[-1] == ("asking", 2, 2)
    assert {what for what, _, _ in heard.said} == {"reading", "asking"}
    assert spark.folders
    assert not any(folder.exists() for folder in spark.folders)


def test_spark_is_set_for_little(spark: Spark, work: Job) -> None:
    work.results(Heard())
    assert "TieredStopAtLevel" in spark.jvm_options[0]
    assert not spark.registered, "that starts a process of Python's"
    assert spark.settings["spark.sql.codegen.wholeStage"] == "false"


def test_a_report_that_a_store_cannot_give_is_not_asked(
    spark: Spark, work: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Snapshot, "problem", lambda _, report: "RocksDB" if report is LAG else None)
    lag, topics = work.results(Heard())
    assert (lag.report, lag.rows, lag.problem) == (LAG, [], "RocksDB")
    assert (topics.report, topics.problem) == (TOPICS, None)


def test_large_stores_are_read_by_processes(
    spark: Spark, work: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "_IN_PROCESS_BYTES", 0)
    ended: list[str] = []

    @contextmanager
    def pool() -> Iterator[Any]:
        yield run_here
        ended.append("pool")

    monkeypatch.setattr(job, "process_runner", pool)
    work.results(Heard())
    assert spark.rows["records"] == 20
    assert ended == ["pool"]


def test_spark_submit_lets_spark_read(
    spark: Spark, work: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    heard = Heard()
    assert [each.report for each in work.results(heard)] == [LAG, TOPICS]
    assert spark.loaded == ["2"]
    assert spark.registered == ["rocketmq"]
    assert (spark.jvm_options, spark.settings) == ([""], {})
    assert heard.said == [("asking", 2, 2)]


def test_what_spark_says_is_an_error_of_ours(spark: Spark, work: Job) -> None:
    spark.error = PySparkException("[OOM] no memory\n at x")
    with pytest.raises(SparkSourceError, match="no memory$"):
        work.results(Heard())


def test_what_the_reading_finds_wrong_is_told(
    spark: Spark, work: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    def take(*_: Any, **__: Any) -> Snapshot:
        raise NotAStore("it is gone")

    monkeypatch.setattr(snapshot, "take", take)
    with pytest.raises(NotAStore, match="it is gone"):
        work.results(Heard())
