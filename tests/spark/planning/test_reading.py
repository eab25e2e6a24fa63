# SPDX-License-Identifier: Apache-2.0
"""Messages without pyspark. What conditions and options choose: test_batch.py, test_plan.py."""

from __future__ import annotations

import json
import pickle
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.broker.store.batches import batched, kind_of, plain
from tests.broker.store.conftest import NOW_MS, SMALL
from tests.spark.predicates import where
from tests.spark.stores import Draft, StoreWriter, write_store
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.put_message import MULTI_DISPATCH, PutStatus
from txrocketmq.broker.store.message_store import MessageStore
from txrocketmq.remoting.message.compression import CompressionType
from txrocketmq.remoting.message.properties import INNER_MULTI_DISPATCH, encode_properties
from txrocketmq.spark.arrow.schema import MESSAGES
from txrocketmq.spark.columns.output import Output
from txrocketmq.spark.options.options import SourceOptions
from txrocketmq.spark.options.where import Predicate
from txrocketmq.spark.planning.reading import Reading


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


def test_parts_are_the_whole(tmp_path: Path) -> None:
    write_store(tmp_path, [Draft(topic=topic) for topic in "abab"])
    reading = _reading(tmp_path, minPartitions="3")
    assert len(reading.parts()) > 1
    assert sorted(_topics(reading)) == list("aabb")
    assert reading.schema.names == ["topic"]
    assert _topics(_reading(tmp_path, where="topic = 'a'")) == ["a", "a"]
    assert _topics(_reading(tmp_path, where="topic = 'b'")) == ["b", "b"]


@pytest.mark.parametrize("step", [{}, {"clockStepMs": "0"}])
def test_conditions_go_by_the_zone_that_tasks_know(tmp_path: Path, step: dict[str, str]) -> None:
    writer = StoreWriter(tmp_path / "s", segment_bytes=512)
    stored = writer.put_all(Draft(str(hour), after_ms=3_600_000) for hour in range(60))
    in_tokyo = datetime.fromtimestamp(stored[30].store_timestamp / 1000, UTC) + timedelta(hours=9)
    text = f"storeTimestamp >= '{in_tokyo:%Y-%m-%dT%H:%M:%S}' AND bornTimestamp > 0"
    options = SourceOptions.of(
        {"storePath": str(writer.root), "columns": "topic", "where": text, **step}
    )
    made = Reading(replace(options, tasks_know_zone=True), Output.of(options))
    parts = made.parts()
    made.use_zone("Asia/Tokyo")
    rows = [
        row["topic"] for part in parts for batch in made.batches(part) for row in batch.to_pylist()
    ]
    assert rows == [str(hour) for hour in range(30, 60)]


