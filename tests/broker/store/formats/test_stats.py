# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from txrocketmq.broker.store.formats.stats import StoreStats

NOW_MS = 1_700_000_000_000


def test_rates_come_with_the_samples_for_them() -> None:
    stats = StoreStats()
    stats.start(NOW_MS, NOW_MS)
    assert stats.runtime_info(NOW_MS)["putTps"] == "  "
    for second in range(61):
        stats.sample(NOW_MS + 1000 * second)
        stats.put(100, 1000, 1, 0)
        stats.got_found += 10
        stats.got_missed += 5
        stats.got_messages += 50
    info = stats.runtime_info(NOW_MS + 60_000)
    assert info["putTps"] == "100.0 100.0 "
    assert info["getFoundTps"] == "10.0 10.0 "
    assert info["getMissTps"] == "5.0 5.0 "
    assert info["getTotalTps"] == "15.0 15.0 "
    assert info["getTransferredTps"] == info["getTransferedTps"] == "50.0 50.0 "
    assert info["putMessageTimesTotal"] == "6100"
    assert info["putMessageFailedTimes"] == "61"
    assert info["putMessageSizeTotal"] == "61000"
    assert info["putMessageAverageSize"] == "10.0"


def test_ten_minutes_are_kept() -> None:
    stats = StoreStats()
    for second in range(1300):
        stats.put(second, 0, 0, 0)
        stats.sample(NOW_MS + 1000 * second)
    ten, minute, ten_minutes = map(float, stats.runtime_info(NOW_MS)["putTps"].split(" "))
    assert ten > minute > ten_minutes > 900


def test_times_are_told_by_the_minute() -> None:
    stats = StoreStats()
    stats.put(98, 0, 0, 0)
    stats.put(1, 0, 0, 10)
    stats.put(1, 0, 0, 11)
    stats.put(0, 0, 0, 20_000)
    assert "[0~10ms]:0" in stats.runtime_info(0)["putMessageDistributeTime"]
    for second in range(60):
        stats.sample(second * 1000)
    info = stats.runtime_info(0)
    assert info["putMessageDistributeTime"].startswith("[<=0ms]:98 [0~10ms]:1 [10~50ms]:1 [50~")
    assert info["putMessageDistributeTime"].endswith("[10s~]:0 ")
    assert info["putMessageEntireTimeMax"] == "20000"
    assert info["putLatency99"] == "10.00"
    assert info["putLatency999"] == "46.00"


def test_runtime_reads_as_the_originals() -> None:
    stats = StoreStats()
    stats.start(NOW_MS, NOW_MS)
    after = NOW_MS + ((26 * 60 + 3) * 60 + 4) * 1000 + 5
    info = stats.runtime_info(after)
    assert info["runtime"] == "[ 1 days, 2 hours, 3 minutes, 4 seconds ]"
    assert info["bootTimestamp"] == str(NOW_MS)
