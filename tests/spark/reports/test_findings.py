# SPDX-License-Identifier: Apache-2.0
"""Each rule: what it says of rows that stand out, and that it says nothing of others."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.spark.reports.results import AT, NASTY, empty_results
from txrocketmq.spark.reports.catalog import REPORTS
from txrocketmq.spark.reports.findings import LEVELS, MOST_OF_A_KIND, Finding, findings
from txrocketmq.spark.reports.report import Result

BY_NAME = {report.name: report for report in REPORTS}


def _found(name: str, *rows: dict[str, Any]) -> list[Finding]:
    return findings([Result(BY_NAME[name], list(rows[0]), rows)], AT)


LAG = {"group": "g", "topic": "t", "lag": 1500, "gone": 0, "age": 7200}
FILE = {
    "brokerName": "b", "firstOffset": 1024, "bytes": 1 << 30, "goes": AT + timedelta(hours=2),
    "goesIn": 7200, "current": False, "waiting": 0,
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "row", "level", "text"),
    [
        ("lag", LAG, "warning",
         "Group g has 1,500 unread messages in topic t; the oldest was stored 2 h ago."),
        ("lag", {**LAG, "age": 3, "lag": 1}, "note",
         "Group g has 1 unread message in topic t; the oldest was stored 3 s ago."),
        ("lag", {**LAG, "lag": 0, "gone": 7}, "problem",
         "Group g has lost 7 messages of topic t, deleted before the group read them."),
        ("queues", {"topic": "t", "brokerName": "b", "queueId": 2, "messages": 400, "skew": 3.25},
         "warning",
         "Queue 2 of topic t on b holds 400 messages, 3.25 times the mean of the topic's queues."),
        ("latency", {"topic": "t", "p50": 1, "p99": 1500, "clockAhead": 0}, "warning",
         "One message in a hundred of topic t took 2 s or longer from its producer to the store."),
        ("latency", {"topic": "t", "p50": 1, "p99": 3, "clockAhead": 4}, "warning",
         ("The clocks of a producer and of the broker differ: 4 messages of topic t were stored"
         " before they were created.")),
        ("retries", {"group": "g", "retries": 3, "deadLetters": 2, "retryPercent": 1.0}, "problem",
         "Group g has given up 2 messages as dead letters."),
        ("retries", {"group": "g", "retries": 20, "deadLetters": 0, "consumed": 10,
                     "retryPercent": 200.0}, "warning",
         "Group g retries often: 20 retries for 10 messages that it has consumed."),
        ("transactions", {"topic": "t", "producerGroup": "p", "messages": 2, "age": 60}, "warning",
         ("Producer group p has neither committed nor rolled back 2 messages that it prepared for"
         " topic t; the oldest is 1 min old.")),
        ("scheduled", {"topic": "t", "overdue": 3, "nextDue": AT}, "warning",
         "3 delayed messages for topic t should have been delivered since 2026-11-20 12:00:00."),
        ("disk", {"topic": "t", "kind": "application", "bytes": 2048, "percent": 75.0}, "note",
         "Topic t takes the most space: 2.0 KiB, 75 % of the log."),
        ("retention", FILE, "note",
         ("The next file of the log of b to be deleted is the one at offset 1,024 (1.0 GiB): it can"
         " go in 2 h, at 2026-11-20 14:00:00.")),
        ("overview", {"brokerName": "b", "last": AT - timedelta(days=3)}, "note",
         ("The last message in the store of b is 3 d old: the broker has been idle or stopped"
         " since, or the store is a copy. Ages are counted to the time of this report; --now sets"
         " another one.")),
    ],
)  # fmt: skip
def test_what_stands_out_is_one_sentence(
    name: str, row: dict[str, Any], level: str, text: str
) -> None:
    assert _found(name, row) == [Finding(level, text, name)]


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("lag", {**LAG, "lag": 0, "age": None}),
        ("queues", {"topic": "t", "brokerName": "b", "queueId": 2, "messages": 9, "skew": 4.0}),
        ("latency", {"topic": "delayed", "p50": 10_000, "p99": 10_500, "clockAhead": 0}),
        ("retries", {"group": "g", "retries": 1, "deadLetters": 0, "retryPercent": None}),
        ("scheduled", {"topic": "t", "overdue": 0, "nextDue": AT}),
        ("retention", {**FILE, "goes": None, "goesIn": None, "current": True}),
        ("overview", {"brokerName": "b", "last": AT}),
        ("overview", {"brokerName": "b", "last": None}),
        ("throughput", {"time": AT, "period": 1, "messages": 3, "messagesPerSecond": 3.0}),
    ],
)
def test_what_is_usual_is_not_told(name: str, row: dict[str, Any]) -> None:
    assert _found(name, row) == []


def test_a_file_that_goes_before_its_groups_have_read_it_is_a_problem() -> None:
    late = {**FILE, "goesIn": -60, "waiting": 2}
    problem, note = _found("retention", late, {**late, "waiting": 1})
    assert problem == Finding(
        "problem",
        "2 files of the log of b can be deleted within a day, although 2 consumer groups have"
        " unread messages there.",
        "retention",
    )
    assert "it can go already" in note.text
    (one, _) = _found("retention", {**late, "waiting": 1})
    assert "although 1 consumer group has unread messages" in one.text


def test_the_space_of_deleted_topics_is_told() -> None:
    gone = {"kind": "deleted", "bytes": 2048, "percent": 5.0}
    (_, one) = _found("disk", {**gone, "topic": "t"})
    assert one.text == "1 deleted topic takes 2.0 KiB of the log until its files are deleted: t."
    (_, many) = _found("disk", *({**gone, "topic": f"t{n}"} for n in range(7)))
    assert "7 deleted topics take 14.0 KiB" in many.text
    assert many.text.endswith(": t0, t1, t2, t3, t4 and others.")


def test_the_busiest_period_is_told() -> None:
    rows = [
        {"time": AT + timedelta(hours=n), "period": 3600, "messages": messages,
         "messagesPerSecond": messages / 3600}
        for n, messages in enumerate([0, 7200, 3600])
    ]  # fmt: skip
    (found,) = _found("throughput", *rows)
    assert found.text == (
        "The busiest 1 h began at 2026-11-20 13:00:00 with 7,200 messages (2/s; the mean is 1/s)."
    )


def test_the_worst_come_first_and_many_of_a_kind_are_counted() -> None:
    rows = [{**LAG, "group": f"g{n}"} for n in range(MOST_OF_A_KIND + 3)]
    found = _found("lag", *rows, {**LAG, "lag": 0, "gone": 1})
    assert [each.level for each in found] == ["problem", *["warning"] * (MOST_OF_A_KIND + 1)]
    assert found[-1].text == "3 more groups are behind."
    assert {each.level for each in found} <= set(LEVELS)


def test_a_report_that_could_not_be_made_is_a_warning() -> None:
    made = Result(BY_NAME["lag"], [], [], "the offsets are in RocksDB")
    (found,) = findings([made], AT)
    assert found.level == "warning"
    assert "Consumer lag could not be made: the offsets are in RocksDB" in found.text


def test_names_are_on_one_line_and_an_empty_store_has_no_findings() -> None:
    assert all(each.text.isprintable() for each in _found("lag", {**LAG, "topic": NASTY}))
    assert findings(empty_results(), AT) == []
