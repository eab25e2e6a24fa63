# SPDX-License-Identifier: Apache-2.0
"""What is a stream's own; test_writer.py has what it shares with a batch."""

from __future__ import annotations

import pytest
from pyspark.sql.types import BinaryType, StructField, StructType

from txrocketmq.spark.arrow.errors import OptionError
from txrocketmq.spark.options.options import SourceOptions
from txrocketmq.spark.sink.stream_writer import StreamWriter

SCHEMA = StructType([StructField("body", BinaryType())])


def test_a_stream_has_no_batch_key() -> None:
    given = {"nameServer": "localhost:9876", "topic": "T", "batchKey": "q"}
    with pytest.raises(OptionError, match="foreachBatch"):
        StreamWriter(SourceOptions.of(given), SCHEMA, overwrite=False)


def test_rows_that_were_written_cannot_be_replaced() -> None:
    given = SourceOptions.of({"nameServer": "localhost:9876", "topic": "T"})
    with pytest.raises(OptionError, match=r'use outputMode."append". or "update"'):
        StreamWriter(given, SCHEMA, overwrite=True)
