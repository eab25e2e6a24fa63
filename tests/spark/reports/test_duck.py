# SPDX-License-Identifier: Apache-2.0
"""The reports' queries find what is in the messages; Spark's do in tests/engine/test_reports.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from tests.spark.reports.messages import START, after, messages, offsets, several, table
from txrocketmq.spark.arrow.errors import NotAStore, SparkSourceError, UnsupportedLayout
from txrocketmq.spark.reports import catalog, space
from txrocketmq.spark.reports.duck import Database, database
from txrocketmq.spark.reports.report import Report, parameters, run_all

Ask = Callable[..., list[dict[str, Any]]]
VALUES = parameters(after(3600), 20, 72)


@pytest.fixture
def empty() -> Iterator[Database]:
    with database() as made:
        yield made


def load(made: Database, name: str, frame: pa.Table) -> None:
    made.load(name, frame.schema, frame.to_batches())


@pytest.fixture
def ask() -> Ask:
    """Runs a report over messages; gives its rows."""

    def rows(
        report: Report, *stored: dict[str, Any], top: int = 20, **tables: pa.Table
    ) -> list[dict[str, Any]]:
        frame = messages(stored)
        known = table("topics", [{"topic": row.get("topic", "orders")} for row in stored])
        frames = {"records": frame, "dead_letters": frame, "topics": known, **tables}
        with database() as made:
            for name, each in frames.items():
                load(made, name, each)
            made.load_messages({"topic": "whichever"})
            found = made.run(report, parameters(after(3600), top, 72))
        return [dict(row) for row in found.rows]

    return rows


def test_overview_counts_each_broker(ask: Ask) -> None:
    rows = ask(
        catalog.OVERVIEW,
        *several(3),
        *several(2, brokerName="broker-b", storeSize=50, storeTimestamp=after(9)),
    )
    assert [(row["brokerName"], row["records"], row["bytes"]) for row in rows] == [
        ("broker-a", 3, 600),
        ("broker-b", 2, 100),
    ]
    assert rows[1]["first"] == rows[1]["last"] == after(9)


def test_lag_tells_what_is_unread_and_how_old_it_is(ask: Ask) -> None:
    read = offsets(
        ("late", "orders", 0, 7, 5, 10, after(7)),
        ("late", "orders", 1, 0, 0, 0, None),
        ("lost", "orders", 0, 2, 5, 10, after(5)),
        ("level", "orders", 0, 10, 5, 10, None),
    )
    rows = ask(catalog.LAG, offsets=read)
    by_group = {row["group"]: row for row in rows}
    assert list(by_group) == ["lost", "late", "level"]
    assert by_group["late"] == {
        "group": "late", "topic": "orders", "queues": 2, "lag": 3, "gone": 0, "oldest": after(7),
        "age": 3593,
    }  # fmt: skip
    assert (by_group["lost"]["lag"], by_group["lost"]["gone"]) == (8, 3)
    assert (by_group["level"]["oldest"], by_group["level"]["age"]) == (None, None)


@pytest.mark.parametrize(
    ("span", "period"),
    [(0, 1), (71, 1), (72, 5), (3600, 60), (86400 * 75, 172800), (86400 * 1000, 86400 * 15)],
)
def test_throughput_has_a_row_for_every_period(ask: Ask, span: int, period: int) -> None:
    rows = ask(
        catalog.THROUGHPUT,
        *several(6, storeSize=100),
        {"storeTimestamp": after(span), "storeSize": 100},
    )
    assert {row["period"] for row in rows} == {period}
    assert len(rows) <= 72
    times = [row["time"] for row in rows]
    assert times == [times[0] + n * timedelta(seconds=period) for n in range(len(rows))]
    assert times[0] <= START
    assert times[-1] <= after(span) < times[-1] + timedelta(seconds=period)
    assert sum(row["messages"] for row in rows) == 7
    assert rows[0]["messagesPerSecond"] == round(rows[0]["messages"] / period, 4)


def test_hot_topics_come_first_and_with_their_share(ask: Ask) -> None:
    stored = [*several(1, topic="c"), *several(6, topic="a"), *several(3, topic="b", queueId=1)]
    rows = ask(catalog.TOPICS, *stored, top=2)
    assert [(row["topic"], row["messages"], row["percent"]) for row in rows] == [
        ("a", 6, 60.0),
        ("b", 3, 30.0),
        ("(others)", 1, 10.0),
    ]


@pytest.mark.parametrize("report", [catalog.TOPICS, space.DISK], ids=lambda report: report.name)
def test_shares_add_up_and_topics_are_told_apart(ask: Ask, report: Report) -> None:
    """Each share rounded for itself, a third would be 33.3 three times."""
    names = ["a", "%RETRY%g", "%DLQ%g", "rmq_sys_x", "SCHEDULE_TOPIC_XXXX", "c", "d"]
    rows = ask(report, *({"topic": name, "storeSize": 100} for name in names))
    assert round(sum(row["percent"] for row in rows), 6) == 100.0
    assert {row["topic"]: row["kind"] for row in rows} == {
        "a": "application", "c": "application", "d": "application", "%RETRY%g": "retry",
        "%DLQ%g": "dead letters", "rmq_sys_x": "system", "SCHEDULE_TOPIC_XXXX": "system",
    }  # fmt: skip
    cut = ask(report, *({"topic": name, "storeSize": 100} for name in names), top=2)
    assert (len(cut), cut[2]["topic"], cut[2]["kind"]) == (3, "(others)", None)
    assert round(sum(row["percent"] for row in cut), 6) == 100.0


@pytest.mark.parametrize("report", [catalog.TOPICS, space.DISK], ids=lambda report: report.name)
def test_deleted_topics_are_named_as_such(ask: Ask, report: Report) -> None:
    """They are in the log, but no broker knows them; a store without topics tells nothing."""
    names = ["a", "gone", "%RETRY%gone", "%LMQ%q", "rmq_sys_x"]
    stored = [{"topic": name} for name in names]
    known = table("topics", [{"topic": "a"}, {"topic": "a", "brokerName": "broker-b"}])
    rows = ask(report, *stored, topics=known)
    assert {row["topic"]: row["kind"] for row in rows} == {
        "a": "application", "gone": "deleted", "%RETRY%gone": "retry", "%LMQ%q": "application",
        "rmq_sys_x": "system",
    }  # fmt: skip
    assert sum(row["messages"] if "messages" in row else row["records"] for row in rows) == len(
        names
    )
    rows = ask(report, *stored, topics=table("topics", []))
    assert "deleted" not in {row["kind"] for row in rows}


def test_topics_that_cannot_be_asked_for_are_not_known(empty: Database) -> None:
    def refused() -> Iterator[pa.RecordBatch]:
        raise UnsupportedLayout("in RocksDB")
        yield

    load(empty, "records", messages([{"topic": "a"}]))
    empty.load("topics", table("topics", []).schema, refused())
    empty.load_messages({})
    (row,) = empty.run(catalog.TOPICS, VALUES).rows
    assert row["kind"] == "application"


def test_hot_queues_show_skew(ask: Ask) -> None:
    stored = [*several(6), *several(1, queueId=1), *several(2, queueId=1, brokerName="broker-b")]
    rows = ask(catalog.QUEUES, *stored)
    assert [(row["brokerName"], row["queueId"], row["skew"]) for row in rows] == [
        ("broker-a", 0, 2.0),
        ("broker-b", 1, 0.67),
        ("broker-a", 1, 0.33),
    ]


def test_brokers_of_two_clusters_are_not_mixed_up(ask: Ask) -> None:
    """Their names are the same, so they are named with their clusters; others are not."""
    west, other = {"cluster": "west"}, {"brokerName": "broker-b", "cluster": "west"}
    stored = [*several(3), *several(2, **west), *several(1, **other)]
    rows = ask(catalog.OVERVIEW, *stored)
    assert [(row["brokerName"], row["records"]) for row in rows] == [
        ("broker-b", 1), ("east/broker-a", 3), ("west/broker-a", 2),
    ]  # fmt: skip
    rows = ask(catalog.QUEUES, *stored)
    assert [(row["brokerName"], row["messages"]) for row in rows] == [
        ("east/broker-a", 3), ("west/broker-a", 2), ("broker-b", 1),
    ]  # fmt: skip
    assert ask(catalog.TOPICS, *stored)[0]["queues"] == 3
    keys = ask(catalog.KEYS, {"keys": "k"}, {"keys": "k", **west})
    assert keys[0]["queues"] == 2


def test_deletions_of_two_clusters_are_not_mixed_up(ask: Ask) -> None:
    """The newest file of each log stays, and only groups of the same broker wait for a file."""
    west = {"cluster": "west", "firstTimestamp": START, "lastTimestamp": after(59)}
    east = {**west, "cluster": "east"}
    segments = table(
        "segments",
        [
            {"firstOffset": 0, "usedBytes": 100, **east},
            {"firstOffset": 100, "usedBytes": 100, **east},
            {"firstOffset": 0, "usedBytes": 100, **west},
        ],
    )
    read = offsets(("late", "a", 0, 0, 0, 10, after(30)))
    rows = ask(space.RETENTION, segments=segments, offsets=read)
    found = {(row["brokerName"], row["firstOffset"]): row for row in rows}
    assert {place: row["current"] for place, row in found.items()} == {
        ("east/broker-a", 0): False, ("east/broker-a", 100): True, ("west/broker-a", 0): True,
    }  # fmt: skip
    assert [found[place]["waiting"] for place in sorted(found)] == [1, 1, 0]


def test_every_word_of_keys_is_a_key(ask: Ask) -> None:
    stored = [{"keys": "a b"}, {"keys": "a", "queueId": 1}, {"keys": " "}, {"keys": None}]
    rows = ask(catalog.KEYS, *stored)
    assert [(row["key"], row["messages"], row["queues"]) for row in rows] == [
        ("a", 2, 2),
        ("b", 1, 1),
    ]


def test_tags_add_up_to_the_whole_topic(ask: Ask) -> None:
    stored = [{"tags": f"tag{n:02}"} for n in range(12) for _ in range(12 - n)]
    rows = ask(catalog.TAGS, *stored, *several(2, topic="quiet"), *several(1, topic="x"), top=2)
    assert [row["tag"] for row in rows[:11]] == [f"tag{n:02}" for n in range(10)] + ["(others)"]
    assert rows[10]["messages"] == 3
    assert round(sum(row["percent"] for row in rows[:11]), 6) == 100.0
    assert rows[11:] == [
        {"topic": "quiet", "tag": "(none)", "messages": 2, "percent": 100.0, "bytes": 400}
    ]


def test_latency_is_of_messages_stored_for_the_first_time(ask: Ask) -> None:
    stored = [{"storeTimestamp": after(n / 1000)} for n in range(1, 101)]
    again = [{"reconsumeTimes": 1, "storeTimestamp": after(900)}]
    committed = [{"sysFlag": 8, "storeTimestamp": after(900)}]
    ahead = [{"storeTimestamp": after(-5)}]
    (row,) = ask(catalog.LATENCY, *stored, *again, *committed, *ahead)
    assert (row["messages"], row["p50"], row["p90"], row["max"]) == (101, 50, 90, 100)
    assert row["clockAhead"] == 1


def test_producers_are_told_apart_by_address_not_port(ask: Ask) -> None:
    stored = [
        {"bornHost": "10.0.0.1:1", "storeTimestamp": after(1)},
        {"bornHost": "10.0.0.1:2"},
        {"bornHost": "[fe80::1]:7", "topic": "b"},
    ]
    rows = ask(catalog.PRODUCERS, *stored)
    assert [(row["host"], row["messages"], row["max"]) for row in rows] == [
        ("10.0.0.1", 2, 1000),
        ("[fe80::1]", 1, 0),
    ]


def test_retries_and_dead_letters_by_group(ask: Ask) -> None:
    stored = [
        *several(20, topic="orders"),
        *several(3, topic="%RETRY%g", reconsumeTimes=1),
        *several(1, topic="%RETRY%g+orders", reconsumeTimes=2),
        *several(1, topic="%DLQ%g", reconsumeTimes=16),
        *several(1, topic="%DLQ%unknown", reconsumeTimes=3),
    ]
    read = offsets(
        ("g", "orders", 0, 15, 10, 20, after(0)),
        ("g", "orders", 1, 3, 5, 20, after(0)),
        ("g", "payments", 0, 9, 0, 5, None),
        ("g", "%RETRY%g", 0, 3, 0, 4, None),
    )
    known, unknown = ask(catalog.RETRIES, *stored, offsets=read)
    assert (known["group"], known["consumed"], known["retries"], known["deadLetters"]) == (
        "g", 10, 4, 1,
    )  # fmt: skip
    assert (known["mostTries"], known["retryPercent"], known["deadPercent"]) == (16, 40.0, 10.0)
    assert (unknown["group"], unknown["consumed"], unknown["retryPercent"]) == (
        "unknown", None, None,
    )  # fmt: skip


def test_dead_letters_by_the_topic_they_come_from(ask: Ask) -> None:
    stored = [
        {"topic": "%DLQ%g", "properties": [("DLQ_ORIGIN_TOPIC", "a"), ("RETRY_TOPIC", "b")]},
        {"topic": "%DLQ%g", "properties": [("RETRY_TOPIC", "a")]},
        {"topic": "%DLQ%g", "properties": [("KEYS", "k")]},
        {"topic": "orders", "properties": []},
    ]
    rows = ask(catalog.DEAD_LETTERS, *stored)
    assert [(row["group"], row["origin"], row["messages"]) for row in rows] == [
        ("g", "a", 2),
        ("g", None, 1),
    ]


def test_unresolved_transactions(ask: Ask) -> None:
    rows = [
        {"topic": "orders", "producerGroup": "p", "bodySize": 10, "checkTimes": 2,
         "storeTimestamp": after(0)},
        {"topic": "orders", "producerGroup": "p", "bodySize": 20, "checkTimes": 0,
         "storeTimestamp": after(10)},
        {"topic": "orders", "producerGroup": "q", "bodySize": 1, "storeTimestamp": after(3600)},
    ]  # fmt: skip
    made = table("transactions", rows)
    first, second = ask(catalog.TRANSACTIONS, transactions=made)
    assert first == {
        "topic": "orders", "producerGroup": "p", "messages": 2, "bodyBytes": 30, "mostChecks": 2,
        "oldest": START, "age": 3600,
    }  # fmt: skip
    assert (second["producerGroup"], second["messages"], second["age"]) == ("q", 1, 0)


def test_scheduled_messages_that_are_due_and_not_yet(ask: Ask) -> None:
    due = [after(3000), after(3700), after(7200)]
    rows: list[dict[str, Any]] = [
        {"topic": "orders", "delayLevel": 18, "bodySize": 5, "deliverTimestamp": at} for at in due
    ]
    rows.append({"topic": "orders", "bodySize": 5, "deliverTimestamp": after(3601)})
    made = table("delay", rows)
    first, second = ask(catalog.SCHEDULED, delay=made)
    assert first == {
        "topic": "orders", "delayLevel": 18, "messages": 3, "bodyBytes": 15, "overdue": 1,
        "nextDue": due[0], "lastDue": due[2], "dueIn": 3600,
    }  # fmt: skip
    assert (second["delayLevel"], second["overdue"], second["dueIn"]) == (None, 0, 1)


def test_files_that_go_and_who_still_reads_them(ask: Ask) -> None:
    rows: list[dict[str, Any]] = [
        {"firstOffset": 100, "usedBytes": 80, "firstTimestamp": after(60),
         "lastTimestamp": after(90)},
        {"firstOffset": 0, "usedBytes": 100, "firstTimestamp": START, "lastTimestamp": after(59)},
        {"firstOffset": 200, "usedBytes": 0},
    ]  # fmt: skip
    segments = table("segments", rows)
    read = offsets(
        ("late", "a", 0, 0, 0, 10, after(30)),
        ("late", "b", 0, 0, 0, 10, after(70)),
        ("behind", "a", 0, 5, 0, 10, after(70)),
        ("level", "a", 0, 10, 0, 10, None),
    )
    found = ask(space.RETENTION, segments=segments, offsets=read)
    assert [(row["firstOffset"], row["waiting"]) for row in found] == [(0, 1), (100, 2), (200, 0)]
    assert found[0]["goes"] == after(59 + 72 * 3600)
    assert found[0]["goesIn"] == 59 + 71 * 3600
    assert [row["current"] for row in found] == [False, False, True]
    assert found[2]["goes"] is None


def test_sizes_are_counted_in_powers_of_two(ask: Ask) -> None:
    stored = [{"bodySize": size} for size in (0, 1, 2, 3, 4, 1023, 1024, 4 << 20)]
    rows = ask(space.SIZES, *stored)
    assert [(row["fromBytes"], row["messages"], row["upTo"]) for row in rows] == [
        (0, 1, 12.5), (1, 1, 25.0), (2, 2, 50.0), (4, 1, 62.5), (512, 1, 75.0), (1024, 1, 87.5),
        (4 << 20, 1, 100.0),
    ]  # fmt: skip


def test_compression_by_topic(ask: Ask) -> None:
    stored = [*several(3, compression="zlib"), *several(1)]
    rows = ask(space.COMPRESSION, *stored)
    assert [(row["compression"], row["percent"], row["bodyBytes"]) for row in rows] == [
        ("zlib", 75.0, 300),
        ("none", 25.0, 100),
    ]


def test_who_fills_the_disk(ask: Ask) -> None:
    stored = [
        *several(3, storeSize=1000),
        {"topic": "SCHEDULE_TOPIC_XXXX", "storeSize": 1000, "storeTimestamp": after(7200)},
    ]
    rows = ask(space.DISK, *stored)
    assert [(row["topic"], row["bytes"], row["percent"]) for row in rows] == [
        ("orders", 3000, 75.0),
        ("SCHEDULE_TOPIC_XXXX", 1000, 25.0),
    ]
    assert (rows[0]["bytesPerHour"], rows[0]["atRetention"]) == (1500, 108_000)
    short = ask(space.DISK, *several(3))
    assert short[0]["bytesPerHour"] is None


def test_what_the_stores_lack_is_a_problem_of_the_reports_that_read_it(empty: Database) -> None:
    load(empty, "offsets", offsets())
    empty.lack("records", UnsupportedLayout("queues are in RocksDB"))
    empty.load_messages({})
    told: list[tuple[int, int]] = []
    lag, topics, disk = run_all(
        empty.run,
        [catalog.LAG, catalog.TOPICS, space.DISK],
        VALUES,
        lambda done, of: told.append((done, of)),
    )
    assert (lag.rows, lag.problem) == ([], None)
    assert [each.problem for each in (topics, disk)] == ["queues are in RocksDB"] * 2
    assert told == [(0, 3), (1, 3), (2, 3), (3, 3)]


def test_what_is_found_wrong_while_reading_stays_what_it_is(empty: Database) -> None:
    def batches(error: Exception) -> Iterator[pa.RecordBatch]:
        yield from messages(several(1)).to_batches()
        raise error

    schema = messages([]).schema
    with pytest.raises(NotAStore, match="^it is gone$"):
        empty.load("records", schema, batches(NotAStore("it is gone")))
    empty.load("records", schema, batches(UnsupportedLayout("DLedger")))
    assert empty.run(catalog.OVERVIEW, VALUES).problem == "DLedger"
    assert empty.run(catalog.RETRIES, VALUES).problem == "DLedger"


def test_a_query_that_fails_is_an_error_of_ours(empty: Database) -> None:
    with pytest.raises(SparkSourceError, match="the report Consumer lag could not be made"):
        empty.run(catalog.LAG, VALUES)


def test_times_of_long_ago_are_taken(ask: Ask) -> None:
    """Producers say any time."""
    born = [datetime(1, 1, 1, tzinfo=UTC), datetime(1850, 5, 4, 3, 2, 1, tzinfo=UTC), START]
    (row,) = ask(catalog.LATENCY, *({"bornTimestamp": time} for time in born))
    assert row["max"] == (START - born[0]) // timedelta(milliseconds=1)


def test_messages_are_the_records_that_consumers_see(empty: Database) -> None:
    stored: list[dict[str, Any]] = [
        {}, {"sysFlag": 4}, {"sysFlag": 12}, {"sysFlag": 8}, {"topic": "SCHEDULE_TOPIC_XXXX"},
        {"topic": "rmq_sys_wheel_timer"}, {"topic": "BenchmarkTest"},
    ]  # fmt: skip
    load(empty, "records", messages(stored))
    load(empty, "topics", table("topics", []))
    empty.load_messages({})
    rows = empty.run(catalog.TOPICS, VALUES).rows
    assert {row["topic"]: row["messages"] for row in rows} == {"orders": 2, "BenchmarkTest": 1}
