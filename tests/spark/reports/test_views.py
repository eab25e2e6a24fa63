# SPDX-License-Identifier: Apache-2.0
"""How queries are run on views. What they find is in tests/engine/test_reports.py."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from txrocketmq.spark.arrow.errors import OptionError
from txrocketmq.spark.reports import catalog, space
from txrocketmq.spark.reports.report import Report, parameters, run_all
from txrocketmq.spark.reports.views import register_views, run

VALUES = parameters(datetime(2026, 11, 20, tzinfo=UTC), 20, 72)


class Session:
    """Stands for a session: a query's rows are its own text, or it fails."""

    def __init__(self, fails: str | None = None, error: str = "[OOM] no memory") -> None:
        self.fails = fails
        self.error = error

    def sql(self, text: str, args: dict[str, Any]) -> Any:
        if self.fails is not None and self.fails in text:
            raise PySparkException(self.error)
        return SimpleNamespace(toArrow=lambda: pa.table({"text": [text], "args": [len(args)]}))


def _report(name: str) -> Report:
    return Report(name, name, "", "SELECT NAME FROM {records}".replace("NAME", name))


def test_a_query_gets_the_parameters_that_it_names() -> None:
    session: Any = Session()
    (row,) = run(session, space.DISK, VALUES).rows
    assert row["text"] == space.DISK.query()
    assert row["args"] == 2


def test_what_a_store_has_not_is_a_problem_of_one_report() -> None:
    text = (
        "[X] Failed\ntxrocketmq.spark.arrow.errors.UnsupportedLayout: queues are in RocksDB\n at y"
    )
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
    found = run_all(
        partial(run, session), reports, VALUES, lambda done, of: told.append((done, of))
    )
    assert [each.report.name for each in found] == list("abcde")
    assert told == [(done, 5) for done in range(6)]


def test_options_are_checked_before_anything_is_registered() -> None:
    nothing: Any = SimpleNamespace()
    with pytest.raises(OptionError, match="columns"):
        register_views(nothing, "/s", columns="topic")
