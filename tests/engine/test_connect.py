# SPDX-License-Identifier: Apache-2.0
"""The source through Spark Connect: a server of its own, and a client that has no JVM.

In a process of its own, since a session of the classic kind keeps Connect from starting. Skipped
where the packages of `pyspark[connect]` are not installed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.spark.stores import Draft, StoreWriter

NEEDED = ("grpc", "grpc_status", "google.rpc", "pandas", "zstandard")
PROGRAM = """
import json, sys
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from txrocketmq.spark import check_workers, register
path, warehouse = sys.argv[1:]
spark = (SparkSession.builder.remote("local[2]").config("spark.sql.warehouse.dir", warehouse)
         .config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "2")
         .getOrCreate())
register(spark)
found = {"session": type(spark).__module__}
frame = spark.read.format("rocketmq").load(path)
found["read"] = frame.count()
found["where"] = frame.where("queueOffset < 3").count()
spark.sql(f"CREATE TABLE kept USING rocketmq OPTIONS (STOREPATH '{path}', Topic 'Topic',"
          " columns 'topic,queueOffset')")
spark.sql(f"CREATE TABLE listed (topic STRING) USING rocketmq OPTIONS (storePath '{path}')")
spark.sql(f"CREATE TEMPORARY VIEW seen (topic STRING) USING rocketmq OPTIONS (storePath '{path}')")
found["described"] = [row["col_name"] for row in spark.sql("DESCRIBE kept").collect()]
found["kept"] = spark.sql("SELECT * FROM kept WHERE queueOffset >= 3").count()
found["seen"] = spark.table("seen").count()
try:
    spark.table("listed").count()
except PySparkException as error:
    found["listed"] = str(error)
check_workers(spark, 2)
print(json.dumps(found))
spark.stop()
"""


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


@pytest.mark.skipif(
    not all(map(_is_there, NEEDED)), reason="pip install 'pyspark[connect]' lets this run"
)
def test_reads_and_tables(tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path / "store")
    writer.put_all(Draft() for _ in range(7))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(writer.root), str(tmp_path / "warehouse")],
        cwd=tmp_path,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert "connect" in found["session"]
    assert (found["read"], found["where"], found["kept"], found["seen"]) == (7, 3, 4, 7)
    assert found["described"] == ["topic", "queueOffset"]
    assert "with a list of columns: create it without one" in found["listed"]