def test_no_pyspark_is_needed() -> None:
    program = (
        "import sys; sys.modules['pyspark'] = None\n"
        "import txrocketmq.spark.planning.reading, txrocketmq.spark.tables.reading"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


READ = """
import json, sys
from txrocketmq.spark.options.options import SourceOptions
from txrocketmq.spark.columns.output import Output
from txrocketmq.spark.planning.reading import Reading
options = SourceOptions.of(json.loads(sys.argv[1]))
reading = Reading(options, Output.of(options))
rows = sum(len(batch) for part in reading.parts() for batch in reading.batches(part))
assert rows == int(sys.argv[2]), rows
assert "pandas" not in sys.modules, "reading has imported pandas"
"""
ALL = ",".join(column.name for column in MESSAGES)


@pytest.mark.parametrize(
    ("options", "rows"),
    [
        ({"columns": ALL}, 7),
        ({"columns": ALL, "propertiesFormat": "json", "verify": "crc"}, 7),
        ({"columns": "partition,timestampType,headers", "kafkaNames": "true"}, 7),
        ({"columns": ALL, "topic": "T", "subExpression": "A || B"}, 1),
        (
            {"columns": ALL, "topic": "Inner", "startingOffsets": '{"Inner":{"broker-a":{"0":2}}}'},
            1,
        ),
        ({"columns": ALL, "topic": "%LMQ%a"}, 1),
    ],
)
def test_pandas_is_not_imported_as_it_would_take_memory_in_each_worker(
    tmp_path: Path, options: dict[str, str], rows: int
) -> None:
    writer = StoreWriter(tmp_path / "broker-a")
    writer.put(Draft("T", 0, b"body", {"TAGS": "A", "KEYS": "k", "a-long-property-name": "é"}))
    writer.put(Draft("T", 1, b"body" * 99, compression=CompressionType.ZLIB, born_ipv6=True))
    writer.put(Draft("T", 1, b"x", raw_properties=b"bad\xff\x01\xff\x02"))
    writer.put(Draft("T", 2, b"light", light=("%LMQ%a",)))
    writer.put(Draft("Inner", 0, inner=((b"0", {}), (b"1", {"TAGS": "A"}), (b"2", {}))))
    given = json.dumps({"storePath": str(tmp_path / "broker-a"), **options})
    subprocess.run([sys.executable, "-c", READ, given, str(rows)], check=True)


LIGHT = ("%LMQ%a", "%LMQ%b")


@pytest.fixture
def light(tmp_path: Path) -> StoreWriter:
    """Two light queues, and one to which a message was sent as to a topic."""
    writer = StoreWriter(tmp_path / "s", segment_bytes=8192)
    for number in range(120):
        tags = {"TAGS": "A" if number % 2 else "B"}
        light = tuple(n for n, each in zip(LIGHT, (3, 5), strict=True) if number % each == 0)
        writer.put(Draft(f"T{number % 2}", number % 4, b"%d" % number, tags, light=light))
    writer.put(Draft(LIGHT[1], 0, b"120"))
    return writer


def _seen(
    writer: StoreWriter, filters: Sequence[Predicate] = (), /, **options: str
) -> list[tuple[Any, ...]]:
    """Topic, queue, offset and number of each message."""
    columns = "topic,queueId,queueOffset,body"
    reading = _reading(
        writer.root, **{"columns": columns, "batchBytes": "4k", **options, **where(filters)}
    )
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
    assert sorted(_seen(light, topic="%LMQ%b,%LMQ%a")) == of_a + of_b
    assert sorted(_seen(light, topic="%LMQ%a", maxRecordsPerPartition="7")) == of_a
    assert _seen(light, topic="%LMQ%a", subExpression="A") == [o for o in of_a if o[3] % 2]
    asked = '{"%LMQ%a": {"s": {"0": 30}}}'
    assert _seen(light, topic="%LMQ%a", startingOffsets=asked) == of_a[30:]
    both = _seen(light, topic="T1,%LMQ%b")
    assert sorted(each for each in both if each[0] != "T1") == of_b
    assert sum(each[0] == "T1" for each in both) == 60
    assert _seen(light, topic="%LMQ%none") == []
    assert sorted(_seen(light, topicPattern="%LMQ%.*")) == of_a + of_b
    assert _seen(light, topicPattern="%LMQ%[b-z]") == of_b
    assert _seen(light, topicPattern="%LMQ%c.*") == []
    assert _seen(light, topicPattern=".*") == _seen(light), "each once, where it was sent"


def test_conditions_are_of_the_light_queue(light: StoreWriter) -> None:
    everything = _seen(light, topic="T1,%LMQ%b")
    for one, holds in (
        (Predicate("topic", "=", ("%LMQ%b",)), lambda row: row[0] == "%LMQ%b"),
        (Predicate("topic", "=", ("T1",)), lambda row: row[0] == "T1"),
        (Predicate("queueId", "=", (0,)), lambda row: row[1] == 0),
        (Predicate("queueOffset", "=", (7,)), lambda row: row[2] == 7),
    ):
        assert sorted(_seen(light, [one], topic="T1,%LMQ%b")) == sorted(filter(holds, everything))


def test_without_queues_in_files_light_queues_are_read_by_the_log(light: StoreWriter) -> None:
    chosen = [{"topic": "%LMQ%a"}, {"topic": "T1,%LMQ%b"}, {"topic": "%LMQ%b,%LMQ%a"}]
    chosen += [{**each, "subExpression": "A"} for each in chosen]
    chosen += [{**each, "minPartitions": "7"} for each in chosen]
    by_queues = [sorted(_seen(light, (), **each)) for each in chosen]
    beyond = [Predicate("queueOffset", ">", (9,))]
    narrowed = sorted(_seen(light, beyond, topic="T1,%LMQ%b"))
    shutil.rmtree(light.root / "consumequeue")
    assert [sorted(_seen(light, (), **each)) for each in chosen] == by_queues
    assert sorted(_seen(light, beyond, topic="T1,%LMQ%b")) == narrowed


Shown = list[tuple[str, int, int, bytes]]


def _shown(root: Path, filters: Sequence[Predicate] = (), /, **options: str) -> Shown:
    """As `_seen`, of any store; in the order of the log."""
    columns = "topic,queueId,queueOffset,body,physicalOffset"
    reading = _reading(root, **{"brokerName": "s", "columns": columns, **options, **where(filters)})
    rows = [
        tuple(row.values())
        for part in reading.parts()
        for batch in reading.batches(part)
        for row in batch.to_pylist()
    ]
    return [row[:4] for row in sorted(rows, key=lambda row: row[4])]


def _at(offset: int) -> str:
    return json.dumps({"Batches": {"s": {"0": offset}}})


def test_batches_that_a_broker_wrote(tmp_path: Path) -> None:
    """Records of a topic of batches: several messages each, or one."""
    settings = {**SMALL, "mapper_file_size_batch_consume_queue": 10 * 46}
    store = MessageStore(StoreConfig(store_path_root_dir=str(tmp_path), **settings))
    store.load(NOW_MS, kind_of=kind_of)
    rows: Shown = []
    for number in range(60):
        count = number % 4
        bodies = [b"%d-%d" % (number, each) for each in range(count)]
        message = plain("Batches", b"%d" % number)
        (put,) = store.put([batched(message, bodies) if count else message], NOW_MS + number)
        assert (put.status, put.queue_offset) == (PutStatus.PUT_OK, len(rows))
        store.put([plain("Other", bytes(500))] * 9, NOW_MS + number)
        for body in bodies or [b"%d" % number]:
            rows.append(("Batches", 0, len(rows), body))
    store.stop(NOW_MS + 60)
    assert _shown(tmp_path, topic="Batches") == rows
    assert [row for row in _shown(tmp_path) if row[0] == "Batches"] == rows
    assert _shown(tmp_path, [Predicate("topic", "=", ("Batches",))]) == rows
    assert _shown(tmp_path, verify="store", topicPattern="B.*") == rows
    for low in (0, 1, 5, 30, 41):
        at = {"startingOffsets": _at(low), "topic": "Batches"}
        assert _shown(tmp_path, (), **at) == rows[low:]
        few = {**at, "endingOffsets": _at(low + 7)}
        assert _shown(tmp_path, (), **few) == rows[low : low + 7]
        beyond = [Predicate("queueOffset", ">", (low,))]
        assert _shown(tmp_path, beyond, topic="Batches") == rows[low + 1 :]


def test_light_queues_that_a_broker_wrote(tmp_path: Path) -> None:
    config = StoreConfig(store_path_root_dir=str(tmp_path), **SMALL)
    config = replace(config, enable_lmq=True, enable_multi_dispatch=True)
    store = MessageStore(config)
    store.load(NOW_MS)
    rows: dict[str, Shown] = {name: [] for name in LIGHT}
    for number in range(60):
        names = [name for name, each in zip(LIGHT, (2, 3), strict=True) if not number % each]
        body = b"%d" % number
        message = plain("T", body)
        if names:
            text = encode_properties({INNER_MULTI_DISPATCH: ",".join(names)}).encode()
            message = message._replace(properties=text, sys_flag=MULTI_DISPATCH)
        (put,) = store.put([message], NOW_MS + number)
        assert put.status is PutStatus.PUT_OK
        for name in names:
            rows[name].append((name, 0, len(rows[name]), body))
    store.stop(NOW_MS + 60)
    for name in LIGHT:
        assert _shown(tmp_path, topic=name) == rows[name]
    shutil.rmtree(tmp_path / "consumequeue")
    for name in LIGHT:
        assert _shown(tmp_path, topic=name) == rows[name]
