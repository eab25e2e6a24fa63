# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import duckdb

from txrocketmq.spark.reports.broker_label import BROKER_LABEL

BROKERS = "(VALUES ('east', 'a'), ('west', 'a'), ('west', 'b'), ('west', 'b'))"


def test_a_cluster_is_named_where_the_broker_alone_does_not_tell() -> None:
    with duckdb.connect() as database:
        query = f"SELECT {BROKER_LABEL} FROM {BROKERS} AS t(cluster, brokerName)"  # noqa: S608
        found = sorted(row[0] for row in database.execute(query).fetchall())
    assert found == ["b", "b", "east/a", "west/a"]
