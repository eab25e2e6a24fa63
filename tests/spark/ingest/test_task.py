# SPDX-License-Identifier: Apache-2.0
"""What is in the table after its tasks; the order of a run is in test_job.py."""

from __future__ import annotations

import base64
import pickle
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from tests.spark.ingest.stores_and_tables import (
    SETTINGS,
    job_of,
    keys,
    keys_of,
    quarantined,
    rows,
    run,
)
from tests.spark.stores import START_MS, Draft, StoreWriter
from txrocketmq.remoting.message.compression import CompressionType
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.spark.ingest.copy_plan import Wishes
from txrocketmq.spark.ingest.runners.runner import run_here
from txrocketmq.spark.ingest.settings import chosen_columns
from txrocketmq.spark.ingest.verification import verify

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.fixture
def store(tmp_path: Path) -> StoreWriter:
    return StoreWriter(tmp_path / "broker-a", segment_bytes=8192)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "table"


def _golden_row(message: dict[str, Any]) -> dict[str, Any]:
    return {
        "topic": message["topic"],
        "queueId": message["queueId"],
        "queueOffset": message["queueOffset"],
        "physicalOffset": message["commitLogOffset"],
        "storeSize": message["storeSize"],
        "bodyCRC": message["bodyCRC"],
        "flag": message["flag"],
        "bornTimestamp": EPOCH + timedelta(milliseconds=message["bornTimestamp"]),
        "storeTimestamp": EPOCH + timedelta(milliseconds=message["storeTimestamp"]),
        "reconsumeTimes": message["reconsumeTimes"],
        "body": base64.b64decode(message["bodyBase64"]),
    }


def test_a_golden_store_is_in_the_table_as_its_client_saw_it(
    golden_version: str,
    golden_store: Callable[[str], Path],
    golden_messages: Callable[[str], list[dict[str, Any]]],
    table: Path,
) -> None:
    run([golden_store(golden_version) / "clean"], table)
    found = {(row["topic"], row["queueId"], row["queueOffset"]): row for row in rows(table)}
    assert len(found) == len(rows(table))
    for message in golden_messages(golden_version):
        expected = _golden_row(message)
        if expected["topic"].startswith(("SCHEDULE_TOPIC", "RMQ_SYS_")):
            continue
        row = found[expected["topic"], expected["queueId"], expected["queueOffset"]]
        assert {name: row[name] for name in expected} == expected
        assert row["dt"] == expected["storeTimestamp"].date()


def test_all_kinds_of_messages(store: StoreWriter, table: Path) -> None:
    store.put(Draft(body=b"x" * 200, compression=CompressionType.ZSTD))
    store.put(Draft(properties={"TAGS": "A", "k": "v"}, born_ipv6=True, store_ipv6=True))
    store.put(Draft(topic="Batches", inner=((b"1", {}), (b"2", {"TAGS": "B"}))))
    store.put(Draft(fakes=3))
    store.put(Draft(sys_flag=MessageSysFlag.TRANSACTION_PREPARED_TYPE))
    store.put(Draft(topic="SCHEDULE_TOPIC_XXXX"))
    (commit,) = run([store.root], table)
    assert (commit.records, commit.rows) == (6, 5)
    found = {(row["topic"], row["queueOffset"]): row for row in rows(table)}
    assert len(found) == 5
    assert found["Topic", 0]["body"] == b"x" * 200
    assert found["Topic", 1]["properties"] == {"TAGS": "A", "k": "v"}
    assert [found["Batches", offset]["body"] for offset in (0, 1)] == [b"1", b"2"]
    assert found["Topic", 2]["brokerName"] == "broker-a"


def test_light_queues_are_topics_of_their_own(store: StoreWriter, table: Path) -> None:
    settings = replace(SETTINGS, source=(("topic", "%LMQ%a,%LMQ%b,Orders"), ("view", "logical")))
    expected = []
    for number in range(40):
        light = ("%LMQ%b", "%LMQ%a")[: number % 3]
        topic = ("Orders", "Payments")[number % 2]
        offsets = [store._next[name, 0] for name in light]
        stored = store.put(Draft(topic, 1, body=b"x" * 200, light=light))
        expected += [(name, 0, at) for name, at in zip(light, offsets, strict=True)]
        expected += [(topic, 1, stored.queue_offset)] if topic == "Orders" else []
        if number == 20:
            commits = run([store.root], table, settings=settings, wishes=Wishes(split_bytes=3000))
            assert sum(commit.rows for commit in commits) == len(expected)
    run([store.root], table, settings=settings)
    assert keys(table) == sorted(expected)
    job = job_of([store.root], table, settings=settings)
    found = verify(job.table, job.stores, run_here)
    assert found.is_good, found.differences
    assert (found.messages, found.queues) == (len(expected), 3)


