# SPDX-License-Identifier: Apache-2.0
"""Messages without pyspark. What conditions and options choose: test_batch.py, test_plan.py."""

from __future__ import annotations

import pickle
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.datasource import EqualTo

from tests.spark.stores import Draft, StoreWriter, write_store
from txrocketmq.remoting.message.tags import tags_code
from txrocketmq.spark.conditions import Conditions
from txrocketmq.spark.errors import UnsupportedLayout
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


LIGHT = ("%LMQ%a", "%LMQ%b")


@pytest.fixture
def light(tmp_path: Path) -> StoreWriter:
    """Two light queues, and one to which a message was sent as to a topic."""
    writer = StoreWriter(tmp_path / "s", segment_bytes=8192)
    for number in range(120):
        tags = "A" if number % 2 else "B"
        draft = Draft(f"T{number % 2}", number % 4, b"%d" % number, {"TAGS": tags})
        stored = writer.put(draft)
        for name, each in zip(LIGHT, (3, 5), strict=True):
            if number % each == 0:
                seen = replace(draft, topic=name, queue_id=0)
                unit = stored._replace(draft=seen, queue_offset=writer._next[name, 0])
                writer._write_unit(unit, tags_code(tags))
                writer._next[name, 0] += 1
    writer.put(Draft(LIGHT[1], 0, b"120"))
    return writer


def _seen(
    writer: StoreWriter, filters: Sequence[Any] = (), **options: str
) -> list[tuple[Any, ...]]:
    """Topic, queue, offset and number of each message."""
    columns = "topic,queueId,queueOffset,body"
    reading = _reading(writer.root, **{"columns": columns, "batchBytes": "4k", **options})
    reading.narrow(Conditions.of(filters))
    return [
        (row["topic"], row["queueId"], row["queueOffset"], int(row["body"]))
        for part in reading.parts()
        for batch in reading.batches(part)
        for row in batch.to_pylist()
    ]


def test_a_light_queue_is_read_as_its_consumers_see_it(light: StoreWriter) -> None:
    of_a = [("%LMQ%a", 0, at, number) for at, number in enumerate(range(0, 120, 3))]
    of_b = [("%LMQ%b", 0, at, number) for at, number in enumerate(range(0, 121, 5))]
    assert _seen(light, topic="%LMQ%a") == of_a
    assert _seen(light, topic="%LMQ%b,%LMQ%a") == of_a + of_b
    assert sorted(_seen(light, topic="%LMQ%a", maxRecordsPerPartition="7")) == of_a
    assert _seen(light, topic="%LMQ%a", subExpression="A") == [o for o in of_a if o[3] % 2]
    asked = '{"%LMQ%a": {"s": {"0": 30}}}'
    assert _seen(light, topic="%LMQ%a", startingOffsets=asked) == of_a[30:]
    both = _seen(light, topic="T1,%LMQ%b")
    assert sorted(each for each in both if each[0] != "T1") == of_b
    assert sum(each[0] == "T1" for each in both) == 60
    assert _seen(light, topic="%LMQ%none") == []


def test_conditions_are_of_the_light_queue(light: StoreWriter) -> None:
    everything = _seen(light, topic="T1,%LMQ%b")
    for one, holds in (
        (EqualTo(("topic",), "%LMQ%b"), lambda row: row[0] == "%LMQ%b"),
        (EqualTo(("topic",), "T1"), lambda row: row[0] == "T1"),
        (EqualTo(("queueId",), 0), lambda row: row[1] == 0),
        (EqualTo(("queueOffset",), 7), lambda row: row[2] == 7),
    ):
        assert sorted(_seen(light, [one], topic="T1,%LMQ%b")) == sorted(filter(holds, everything))


def test_a_light_queue_needs_queues_in_files(light: StoreWriter) -> None:
    shutil.rmtree(light.root / "consumequeue")
    with pytest.raises(UnsupportedLayout, match="light queues need consume queue files"):
        _reading(light.root, topic="%LMQ%a")
