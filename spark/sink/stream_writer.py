# SPDX-License-Identifier: Apache-2.0
"""Spark's interface for writing streams: `writeStream.format("rocketmq")`, from PySpark 4.1 on."""

from __future__ import annotations

from pyspark.sql.datasource import DataSourceStreamArrowWriter
from pyspark.sql.types import StructType

from txrocketmq.spark.arrow.errors import OptionError
from txrocketmq.spark.options.options import SourceOptions
from txrocketmq.spark.sink.writer import SinkWriter


class StreamWriter(SinkWriter, DataSourceStreamArrowWriter):
    """One `writeStream`. OptionError when options, columns or the output mode make no sense."""

    def __init__(self, options: SourceOptions, schema: StructType, *, overwrite: bool) -> None:
        if overwrite:
            raise OptionError('messages are appended: use outputMode("append") or "update"')
        if options.batch_key is not None:
            raise OptionError(
                "batchKey is of one micro-batch: use foreachBatch(rocketmq_batch(...))"
            )
        super().__init__(options, schema)
