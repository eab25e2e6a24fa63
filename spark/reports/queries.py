# SPDX-License-Identifier: Apache-2.0
"""The queries of reports, run by a Spark session that finds their frames: several at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from datetime import datetime
from typing import Any, Final

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from txrocketmq.spark.errors import UnsupportedLayout, cause
from txrocketmq.spark.reports.frames import VIEW_PREFIX
from txrocketmq.spark.reports.report import Report, Result

_MOST_AT_ONCE: Final = 4
"""Queries share the memory of a JVM."""


def parameters(now: datetime, top: int, reserved_hours: int) -> dict[str, Any]:
    """The values of what queries have parameters for."""
    return {"now": now, "top": top, "reservedHours": reserved_hours}


def query_of(spark: SparkSession, report: Report, values: Mapping[str, Any]) -> DataFrame:
    """The report as a DataFrame, while its frames are to be found."""
    used = {name: values[name] for name in sorted(report.parameters)}
    return spark.sql(report.query(VIEW_PREFIX), args=used)


def run(spark: SparkSession, report: Report, values: Mapping[str, Any]) -> Result:
    """The rows of a report, while its frames are to be found; times are aware, in UTC.

    A store of a kind that has not what the report reads gives a problem instead of rows; any other
    error is PySparkException.
    """
    try:
        table = query_of(spark, report, values).toArrow()
    except PySparkException as error:
        if f"{UnsupportedLayout.__module__}.{UnsupportedLayout.__name__}: " not in str(error):
            raise
        return Result(report, [], [], cause(error))
    return Result(report, table.column_names, table.to_pylist())


def run_all(
    spark: SparkSession,
    reports: Sequence[Report],
    values: Mapping[str, Any],
    tell: Callable[[int, int], None] = lambda *_: None,
) -> list[Result]:
    """The results, in order; `tell` hears how many there are, of how many.

    One query alone leaves cores idle: it is planned by one thread, and its last steps are one task.
    PySparkException ends all of them.
    """
    at_once = max(1, min(_MOST_AT_ONCE, spark.sparkContext.defaultParallelism))
    tell(0, len(reports))
    with ThreadPoolExecutor(at_once) as threads:
        asked = [threads.submit(run, spark, report, values) for report in reports]
        try:
            for done, each in enumerate(as_completed(asked), 1):
                each.result()
                tell(done, len(reports))
        except BaseException:  # Ctrl-C, too
            threads.shutdown(wait=False, cancel_futures=True)
            spark.sparkContext.cancelAllJobs()
            raise
    return [each.result() for each in asked]
