# SPDX-License-Identifier: Apache-2.0
"""The DataFrames that reports read, and one pass over the log for all of them.

`records` has the columns that the chosen reports need and no others; `messages` is the part of it
that consumers see. Bodies are not read. Each is read once: into files (`spark.reports.snapshot`),
or by Spark's own workers where spark-submit started us; Spark keeps that in memory as far as it
fits, else on its local disk. Queries find the DataFrames as temporary views: one that is given to
`spark.sql` by name would be let go after the first query.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.topics import SYSTEM_PREFIX
from txrocketmq.spark import schema
from txrocketmq.spark.errors import OptionError
from txrocketmq.spark.options import SourceOptions, Use, declared_options
from txrocketmq.spark.reports.report import Report
from txrocketmq.spark.selection import HIDDEN_TOPICS
from txrocketmq.spark.tables.reader import TABLES
from txrocketmq.spark.tables.table import OF_EVERY_TABLE

FRAMES: Final[Mapping[str, Mapping[str, str]]] = {
    "messages": {},
    "records": {"view": "physical"},
    "dead_letters": {
        "topicPattern": "%DLQ%.*",
        "columns": "topic,properties,reconsumeTimes,storeTimestamp",
    },
    "offsets": {"table": "offsets"},
    "delay": {"table": "delay"},
    "transactions": {"table": "transactions"},
    "segments": {"table": "segments"},
}
"""By the name that queries have for it: the options that make it, beside those of the store."""

VIEW_PREFIX: Final = "txrocketmq_"
_CHOOSE_TOPICS: Final = frozenset({"topic", "topicpattern", "assign"})
_OWN: Final = frozenset({"table", "view", "columns", "kafkanames", "namesrvaddr", "nameserver"})
"""Options that reports set themselves, or that have no meaning for them, in lower case."""

_UNSEEN: Final = int(MessageSysFlag.TRANSACTION_PREPARED_TYPE)
"""This bit is set in prepared and in rolled back records."""


def check(options: Mapping[str, str]) -> SourceOptions:
    """The options parsed; OptionError when they make no sense for reports. Needs no Spark."""
    for name in options:
        if name.lower() in _OWN:
            raise OptionError(
                f"option {name} has no meaning for reports: they choose it themselves"
            )
    parsed = SourceOptions.of(options)
    parsed.check(Use.STORE_BATCH)
    return parsed


def asked(options: Mapping[str, str], reports: Sequence[Report]) -> dict[str, dict[str, str]]:
    """By frame that these reports read: the options of `format("rocketmq")` that make it.

    `messages` is made of `records`, which is here in its place.
    """
    needed = set[str]().union(*(report.frames for report in reports))
    columns = ",".join(columns_of(reports))
    made = {}
    for name in sorted({"records" if name == "messages" else name for name in needed}):
        made[name] = _options(options, name)
        if name == "records":
            made[name]["columns"] = columns
    return made


@contextmanager
def frames(
    spark: SparkSession, options: Mapping[str, str], reports: Sequence[Report]
) -> Iterator[dict[str, DataFrame]]:
    """The DataFrames that these reports read, over the store of the options, read by Spark.

    The options are those of `format("rocketmq")`; storePath is needed. Queries find the frames.
    What was kept is let go at the end.
    """
    check(options)
    kept = {
        name: spark.read.format("rocketmq").options(**own).load().persist()
        for name, own in asked(options, reports).items()
    }
    made = dict(kept)
    if "records" in kept:
        made["messages"] = logical(kept["records"], options)
    try:
        with views(spark, made):
            yield made
    finally:
        for frame in kept.values():
            frame.unpersist()


@contextmanager
def views(spark: SparkSession, made: Mapping[str, DataFrame]) -> Iterator[None]:
    """Lets queries find these DataFrames, by temporary views of the session."""
    for name, frame in made.items():
        frame.createOrReplaceTempView(VIEW_PREFIX + name)
    try:
        yield
    finally:
        for name in made:
            spark.catalog.dropTempView(VIEW_PREFIX + name)


def logical(records: DataFrame, options: Mapping[str, str]) -> DataFrame:
    """What the view `logical` would give: without prepared and rolled back records, and without
    system topics, unless they are named.
    """
    seen = records.where(records.sysFlag.bitwiseAND(_UNSEEN) == 0)
    if {"topic", "assign"} & {name.lower() for name in options}:
        return seen
    topic = records.topic
    return seen.where(~(topic.isin(sorted(HIDDEN_TOPICS)) | topic.startswith(SYSTEM_PREFIX)))


def columns_of(reports: Sequence[Report]) -> list[str]:
    """The columns of messages that these reports read, and those that the views differ by."""
    of_messages = [r.sql for r in reports if r.frames & {"messages", "records"}]
    words = set(re.findall(r"\w+", " ".join(of_messages))) | {"topic", "sysFlag"}
    return [c.name for c in schema.MESSAGES if c.name in words] if of_messages else []


def _options(options: Mapping[str, str], name: str) -> dict[str, str]:
    own = FRAMES[name]
    if "table" in own:
        takes = TABLES[own["table"]].options | OF_EVERY_TABLE
    else:
        takes = frozenset(o.name for o in declared_options().values() if Use.STORE_BATCH in o.uses)
    meaning = {option.lower() for option in takes} | {"path"}
    given = {key: value for key, value in options.items() if key.lower() in meaning}
    if any(key.lower() in _CHOOSE_TOPICS for key in given):
        own = {key: value for key, value in own.items() if key.lower() not in _CHOOSE_TOPICS}
    return {**given, **own}
