# SPDX-License-Identifier: Apache-2.0
"""The kind of a topic, as parts of a query over the column `topic`."""

from __future__ import annotations

import textwrap
from typing import Final

from txrocketmq.remoting.message.topics import LMQ_PREFIX, SYSTEM_PREFIX
from txrocketmq.spark.store.system_topics import HIDDEN_TOPICS

_SYSTEM_TOPICS: Final = textwrap.fill(
    ", ".join(f"'{topic}'" for topic in sorted(HIDDEN_TOPICS)),
    80,
    subsequent_indent=" " * 15,
)
IS_SYSTEM: Final = f"""\
startswith(topic, '{SYSTEM_PREFIX}') OR topic IN (
               {_SYSTEM_TOPICS})"""
"""Whether the topic belongs to the system."""
TOPIC_KIND: Final = f"""\
CASE
             WHEN startswith(topic, '%RETRY%') THEN 'retry'
             WHEN startswith(topic, '%DLQ%') THEN 'dead letters'
             WHEN {IS_SYSTEM} THEN 'system'
             WHEN isDeleted THEN 'deleted'
             ELSE 'application' END"""
"""`application`, `deleted`, `retry`, `dead letters` or `system`; needs IS_DELETED."""
KNOWN: Final = """\
known AS (
  SELECT topic AS name
  FROM {topics}
  GROUP BY topic)"""
"""The topics of the brokers, as a part of WITH."""
IS_DELETED: Final = f"""\
known.name IS NULL AND NOT startswith(topic, '{LMQ_PREFIX}')
           AND (SELECT count(*) FROM known) > 0 AS isDeleted"""  # noqa: S608 - our own names
"""Whether the topic is at no broker: only the log has it. Of light queues brokers have no table."""


def with_kinds(query: str) -> str:
    """Returns a query with these parts in the places that are named after them."""
    return (
        query.replace("__KIND__", TOPIC_KIND)
        .replace("__KNOWN__", KNOWN)
        .replace("__IS_DELETED__", IS_DELETED)
    )
