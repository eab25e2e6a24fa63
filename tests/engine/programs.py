# SPDX-License-Identifier: Apache-2.0
"""Random programs of queries over one load, judged by plain Python over the rows.

A program is a list of steps, each with its expected answer. It is made of JSON, so that it can run
in the process of a Spark Connect client, too, and it needs nothing from txrocketmq.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

CONDITIONS = (
    "topic = 'A'", "topic = 'B'", "topic = 'Never'", "queueId >= 2", "queueOffset < 7",
    "tags = 'x'", "tags IS NULL", "topic IN ('A', 'C') AND queueId = 1", "body IS NOT NULL",
)  # fmt: skip
KINDS = (
    "count", "where", "union", "join", "write", "cache", "group", "view", "table", "scalars",
    "subquery",
)  # fmt: skip
_OF_FRAME = KINDS[:7]
Program = list[tuple[str, list[str]]]


def program(seed: int, steps: int) -> Program:
    """A list of kinds of queries and the conditions that they use."""
    chance = random.Random(seed)
    return [
        (chance.choice(KINDS), [chance.choice(CONDITIONS) for _ in range(2)]) for _ in range(steps)
    ]


class Load(NamedTuple):
    """One load as a frame, a view and a permanent table, and a folder for what is written."""

    spark: Any
    frame: Any
    view: str
    table: str
    scratch: Path


def run(load: Load, steps: Program) -> list[Any]:
    """Returns the answers of Spark."""
    return [
        (_answer if kind in _OF_FRAME else _answer_of_sql)(load, number, kind, *conditions)
        for number, (kind, conditions) in enumerate(steps)
    ]


def _answer(load: Load, number: int, kind: str, one: str, other: str) -> Any:
    frame = load.frame
    match kind:
        case "count":
            return frame.count()
        case "where":
            return _sorted(frame.where(one).collect())
        case "union":
            return _sorted(frame.where(one).union(frame.where(other)).union(frame).collect())
        case "join":
            left, right = frame.where(one).alias("l"), frame.where(other).alias("r")
            return left.join(right, "physicalOffset").count()
        case "write":
            frame.where(one).count()
            frame.write.parquet(str(load.scratch / str(number)))
            return load.spark.read.parquet(str(load.scratch / str(number))).count()
        case "cache":
            kept = frame.where(one).cache()
            found = [kept.count(), frame.where(other).count()]
            kept.unpersist()
            return found
    rows = frame.where(one).groupBy("topic").count().collect()
    return sorted([row[0], row[1]] for row in rows)


def _answer_of_sql(load: Load, _number: int, kind: str, one: str, other: str) -> Any:
    sql, view, table = load.spark.sql, load.view, load.table
    match kind:
        case "view":
            return [sql(f"TABLE {view}").where(one).count(), sql(f"TABLE {view}").count()]
        case "table":
            some, others = load.spark.table(table).where(one), sql(f"TABLE {table}").where(other)
            return [some.count(), others.count(), load.spark.table(table).count()]
        case "scalars":
            (row,) = sql(
                f"SELECT (FROM {table} |> WHERE {one} |> AGGREGATE count(*)),"
                f" (FROM {table} |> AGGREGATE count(*)),"
                f" (FROM {table} |> WHERE {other} |> AGGREGATE count(*))"
            ).collect()
            return list(row)
    first = other.split(" AND ", maxsplit=1)[0]
    (row,) = sql(
        f"FROM {table} |> WHERE {one} |> AS ones"
        f" |> LEFT SEMI JOIN (FROM {table} |> WHERE {first}) AS firsts USING (physicalOffset)"
        " |> AGGREGATE count(*)"
    ).collect()
    return row[0]


def _sorted(rows: list[Any]) -> list[list[Any]]:
    return sorted([row["physicalOffset"], row["topic"]] for row in rows)


def expected(rows: list[dict[str, Any]], steps: Program) -> list[Any]:
    """Returns the answers that these rows give."""
    return [_expected(rows, kind, *conditions) for kind, conditions in steps]


def _expected(rows: list[dict[str, Any]], kind: str, one: str, other: str) -> Any:
    ones = [row for row in rows if _holds(one, row)]
    others = [row for row in rows if _holds(other, row)]
    pairs = [[row["physicalOffset"], row["topic"]] for row in (*ones, *others, *rows)]
    both = len({row["physicalOffset"] for row in ones} & {row["physicalOffset"] for row in others})
    first = [row for row in rows if _holds(other.split(" AND ", maxsplit=1)[0], row)]
    return {
        "count": len(rows),
        "where": sorted(pairs[: len(ones)]),
        "union": sorted(pairs),
        "join": both,
        "write": len(rows),
        "cache": [len(ones), len(others)],
        "group": sorted(map(list, Counter(row["topic"] for row in ones).items())),
        "view": [len(ones), len(rows)],
        "scalars": [len(ones), len(rows), len(others)],
        "table": [len(ones), len(others), len(rows)],
        "subquery": sum(row in first for row in ones),
    }[kind]


def _holds(condition: str, row: dict[str, Any]) -> bool:
    return all(_holds_one(each, row) for each in condition.split(" AND "))


def _holds_one(condition: str, row: dict[str, Any]) -> bool:
    column, operator, literal = condition.split(" ", 2)
    value = row[column]
    if operator == "IS":
        return (value is None) == (literal == "NULL")
    if value is None:
        return False
    given = eval(literal)  # noqa: S307 - a literal of the list above
    match operator:
        case "=":
            return bool(value == given)
        case ">=":
            return bool(value >= given)
        case "<":
            return bool(value < given)
    return value in given
