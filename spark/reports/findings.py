# SPDX-License-Identifier: Apache-2.0
"""What stands out in the results of reports: a sentence each, with a figure and where to look.

Findings are taken from the rows of the requested reports, without queries of their own. What is
lost or broken comes first, then what needs attention, then what is worth knowing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from txrocketmq.remoting.primitives.plain_text import plain
from txrocketmq.spark.reports.report import ReportRow, Result
from txrocketmq.spark.reports.texts import cell, duration, size

NO_FINDINGS: Final = "Nothing stands out in these reports."
LEVELS: Final = ("problem", "warning", "note")
MOST_OF_A_KIND: Final = 5
"""Findings of one kind that are listed; the others are only counted."""
RECENT_S: Final = 60
"""Messages younger than this may still be on their way."""
UNEVEN_SKEW: Final = 2.0
UNEVEN_MESSAGES: Final = 100
"""A queue with fewer messages may be uneven by chance."""
RETRY_PERCENT: Final = 5.0
SLOW_P99_MS: Final = 1_000
QUIET_S: Final = 24 * 3600
"""A store without new messages for so long is a copy, or its broker has stopped."""
SOON_S: Final = 24 * 3600
SYSTEM_PERCENT: Final = 20.0


class Finding(NamedTuple):
    """A sentence about the stores."""

    level: str
    """One of LEVELS."""
    text: str
    report: str
    """The name of the report whose table has the details."""


def findings(results: Sequence[Result], now: datetime) -> list[Finding]:
    """Returns the findings, the most serious ones first."""
    found: list[Finding] = []
    for result in results:
        name = result.report.name
        if result.problem:
            text = f"The report {result.report.title} could not be made: {result.problem}"
            found.append(Finding("warning", plain(text), name))
        said = _overview(result.rows, now) if name == "overview" else iter(())
        if name in _RULES:
            said = _RULES[name](result.rows)
        found += [Finding(level, plain(text), name) for level, text in said]
    return sorted(found, key=lambda each: LEVELS.index(each.level))


Said = Iterator[tuple[str, str]]
Rule = Callable[[Sequence[ReportRow]], Said]


def _most(level: str, texts: Sequence[str], others: str) -> Said:
    """Yields the first texts, and one that counts the others."""
    for text in texts[:MOST_OF_A_KIND]:
        yield level, text
    if len(texts) > MOST_OF_A_KIND:
        yield level, f"{len(texts) - MOST_OF_A_KIND:,} more {others}."


def _count(number: float, noun: str, plural: str = "") -> str:
    """Formats a number with a noun: `1 message`, `1,500 messages`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def _name(row: ReportRow, column: str) -> str:
    return cell(column, row.get(column)) or "(none)"


def _number(row: ReportRow, column: str) -> Any:
    return row.get(column) or 0


def _overview(rows: Sequence[ReportRow], now: datetime) -> Said:
    for row in rows:
        last = row.get("last")
        if not isinstance(last, datetime) or "brokerName" not in row:
            continue
        age_s = (now - last).total_seconds()
        if age_s > QUIET_S:
            text = (
                f"The last message in the store of {_name(row, 'brokerName')} is"
                f" {duration(age_s)} old: the broker has been idle or stopped since, or the store"
                " is a copy. Ages are counted to the time of this report; --now sets another one."
            )
            yield "note", text


def _lag(rows: Sequence[ReportRow]) -> Said:
    lost = [
        f"Group {_name(row, 'group')} has lost {_count(row['gone'], 'message')} of topic"
        f" {_name(row, 'topic')}, deleted before the group read them."
        for row in rows
        if _number(row, "gone") > 0
    ]
    yield from _most("problem", lost, "groups have lost messages of a topic")
    late: list[str] = []
    recent: list[str] = []
    for row in rows:
        if _number(row, "lag") <= 0:
            continue
        age = row.get("age")
        waited = "" if age is None else f"; the oldest was stored {duration(age)} ago"
        text = (
            f"Group {_name(row, 'group')} has {_count(row['lag'], 'unread message')} in topic"
            f" {_name(row, 'topic')}{waited}."
        )
        (recent if age is not None and age < RECENT_S else late).append(text)
    yield from _most("note", recent, "groups have a recent lag")
    yield from _most("warning", late, "groups are behind")


def _throughput(rows: Sequence[ReportRow]) -> Said:
    busiest = max(rows, key=lambda row: _number(row, "messages"), default=None)
    if busiest is None or len(rows) < 2 or "period" not in busiest:
        return
    total = sum(_number(row, "messages") for row in rows)
    mean = total / sum(row["period"] for row in rows)
    text = (
        f"The busiest {duration(busiest['period'])} began at {cell('time', busiest['time'])} with"
        f" {_count(busiest['messages'], 'message')}"
        f" ({cell('messagesPerSecond', busiest['messagesPerSecond'])}; the mean is"
        f" {cell('messagesPerSecond', mean)})."
    )
    yield "note", text


def _queues(rows: Sequence[ReportRow]) -> Said:
    uneven = [
        f"Queue {row['queueId']} of topic {_name(row, 'topic')} on {_name(row, 'brokerName')} holds"
        f" {_count(row['messages'], 'message')}, {row['skew']:.3g} times the mean of the topic's"
        " queues."
        for row in rows
        if _number(row, "skew") >= UNEVEN_SKEW and row["messages"] >= UNEVEN_MESSAGES
    ]
    yield from _most("warning", uneven, "queues are uneven")


