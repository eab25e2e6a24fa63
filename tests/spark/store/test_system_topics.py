# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from txrocketmq.spark.store.system_topics import is_system_topic


def test_what_brokers_write_for_themselves() -> None:
    assert is_system_topic("RMQ_SYS_TRANS_HALF_TOPIC")
    assert is_system_topic("rmq_sys_wheel_timer")
    assert not is_system_topic("%RETRY%group")
    assert not is_system_topic("BenchmarkTest"), "the original's benchmark sends to it"
