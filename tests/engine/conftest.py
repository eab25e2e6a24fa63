# SPDX-License-Identifier: Apache-2.0
"""A Spark session for tests that need Spark's engine; skipped, with the reason, without Java 17."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

JAVA_VERSION = 17
# Tests run each plan once or twice, so that compiling it again and better costs more than it saves.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
_NUMBERS = itertools.count(1)


def _why_no_spark() -> str | None:
    home = os.environ.get("JAVA_HOME")
    java = shutil.which(f"{home}/bin/java" if home else "java")
    if java is None:
        return f"Spark needs Java {JAVA_VERSION} or later, and no java is on the PATH"
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(\d+)', said)
    if version is None or int(version[1]) < JAVA_VERSION:
        return f"Spark needs Java {JAVA_VERSION} or later; {java} is {said.splitlines()[:1]}"
    return None


@pytest.fixture(scope="session", autouse=True)
def java() -> None:
    """Skips all tests here if Spark cannot run."""
    reason = _why_no_spark()
    if reason:
        pytest.skip(reason)


@pytest.fixture(scope="session")
def spark(java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One local session with two task slots; the source `rocketmq` is registered."""
    from txrocketmq.spark import register  # noqa: PLC0415 - after the check for Java

    scratch: Path = tmp_path_factory.mktemp("spark")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2]")
        .appName("tests")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.local.dir", str(scratch / "local"))
        .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    register(session)
    yield session
    session.stop()


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """The name of a topic that no other test, and no earlier attempt at the same one, has."""
    return f"{request.node.name.replace('test_', '')[:60]}-{next(_NUMBERS)}"
