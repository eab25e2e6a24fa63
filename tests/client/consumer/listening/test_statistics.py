# SPDX-License-Identifier: Apache-2.0
"""Statistics: samples of the last minute and of the last hour."""

from __future__ import annotations

from txrocketmq.client.consumer.listening.statistics import ConsumerStatistics


def test_nothing_is_told_before_a_sample() -> None:
    statistics = ConsumerStatistics()
    statistics.of("T").succeeded(5)
    assert statistics.status("T").consume_ok_tps == 0.0


def test_paces_are_those_of_the_last_minute() -> None:
    statistics = ConsumerStatistics()
    topic = statistics.of("T")
    topic.pulled(30, 6)
    topic.pulled(10, 2)
    topic.succeeded(35)
    topic.failed(5)
    topic.consumed_in(8)
    topic.consumed_in(2)
    statistics.sample(100_000)
    statistics.sample_hour(100_000)
    status = statistics.status("T")
    assert (status.pull_tps, status.pull_rt) == (4.0, 4.0)
    assert (status.consume_ok_tps, status.consume_failed_tps, status.consume_rt) == (3.5, 0.5, 5.0)
    assert status.consume_failed_msgs == 5
    for step in range(1, 8):
        statistics.sample(100_000 + step * 10_000)
    status = statistics.status("T")
    assert (status.pull_tps, status.consume_ok_tps) == (0.0, 0.0)
    assert (status.consume_rt, status.consume_failed_msgs) == (5.0, 5)  # the last hour's


def test_topics_are_apart() -> None:
    statistics = ConsumerStatistics()
    statistics.of("T").succeeded(10)
    statistics.sample(10_000)
    assert statistics.status("U").consume_ok_tps == 0.0
    assert statistics.status("T").consume_ok_tps == 1.0
