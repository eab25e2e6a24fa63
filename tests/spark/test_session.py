# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
import signal
import sys
import threading

import pytest
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from txrocketmq.spark.errors import SparkSourceError
from txrocketmq.spark.session import LOCAL, session


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
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    return made


def test_a_session_on_this_machine(builder: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    with session("name") as spark:
        assert spark is builder
        assert builder.settings == {**LOCAL, "spark.sql.session.timeZone": "UTC"}
        assert os.environ["PYSPARK_PYTHON"] == sys.executable
        assert not builder.stopped
    assert builder.stopped


def test_a_jvm_of_ours_gets_more_options(builder: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    key = "spark.driver.extraJavaOptions"
    with session("name", "-Xmn1m"):
        assert builder.settings[key] == f"{LOCAL[key]} -Xmn1m"
    builder.settings.clear()
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    with session("name", "-Xmn1m"):
        assert key not in builder.settings


def test_spark_submit_chooses_master_and_settings(
    builder: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    with session("name"):
        assert builder.settings == {"spark.sql.session.timeZone": "UTC"}


def test_a_session_that_does_not_start_says_what_it_needs(builder: Builder) -> None:
    builder.error = PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={})
    with pytest.raises(SparkSourceError, match="needs Java 17"), session("name"):
        pytest.fail("it started")


def test_a_session_is_stopped_after_an_error(builder: Builder) -> None:
    with pytest.raises(ImportError, match="no pyarrow"), session("name"):
        raise ImportError("no pyarrow")
    assert builder.stopped


def test_an_interrupt_of_its_start_is_taken_afterwards(
    builder: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the middle it would leave a JVM behind; in the main thread Spark sets its own handler."""
    began: list[bool] = []

    def started() -> Builder:
        os.kill(os.getpid(), signal.SIGINT)
        began.append(threading.current_thread() is not threading.main_thread())
        return builder

    before = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr(builder, "getOrCreate", started)
    with pytest.raises(KeyboardInterrupt), session("name"):
        pytest.fail("it was interrupted")
    assert began == [True]
    assert builder.stopped
    assert signal.getsignal(signal.SIGINT) is before
