# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import errno
import os
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


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (errors.TableError("a table,  as it is"), "a table,  as it is"),
        (OSError("no device"), "no device"),
        (OSError(errno.ENOSPC, "No space left on device", "/t/a"), "/t/a: No space left on device"),
        (
            OSError("File error\n   \x1b[31m\u21b3\x1b[0m Unable to open /t\n \u21b3 denied\n\n"),
            "File error: Unable to open /t: denied",
        ),
        (errors.TableError("/t could not be made:\nError: 13"), "/t could not be made: Error: 13"),
        (
            PermissionError(errno.EACCES, "Permission denied", "/t/a"),
            (
                f"/t/a may not be written by this process, whose user has the id {os.geteuid()}:"
                " give that user the right to write there, or name another place"
            ),
        ),
    ],
)
def test_errors_for_people_are_a_line(error: Exception, said: str) -> None:
    assert errors.in_a_line(error) == said
