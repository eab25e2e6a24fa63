# SPDX-License-Identifier: Apache-2.0
"""Messages without pyspark. What conditions and options choose: test_batch.py, test_plan.py."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

from pyspark.sql.datasource import EqualTo

from tests.spark.stores import Draft, write_store
from txrocketmq.spark.conditions import Conditions
from txrocketmq.spark.options import SourceOptions
from txrocketmq.spark.output import Output
from txrocketmq.spark.reading import Reading


def _reading(root: Path, **options: str) -> Reading:
    parsed = SourceOptions.of({"storePath": str(root), "columns": "topic", **options})
    return Reading(parsed, Output.of(parsed))


def _topics(reading: Reading) -> list[str]:
    reading = pickle.loads(pickle.dumps(reading))  # noqa: S301 - as it travels
    return [
        row["topic"]
        for part in pickle.loads(pickle.dumps(reading.parts()))  # noqa: S301 - likewise
        for batch in reading.batches(part)
        for row in batch.to_pylist()
    ]


def test_parts_are_the_whole_and_conditions_of_a_call_replace_those_before(tmp_path: Path) -> None:
    write_store(tmp_path, [Draft(topic=topic) for topic in "abab"])
    reading = _reading(tmp_path, minPartitions="3")
    assert len(reading.parts()) > 1
    assert sorted(_topics(reading)) == list("aabb")
    assert reading.schema.names == ["topic"]
    reading.narrow(Conditions.of([EqualTo(("topic",), "a")]))
    assert _topics(reading) == ["a", "a"]
    reading.narrow(Conditions.of([EqualTo(("topic",), "b")]))
    assert _topics(reading) == ["b", "b"]


def test_no_pyspark_is_needed() -> None:
    program = (
        "import sys; sys.modules['pyspark'] = None\n"
        "import txrocketmq.spark.reading, txrocketmq.spark.tables.reading"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
