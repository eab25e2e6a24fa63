# SPDX-License-Identifier: Apache-2.0
"""How queries are run. What they find is in tests/engine/test_reports.py."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from txrocketmq.spark.reports import catalog
from txrocketmq.spark.reports.queries import parameters, run, run_all
from txrocketmq.spark.reports.report import Report

VALUES = parameters(datetime(2026, 11, 20, tzinfo=UTC), 20, 72)


class Session:
    """Stands for a session: a query's rows are its own text, or it fails."""

    def __init__(self, fails: str | None = None, error: str = "[OOM] no memory") -> None:
        self.fails = fails
        self.error = error
        self.cancelled = False
        self.sparkContext = SimpleNamespace(
            defaultParallelism=2, cancelAllJobs=lambda: setattr(self, "cancelled", True)
        )
        self.together = threading.Barrier(2)

    def sql(self, text: str, args: dict[str, Any]) -> Any:
        if self.fails is not None and self.fails in text:
            raise PySparkException(self.error)
        return SimpleNamespace(toArrow=lambda: pa.table({"text": [text], "args": [len(args)]}))


def _report(name: str) -> Report:
    return Report(name, name, "", "SELECT NAME FROM {records}".replace("NAME", name))


def test_a_query_gets_the_parameters_that_it_names() -> None:
    session: Any = Session()
    (row,) = run(session, catalog.DISK, VALUES).rows
    assert row["text"] == catalog.DISK.query("txrocketmq_")
    assert row["args"] == 2


def test_what_a_store_has_not_is_a_problem_of_one_report() -> None:
    text = "[X] Failed\ntxrocketmq.spark.errors.UnsupportedLayout: queues are in RocksDB\n at y"
    session: Any = Session("SELECT", text)
    found = run(session, catalog.LAG, VALUES)
    assert (list(found.rows), found.problem) == ([], "queues are in RocksDB")
    session = Session("SELECT")
    with pytest.raises(PySparkException, match="no memory"):
        run(session, catalog.LAG, VALUES)


def test_results_are_in_order_and_told_one_by_one() -> None:
    reports = [_report(name) for name in "abcde"]
    told: list[tuple[int, int]] = []
    session: Any = Session()
    found = run_all(session, reports, VALUES, lambda done, of: told.append((done, of)))
    assert [each.report.name for each in found] == list("abcde")
    assert told == [(done, 5) for done in range(6)]
    assert not session.cancelled


def test_queries_run_at_the_same_time() -> None:
    class Meets(Session):
        def sql(self, text: str, args: dict[str, Any]) -> Any:
            self.together.wait(timeout=10)  # one alone would wait in vain
            return super().sql(text, args)

    session: Any = Meets()
    assert len(run_all(session, [_report("a"), _report("b")], VALUES)) == 2


def test_an_error_ends_all_of_them() -> None:
    session: Any = Session(fails="SELECT b ")
    with pytest.raises(PySparkException, match="no memory"):
        run_all(session, [_report(name) for name in "abc"], VALUES)
    assert session.cancelled
