# SPDX-License-Identifier: Apache-2.0
"""The data source as a plain object; through Spark in tests/engine/test_ingest.py."""

from __future__ import annotations

import pickle

import pytest

from tests.spark.ingest.tasks import GOOD, OURS, THEIRS
from txrocketmq.spark.errors import OptionError
from txrocketmq.spark.ingest.spark_runner import (
    FORMAT,
    TaskPartition,
    TaskReader,
    TaskSource,
    _packed,
)


def test_a_partition_for_each_task() -> None:
    source = TaskSource({"tasks": _packed([GOOD, OURS])})
    assert (source.name(), source.schema()) == (FORMAT, "number int, given binary, error binary")
    reader = source.reader(None)
    first, second = reader.partitions()
    assert list(reader.read(first)) == [(0, bytes(3), None)]
    ((number, given, error),) = reader.read(second)
    assert (number, given) == (1, None)
    assert isinstance(pickle.loads(error), OptionError)  # noqa: S301


def test_other_errors_reach_spark() -> None:
    with pytest.raises(ValueError, match="fromhex"):
        list(TaskReader([]).read(TaskPartition(0, THEIRS)))
