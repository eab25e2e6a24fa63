# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pickle

import pytest

from txrocketmq.spark.errors import SparkSourceError
from txrocketmq.spark.ingest.errors import RunFailed, TableBusy, TableError


@pytest.mark.parametrize("kind", [TableError, TableBusy, RunFailed])
def test_errors_are_of_the_tree_and_cross_processes(kind: type[Exception]) -> None:
    error = pickle.loads(pickle.dumps(kind("a sentence")))  # noqa: S301
    assert type(error) is kind
    assert isinstance(error, SparkSourceError)
    assert str(error) == "a sentence"
