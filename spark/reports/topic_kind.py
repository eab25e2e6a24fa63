# SPDX-License-Identifier: Apache-2.0
"""The kind of a topic, as expressions of SQL over the column `topic`."""

from __future__ import annotations

import textwrap
from typing import Final

from txrocketmq.remoting.message.topics import SYSTEM_PREFIX
from txrocketmq.spark.system_topics import HIDDEN_TOPICS

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
             ELSE 'application' END"""
"""`application`, `retry`, `dead letters` or `system`."""
