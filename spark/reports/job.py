# SPDX-License-Identifier: Apache-2.0
"""Makes the reports of stores: what they read is taken while Spark starts, then queries run.

Where spark-submit started this program, Spark's workers read: they may be elsewhere.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, Protocol

from txrocketmq.spark import register
from txrocketmq.spark.errors import SparkSourceError, cause
from txrocketmq.spark.ingest.process_runner import process_runner
from txrocketmq.spark.ingest.runner import Runner, run_here
from txrocketmq.spark.reports.frames import asked, frames
from txrocketmq.spark.reports.report import Report, Result
from txrocketmq.spark.reports.tuning import jvm_options, tune
from txrocketmq.spark.session import is_submitted, session
from txrocketmq.spark.store import Store

if TYPE_CHECKING:
    from txrocketmq.spark.reports.snapshot import Snapshot

_PART_BYTES: Final = 128 << 20
"""Of log: what is taken by one task, and told of when it is done."""
_IN_PROCESS_BYTES: Final = 2 << 30
"""Up to about here one process has read the log when Spark has started."""
_AT_ONCE_OF_A_CORE: Final = 4


class Listener(Protocol):
    """Hears how the work goes, from any thread."""

    def reading(self, done: int, of: int) -> None:
        """So many parts of the stores are read."""

    def asking(self, done: int, of: int) -> None:
        """Spark has started, and so many reports are made."""


@dataclass(frozen=True)
class Job:
    """What is to be reported, of which stores."""

    stores: Sequence[Store]
    options: Mapping[str, str]
    """Of `format("rocketmq")`, checked; they name the stores."""
    reports: Sequence[Report]
    values: Mapping[str, Any]
    """Of the parameters of queries."""

    def results(self, listener: Listener) -> list[Result]:
        """What the reports find. SparkSourceError when it cannot be told."""
        from pyspark.errors import PySparkException  # noqa: PLC0415 - it takes a while

        try:
            if is_submitted():
                return self._of_spark(listener)
            return self._of_snapshot(listener)
        except PySparkException as error:
            raise SparkSourceError(cause(error)) from error

    def _of_spark(self, listener: Listener) -> list[Result]:
        from txrocketmq.spark.reports.queries import run_all  # noqa: PLC0415 - likewise

        with session("txrocketmq report") as spark:
            register(spark)
            options = dict(self.options)
            if not any(name.lower() == "minpartitions" for name in options):
                options["minPartitions"] = str(spark.sparkContext.defaultParallelism)
            with frames(spark, options, self.reports):
                return run_all(spark, self.reports, self.values, listener.asking)

    def _of_snapshot(self, listener: Listener) -> list[Result]:
        from txrocketmq.spark.reports.queries import run_all  # noqa: PLC0415 - likewise
        from txrocketmq.spark.reports.snapshot import ONE_TASK_ROWS  # noqa: PLC0415 - likewise

        log_bytes = sum(segment.size for store in self.stores for segment in store.segments())
        with (
            self._taking(log_bytes, listener) as taking,
            session("txrocketmq report", jvm_options(log_bytes)) as spark,
        ):
            taken = taking.result()
            tune(spark, max(taken.rows.values(), default=0), ONE_TASK_ROWS)
            can = [report for report in self.reports if taken.problem(report) is None]
            with taken.frames(spark, self.options):
                found = {
                    r.report.name: r for r in run_all(spark, can, self.values, listener.asking)
                }
        return [
            found.get(report.name) or Result(report, [], [], taken.problem(report))
            for report in self.reports
        ]

    @contextmanager
    def _taking(self, log_bytes: int, listener: Listener) -> Iterator[Future[Snapshot]]:
        """Takes what is needed in a thread of its own; all that was taken is deleted at the end."""
        from txrocketmq.spark.reports.snapshot import take  # noqa: PLC0415 - likewise

        options = dict(self.options)
        if not any(name.lower() == "minpartitions" for name in options):
            options["minPartitions"] = str(max(1, log_bytes // _PART_BYTES))
        left = threading.Event()

        def tell(done: int, of: int) -> bool:
            listener.reading(done, of)
            return not left.is_set()

        with ExitStack() as open_until_end:
            folder = open_until_end.enter_context(TemporaryDirectory(prefix="txrocketmq-report-"))
            thread = open_until_end.enter_context(ThreadPoolExecutor(1))
            runner: Runner = run_here
            at_once = 1
            if log_bytes > _IN_PROCESS_BYTES:
                runner = open_until_end.enter_context(process_runner())
                at_once = _AT_ONCE_OF_A_CORE * len(os.sched_getaffinity(0))
            open_until_end.callback(left.set)
            yield thread.submit(
                take, asked(options, self.reports), Path(folder),
                runner=runner, at_once=at_once, tell=tell,
            )  # fmt: skip
