# SPDX-License-Identifier: Apache-2.0
"""The data source as a plain object; through Spark in tests/engine/test_ingest.py."""

from __future__ import annotations

import pickle

import pytest
from pyspark.sql.datasource import InputPartition

from tests.spark.ingest.tasks import GOOD, OURS, THEIRS
from txrocketmq.spark.arrow.errors import OptionError
from txrocketmq.spark.ingest.runners.runner import Outcome
from txrocketmq.spark.ingest.runners.spark_runner import (
    FORMAT,
    TaskReader,
    TaskSource,
    _packed,
)


def test_a_partition_for_each_task() -> None:
    source = TaskSource({"tasks": _packed([GOOD, OURS])})
    assert (source.name(), source.schema()) == (FORMAT, "number int, outcome binary")
    reader = source.reader(None)
    rows = [row for partition in reader.partitions() for row in reader.read(partition)]
    (first, good), (second, ours) = ((at, pickle.loads(outcome)) for at, outcome in rows)  # noqa: S301
    assert (first, second) == (0, 1)
    assert good == Outcome(bytes(3), None)
    assert ours.given is None
    assert isinstance(ours.error, OptionError)


def test_other_errors_reach_spark() -> None:
    with pytest.raises(ValueError, match="fromhex"):
        list(TaskReader([]).read(InputPartition((0, THEIRS))))
