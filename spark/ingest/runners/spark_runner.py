# SPDX-License-Identifier: Apache-2.0
"""Runs tasks on Spark's Python workers; the data does not pass through the JVM.

A small data source runs the tasks: each partition is a task and gives one row with its outcome.
Unlike RDDs this works under Spark Connect, and unlike mapInArrow it does not need pandas. Errors of
a network or a disk are left to Spark, which repeats the task where it is configured to do so.
"""

from __future__ import annotations

import base64
import pickle
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from pyspark.errors import PySparkException
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from txrocketmq.spark.arrow.errors import RunFailed, cause
from txrocketmq.spark.ingest.runners.runner import Outcome, Runner, Task, outcome_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FORMAT: Final = "txrocketmq_tasks"
_TASKS: Final = "tasks"
_AT_ONCE_OF_A_SLOT: Final = 16
"""Tasks per slot in one job of Spark, whose outcomes come only when all its tasks are done."""


def spark_runner(spark: SparkSession) -> Runner:
    """Runs tasks on the workers of a session. Raises RunFailed when Spark gives up."""
    spark.dataSource.register(TaskSource)

    at_once = _AT_ONCE_OF_A_SLOT * spark.sparkContext.defaultParallelism

    def run(tasks: Sequence[Task]) -> Iterator[tuple[int, Outcome]]:
        for first in range(0, len(tasks), at_once):
            reader = spark.read.format(FORMAT)
            reader = reader.option(_TASKS, _packed(tasks[first : first + at_once]))
            try:
                rows = reader.load().collect()
            except PySparkException as error:
                raise RunFailed(f"Spark gave the run up: {cause(error)}") from error
            for number, outcome in sorted(rows):
                yield first + number, pickle.loads(outcome)  # noqa: S301 - from our own workers

    return run


def _packed(tasks: Sequence[Task]) -> str:
    return base64.b64encode(pickle.dumps(list(tasks))).decode()


class TaskReader(DataSourceReader):
    """Runs one task for each partition."""

    def __init__(self, tasks: list[Task]) -> None:
        self._tasks = tasks

    def partitions(self) -> Sequence[InputPartition]:
        """Returns one partition for each task, with the task's number."""
        return [InputPartition(numbered) for numbered in enumerate(self._tasks)]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        """Yields one row: the number of the task, and its pickled outcome."""
        number, task = partition.value
        yield number, pickle.dumps(outcome_of(task))


class TaskSource(DataSource):
    """The data source that runs tasks; it is of no use to others."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return "number int, outcome binary"

    def reader(self, schema: Any) -> DataSourceReader:
        return TaskReader(pickle.loads(base64.b64decode(self.options[_TASKS])))  # noqa: S301 - as above
