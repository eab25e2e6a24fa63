# SPDX-License-Identifier: Apache-2.0
"""Spark's own Delta reads what ingest wrote.

A release of delta-spark belongs to one release of Spark, and follows it after some time. So Spark
and its Delta are those of another environment, which DELTA_SPARK_PYTHON names:

    python -m venv /tmp/delta && /tmp/delta/bin/pip install delta-spark==4.4.0
    DELTA_SPARK_PYTHON=/tmp/delta/bin/python pytest tests/engine/test_ingest_delta.py
"""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests.spark.ingest.stores_and_tables import rows, run, store_of
from tests.spark.stores import Draft

PYTHON = os.environ.get("DELTA_SPARK_PYTHON")
TOPICS = ("Orders", "%RETRY%group", "a|b", "Größe/ß:+")
PROGRAM = """
import json, sys
from delta import configure_spark_with_delta_pip
from pyspark.sql import SparkSession

builder = (
    SparkSession.builder.master("local[1]")
    .config("spark.ui.enabled", "false")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.sql.session.timeZone", "UTC")
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config(
        "spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"
    )
)
spark = configure_spark_with_delta_pip(builder).getOrCreate()
table = spark.read.format("delta").load(sys.argv[1])
rows = table.selectExpr("topic", "cast(dt AS string)", "physicalOffset").collect()
counts = {name: table.where(table.topic == name).count() for name in sys.argv[2:]}
spark.sql(f"OPTIMIZE delta.`{sys.argv[1]}`")
again = spark.read.format("delta").load(sys.argv[1]).count()
print("FOUND", json.dumps([[list(row) for row in rows], counts, again]))
"""


@pytest.mark.skipif(
    PYTHON is None,
    reason="delta-spark 4.4.0, the newest one, is made for Spark up to 4.2: DELTA_SPARK_PYTHON has"
    " to name the Python of an environment that has it",
)
@pytest.mark.timeout(600)
def test_spark_reads_it_as_delta(tmp_path: Path) -> None:
    store = store_of(tmp_path / "broker-a", 0)
    store.put_all(
        Draft(topic=TOPICS[number % 4], after_ms=4_000_000, body=b"%d" % number)
        for number in range(60)
    )
    table = tmp_path / "table"
    run([store.root], table)
    assert PYTHON is not None
    command = [PYTHON, "-c", PROGRAM, str(table), *TOPICS]
    environment = {**os.environ, "PYSPARK_PYTHON": PYTHON}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    found, counts, again = json.loads(done.stdout.partition("FOUND ")[2])
    assert sorted(place for _, _, place in found) == [each.physical_offset for each in store.stored]
    assert counts == Counter(each.draft.topic for each in store.stored)
    assert len({day for _, day, _ in found}) > 2
    assert again == 60
    store.put_all([Draft(topic="Orders")])
    run([store.root], table)
    assert len(rows(table)) == 61, "what Spark has compacted is still a table of ingest"
