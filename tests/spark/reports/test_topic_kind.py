# SPDX-License-Identifier: Apache-2.0
"""What the expression gives is in tests/engine/test_reports.py."""

from __future__ import annotations

from txrocketmq.spark.reports.topic_kind import TOPIC_KIND
from txrocketmq.spark.store.system_topics import HIDDEN_TOPICS


def test_every_hidden_topic_is_named() -> None:
    assert [topic for topic in HIDDEN_TOPICS if f"'{topic}'" not in TOPIC_KIND] == []
    assert "'rmq_sys_'" in TOPIC_KIND
    assert TOPIC_KIND.count("'") == 2 * (
        len(HIDDEN_TOPICS)
        + len(("%R", "retry", "%D", "dead", "rmq", "system", "deleted", "application"))
    )