def _latency(rows: Sequence[ReportRow]) -> Said:
    ahead = [
        f"The clocks of a producer and of the broker differ: {_count(row['clockAhead'], 'message')}"
        f" of topic {_name(row, 'topic')} were stored before they were created."
        for row in rows
        if _number(row, "clockAhead") > 0
    ]
    yield from _most("warning", ahead, "topics show clocks that differ")
    slow = [
        f"One message in a hundred of topic {_name(row, 'topic')} took"
        f" {duration(row['p99'] / 1000)} or longer from its producer to the store."
        for row in rows
        if _number(row, "p99") >= SLOW_P99_MS and not _is_delayed(row)
    ]
    yield from _most("warning", slow, "topics have slow messages")


def _is_delayed(row: ReportRow) -> bool:
    """Returns whether half of the messages are late, as in a topic of delayed messages."""
    return bool(_number(row, "p50") >= SLOW_P99_MS)


def _retries(rows: Sequence[ReportRow]) -> Said:
    dead = [
        f"Group {_name(row, 'group')} has given up"
        f" {_count(row['deadLetters'], 'message')} as dead letters."
        for row in rows
        if _number(row, "deadLetters") > 0
    ]
    yield from _most("problem", dead, "groups have dead letters")
    often = [
        f"Group {_name(row, 'group')} retries often: "
        f"{_count(row['retries'], 'retry', 'retries')} for"
        f" {_count(row['consumed'], 'message')} that it has consumed."
        for row in rows
        if _number(row, "retryPercent") >= RETRY_PERCENT
    ]
    yield from _most("warning", often, "groups retry often")


def _transactions(rows: Sequence[ReportRow]) -> Said:
    open_ = [
        f"Producer group {_name(row, 'producerGroup')} has neither committed nor rolled back"
        f" {_count(row['messages'], 'message')} that it prepared for topic {_name(row, 'topic')};"
        f" the oldest is {duration(row['age'])} old."
        for row in rows
        if _number(row, "messages") > 0 and row.get("age") is not None
    ]
    yield from _most("warning", open_, "groups have open transactions")


def _scheduled(rows: Sequence[ReportRow]) -> Said:
    late = [
        f"{_count(row['overdue'], 'delayed message')} for topic {_name(row, 'topic')} should have"
        f" been delivered since {cell('nextDue', row['nextDue'])}."
        for row in rows
        if _number(row, "overdue") > 0
    ]
    yield from _most("warning", late, "topics wait for delayed messages")


def _disk(rows: Sequence[ReportRow]) -> Said:
    named = [row for row in rows if "bytes" in row and "kind" in row]
    if not named:
        return
    first = named[0]
    text = (
        f"Topic {_name(first, 'topic')} takes the most space: {size(first['bytes'])},"
        f" {cell('percent', first['percent'])} of the log."
    )
    yield "note", text
    deleted = [row for row in named if row["kind"] == "deleted"]
    if deleted:
        names = ", ".join(_name(row, "topic") for row in deleted[:MOST_OF_A_KIND])
        text = (
            f"{_count(len(deleted), 'deleted topic takes', 'deleted topics take')}"
            f" {size(sum(row['bytes'] for row in deleted))} of the log until its files are deleted:"
            f" {names}{' and others' if len(deleted) > MOST_OF_A_KIND else ''}."
        )
        yield "note", text
    own = sum(row["percent"] for row in named if row["kind"] == "system")
    if own >= SYSTEM_PERCENT:
        yield "note", f"Topics that brokers keep for themselves take {own:.3g} % of the log."


def _retention(rows: Sequence[ReportRow]) -> Said:
    going = [row for row in rows if row.get("goesIn") is not None]
    threatened = [row for row in going if row["goesIn"] <= SOON_S and row["waiting"]]
    if threatened:
        by_broker = Counter(_name(row, "brokerName") for row in threatened)
        for broker, files in by_broker.items():
            waiting = max(r["waiting"] for r in threatened if _name(r, "brokerName") == broker)
            text = (
                f"{_count(files, 'file')} of the log of {broker} can be deleted within a day,"
                f" although {_count(waiting, 'consumer group')} {'has' if waiting == 1 else 'have'}"
                " unread messages there."
            )
            yield "problem", text
    for broker in dict.fromkeys(_name(row, "brokerName") for row in going):
        row = next(row for row in going if _name(row, "brokerName") == broker)
        when = (
            f"in {duration(row['goesIn'])}, at {cell('goes', row['goes'])}"
            if row["goesIn"] > 0
            else f"already; it has been old enough since {cell('goes', row['goes'])}"
        )
        text = (
            f"The next file of the log of {broker} to be deleted is the one at offset"
            f" {row['firstOffset']:,} ({size(row['bytes'])}): it can go {when}."
        )
        yield "note", text


_RULES: Final[Mapping[str, Rule]] = {
    "lag": _lag,
    "throughput": _throughput,
    "queues": _queues,
    "latency": _latency,
    "retries": _retries,
    "transactions": _transactions,
    "scheduled": _scheduled,
    "disk": _disk,
    "retention": _retention,
}
"""The rules, by the name of the report whose rows they read."""