def test_the_physical_view_has_every_record(store: StoreWriter, table: Path) -> None:
    store.put(Draft(sys_flag=MessageSysFlag.TRANSACTION_PREPARED_TYPE))
    store.put(Draft(topic="SCHEDULE_TOPIC_XXXX"))
    settings = replace(SETTINGS, source=(("view", "physical"),), partition_by=())
    (commit,) = run([store.root], table, settings=settings)
    assert commit.rows == 2
    assert len(DeltaTable(table).file_uris()) == 1


def test_a_choice_of_topics_columns_and_days(store: StoreWriter, table: Path) -> None:
    store.put(Draft(topic="A", body=b"1"))
    store.put(Draft(topic="B", body=b"2"))
    store.put(Draft(topic="A", body=b"3", after_ms=86_400_000))
    settings = replace(
        SETTINGS,
        columns=chosen_columns(("body",)),
        partition_by=("dt",),
        source=(("topic", "A"), ("view", "logical")),
    )
    run([store.root], table, settings=settings)
    day = EPOCH + timedelta(milliseconds=START_MS)
    days = [each.date() for each in (day, day + timedelta(days=1))]
    assert sorted((row["dt"], row["topic"], row["body"]) for row in rows(table)) == [
        (days[0], "A", b"1"),
        (days[1], "A", b"3"),
    ]
    assert set(rows(table)[0]) == {*settings.columns, "dt"}


def _damage(store: StoreWriter, at: int, data: bytes) -> None:
    first = at // store.segment_bytes * store.segment_bytes
    with store.segment(first).open("r+b") as file:
        file.seek(at - first)
        file.write(data)


def test_damaged_records_are_kept_beside_the_table(store: StoreWriter, table: Path) -> None:
    store.put_all(Draft(body=b"%d" % number) for number in range(20))
    damaged = store.stored[7]
    _damage(store, damaged.physical_offset + 4, b"oops")
    (commit,) = run([store.root], table)
    (row,) = quarantined(table)
    assert row["physicalOffset"] == damaged.physical_offset
    assert row["length"] == damaged.size
    assert row["reason"] == "magic"
    assert row["brokerName"] == "broker-a"
    assert row["file"].endswith("/commitlog/00000000000000000000")
    assert row["data"][:8] == damaged.data[:4] + b"oops"
    assert commit.damaged == {"magic": 1}
    assert keys(table) == [key for key in keys_of(store) if key[2] != 7]


def test_bodies_can_be_held_against_their_crc(store: StoreWriter, table: Path) -> None:
    stored = store.put(Draft(body=b"body"))
    store.put(Draft())
    _damage(store, stored.physical_offset + stored.data.index(b"body"), b"BODY")
    (commit,) = run([store.root], table, wishes=Wishes(check_crc=True))
    assert commit.damaged == {"crc": 1}
    assert [row["queueOffset"] for row in rows(table)] == [1]


def test_many_damaged_records(store: StoreWriter, table: Path) -> None:
    store.put_all(Draft() for _ in range(200))
    for stored in store.stored[::2]:
        _damage(store, stored.physical_offset + stored.data.index(b"body"), b"BODY")
    run([store.root], table, wishes=Wishes(check_crc=True))
    assert len(quarantined(table)) == 100
    assert [row["queueOffset"] for row in rows(table)] == list(range(1, 200, 2))


def test_a_task_is_small_on_its_way(store: StoreWriter, table: Path) -> None:
    store.put_all(Draft(body=b"x" * 1000) for _ in range(100))
    job = job_of([store.root], table)
    plan = job.dry_run()
    assert plan is not None
    assert len(plan.splits) > 10
    tasks = job._tasks(plan)
    assert all(len(pickle.dumps(each)) < 3000 for each in tasks)
