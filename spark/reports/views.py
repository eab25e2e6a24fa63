# SPDX-License-Identifier: Apache-2.0
"""The views that the queries of reports read, in a session of Spark: for stores that outgrow a
machine, and for queries of one's own.

    register_views(spark, "s3://lake/broker-a/store")
    spark.sql(LAG.query(), args={"now": datetime.now(UTC)}).show()
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from txrocketmq.spark import register
from txrocketmq.spark.arrow.errors import UnsupportedLayout, cause
from txrocketmq.spark.reports.catalog import REPORTS
from txrocketmq.spark.reports.frames import MESSAGES, OPTIONAL, asked, check, messages_sql
from txrocketmq.spark.reports.report import Report, Result

_UNSUPPORTED: Final = f"{UnsupportedLayout.__module__}.{UnsupportedLayout.__name__}: "


def register_views(
    spark: SparkSession,
    path: str | os.PathLike[str],
    *,
    reports: Sequence[Report] = REPORTS,
    **options: str,
) -> None:
    """Registers the temporary views that the queries of these reports read, over stores at a path.

    `options` are those of `format("rocketmq")`. Each view is read when it is first needed, and then
    kept in Spark's memory and on its disks for further queries, until `spark.catalog.clearCache()`.
    """
    given = {"storePath": os.fspath(path), **options}
    check(given)
    register(spark)
    for name, own in asked(given, reports).items():
        frame = spark.read.format("rocketmq").options(**own).load().persist()
        if name in OPTIONAL and _is_lacking(frame):
            frame = spark.createDataFrame([], frame.schema)
        frame.createOrReplaceTempView(name)
        if name == "records":
            spark.sql(messages_sql(given)).createOrReplaceTempView(MESSAGES)


def _is_lacking(frame: DataFrame) -> bool:
    """Returns whether the stores are of a kind that cannot give the frame."""
    try:
        frame.count()
    except PySparkException as error:
        if _UNSUPPORTED not in str(error):
            raise
        return True
    return False


def run(spark: SparkSession, report: Report, values: Mapping[str, Any]) -> Result:
    """Returns the rows of a report, whose views are registered; times have the time zone UTC.

    If the store is of a kind that cannot give what the report reads, the result has a problem and
    no rows; any other error is a PySparkException.
    """
    used = {name: values[name] for name in sorted(report.parameters)}
    try:
        table = spark.sql(report.query(), args=used).toArrow()
    except PySparkException as error:
        if _UNSUPPORTED not in str(error):
            raise
        return Result(report, [], [], cause(error))
    return Result(report, table.column_names, table.to_pylist())
