# SPDX-License-Identifier: Apache-2.0
"""What reports read: the frames that their queries name, and the options that make them.

`records` has only the columns that the chosen reports need. `messages` is the part of it that
consumers see, so the log is read once for both. Bodies are not read. No engine is imported: `duck`
and `views` provide the frames to queries.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.topics import LMQ_PREFIX
from txrocketmq.spark.arrow import schema
from txrocketmq.spark.arrow.errors import OptionError
from txrocketmq.spark.options.option import Use
from txrocketmq.spark.options.options import SourceOptions, declared_options
from txrocketmq.spark.reports.report import Report
from txrocketmq.spark.reports.topic_kind import IS_SYSTEM
from txrocketmq.spark.tables.reading import TABLES
from txrocketmq.spark.tables.table import OF_EVERY_TABLE


def _whole(table: str) -> dict[str, str]:
    """Returns options for a table with the columns that are there on demand, such as cluster."""
    return {"table": table, "columns": ",".join(each.name for each in TABLES[table].columns)}


FRAMES: Final[Mapping[str, Mapping[str, str]]] = {
    "records": {"view": "physical"},
    "dead_letters": {
        "topicPattern": "%DLQ%.*",
        "columns": "topic,properties,reconsumeTimes,storeTimestamp",
    },
    "offsets": _whole("offsets"),
    "delay": {"table": "delay"},
    "transactions": {"table": "transactions"},
    "segments": _whole("segments"),
    "topics": {"table": "topics"},
}
"""The options that make each frame, besides those of the store."""

OPTIONAL: Final = frozenset({"topics"})
"""Frames that are empty where the stores cannot give them."""

MESSAGES: Final = "messages"
"""The frame that is made from `records`."""
_CHOOSE_TOPICS: Final = frozenset({"topic", "topicpattern", "assign"})
_OWN: Final = frozenset({"table", "view", "columns", "kafkanames", "namesrvaddr", "nameserver"})
"""Options, in lower case, that reports set themselves or that mean nothing to them."""

_UNSEEN: Final = int(MessageSysFlag.TRANSACTION_PREPARED_TYPE)
"""This bit is set in prepared and in rolled back records."""


def check(options: Mapping[str, str]) -> SourceOptions:
    """Parses the options. Raises OptionError if they make no sense for reports."""
    for name in options:
        if name.lower() in _OWN:
            raise OptionError(
                f"option {name} cannot be set for reports, which choose it themselves"
            )
    parsed = SourceOptions.of(options)
    for topic in parsed.topics or ():
        if topic.startswith(LMQ_PREFIX):
            raise OptionError(
                f"{topic} is a light queue, and reports count each message once: name the topics"
                " that its messages were sent to"
            )
    parsed.check(Use.STORE_BATCH)
    return parsed


def sources(reports: Sequence[Report]) -> set[str]:
    """Returns the names of the frames that have to be read for these reports."""
    needed = set[str]().union(*(report.frames for report in reports))
    return {"records" if name == MESSAGES else name for name in needed}


def asked(options: Mapping[str, str], reports: Sequence[Report]) -> dict[str, dict[str, str]]:
    """Returns the options of `format("rocketmq")` for each frame that these reports read."""
    columns = ",".join(columns_of(reports))
    made = {}
    for name in sorted(sources(reports)):
        made[name] = _options(options, name)
        if name == "records":
            made[name]["columns"] = columns
    return made


def messages_sql(options: Mapping[str, str], records: str = "records") -> str:
    """Returns the query that makes `messages` from `records`, as the view `logical` does.

    It leaves out prepared and rolled back records, and system topics unless topics are named.
    """
    seen = f"SELECT * FROM {records} WHERE (sysFlag & {_UNSEEN}) = 0"  # noqa: S608 - our own name
    if {"topic", "assign"} & {name.lower() for name in options}:
        return seen
    return f"{seen} AND NOT ({IS_SYSTEM})"


def columns_of(reports: Sequence[Report]) -> list[str]:
    """Returns the columns that these reports read, and those that `messages_sql` needs."""
    of_messages = [r.sql for r in reports if r.frames & {MESSAGES, "records"}]
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
