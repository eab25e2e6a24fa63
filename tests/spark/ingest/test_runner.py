# SPDX-License-Identifier: Apache-2.0
"""The data source as a plain object; through Spark in tests/engine/test_ingest.py."""

from __future__ import annotations

import pickle
from functools import partial

import pytest

from txrocketmq.spark.errors import OptionError
from txrocketmq.spark.files import files_of
from txrocketmq.spark.ingest.runner import (
    FORMAT,
    Task,
    TaskPartition,
    TaskReader,
    TaskSource,
    _packed,
    run_here,
)

GOOD: Task = partial(bytes, 3)
OURS: Task = partial(files_of, "ftp://host/x")  # type: ignore[assignment]  # it only fails
THEIRS: Task = partial(bytes.fromhex, "?")


def test_outcomes_are_in_the_order_of_the_tasks() -> None:
    given, failed = run_here([GOOD, OURS])
    assert given.given == bytes(3)
    assert given.error is None
    assert failed.given is None
    assert isinstance(failed.error, OptionError)


def test_other_errors_are_left_to_who_runs_the_tasks() -> None:
    with pytest.raises(ValueError, match="fromhex"):
        run_here([THEIRS])


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
