# SPDX-License-Identifier: Apache-2.0
"""The Spark session of a command: as spark-submit configures it, else one on this machine."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from txrocketmq.spark.errors import SparkSourceError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG_SETTINGS: Final = Path(__file__).with_name("log4j2.properties").as_uri()
FAST_JVM: Final = (
    "-XX:+UseParallelGC"
    " -Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"
)
"""For throughput, and without looking at each value of an Arrow batch whether it lies inside:
batches come from our own workers, and rows are made of them one value at a time.
"""
_JVM_OPTIONS: Final = f"{FAST_JVM} -Dlog4j2.configurationFile={_LOG_SETTINGS}"
_JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
LOCAL: Final = {
    "spark.master": "local[*]",
    "spark.ui.enabled": "false",
    "spark.driver.memory": "2g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "8",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.buffer.size": "1048576",
    "spark.ui.showConsoleProgress": "false",
    _JAVA_OPTIONS: _JVM_OPTIONS,
}
"""Settings of a session on this machine: no ports open to others, few and small shuffles, and a
quick way from the Python workers into a JVM that is out for throughput.
"""
_SUBMITTED: Final = "PYSPARK_GATEWAY_PORT"
"""Set in programs that spark-submit starts: master and settings are its business."""


def is_submitted() -> bool:
    """Whether spark-submit started this program. Needs no pyspark."""
    return _SUBMITTED in os.environ


@contextmanager
def session(name: str, jvm_options: str = "") -> Iterator[SparkSession]:
    """A session, stopped at the end; times are in UTC.

    The source `rocketmq` is for those to register who need it: that starts a Python process. A JVM
    of ours gets `jvm_options` beside the usual ones. Raises SparkSourceError when Spark cannot run
    here.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with ExitStack() as open_until_end:
        with _interrupts_afterwards():
            spark = _started(name, jvm_options) if is_submitted() else _beside(name, jvm_options)
            open_until_end.callback(spark.stop)
        yield spark


def _beside(name: str, jvm_options: str) -> SparkSession:
    """Started by another thread: in the main one Spark would set a handler of SIGINT that asks
    something of the JVM even in the middle of another call.
    """
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(_started, name, jvm_options).result()


@contextmanager
def _interrupts_afterwards() -> Iterator[None]:
    """Holds Ctrl-C back until the end: in the middle of Spark's start it leaves a JVM behind."""
    if is_submitted() or threading.current_thread() is not threading.main_thread():
        yield
        return
    held_back: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: held_back.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if held_back:
            signal.raise_signal(signal.SIGINT)


def _started(name: str, jvm_options: str) -> SparkSession:
    from pyspark.errors import PySparkException  # noqa: PLC0415 - see is_submitted
    from pyspark.sql import SparkSession  # noqa: PLC0415 - likewise

    builder = SparkSession.builder.appName(name).config("spark.sql.session.timeZone", "UTC")
    if not is_submitted():
        options = f"{LOCAL[_JAVA_OPTIONS]} {jvm_options}".rstrip()
        for key, value in {**LOCAL, _JAVA_OPTIONS: options}.items():
            builder = builder.config(key, value)
    try:
        return builder.getOrCreate()
    except PySparkException as error:
        raise SparkSourceError(
            f"Spark does not start; it needs Java 17 or later on the PATH or as JAVA_HOME ({error})"
        ) from error
