# SPDX-License-Identifier: Apache-2.0
"""The Spark session of a command that spark-submit has started, with the settings given there."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from txrocketmq.remoting.arguments.kinds import refused
from txrocketmq.spark.arrow.errors import SparkSourceError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SUBMITTED: Final = "PYSPARK_GATEWAY_PORT"
"""A variable that spark-submit sets in the environment of programs."""


def is_submitted() -> bool:
    """Returns whether spark-submit started this program; pyspark is not needed for this."""
    return _SUBMITTED in os.environ


@contextmanager
def session(name: str) -> Iterator[SparkSession]:
    """Opens a session that uses UTC, and stops it at the end.

    Raises SparkSourceError when Spark cannot run here.
    """
    from pyspark.errors import PySparkException  # noqa: PLC0415 - see is_submitted
    from pyspark.sql import SparkSession  # noqa: PLC0415 - likewise

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name).config("spark.sql.session.timeZone", "UTC")
    try:
        spark = builder.getOrCreate()
    except PySparkException as error:
        raise SparkSourceError(
            f"Spark does not start; it needs Java 17 or later on the PATH or as JAVA_HOME ({error})"
        ) from error
    try:
        yield spark
    finally:
        spark.stop()


def check_session(spark: object) -> None:
    """Raises TypeError for what is no session of Spark."""
    if not hasattr(spark, "conf"):
        raise refused("spark", "a SparkSession", spark)
