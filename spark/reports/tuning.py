# SPDX-License-Identifier: Apache-2.0
"""How Spark is set for reports on this machine, by how much there is to read.

Spark's defaults suit jobs of hours. Measured for all reports of 1.5 million messages, CPU of the
JVM: half of it was the second compiler's work, and most shuffles moved nothing.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import SparkSession

_SHORT_LOG_BYTES: Final = 4 << 30
"""Up to about here code that is compiled better saves less than the compiling takes."""
_SHORT_JVM: Final = "-XX:TieredStopAtLevel=1 -XX:-UseParallelGC -XX:+UseSerialGC -Xmn256m"
_FEW_ROWS: Final = 100_000
"""Up to about here interpreted expressions take less time than compiling them."""
_ALWAYS: Final = {
    # Of producers' clocks: any time may come, and none is of an old calendar.
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
}
_FEW: Final = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
_ONE_TASK: Final = {"spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": "1"}


def jvm_options(log_bytes: int) -> str:
    """Options of the JVM for logs of this size together, beside the usual ones."""
    return _SHORT_JVM if log_bytes <= _SHORT_LOG_BYTES else ""


def tune(spark: SparkSession, most_rows: int, one_task_rows: int) -> None:
    """Sets the session for frames of which the largest has so many rows.

    Frames of up to `one_task_rows` are one partition each.
    """
    settings = dict(_ALWAYS)
    if most_rows <= _FEW_ROWS:
        settings |= _FEW
    if most_rows <= one_task_rows:
        settings |= _ONE_TASK
    for key, value in settings.items():
        spark.conf.set(key, value)
