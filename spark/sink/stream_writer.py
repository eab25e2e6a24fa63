# SPDX-License-Identifier: Apache-2.0
"""What Spark calls to write a stream: `writeStream.format("rocketmq")`, from PySpark 4.1 on."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from txrocketmq.spark.errors import OptionError
from txrocketmq.spark.live.transaction import Decision
from txrocketmq.spark.options import SourceOptions
from txrocketmq.spark.sink.writer import Sink, Written, fields_of, partition_id


class StreamWriter(DataSourceStreamArrowWriter):
    """One `writeStream`. OptionError when options, columns or the output mode make no sense."""

    def __init__(self, options: SourceOptions, schema: StructType, *, overwrite: bool) -> None:
        if overwrite:
            raise OptionError('messages are appended: use outputMode("append") or "update"')
        if options.batch_key is not None:
            raise OptionError(
                "batchKey is of one micro-batch: use foreachBatch(rocketmq_batch(...))"
            )
        self._sink = Sink.of(options, fields_of(schema))

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Sends the rows of a task."""
        return self._sink.write(iterator, partition_id())

    def commit(
        self,
        messages: list[WriterCommitMessage | None],
        batchId: int,  # noqa: N803 - Spark's
    ) -> None:
        """All tasks of a micro-batch are done: their half messages are committed."""
        self._sink.end(messages, Decision.COMMIT)

    def abort(
        self,
        messages: list[WriterCommitMessage | None],
        batchId: int,  # noqa: N803 - Spark's
    ) -> None:
        """A task or the commit failed: half messages are rolled back."""
        self._sink.end(messages, Decision.ROLLBACK)
