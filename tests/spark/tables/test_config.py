# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.spark.stores import SCHEDULE_TOPIC, Draft, StoreWriter
from tests.spark.tables.rows import rows_of


@pytest.fixture
def writer(tmp_path: Path) -> StoreWriter:
    writer = StoreWriter(tmp_path / "broker-a", segment_bytes=2048)
    for _ in range(30):
        writer.put(Draft("Orders", 0))
    writer.put(Draft("Orders", 1))
    for _ in range(3):
        writer.put(Draft(SCHEDULE_TOPIC, 2, properties={"DELAY": "3"}))
    writer.write_config(
        offsets={"Orders@g": {0: 5, 1: 1, 9: 4}, "Orders@h": {0: 99}, "%RETRY%g@g": {0: 0}},
        delay_offsets={3: 1, 7: 2},
        groups=("g", "h"),
    )
    return writer


def test_topics(writer: StoreWriter) -> None:
    rows = {row["topic"]: row for row in rows_of(writer.root, "topics")}
    assert set(rows) == {"Orders", SCHEDULE_TOPIC}
    assert rows["Orders"]["perm"] == "RW-"
    assert rows["Orders"]["readQueues"] == 4
    assert rows[SCHEDULE_TOPIC]["system"]
    assert not rows["Orders"]["system"]
    assert [row["topic"] for row in rows_of(writer.root, "topics", topic="Orders")] == ["Orders"]


def test_attributes_of_golden_topics(golden_store: Callable[[str], Path]) -> None:
    rows = {row["topic"]: row for row in rows_of(golden_store("5.4.0") / "clean", "topics")}
    assert rows["RMQ_SYS_TRANS_HALF_TOPIC"]["system"]
    assert {row["perm"] for row in rows.values()} <= {"RW-", "RWX", "R-X", "R--", "--X"}


def test_groups(writer: StoreWriter) -> None:
    rows = rows_of(writer.root, "groups")
    assert [(row["group"], row["consumeEnable"]) for row in rows] == [("g", True), ("h", True)]
    assert rows[0]["retryMaxTimes"] is None, "what the file does not say is not invented"


def test_offsets_and_lag(writer: StoreWriter) -> None:
    writer.delete_segment()
    left = [s for s in writer.stored[:30] if s.physical_offset >= 2048]
    first = left[0].queue_offset
    rows = {
        (row["group"], row["topic"], row["queueId"]): row for row in rows_of(writer.root, "offsets")
    }
    assert len(rows) == 5
    lagging = rows["g", "Orders", 0]
    assert (lagging["offset"], lagging["minOffset"], lagging["maxOffset"]) == (5, first, 30)
    assert lagging["lag"] == 25, "what was deleted unread counts"
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=left[0].store_timestamp)
    assert lagging["oldestUnread"] == moment
    assert rows["g", "Orders", 1]["lag"] == 0
    assert rows["g", "Orders", 1]["oldestUnread"] is None
    assert rows["h", "Orders", 0]["lag"] == 0, "an offset beyond the end is no negative lag"
    assert rows["g", "%RETRY%g", 0]["maxOffset"] == 0, "no message has come"


def test_offsets_of_a_broker_with_light_queues(tmp_path: Path) -> None:
    """Such a broker keeps them in another file; those of light queues are among them."""
    writer = StoreWriter(tmp_path / "broker-a")
    writer.put_all([*(Draft("Orders", 0) for _ in range(5)), *(Draft("%LMQ%x") for _ in range(4))])
    writer.write_config()
    config = writer.root / "config"
    (config / "consumerOffset.json").unlink()
    content = {"offsetTable": {"Orders@g": {0: 2}}, "lmqOffsetTable": {"%LMQ%x@%LMQ%x": 3}}
    (config / "lmqConsumerOffset.json").write_text(json.dumps(content))
    rows = rows_of(writer.root, "offsets")
    assert [(row["group"], row["topic"], row["queueId"], row["lag"]) for row in rows] == [
        ("%LMQ%x", "%LMQ%x", 0, 1), ("g", "Orders", 0, 3),
    ]  # fmt: skip
    moment = datetime(1970, 1, 1, tzinfo=UTC)
    stored = moment + timedelta(milliseconds=writer.stored[2].store_timestamp)
    assert rows[1]["oldestUnread"] == stored


def test_how_far_delay_levels_are(writer: StoreWriter) -> None:
    rows = rows_of(writer.root, "delayoffsets")
    assert [tuple(row.values())[1:-1] for row in rows] == [(3, 1, 3, 2), (7, 2, 0, 0)]
