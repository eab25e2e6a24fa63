# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
import sys

import pytest
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from txrocketmq import spark as package
from txrocketmq.spark.arrow.errors import SparkSourceError
from txrocketmq.spark.session import check_session, session


class Builder:
    """Stands for `SparkSession.builder` and for the session it makes."""

    def __init__(self, error: Exception | None = None) -> None:
        self.settings: dict[str, str] = {}
        self.error = error
        self.stopped = False

    def appName(self, name: str) -> Builder:  # noqa: N802 - as Spark's
        return self

    def config(self, key: str, value: str) -> Builder:
        self.settings[key] = value
        return self

    def getOrCreate(self) -> Builder:  # noqa: N802 - as Spark's
        if self.error:
            raise self.error
        return self

    def stop(self) -> None:
        self.stopped = True


@pytest.fixture
def builder(monkeypatch: pytest.MonkeyPatch) -> Builder:
    """The builder that the session is made with."""
    made = Builder()
    monkeypatch.setattr(SparkSession, "builder", made)
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    return made


def test_spark_submit_chooses_master_and_settings(builder: Builder) -> None:
    with session("name") as spark:
        assert spark is builder
        assert builder.settings == {"spark.sql.session.timeZone": "UTC"}
        assert os.environ["PYSPARK_PYTHON"] == sys.executable
        assert not builder.stopped
    assert builder.stopped


def test_a_session_that_does_not_start_says_what_it_needs(builder: Builder) -> None:
    builder.error = PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={})
    with pytest.raises(SparkSourceError, match="needs Java 17"), session("name"):
        pytest.fail("it started")


def test_a_session_is_stopped_after_an_error(builder: Builder) -> None:
    with pytest.raises(ImportError, match="no pyarrow"), session("name"):
        raise ImportError("no pyarrow")
    assert builder.stopped


class Session:
    """Has the settings of a session."""

    conf: object = None


def test_what_is_no_session_is_refused() -> None:
    check_session(Session())
    for call in (package.register, package.check_workers):
        with pytest.raises(TypeError, match=r"spark must be a SparkSession, not 'local' \(str\)"):
            call("local")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="tasks must be int, not '3'"):
        package.check_workers(Session(), "3")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="tasks must be at least 1, not 0"):
        package.check_workers(Session(), 0)  # type: ignore[arg-type]
