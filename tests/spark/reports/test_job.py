# SPDX-License-Identifier: Apache-2.0
"""How reading and asking fit together, without Spark. With it: tests/engine/test_reports.py."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import PySparkException

from tests.spark.reports.messages import START
from tests.spark.stores import Draft, StoreWriter, write_store
from txrocketmq.spark.arrow.errors import NotAStore, RunFailed, SparkSourceError, UnsupportedLayout
from txrocketmq.spark.ingest.runners.runner import Outcome, Runner, Task, run_here
from txrocketmq.spark.planning.reading import Reading
from txrocketmq.spark.reports import job, views
from txrocketmq.spark.reports.catalog import LAG, OVERVIEW, REPORTS, TOPICS
from txrocketmq.spark.reports.job import ReportJob
from txrocketmq.spark.reports.page.page import page
from txrocketmq.spark.reports.report import Result, parameters
from txrocketmq.spark.reports.space import DISK, RETENTION
from txrocketmq.spark.store.store import resolve

VALUES = parameters(START, 20, 72)


class Heard:
    """Notes how far the work is."""

    def __init__(self) -> None:
        self.said: list[tuple[str, int, int]] = []

    def reading(self, done: int, of: int) -> None:
        self.said.append(("reading", done, of))

    def asking(self, done: int, of: int) -> None:
        self.said.append(("asking", done, of))


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)


@pytest.fixture
def work(tmp_path: Path) -> ReportJob:
    """Two reports over a store of 20 messages."""
    write_store(tmp_path / "store", [Draft(topic="orders") for _ in range(20)])
    options = {"storePath": str(tmp_path / "store")}
    return ReportJob(resolve(options["storePath"]), options, [LAG, TOPICS], VALUES)


def _messages(results: list[Result]) -> int:
    (topics,) = (each for each in results if each.report is TOPICS)
    return sum(row["messages"] for row in topics.rows)


def test_reports_are_made_of_what_is_read(work: ReportJob, tmp_path: Path) -> None:
    heard = Heard()
    results = work.results(heard)
    assert [each.report for each in results] == [LAG, TOPICS]
    assert _messages(results) == 20
    assert heard.said[0][:2] == ("reading", 0)
    assert ("asking", 0, 2) in heard.said
    assert heard.said[-1] == ("asking", 2, 2)
    assert any(what == "reading" and done == of for what, done, of in heard.said)


def test_groups_of_a_broker_with_light_queues_lose_no_file_unnoticed(tmp_path: Path) -> None:
    """Such a broker keeps all offsets in another file, with those of light queues."""
    writer = StoreWriter(tmp_path / "store", segment_bytes=2048)
    writer.put_all([*(Draft("orders") for _ in range(40)), Draft("%LMQ%a")])
    writer.write_config()
    content = {"offsetTable": {"orders@g": {0: 3}}, "lmqOffsetTable": {"%LMQ%a@%LMQ%a": 0}}
    config = tmp_path / "store" / "config"
    (config / "lmqConsumerOffset.json").write_text(json.dumps(content))
    options = {"storePath": str(tmp_path / "store")}
    made = ReportJob(resolve(options["storePath"]), options, [LAG, RETENTION], VALUES).results(
        Heard()
    )
    lag, files = (each.rows for each in made)
    found = [(row["group"], row["topic"], row["lag"]) for row in lag]
    assert found == [("g", "orders", 37), ("%LMQ%a", "%LMQ%a", 1)]
    assert [row["waiting"] for row in files][:2] == [1, 1], "g reads them yet"


def test_batches_count_as_their_messages_and_weigh_what_they_are(tmp_path: Path) -> None:
    inner: tuple[tuple[bytes, dict[str, str]], ...] = ((b"a", {"TAGS": "t"}),) * 7
    writer = write_store(tmp_path / "s", [Draft("Batches", inner=inner) for _ in range(5)])
    options = {"storePath": str(tmp_path / "s")}
    reports = [OVERVIEW, TOPICS, DISK]
    results = ReportJob(resolve(options["storePath"]), options, reports, VALUES).results(Heard())
    overview, topics, disk = (each.rows[0] for each in results)
    assert (overview["records"], topics["messages"], disk["records"]) == (35, 35, 35)
    size = sum(each.size for each in writer.stored)
    assert (overview["bytes"], topics["bytes"], disk["bytes"]) == (size, size, size)


def test_what_is_read_is_deleted_at_the_end(
    work: ReportJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    seen: list[Path] = []
    monkeypatch.setattr(Heard, "asking", lambda *_: seen.extend(folder.glob("*/report.duckdb")))
    work.results(Heard())
    assert seen
    assert not list(folder.iterdir())


def test_it_needs_no_pyspark(work: ReportJob) -> None:
    program = (
        "import sys; sys.modules['pyspark'] = None\n"
        "from txrocketmq.cli.spark.report import main\n"
        "sys.exit(main(['--store', sys.argv[1], '--json']))"
    )
    command = [sys.executable, "-c", program, work.options["storePath"]]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert '"messages":20' in done.stdout


def test_a_report_that_a_store_cannot_give_is_not_asked(
    work: ReportJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    def parts(self: Reading) -> Any:
        raise UnsupportedLayout("RocksDB")

    monkeypatch.setattr(Reading, "parts", parts)
    lag, topics = work.results(Heard())
    assert (lag.report, lag.problem) == (LAG, None)
    assert (topics.report, topics.rows, topics.problem) == (TOPICS, [], "RocksDB")


def test_large_stores_are_read_by_processes(
    work: ReportJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "_IN_PROCESS_BYTES", 0)
    monkeypatch.setattr(job, "_PART_BYTES", 1000)
    used: list[int] = []

    def run(tasks: Sequence[Task]) -> Iterator[tuple[int, Outcome]]:
        used.append(len(tasks))
        return run_here(tasks)

    @contextmanager
    def pool() -> Iterator[Runner]:
        yield run
        used.append(-1)

    monkeypatch.setattr(job, "process_runner", pool)
    assert _messages(work.results(Heard())) == 20
    assert max(used) > 1, "several parts at once"
    assert used[-1] == -1


def test_a_worker_that_dies_is_told_without_a_next_run(
    work: ReportJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(_: Any) -> Any:
        raise RunFailed("a worker process was killed; the next run goes on")

    monkeypatch.setattr(job, "run_here", dies)
    with pytest.raises(SparkSourceError, match="^the stores were not read: a worker .* killed$"):
        work.results(Heard())


def test_what_the_reading_finds_wrong_is_told(
    work: ReportJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    def batches(self: Reading, _: Any) -> Any:
        raise NotAStore("it is gone")
        yield

    monkeypatch.setattr(Reading, "batches", batches)
    with pytest.raises(NotAStore, match="^it is gone$"):
        work.results(Heard())


def test_an_empty_store_has_a_report(tmp_path: Path) -> None:
    """Without a file in it, and without config."""
    (tmp_path / "store" / "commitlog").mkdir(parents=True)
    options = {"storePath": str(tmp_path / "store")}
    work = ReportJob(resolve(options["storePath"]), options, REPORTS, VALUES)
    results = work.results(Heard())
    assert [(each.rows, each.problem) for each in results] == [([], None)] * len(REPORTS)
    assert page("", START, [], results).count("Nothing of this kind") == len(REPORTS)


class Spark:
    """Stands for Spark: notes what is asked of it."""

    def __init__(self) -> None:
        self.sparkContext = SimpleNamespace(defaultParallelism=2)
        self.options: dict[str, str] = {}
        self.error: Exception | None = None

    @contextmanager
    def session(self, name: str) -> Iterator[Spark]:
        yield self

    def views(self, path: str, options: dict[str, str]) -> None:
        self.options = {"path": path, **options}
        if self.error is not None:
            raise self.error


@pytest.fixture
def spark(monkeypatch: pytest.MonkeyPatch) -> Spark:
    """As in a program of spark-submit, with this instead of the real one."""
    made = Spark()
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    monkeypatch.setattr(job, "session", made.session)
    monkeypatch.setattr(
        views, "register_views", lambda _, path, reports, **options: made.views(path, options)
    )
    monkeypatch.setattr(views, "run", lambda _, report, __: Result(report, [], []))
    return made


def test_spark_submit_lets_spark_read(spark: Spark, work: ReportJob) -> None:
    assert [each.report for each in work.results(Heard())] == [LAG, TOPICS]
    assert spark.options == {"path": work.options["storePath"], "minPartitions": "2"}


def test_what_spark_says_is_an_error_of_ours(spark: Spark, work: ReportJob) -> None:
    spark.error = PySparkException("[OOM] no memory\n at x")
    with pytest.raises(SparkSourceError, match="no memory$"):
        work.results(Heard())
