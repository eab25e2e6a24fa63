# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pickle
from typing import Any

import pytest
from pyspark.errors import PySparkException

from txrocketmq.spark.arrow import errors


def test_an_option_error_names_the_option_and_the_valid_values() -> None:
    error = errors.OptionError.of("badRecords", "ignore", ["fail", "skip"])
    assert str(error) == "option badRecords='ignore' is not valid; valid: fail, skip"
    assert isinstance(error, ValueError)


@pytest.mark.parametrize(
    "kind",
    [errors.UnsupportedLayout, errors.TableError, errors.TableBusy, errors.RunFailed],
)
def test_errors_are_of_the_tree_and_cross_processes(kind: type[Exception]) -> None:
    error = pickle.loads(pickle.dumps(kind("a sentence")))  # noqa: S301
    assert type(error) is kind
    assert isinstance(error, errors.SparkSourceError)
    assert str(error) == "a sentence"


def _of_spark(text: str) -> Any:
    return PySparkException(message=text)


def test_an_error_of_ours_is_found_in_what_spark_says() -> None:
    text = """
[PYTHON_DATA_SOURCE_ERROR] Failed to read: Traceback (most recent call last):
  File "x.py", line 1, in read
txrocketmq.spark.arrow.errors.BadRecordError: the record at 17 of /s/commitlog/0 is damaged: crc
    at org.apache.spark.SomeClass
"""
    assert errors.cause(_of_spark(text)) == "the record at 17 of /s/commitlog/0 is damaged: crc"


def test_an_error_of_python_is_its_last_line() -> None:
    text = (
        "[X] Failed: Traceback (most recent call last):\n  File 'a', line 1\nOSError: full\n at b"
    )
    assert errors.cause(_of_spark(text)) == "OSError: full"


def test_other_errors_are_their_first_line() -> None:
    assert errors.cause(_of_spark("\n[OOM] no memory\n at line 1")) == "[OOM] no memory"
    assert errors.cause(ValueError()) == "ValueError"
