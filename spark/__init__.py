# SPDX-License-Identifier: Apache-2.0
"""Reads RocketMQ's stores and clusters with Apache Spark, and writes to clusters.

    from pyspark.sql import SparkSession
    from txrocketmq.spark import register

    spark = SparkSession.builder.getOrCreate()
    register(spark)
    spark.read.format("rocketmq").option("storePath", "/data/store").load()

`txrocketmq.spark.reports.views` has the views of reports, `txrocketmq.spark.sink.replay` writes
micro-batches once, and `txrocketmq.spark.live.stream_lag` tells the lag of streams. All else here
is the inside, and may change from one release to the next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if __name__ != "txrocketmq.spark":
    raise ImportError("import txrocketmq.spark, not spark: each class would exist twice")

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["check_workers", "register"]


def register(spark: SparkSession) -> None:
    """Makes `rocketmq`, and rocketmq-spark's name for it, a format of this session.

    It changes no setting of the session. Where pyspark_rocketmq is installed, Spark finds the
    format `rocketmq` without this call.
    """
    from txrocketmq.spark.options.needs import check_pyspark  # noqa: PLC0415 - see below
    from txrocketmq.spark.session import check_session  # noqa: PLC0415 - see below

    check_pyspark('format("rocketmq")')
    check_session(spark)
    from txrocketmq.spark.source import (  # noqa: PLC0415 - importing the package stays light
        OldNameSource,
        RocketMQSource,
        of_session,
    )

    zone = spark.conf.get("spark.sql.session.timeZone") or "UTC"
    for source in (RocketMQSource, OldNameSource):
        spark.dataSource.register(of_session(source, zone))


def check_workers(spark: SparkSession, tasks: int = 64) -> None:
    """Runs a small job to find out whether the workers can read and write stores.

    Raises SparkSourceError, which says on which machines what is missing, and ValueError if
    `tasks` is less than 1.
    """
    from txrocketmq.remoting.arguments.kinds import Whole  # noqa: PLC0415 - see below
    from txrocketmq.spark.session import check_session  # noqa: PLC0415 - see below
    from txrocketmq.spark.workers import check  # noqa: PLC0415 - importing the package stays light

    check_session(spark)
    if Whole().take("tasks", tasks) < 1:
        raise ValueError(f"tasks must be at least 1, not {tasks}")
    check(spark, tasks)
